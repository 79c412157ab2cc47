"""Writes docs/rules.md from the checks themselves: ``python docs/generate_rules.py``."""

from pathlib import Path

from tokenlaw.properties.suites import suites
from tokenlaw.spec.verdicts import Check

PAGE = Path(__file__).with_name("rules.md")

_HEAD = """# Rules

Every check that an audit runs, from the code (`docs/generate_rules.py`). The number is that of the invariant.
A check whose capabilities are absent is `not supported`, and one whose events never happened is
`not exercised`: neither is a pass. What a capability means stands in `spec/contracts.py`.

Never required, because correct engines differ in it: that identical blocks are merged, that nothing stays
allocated beyond the declared lookahead, that a prefix which could be hit is hit, that a cached block's
ancestors are cached, or that text is equal.
"""


def _row(check: Check) -> str:
    needs = ", ".join(sorted(check.needs)) or "nothing"
    further = (f"{event} (with {capability})" for capability, event in check.exercised_with)
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
