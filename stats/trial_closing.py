"""What is asked once of a scenario, when it has run: power, support, chi-square, neighbours."""

import math

import numpy as np
from scipy import stats as distributions

from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.findings import gate_finding, support_finding
from tokenlaw.stats.law_book import TRIAL_GATES, LawBook
from tokenlaw.stats.law_outcome import MISS, visible_tv
from tokenlaw.stats.measures import SUPPORT
from tokenlaw.stats.neighbours import Comparison
from tokenlaw.stats.places import Place
from tokenlaw.stats.tolerant import mcdiarmid_log_p, mcdiarmid_threshold
from tokenlaw.stats.trial import KindResult, Trial
from tokenlaw.stats.verifier_checks import CHI_SQUARE, ROWS


def close(trial: Trial, book: LawBook, place: Place, *, stopped: bool) -> None:
    """Write into the book what a scenario showed; ``stopped`` if it was cut short by what was seen."""
    book.exercise(trial.events())
    for check in TRIAL_GATES:
        if book.asks(check) and trial.log_e(check) is not None:
            _close_gate(trial, check, book, place)
    if book.asks(SUPPORT):
        _close_support(trial, book, place)
    if book.asks(ROWS):
        book.outcomes[ROWS].samples += trial.samples
        for comparison in trial.neighbours.comparisons():
            book.exercise({"pairs of rows": comparison.result.pairs})
            compared(ROWS, comparison, book, place)
    if book.asks(CHI_SQUARE) and not stopped:
        book.outcomes[CHI_SQUARE].samples += trial.samples
        for kind, result in zip(trial.scenario.kinds, trial.kinds, strict=True):
            _close_chi_square(trial, kind.name, result, book, place)


def compared(check: str, comparison: Comparison, book: LawBook, place: Place) -> None:
    """Write down how often neighbours were equal."""
    result = comparison.result
    book.outcomes[check].p_values.append(result.p_value)
    text = (
        f"Scenario {place.scenario!r}, {comparison.what}: {result.observed} of {result.pairs} pairs of one "
        f"kind began with the same token, expected {result.expected:.1f} (p = {result.p_value:.1e})."
    )
    book.found(check, -result.p_value, text, place)


def _close_gate(trial: Trial, check: str, book: LawBook, place: Place) -> None:
    outcome, name = book.outcomes[check], trial.scenario.name
    share = book.share(check, name)
    outcome.samples += trial.samples
    asked = [result for result in trial.kinds if check in result.log_es]
    cells = max(result.measures.measures[check].cells for result in asked)
    alpha = book.alpha(check) * share / (2 * len(asked))
    if not trial.tolerance:
        outcome.visible += [visible_tv(trial.expected / len(trial.kinds), cells, alpha)] * len(asked)
    weight = outcome.log_es[name] + math.log(share)
    if weight >= book.needed(check) / 2:
        book.found(check, weight, gate_finding(trial, check, book.needed(check)), place)


def _close_support(trial: Trial, book: LawBook, place: Place) -> None:
    outcome = book.outcomes[SUPPORT]
    outcome.samples += trial.samples
    found = support_finding(trial)
    if found is not None:
        book.found(SUPPORT, 1.0, found, place)
        outcome.p_values.append(0.0)
    for result in trial.kinds:
        count, mean = result.doubtful()
        outcome.p_values.append(float(distributions.poisson.sf(count - 1, mean)) if count else 1.0)


def _close_chi_square(trial: Trial, kind: str, result: KindResult, book: LawBook, place: Place) -> None:
    assert result.seen is not None
    counts, law = result.seen.completed.ravel(), completed(result.measures.laws).ravel()
    law = law / law.sum()
    if not counts.any():
        return
    outcome = book.outcomes[CHI_SQUARE]
    book.exercise({"tables": 1})
    if trial.tolerance:
        p_value = math.exp(mcdiarmid_log_p(counts, law, trial.tolerance))
        outcome.visible.append(_visible_beyond(counts, law, trial.tolerance, book.alpha(CHI_SQUARE)))
        what = f"farther than TV {trial.tolerance} from the exact law, by McDiarmid's bound"
    else:
        test = chi_square(counts, law)
        p_value = test.p_value
        what = f"chi-square {test.pearson:.1f} with {test.degrees_of_freedom} degrees of freedom"
    outcome.p_values.append(p_value)
    text = f"Rows of kind {kind!r} of scenario {trial.scenario.name!r}: {what} (p = {p_value:.1e})."
    book.found(CHI_SQUARE, -p_value, text, place)


def _visible_beyond(counts: np.ndarray, law: np.ndarray, tolerance: float, alpha: float) -> float:
    """The total variation that McDiarmid's test refutes with probability 1 - MISS, by the same bound."""
    samples = int(counts.sum())
    threshold = mcdiarmid_threshold(law, tolerance, alpha, samples)
    return min(1.0, threshold + math.sqrt(math.log(1 / MISS) / (2 * samples)))
