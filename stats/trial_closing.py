"""What is asked once of a scenario, when it has run: power, support, chi-square, neighbours."""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from scipy import special

from tokenlaw.stats.alike_rows import ALIKE_TESTS
from tokenlaw.stats.cells import worst_cells
from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.conditional_gate import PARTS
from tokenlaw.stats.distances import tv_bounds
from tokenlaw.stats.e_values import average_log_e, log10_of
from tokenlaw.stats.findings import doubtful_finding, gate_finding, support_finding, worst_kind
from tokenlaw.stats.law_book import SEARCH_NAME, TRIAL_GATES, LawBook, wide_checks
from tokenlaw.stats.law_outcome import Beside
from tokenlaw.stats.measures import LENGTH, SUPPORT
from tokenlaw.stats.neighbours import DISTANCES, TESTS, Comparison
from tokenlaw.stats.places import Place
from tokenlaw.stats.power import MISS, visible_by_chi_square, visible_copies, visible_mass, visible_tv
from tokenlaw.stats.scenario import Kind
from tokenlaw.stats.search import SearchResult
from tokenlaw.stats.shown_laws import shown_completed, shown_gate, shown_impossible
from tokenlaw.stats.shown_wide_laws import shown_prefixes, shown_wide
from tokenlaw.stats.tolerant import mcdiarmid_log_p, mcdiarmid_threshold, tolerant_log_e
from tokenlaw.stats.tree_trial import TreeResult
from tokenlaw.stats.trial import KindResult, Trial
from tokenlaw.stats.verifier_checks import CALLS, CHI_SQUARE, PREFIXES, ROWS, SEARCHED, TREES, WIDE
from tokenlaw.stats.wide_trial import WideTrial

TRIAL_CHECKS = (*TRIAL_GATES, SUPPORT, CHI_SQUARE, ROWS)
"""Checks that are asked of every scenario of few tokens."""


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
            _close_chi_square(trial, kind, result, book, place)


def compared(check: str, comparison: Comparison, book: LawBook, place: Place) -> None:
    """Write down how often neighbours were equal, and whether the pairs of their tokens look independent."""
    result = comparison.result
    text = (
        f"Scenario {place.scenario!r}, {comparison.what}: {result.observed} of {result.pairs} pairs of one "
        f"kind began with the same token, expected {result.expected:.1f} (p = {result.p_value:.1e})."
    )
    book.tested(check, result.p_value, lambda: text, place)
    dependent = (
        f"Scenario {place.scenario!r}, {comparison.what}: the first tokens of pairs of one kind, of which "
        f"{result.pairs} were counted, depend on each other: log10 e = {log10_of(comparison.log_e)}."
    )
    # An e-value is a p-value turned over (Markov's inequality).
    book.tested(check, math.exp(-max(comparison.log_e, 0.0)), lambda: dependent, place)
    tests = TESTS * (1 if check == CALLS else len(DISTANCES) * book.trials) + ALIKE_TESTS[check]
    book.outcomes[check].visible.append(visible_copies(result, book.alpha(check) / tests))


def close_alike(check: str, log_es: Mapping[str, float], book: LawBook, place: Place) -> None:
    """Write down whether rows that are alike look independent, by what was compared."""
    for what, log_e in log_es.items():
        text = (
            f"Scenario {place.scenario!r}, rows that are all alike, {what}: how many drafts they accept "
            f"depends on each other: log10 e = {log10_of(log_e)}."
        )
        # An e-value is a p-value turned over (Markov's inequality).
        book.tested(check, math.exp(-max(log_e, 0.0)), partial(str, text), place)


def close_wide(trial: WideTrial, book: LawBook, place: Place) -> None:
    """Write into the book what a scenario with too many sequences to count showed."""
    book.exercise(trial.events())
    if WIDE in wide_checks(trial.scenario) and book.asks(WIDE):
        _close_single_tokens(trial, book, place)
    if book.asks(PREFIXES):
        _close_prefixes(trial, book, place)


