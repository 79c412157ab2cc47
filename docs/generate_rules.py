"""Writes docs/rules.md from the checks themselves: ``python docs/generate_rules.py``."""

from pathlib import Path

from tokenlaw.spec.verdicts import Check
from tokenlaw.suites import suites

PAGE = Path(__file__).with_name("rules.md")

_HEAD = """# Rules

Every check that an audit runs, from the code (`docs/generate_rules.py`). A check whose capabilities are
absent is `not supported`, and one whose events never happened is `not exercised`: neither is a pass.
What a capability means stands in `spec/contracts.py`.

The numbers are those of the invariants that 239 public reports of broken KV caches were found to break:
K1 gather, K2 reference counts, K3 partition of the pool, K4 no write into what is shared or published,
K5 copy budget, K6 table length, K7 cached content, K8 hits, K9 publishing, K10 epochs, K11 bystanders,
K12 failures are atomic, K13 release, K15 rollback, K16 acceptance of drafts, K17 window, K18 poison,
K19 placement, K20 layout, K21 numerics, K22 split and merge, K25 physical moves (copies, beams, writes
in flight), K28 independence of calls. Not judged yet: K23 scales of quantised caches, K24 shifted
positions, K26 tiers, K27 pins.

L1 to L21 are the laws of a speculative step. Which of them are asked depends on what a verifier claims
(`textbook`, `block`, `exact`, `approximate`): block verification and sample-and-match are exact without the
textbook's joint law, so they aren't held to L6 to L9.

D1 to D14 are what whole decoding loops owe in sessions of requests: every token that is certain (greedy
decoding, or a target of certain tokens) is compared with target-only decoding, whatever arrives, forks,
ends or waits meanwhile. E1 to E9 are the laws of what they decode.

Never required, because correct engines differ in it: that identical blocks are merged, that nothing
stays allocated beyond the declared lookahead, that blocks below the window are given back, that a prefix
which could be hit is hit, that a cached block's ancestors are cached (K14), that an eviction drops no more
than it says, or that text is equal.
"""


def _row(check: Check) -> str:
    needs = ", ".join(sorted(check.needs)) or "nothing"
    further = (f"{event} (with {', '.join(sorted(needed))})" for needed, event in check.exercised_with)
    events = ", ".join([*check.exercised_by, *further])
    return f"| `{check.id}` | {check.rule} | {check.title} | {check.severity} | {needs} | {events} |"


def page() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD]
    for contract, suite in suites().items():
        parts.append(f"\n## {contract}\n")
        parts.append("| check | rule | claim | a violation means | needs | must have happened |")
        parts.append("| --- | --- | --- | --- | --- | --- |")
        parts.extend(_row(check) for check in suite.checks)
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
