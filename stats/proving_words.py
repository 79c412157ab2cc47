"""What a proof found wrong, in words: the law, the shortest path that shows it, both laws side by side."""

from collections.abc import Iterable
from typing import Any

from tokenlaw.spec.laws import Tokens
from tokenlaw.stats.enumeration.choices import Draw
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.narrative import narrate
from tokenlaw.stats.law_pairs import shortest_line
from tokenlaw.stats.proving import CaseProof
from tokenlaw.stats.proving_laws import COMPLETED, Comparison, Rows
from tokenlaw.stats.proving_programs import KIND, Illegal

MOST_OUTCOMES = 5
"""Outcomes that are shown side by side."""

MOST_DRAWN = 16
"""Outcomes that are drawn."""


def refutation(proof: CaseProof) -> str:
    """A refuted case in words."""
    worst, law = proof.found_wrong()
    rows = " and ".join(repr(kind) for kind in worst.names)
    open_ = "" if worst.most - worst.least < worst.least / 1000 else "at least "
    lines = [
        f"Situation {proof.case.title}: the {worst.what} is off by TV {open_}{worst.least:.3g}, rows of kind "
        f"{rows}, {law.paths} paths."
    ]
    told = _shortest(worst, law)
    if told:
        lines.append(f"  A path that shows it: {'; '.join(told)}.")
    return "\n".join([*lines, *_side_by_side(worst)])


def shown_proof(proof: CaseProof) -> dict[str, Any]:
    """A refuted case as data to be drawn, see `tokenlaw.stats.shown_laws.ShownLaw`."""
    worst, law = proof.found_wrong()
    shown = worst.farthest(MOST_DRAWN)
    outcomes = [
        {"outcome": _shown(one), "exact": worst.exact.get(one, 0.0), "found": worst.found.get(one, 0.0)}
        for one in shown
    ]
    others = {**worst.found, **worst.exact}.keys() - set(shown)
    return {
        "what": worst.what,
        "where": f"rows of kind {' and '.join(map(repr, worst.names))}, {proof.case.title}",
        "outcomes": outcomes,
        "others": {
            "outcomes": len(others),
            "exact": sum(worst.exact.get(one, 0.0) for one in others),
            "found": sum(worst.found.get(one, 0.0) for one in others),
        },
        "path": _shortest(worst, law),
    }


def _side_by_side(comparison: Comparison) -> Iterable[str]:
    """Both laws, where they differ most."""
    completed = comparison.what == COMPLETED
    yield f"  {'tokens' if completed else 'emitted':24}  found       exact"
    for outcome in comparison.farthest(MOST_OUTCOMES):
        found, exact = comparison.found.get(outcome, 0.0), comparison.exact.get(outcome, 0.0)
        yield f"  {_shown(outcome):24}  {found:<10.6g}  {exact:.6g}"


def _shown(rows: Rows) -> str:
    return " and ".join(str(one) if isinstance(one, Illegal) else str(list(one)) for one in rows)


def _shortest(comparison: Comparison, law: Law) -> list[str]:
    """The path of the fewest choices among those that lead to what happens too often."""
    wrong = comparison.telling()

    def shows(outcome: Any) -> bool:
        kinds, rows = outcome
        return bool(kinds == comparison.kinds and any(_begin(rows, one) for one in wrong))

    found = shortest_line(law, shows)
    if found is None:
        return []
    line, (_, rows) = found
    own = [(node, taken) for node, taken in line if not _is_of_kind(node.question)]
    return narrate(own, rows[0] if len(rows) == 1 else tuple(map(str, rows)))


def _is_of_kind(question: object) -> bool:
    return isinstance(question, Draw) and question.source == KIND


def _begin(mine: Rows, whole: Rows) -> bool:
    """Whether these rows are those, or begin them."""
    return all(_begins(one, other) for one, other in zip(mine, whole, strict=False))


def _begins(mine: Tokens | Illegal, whole: Tokens | Illegal) -> bool:
    if isinstance(mine, Illegal) or isinstance(whole, Illegal):
        return mine == whole
    return whole[: len(mine)] == mine