def _close_prefixes(trial: WideTrial, book: LawBook, place: Place) -> None:
    outcome, prefixes = book.outcomes[PREFIXES], trial.prefixes
    share, log_e = book.share(PREFIXES, place.scenario), prefixes.log_e()
    outcome.samples += trial.samples
    book.record(PREFIXES, place.scenario, log_e)
    alpha = math.exp(-book.missing(PREFIXES)) * share / PARTS
    outcome.visible.append(visible_tv(prefixes.tokens(), prefixes.cells(), alpha))
    weight = log_e + math.log(share)
    if weight >= book.missing(PREFIXES) - book.needed(PREFIXES) / 2:
        text = (
            f"Scenario {place.scenario!r}, tokens by classes of prefixes: log10 e = {log10_of(log_e)} after "
            f"{trial.samples} rows.\n{prefixes.finding()}"
        )
        book.found(PREFIXES, weight, text, place, shown_prefixes(prefixes, place.scenario))


def _close_single_tokens(trial: WideTrial, book: LawBook, place: Place) -> None:
    outcome, log_es = book.outcomes[WIDE], trial.log_es()
    weights = [1 / len(log_es)] * len(log_es)
    outcome.samples += trial.samples
    book.record(WIDE, place.scenario, average_log_e(list(log_es.values()), weights))
    alpha = math.exp(-book.missing(WIDE)) * book.share(WIDE, place.scenario) * weights[0]
    outcome.visible.append(visible_tv(trial.expected, trial.cells, alpha))
    weight = outcome.log_es[place.scenario]
    if weight >= book.missing(WIDE) - book.needed(WIDE) / 2:
        book.found(WIDE, weight, trial.finding(log_es), place, shown_wide(trial, log_es))


def close_tree(result: TreeResult, book: LawBook, place: Place) -> None:
    """Write into the book what a tree showed."""
    outcome, share = book.outcomes[TREES], book.share(TREES, place.scenario)
    outcome.samples += result.samples
    book.exercise({"trees": result.samples, "second candidates": result.later})
    book.record(TREES, place.scenario, result.log_e)
    alpha = math.exp(-book.missing(TREES)) * share / result.kinds
    outcome.visible += [visible_tv(result.expected, result.cells, alpha)] * result.kinds
    weight = result.log_e + math.log(share)
    if weight >= book.missing(TREES) - book.needed(TREES) / 2:
        book.found(TREES, weight, result.worst, place)


def close_search(result: SearchResult, book: LawBook, place: Place) -> None:
    """Write into the book what the search showed."""
    book.outcomes[SEARCHED].samples += result.samples
    book.outcomes[SEARCHED].visible += result.visible
    book.exercise({"searched tables": result.examples})
    book.record(SEARCHED, SEARCH_NAME, result.log_e)
    if result.finding:
        book.found(SEARCHED, result.log_e, result.finding, place, result.shown)


def _close_gate(trial: Trial, check: str, book: LawBook, place: Place) -> None:
    outcome, name = book.outcomes[check], trial.scenario.name
    share = book.share(check, name)
    outcome.samples += trial.samples
    if check == LENGTH and _counted(trial, check):
        outcome.lengths.append((outcome.log_es[name], shown_gate(trial, check)))
    asked = [result for result in trial.kinds if check in result.log_es]
    cells = max(result.measures.measures[check].cells for result in asked)
    # A kind is one of many in the average over kinds, half of the scenario's e-value.
    # Earlier runs may have refuted it alone.
    alpha = math.exp(-max(book.missing(check), 0.0)) * share / (2 * len(asked))
    for result in asked:
        measure = result.measures.measures[check]
        samples = measure.samples(trial.expected / len(trial.kinds))
        if not trial.tolerance:
            outcome.visible.append(visible_tv(samples, cells, alpha))
            continue
        most = _extreme_log_e(measure.law.ravel(), samples, trial.tolerance)
        if most >= -math.log(alpha):
            outcome.unmeasured += 1
        else:  # it grows as samples do
            outcome.at_best = True
            outcome.visible.append(math.sqrt(-math.log(alpha) / most) if most > 0 else math.inf)
    weight, alone = outcome.log_es[name] + math.log(share), book.alpha(check) * share / len(asked)
    if weight >= book.missing(check) - book.needed(check) / 2:
        told = gate_finding(trial, check, book.needed(check), alone)
        book.found(check, weight, told, place, shown_gate(trial, check))


