"""What refutes a law, in words: the scenario, the kind of row, and the cells that are farthest off."""

import numpy as np
from scipy import special

from tokenlaw.spec.generation_contracts import TEXTBOOK
from tokenlaw.stats.cells import worst_cells
from tokenlaw.stats.distances import plug_in_tv, tv_bounds
from tokenlaw.stats.e_values import log10_of
from tokenlaw.stats.measures import BONUS, COMPLETED, DRAFTS, JOINT, LENGTH, REJECTED, PoissonMeasure
from tokenlaw.stats.scenario import Kind
from tokenlaw.stats.trial import KindResult, Trial

MOST_CELLS = 4
"""Cells that a finding shows."""

BEYOND_ROUNDING = 1e-6
"""Rounding doesn't explain outcomes in cells that are left out if so many are less probable than this."""


def gate_finding(trial: Trial, check: str, needed: float, alpha: float | None = None) -> str:
    """The kind that speaks most against the law of a check, with its worst cells.

    Parameters
    ----------
    needed : log e-value that refutes.
    alpha : probability that the bounds of the total variation are wrong, for each kind of the trial; without
        it none are given.
    """
    log_e, kind, result = worst_kind(trial, check)
    measure = result.measures.measures[check]
    counts, law = result.measures.counts(check, result.counted), measure.law
    text = (
        f"Rows {_named(kind)} of scenario {trial.scenario.name!r}: log10 e = {log10_of(log_e)} "
        f"({log10_of(needed)} refutes), {int(counts.sum())} counted"
    )
    lines = [
        f"  {outcome_words(check, list(cell))}: {int(counts[cell])} times, but it can't happen"
        for cell in measure.impossible(counts)[:MOST_CELLS]
    ]
    left_out, mean = beyond_rounding(check, result)
    if left_out:
        told = (
            f"  a draft rejected where p and q differ by rounding only: {left_out} times, expected {mean:.2g}"
        )
        lines = [told, *lines]
    observed, exact = _possible(counts, law, left_out)
    if not observed.any():
        return "\n".join([f"{text}, none of them in a cell that the law allows.", *lines])
    tv = f"TV {plug_in_tv(observed, exact):.3g} from the exact law where that isn't zero"
    if alpha is not None:
        tv += _bounded(observed, exact, alpha / (trial.looks * (trial.looks + 1)))
    return "\n".join([f"{text}, {tv}.", *lines, *_cells(check, counts, law, left_out)][: MOST_CELLS + 1])


def worst_kind(trial: Trial, check: str) -> tuple[float, Kind, KindResult]:
    """The kind that speaks most against the law of a check, with its log e-value."""
    pairs = [
        (result.log_es[check], kind, result)
        for kind, result in zip(trial.scenario.kinds, trial.kinds, strict=True)
        if check in result.log_es
    ]
    return max(pairs, key=lambda pair: pair[0])


def _bounded(counts: np.ndarray, law: np.ndarray, alpha: float) -> str:
    """Bounds of the total variation.

    They hold for counts whose number doesn't depend on what was drawn: at each look, but not at the one at
    which a trial happened to stop. So look j has the part 1 / (j (j + 1)) of alpha; these parts sum to one.
    """
    least, most = tv_bounds(counts, law, alpha)
    told = f", at least {least:.3g}" if least else ""
    return f"{told}, at most {most:.3g} (confidence 1 - {alpha:.2g})"


def _named(kind: Kind) -> str:
    return f"of kind {kind.name!r}"


def beyond_rounding(check: str, result: KindResult) -> tuple[int, float]:
    """Outcomes in cells that only rounding can fill, if they are too many for it, and what it may explain."""
    measure, (_, mean) = result.measures.measures[check], result.doubtful()
    count = int(result.measures.counts(check, result.counted)[measure.left_out].sum())
    asked = isinstance(measure, PoissonMeasure) and count > 0 and mean > 0
    return (count if asked and special.pdtrc(count - 1, mean) < BEYOND_ROUNDING else 0), mean


def _possible(counts: np.ndarray, law: np.ndarray, left_out: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts and law of the cells that the law allows, normalised; last, all that are left out."""
    flat, masses = counts.ravel(), law.ravel()
    used = masses > 0
    return np.append(flat[used], left_out), np.append(masses[used] / masses.sum(), 0.0)


def _cells(check: str, counts: np.ndarray, law: np.ndarray, left_out: int) -> list[str]:
    """The worst cells, each on a line of its own."""
    observed, exact = _possible(counts, law, left_out)
    places = np.argwhere(law > 0)
    return [
        f"  {outcome_words(check, places[cell.cell].tolist())}: {cell.observed} times, "
        f"expected {cell.expected:.3g} (p = {cell.p_value:.1e})"
        for cell in worst_cells(observed, exact, most=MOST_CELLS)
        if cell.cell < len(places)
    ]


def outcome_words(check: str, place: list[int]) -> str:
    """What the cell of a law stands for."""
    if check == JOINT:
        return f"emitted {[index - 1 for index in place if index]}"
    if check == COMPLETED:
        return f"completed to {place}"
    if check == LENGTH:
        return f"{place[0]} drafts accepted"
    if check == REJECTED:
        return f"draft {place[1]} rejected at position {place[0]}, replaced by {place[2]}"
    if check == BONUS:
        return f"last draft {place[0]} accepted, bonus token {place[1]}"
    assert check == DRAFTS
    return f"drafts {place}"


def support_finding(trial: Trial) -> str | None:
    """The impossible outcome that was seen most often, or None."""
    for kind, result in zip(trial.scenario.kinds, trial.kinds, strict=True):
        impossible = result.impossible()
        if impossible:
            return _support_text(trial, kind, result, impossible)
    return None


def doubtful_finding(trial: Trial, kind: Kind, count: int, mean: float) -> str:
    """Outcomes that only rounding allows, of which there were too many."""
    return (
        f"Rows {_named(kind)} of scenario {trial.scenario.name!r} rejected a draft {count} times where p and "
        f"q differ by rounding only; with float32 arithmetic that happens {mean:.2g} times on average."
    )


def _support_text(trial: Trial, kind: Kind, result: KindResult, impossible: list[tuple[int, ...]]) -> str:
    shown = []
    for tokens in impossible[:MOST_CELLS]:
        place = [token + 1 for token in tokens] + [0] * (kind.length + 1 - len(tokens))
        shown.append(f"{list(tokens)} {int(result.counted.outcomes[tuple(place)])} times")
    return (
        f"Rows {_named(kind)} of scenario {trial.scenario.name!r} emitted what can't happen: "
        f"{'; '.join(shown)}, in {int(result.counted.outcomes.sum())} rows."
    )


def worst_law(trial: Trial, claims: str) -> str:
    """The law of those that are searched for that the trial speaks most against."""
    log_es = {check: trial.log_e(check) for check in (COMPLETED, JOINT)[: 1 + (claims == TEXTBOOK)]}
    return max(log_es, key=lambda check: log_es[check] or 0.0)


def worst_finding(trial: Trial, claims: str, needed: float) -> str:
    """What speaks most against a trial of searched laws."""
    return support_finding(trial) or gate_finding(trial, worst_law(trial, claims), needed)
