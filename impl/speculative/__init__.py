"""Reference rules of speculative decoding, batched, on any torch device: each claims what it is."""

from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.greedy import GreedyVerifier
from tokenlaw.impl.speculative.one_hot import OneHotVerifier
from tokenlaw.impl.speculative.sample_and_match import SampleAndMatchVerifier
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.impl.speculative.typical import TypicalAcceptance
from tokenlaw.spec.generation_contracts import Verifier

VERIFIERS: dict[str, type[Verifier]] = {
    "chain": ChainVerifier,
    "block": BlockVerifier,
    "one-hot": OneHotVerifier,
    "sample-and-match": SampleAndMatchVerifier,
    "tree": TreeVerifier,
    "top-k-tree": TopKTreeVerifier,
    "typical": TypicalAcceptance,
    "greedy": GreedyVerifier,
}
"""Name of a rule to its verifier."""

__all__ = [
    "VERIFIERS",
    "BlockVerifier",
    "ChainVerifier",
    "GreedyVerifier",
    "OneHotVerifier",
    "SampleAndMatchVerifier",
    "TopKTreeVerifier",
    "TreeVerifier",
    "TypicalAcceptance",
]
