"""One run of the laws: small checks first, then scenario by scenario, then trees and the search."""

import time
from collections.abc import Callable
from typing import Any

from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.suites import Settings
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.law_book import TRIAL_GATES, LawBook
from tokenlaw.stats.neighbours import compare_calls
from tokenlaw.stats.places import Place
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.small_checks import boundary, replay, row_seeds
from tokenlaw.stats.tree_trial import TREE_NAMES, TreeTrial
from tokenlaw.stats.trial import Trial, largest_rows
from tokenlaw.stats.trial_closing import close, compared
from tokenlaw.stats.verifier_checks import BOUNDARY, CALLS, PROTOCOL, REPLAY, ROW_SEEDS, TREES, WIDE
from tokenlaw.stats.wide_trial import WideTrial

TREE_SHARE = 0.08
"""Part of the budget for trees, where the implementation takes them."""

WIDE_ROWS = 1024
"""Rows of a call with a wide vocabulary, which share their memory."""

RESERVE = 0.03
"""Part of the budget for what is neither scenario nor tree."""


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
        self._claims, self._book, self._seed, self._settings = claims, book, seed, settings
        self._budget, self._progress = budget, progress
        self._for_scenarios = 1 - RESERVE - (TREE_SHARE if book.asks(TREES) else 0)

    def run(self, scenarios: list[Scenario]) -> None:
        """Everything that is asked; what crashes in one place, or breaks the protocol, stays there."""
        total = sum(scenario.share for scenario in scenarios)
        self.small(scenarios[0])
        for scenario in scenarios:
            self.scenario(scenario, int(self._budget * self._for_scenarios * scenario.share / total))
        if self._book.asks(TREES):
            for name in TREE_NAMES:
                self.tree(name, int(self._budget * TREE_SHARE / len(TREE_NAMES)))
        self.end()

    def end(self) -> None:
        """Count the rows."""
        self._book.exercise({"rows": self.verifier.rows})
        if self._book.asks(PROTOCOL):
            self._book.outcomes[PROTOCOL].samples = self.verifier.rows
        self._progress("laws", self._budget, self._budget)

    def scenario(self, scenario: Scenario, requests: int) -> None:
        """One scenario with so many requests at most."""
        place = self._place(scenario.name, requests)
        work = self._wide if scenario.wide else self._trial
        self._guarded(place, lambda: work(scenario, place))

    def tree(self, name: str, requests: int) -> None:
        """One tree, by its name, with so many requests on average."""
        place = self._place(name, requests)
        self._guarded(place, lambda: self._tree(place))

    def _place(self, scenario: str, requests: int) -> Place:
        """Where something is seen from now on."""
        return Place(scenario, requests, self._seed, self._claims, self._settings.tolerance)

    def _guarded(self, place: Place, work: Callable[[], None]) -> None:
        started, name = time.perf_counter(), place.scenario
        announce(place.to_data())
        try:
            work()
        except ProtocolError as error:
            self._book.found(PROTOCOL, 0.0, f"Scenario {name!r}: {error}", place)
            self._book.crash(f"Scenario {name!r} was given up: it breaks {PROTOCOL}: {error}")
        except CrashError as error:
            self._book.crash(f"Scenario {name!r}: {error}")
        self._book.took(time.perf_counter() - started)
        for row in self._book.refuted():
            announce_evidence(row)

    def _alive(self) -> None:
        self._progress("laws", min(self.verifier.rows, self._budget), self._budget)

    def small(self, scenario: Scenario) -> None:
        """Checks without statistics, and the comparison of calls, on one scenario."""
        tables = Tables.of(scenario, self._settings.device)
        place = self._place(scenario.name, 0)
        for check, ask in ((REPLAY, replay), (ROW_SEEDS, row_seeds), (BOUNDARY, boundary)):
            if self._book.asks(check):
                self._guarded(place, lambda c=check, a=ask: self._ask(c, a, tables, place))  # type: ignore[misc]
        if self._book.asks(CALLS):
            self._guarded(place, lambda: self._calls(tables, place))

    def _ask(self, check: str, ask: Callable[..., str], tables: Tables, place: Place) -> None:
        outcome, before = self._book.outcomes[check], self.verifier.rows
        found = ask(self.verifier, tables, self._seed, outcome.exercised)
        outcome.samples = self.verifier.rows - before
        if found:
            self._book.found(check, 0.0, found, place)

    def _calls(self, tables: Tables, place: Place) -> None:
        comparison = compare_calls(Driver(self.verifier, tables, self._seed), tables)
        self._book.outcomes[CALLS].samples += 2 * comparison.result.pairs
        self._book.exercise({"pairs of calls": comparison.result.pairs})
        compared(CALLS, comparison, self._book, place)

    def _trial(self, scenario: Scenario, place: Place) -> None:
        trial = Trial(
            self.verifier,
            scenario,
            claims=self._claims,
            seed=self._seed,
            device=self._settings.device,
            tolerance=self._settings.tolerance,
        )
        rows = largest_rows(scenario, place.requests, self._settings.device)
        stopped = False
        for mean in trial.stages(place.requests):
            trial.run_stage(mean, rows, self._alive)
            for check in TRIAL_GATES:
                log_e = trial.log_e(check)
                if log_e is not None:
                    self._book.record(check, scenario.name, log_e)
            stopped = self._book.decided(scenario.name)
            if stopped:
                break
        close(trial, self._book, place, stopped=stopped)

    def _wide(self, scenario: Scenario, place: Place) -> None:
        if not self._book.asks(WIDE):
            return
        device, requests = self._settings.device, place.requests
        trial = WideTrial(self.verifier, scenario, claims=self._claims, seed=self._seed, device=device)
        trial.run(requests, WIDE_ROWS, self._alive)
        self._book.outcomes[WIDE].samples += trial.samples
        events = {
            "rows of a wide vocabulary": trial.samples,
            "rejections of a wide vocabulary": trial.rejections(),
        }
        self._book.exercise(events)
        self._book.record(WIDE, scenario.name, trial.log_e())
        self._book.found(WIDE, 0.0, trial.finding(), place)

    def _tree(self, place: Place) -> None:
        trial = TreeTrial(self.verifier, place.scenario, seed=self._seed, device=self._settings.device)
        result = trial.run(place.requests, max(place.requests // 2, 1))
        self._alive()
        self._book.outcomes[TREES].samples += result.samples
        self._book.exercise({"trees": result.samples, "second candidates": result.later})
        self._book.record(TREES, place.scenario, result.log_e)
        self._book.found(TREES, result.log_e, result.worst, place)
