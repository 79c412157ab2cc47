"""One run of the laws: small checks first, then scenario by scenario."""

import math
import time
from collections.abc import Callable
from typing import Any

from scipy import stats as distributions

from tokenlaw.spec.suites import Settings
from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.findings import gate_finding, support_finding
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.law_book import TRIAL_GATES, LawBook
from tokenlaw.stats.law_outcome import visible_tv
from tokenlaw.stats.measures import SUPPORT
from tokenlaw.stats.neighbours import Comparison, compare_calls
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.small_checks import boundary, replay, row_seeds
from tokenlaw.stats.trial import Trial, largest_rows
from tokenlaw.stats.verifier_checks import (
    BOUNDARY,
    CALLS,
    CHI_SQUARE,
    PROTOCOL,
    REPLAY,
    ROW_SEEDS,
    ROWS,
    WIDE,
)
from tokenlaw.stats.wide_trial import WideTrial

RESERVE = 0.03
"""Part of the budget for what isn't a scenario."""


class VerifierRun:
    """Tries scenarios on a verifier.

    Parameters
    ----------
    verifier : a `tokenlaw.spec.generation_contracts.Verifier`.
    claims : what it is held to.
    book : takes down what happens.
    seed, settings : of the run.
    budget : rows to be verified at most.
    progress : as in `tokenlaw.spec.suites.Progress`.
    """

    def __init__(
        self,
        verifier: Any,
        *,
        claims: str,
        book: LawBook,
        seed: int,
        settings: Settings,
        budget: int,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self.verifier = Guarded(verifier)
        self._claims, self._book, self._seed, self._device = claims, book, seed, settings.device
        self._budget, self._progress = budget, progress

    def run(self, scenarios: list[Scenario]) -> None:
        """All scenarios; what crashes in one, or breaks the protocol there, leaves the others alone."""
        total = sum(scenario.share for scenario in scenarios)
        self._small(scenarios[0])
        for scenario in scenarios:
            budget = int(self._budget * (1 - RESERVE) * scenario.share / total)
            work = self._wide if scenario.wide else self._trial
            self._guarded(scenario, lambda s=scenario, b=budget, w=work: w(s, b))  # type: ignore[misc]
        self._book.exercise({"rows": self.verifier.rows})
        if self._book.asks(PROTOCOL):
            self._book.outcomes[PROTOCOL].samples = self.verifier.rows
        self._progress("laws", self._budget, self._budget)

    def _guarded(self, scenario: Scenario, work: Callable[[], None]) -> None:
        started = time.perf_counter()
        try:
            work()
        except ProtocolError as error:
            if self._book.asks(PROTOCOL):
                self._book.outcomes[PROTOCOL].findings.append((0.0, f"Scenario {scenario.name!r}: {error}"))
            self._book.crash(f"Scenario {scenario.name!r} was given up: it breaks {PROTOCOL}: {error}")
        except CrashError as error:
            self._book.crash(f"Scenario {scenario.name!r}: {error}")
        self._book.took(time.perf_counter() - started)

    def _alive(self) -> None:
        self._progress("laws", min(self.verifier.rows, self._budget), self._budget)

    def _small(self, scenario: Scenario) -> None:
        """Checks without statistics, and the comparison of calls, on one scenario."""
        tables = Tables.of(scenario, self._device)
        for check, ask in ((REPLAY, replay), (ROW_SEEDS, row_seeds), (BOUNDARY, boundary)):
            if self._book.asks(check):
                self._guarded(scenario, lambda c=check, a=ask: self._ask(c, a, tables))  # type: ignore[misc]
        if self._book.asks(CALLS):
            self._guarded(scenario, lambda: self._calls(tables))

    def _ask(self, check: str, ask: Callable[..., str], tables: Tables) -> None:
        outcome, before = self._book.outcomes[check], self.verifier.rows
        found = ask(self.verifier, tables, self._seed, outcome.exercised)
        outcome.samples = self.verifier.rows - before
        if found:
            outcome.findings.append((0.0, found))

    def _calls(self, tables: Tables) -> None:
        comparison = compare_calls(Driver(self.verifier, tables, self._seed), tables)
        self._book.outcomes[CALLS].samples += 2 * comparison.result.pairs
        self._book.exercise({"pairs of calls": comparison.result.pairs})
        self._compared(CALLS, tables.scenario.name, comparison)

    def _compared(self, check: str, scenario: str, comparison: Comparison) -> None:
        outcome, result = self._book.outcomes[check], comparison.result
        outcome.p_values.append(result.p_value)
        text = (
            f"Scenario {scenario!r}, {comparison.what}: {result.observed} of {result.pairs} pairs of one kind "
            f"began with the same token, expected {result.expected:.1f} (p = {result.p_value:.1e})."
        )
        outcome.findings.append((-result.p_value, text))

    def _trial(self, scenario: Scenario, budget: int) -> None:
        trial = Trial(self.verifier, scenario, claims=self._claims, seed=self._seed, device=self._device)
        rows = largest_rows(scenario, budget, self._device)
        stopped = False
        for mean in trial.stages(budget):
            trial.run_stage(mean, rows, self._alive)
            self._look(trial)
            stopped = self._book.decided(scenario.name)
            if stopped:
                break
        self._book.exercise(trial.events())
        for check in TRIAL_GATES:
            if self._book.asks(check) and trial.log_e(check) is not None:
                self._close_gate(trial, check)
        if self._book.asks(SUPPORT):
            self._support(trial)
        if self._book.asks(ROWS):
            self._rows(trial)
        if self._book.asks(CHI_SQUARE) and not stopped:
            self._chi_square(trial)

    def _look(self, trial: Trial) -> None:
        for check in TRIAL_GATES:
            log_e = trial.log_e(check) if self._book.asks(check) else None
            if log_e is not None:
                self._book.record(check, trial.scenario.name, log_e)

    def _close_gate(self, trial: Trial, check: str) -> None:
        """What a scenario that has run says about one law."""
        book, name = self._book, trial.scenario.name
        outcome, share = book.outcomes[check], book.share(check, name)
        outcome.samples += trial.samples
        asked = [result for result in trial.kinds if check in result.log_es]
        cells = max(result.measures.measures[check].cells for result in asked)
        alpha = book.alpha(check) * share / (2 * len(asked))
        outcome.visible += [visible_tv(trial.expected / len(trial.kinds), cells, alpha)] * len(asked)
        weight = outcome.log_es[name] + math.log(share)
        if weight >= book.needed(check) / 2:
            outcome.findings.append((weight, gate_finding(trial, check, book.needed(check))))

    def _support(self, trial: Trial) -> None:
        outcome = self._book.outcomes[SUPPORT]
        outcome.samples += trial.samples
        found = support_finding(trial)
        if found is not None:
            outcome.findings.append((1.0, found))
            outcome.p_values.append(0.0)
        for result in trial.kinds:
            count, mean = result.doubtful()
            outcome.p_values.append(float(distributions.poisson.sf(count - 1, mean)) if count else 1.0)

    def _rows(self, trial: Trial) -> None:
        self._book.outcomes[ROWS].samples += trial.samples
        for comparison in trial.neighbours.comparisons():
            self._book.exercise({"pairs of rows": comparison.result.pairs})
            self._compared(ROWS, trial.scenario.name, comparison)

    def _chi_square(self, trial: Trial) -> None:
        outcome = self._book.outcomes[CHI_SQUARE]
        outcome.samples += trial.samples
        for kind, result in zip(trial.scenario.kinds, trial.kinds, strict=True):
            assert result.seen is not None
            law = completed(result.measures.laws).ravel()
            if not result.seen.completed.any():
                continue
            test = chi_square(result.seen.completed.ravel(), law / law.sum())
            self._book.exercise({"tables": 1})
            outcome.p_values.append(test.p_value)
            text = (
                f"Rows of kind {kind.name!r} of scenario {trial.scenario.name!r}: chi-square "
                f"{test.pearson:.1f} with {test.degrees_of_freedom} degrees of freedom (p = {test.p_value:.1e})."
            )
            outcome.findings.append((-test.p_value, text))

    def _wide(self, scenario: Scenario, budget: int) -> None:
        if not self._book.asks(WIDE):
            return
        trial = WideTrial(self.verifier, scenario, claims=self._claims, seed=self._seed, device=self._device)
        trial.run(budget, largest_rows(scenario, budget, self._device), self._alive)
        outcome = self._book.outcomes[WIDE]
        outcome.samples += trial.samples
        self._book.exercise(
            {
                "rows of a wide vocabulary": trial.samples,
                "rejections of a wide vocabulary": trial.rejections(),
            }
        )
        self._book.record(WIDE, scenario.name, trial.log_e())
        outcome.findings.append((0.0, trial.finding()))
