"""What was found out about a decoder's laws, in words."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from tokenlaw.stats.decoder_laws import NUMBERS, Cell, Comparison
from tokenlaw.stats.decoder_programs import Outcome
from tokenlaw.stats.decoder_proving import CaseProof
from tokenlaw.stats.decoder_retelling import retold
from tokenlaw.stats.decoder_sampling import CaseSamples
from tokenlaw.stats.e_values import log10_of
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.narrative import Line
from tokenlaw.stats.law_pairs import shortest_line

MOST_OUTCOMES = 5
"""Outcomes that are shown side by side."""

MOST_CHOICES = 24
"""Choices of a path that are told."""


def refuted_by_proof(proof: CaseProof) -> str:
    """A refuted case: how far off it is, the shortest path that shows it, both laws side by side."""
    worst, law = proof.found_wrong()
    open_ = "" if law.complete else "at least "
    lines = [
        f"Situation {proof.case.title}: the {worst.question.what} is off by TV {open_}{worst.least:.3g}, "
        f"{law.paths} paths."
    ]
    path = shortest_path(worst, law)
    if path is not None and proof.program is not None:
        told = _cut(retold(proof.program, *path))
        lines.append(f"  A path that shows it: {'; '.join(told)}.")
    return "\n".join([*lines, *_side_by_side(worst)])


def refuted_by_samples(found: CaseSamples, needed: float) -> str:
    """A refuted case: the evidence, and frequencies beside probabilities.

    Parameters
    ----------
    needed : natural logarithm of the e-value that refutes.
    """
    worst = found.found_wrong()
    line = (
        f"Situation {found.case.title}: the {worst.question.what} isn't the exact one, log10 e = "
        f"{log10_of(found.log_e)} ({log10_of(needed)} refutes), {found.samples} samples at TV "
        f"{worst.least:.3g} from it."
    )
    return "\n".join([line, *_side_by_side(worst)])


def _side_by_side(comparison: Comparison) -> Iterable[str]:
    """Both laws, where they differ most."""
    yield f"  {'what' if comparison.question.what == NUMBERS else 'tokens':32}  found       exact"
    for place in comparison.farthest(MOST_OUTCOMES):
        found, exact = comparison.found.get(place, 0.0), comparison.exact.get(place, 0.0)
        yield f"  {_shown(*place):32}  {found:<10.6g}  {exact:.6g}"


def _shown(group: Hashable, cell: Cell) -> str:
    if isinstance(cell, str):
        return cell or "all as they should be"
    tokens: Any = cell
    shown = " and ".join(str(list(sample)) for sample in tokens)
    given: Any = group
    return shown if group is None else f"{shown}, forked at {list(given)}"


def shortest_path(comparison: Comparison, law: Law) -> tuple[Line, Outcome] | None:
    """The path of the fewest choices to what happens too often; None where nothing is chosen."""
    question, wrong = comparison.question, comparison.telling()

    def shows(outcome: Any) -> bool:
        return isinstance(outcome, Outcome) and (question.group(outcome), question.cell(outcome)) in wrong

    return shortest_line(law, shows)


def _cut(told: Sequence[str]) -> list[str]:
    """The last ones, where there are very many: what is wrong comes at the end."""
    left = len(told) - MOST_CHOICES
    return list(told) if left <= 0 else [f"{left} choices", *told[left:]]