def _counted(trial: Trial, check: str) -> bool:
    """Whether there is anything to be drawn of the kind that speaks most against a law."""
    _, _, worst = worst_kind(trial, check)
    return bool(worst.measures.counts(check, worst.counted).any())


def _extreme_log_e(law: np.ndarray, samples: float, tolerance: float) -> float:
    """Log e-value of the tolerant test, were all samples of the least probable outcome: none says more."""
    counts = np.zeros(law.shape, dtype=np.int64)
    counts[np.argmin(law)] = round(samples)
    return tolerant_log_e(counts, law / law.sum(), tolerance, expected_total=samples)


def _close_support(trial: Trial, book: LawBook, place: Place) -> None:
    outcome = book.outcomes[SUPPORT]
    outcome.samples += trial.samples
    impossible = support_finding(trial)
    if impossible is not None:
        book.tested(SUPPORT, 0.0, lambda: impossible, place, lambda: shown_impossible(trial))
    for kind, result in zip(trial.scenario.kinds, trial.kinds, strict=True):
        outcome.visible.append(visible_mass(trial.expected / len(trial.kinds)))
        count, mean = result.doubtful()
        p_value = float(special.pdtrc(count - 1, mean)) if count else 1.0
        book.tested(SUPPORT, p_value, partial(doubtful_finding, trial, kind, count, mean), place)


def _close_chi_square(trial: Trial, kind: Kind, result: KindResult, book: LawBook, place: Place) -> None:
    counts, law = result.counted.completed.ravel(), completed(result.measures.laws).ravel()
    law = law / law.sum()
    if not counts.any():
        return
    book.exercise({"tables": 1})
    alpha, outcome = book.alpha(CHI_SQUARE) / book.tables, book.outcomes[CHI_SQUARE]
    where = f"kind {kind.name!r} of scenario {trial.scenario.name!r}"
    if trial.tolerance:
        p_value = math.exp(mcdiarmid_log_p(counts, law, trial.tolerance))
        outcome.visible.append(_visible_beyond(counts, law, trial.tolerance, alpha))
        what = f"farther than TV {trial.tolerance} from the exact law, by McDiarmid's bound"
    else:
        test = chi_square(counts, law)
        p_value = test.p_value
        outcome.visible.append(visible_by_chi_square(test.samples, test.cells, test.pooled_mass, alpha))
        least, most = tv_bounds(counts, law, alpha)
        what = (
            f"chi-square {test.pearson:.1f}, G {test.likelihood_ratio:.1f}, "
            f"{test.degrees_of_freedom} degrees of freedom, TV between {least:.3g} and {most:.3g} "
            f"(confidence 1 - {alpha:.2g})"
        )
        outcome.bounds.append((least, most))
        worst = worst_cells(counts, law, most=1)[0].p_value
        outcome.beside.append(Beside(where, test.likelihood_ratio, test.degrees_of_freedom, worst))
    text = f"Rows of {where}: {what} (p = {p_value:.1e})."
    book.tested(CHI_SQUARE, p_value, lambda: text, place, lambda: shown_completed(trial, kind, result))


def _visible_beyond(counts: np.ndarray, law: np.ndarray, tolerance: float, alpha: float) -> float:
    """The total variation that McDiarmid's test refutes with probability 1 - MISS, by the same bound.

    From 1 on nothing is refuted; more samples narrow down what lies beyond the tolerance only.
    """
    samples = int(counts.sum())
    threshold = mcdiarmid_threshold(law, tolerance, alpha, samples)
    visible = threshold + math.sqrt(math.log(1 / MISS) / (2 * samples))
    return visible if visible < 1 else (visible - tolerance) / (1 - tolerance)
