"""Evidence about deterministic behaviour: traces, strategies, rules and the tests that run them."""
