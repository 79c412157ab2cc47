"""One run of the laws: small checks first, then scenario by scenario, then trees and the search."""

import time
from collections.abc import Callable
from dataclasses import replace as changed
from functools import partial
from typing import Any

from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.suites import Settings
from tokenlaw.stats.alike_rows import ALIKE, ALIKE_ROWS
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.examiner import ROWS_AT_ONCE
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.law_book import SEARCH_NAME, TRIAL_GATES, WHOLE_RUN, LawBook, wide_checks
from tokenlaw.stats.neighbours import compare_calls
from tokenlaw.stats.places import Place
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.requests_needed import say_what_chi_square_takes, say_what_small_checks_take
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.search import search
from tokenlaw.stats.small_checks import BOUNDARY_FACTOR, boundary, replay, row_seeds
from tokenlaw.stats.tree_trial import TREE_NAMES, TreeTrial
from tokenlaw.stats.trial import Trial, affordable_mean, largest_rows, stages
from tokenlaw.stats.trial_closing import (
    TRIAL_CHECKS,
    close,
    close_alike,
    close_search,
    close_tree,
    close_wide,
    compared,
)
from tokenlaw.stats.verifier_checks import (
    BOUNDARY,
    CALLS,
    PROTOCOL,
    REPLAY,
    ROW_SEEDS,
    SEARCHED,
    TOGETHER,
    TREES,
)
from tokenlaw.stats.verifier_shares import SMALL_PART, SMALL_ROWS, examples_of, shared_rows, small_rows
from tokenlaw.stats.wide_trial import WideTrial

WIDE_ROWS = 1024
"""Rows of a call with a wide vocabulary, which share their memory."""

TREE_ROWS = 2_048
"""Rows of a call with trees."""


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
    refused : rows that the verifier doesn't take, of `tokenlaw.spec.generation_contracts.REFUSALS`.
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
        refused: frozenset[str] = frozenset(),
    ) -> None:
        self.verifier = Guarded(verifier, self._alive)
        self._refused = refused
        self._claims, self._book, self._seed, self._settings = claims, book, seed, settings
        self._budget, self._progress = budget, progress

    def run(self, scenarios: list[Scenario]) -> None:
        """Everything that is asked; what crashes in one place, or breaks the protocol, stays there."""
        parts = shared_rows(self._book, scenarios, self._budget)
        self._book.whole = self._at(WHOLE_RUN, self._budget)
        self.small(scenarios[0], int(parts[SMALL_PART]))
        for scenario in scenarios:
            if scenario.name in parts:
                self.scenario(scenario, int(parts[scenario.name]))
        for name in TREE_NAMES:
            if name in parts:
                self.tree(name, int(parts[name]))
        if SEARCH_NAME in parts:
            self.search(int(parts[SEARCH_NAME]), own_drafter=any(one.own_drafter for one in scenarios))
        say_what_small_checks_take(self._book)
        if not self._settings.tolerance:
            say_what_chi_square_takes(self._book, scenarios, parts, self._budget, self._settings.device)
        self.end()

    def end(self) -> None:
        """Count the rows."""
        self._book.exercise({"rows": self.verifier.answered})
        for check in (PROTOCOL, TOGETHER):
            if self._book.asks(check):
                self._book.outcomes[check].samples = self.verifier.answered
        self._progress("laws", self._budget, self._budget)

    def scenario(self, scenario: Scenario, requests: int, looks: int | None = None) -> None:
        """One scenario with so many requests at most; given ``looks``, exactly so many of its stages."""
        self._place = self._at(scenario.name, requests, 1 if scenario.wide else len(stages(requests)))
        if scenario.wide:
            self._guarded(lambda: self._wide(scenario), wide_checks(scenario))
        else:
            self._guarded(lambda: self._trial(scenario, looks), TRIAL_CHECKS)

    def tree(self, name: str, requests: int) -> None:
        """One tree, by its name, with so many requests at most."""
        self._place = self._at(name, requests, 1)
        self._guarded(self._tree, (TREES,))

    def search(self, requests: int, *, own_drafter: bool) -> None:
        """The search for the worst laws, with so many requests at most before anything is found."""
        self._place = self._at(SEARCH_NAME, requests)
        self._guarded(lambda: self._search(own_drafter), (SEARCHED,))

    def _at(self, scenario: str, requests: int, looks: int = 0) -> Place:
        """Where something is seen from now on."""
        return Place.under(self._settings, scenario, requests, self._seed, self._claims, looks=looks)

    def _guarded(self, work: Callable[[], None], checks: tuple[str, ...]) -> None:
        """Do work on which these checks depend; what the implementation breaks stays there."""
        started, name = time.perf_counter(), self._place.scenario
        announce(self._place.to_data())
        try:
            work()
        except ProtocolError as error:
            self._book.found(PROTOCOL, 0.0, f"Scenario {name!r}: {error}", self._place)
            self._book.crash(f"Scenario {name!r} was given up: it breaks {PROTOCOL}: {error}", checks)
        except CrashError as error:
            told = [check for check in checks if self._book.asks(check)]
            # Where nothing else is asked, rows without an answer must not pass unseen.
            self._book.crash(f"Scenario {name!r}: {error}", told or (PROTOCOL,))
        self._book.took(time.perf_counter() - started)
        for row in self._book.refuted():
            announce_evidence(row)

    def _alive(self) -> None:
        self._progress("laws", min(self.verifier.rows, self._budget), self._budget)

    def small(self, scenario: Scenario, requests: int) -> None:
        """Checks without statistics, and the comparison of calls, with so many requests at most."""
        self._place = self._at(scenario.name, requests)
        tables = Tables.of(scenario, self._settings.device)
        rows, call_rows = map(self.verifier.at_most, small_rows(requests))
        for check, ask in ((REPLAY, replay), (ROW_SEEDS, row_seeds), (BOUNDARY, boundary)):
            if self._book.asks(check) and rows:
                factor = BOUNDARY_FACTOR if check == BOUNDARY else 1
                asked = max(1, self.verifier.at_most(rows * factor) // factor)
                work = partial(self._ask, check, ask, tables, asked)
                self._guarded(work, (check,))
        if self._book.asks(CALLS) and call_rows:
            self._guarded(lambda: self._calls(tables, call_rows), (CALLS,))
        if requests > SMALL_ROWS:
            for check in filter(self._book.asks, ALIKE):
                self._guarded(partial(self._alike, check, tables), (check,))

    def _ask(self, check: str, ask: Callable[..., str], tables: Tables, rows: int) -> None:
        outcome, before = self._book.outcomes[check], self.verifier.rows
        found = ask(self.verifier, tables, self._seed, outcome.exercised, rows)
        outcome.samples = self.verifier.rows - before
        if found:
            self._book.found(check, 0.0, found, self._place)

    def _calls(self, tables: Tables, rows: int) -> None:
        comparison = compare_calls(Driver(self.verifier, tables, self._seed), tables, rows)
        self._book.outcomes[CALLS].samples += 2 * comparison.result.pairs
        self._book.exercise({"pairs of calls": comparison.result.pairs})
        compared(CALLS, comparison, self._book, self._place)

    def _alike(self, check: str, tables: Tables) -> None:
        driver, most_rows = Driver(self.verifier, tables, self._seed), self.verifier.at_most(ALIKE_ROWS)
        close_alike(check, ALIKE[check](driver, most_rows), self._book, self._place)

    def _trial(self, scenario: Scenario, looks: int | None) -> None:
        trial = Trial(
            self.verifier,
            scenario,
            claims=self._claims,
            seed=self._seed,
            device=self._settings.device,
            tolerance=self._settings.tolerance,
        )
        budget = self._place.requests
        rows = self.verifier.at_most(largest_rows(scenario, budget, self._settings.device))
        means = stages(budget)
        if not means:
            return
        stopped, last = False, len(means) if looks is None else min(looks, len(means))
        for look, mean in enumerate(means[:last], 1):
            self._place = changed(self._place, looks=look)
            most = budget - trial.samples
            if not trial.run_stage(mean, rows, self._alive, last=look == last, most=most):
                continue
            for check in TRIAL_GATES:
                log_e = trial.log_e(check)
                if log_e is not None:
                    self._book.record(check, scenario.name, log_e)
            stopped = looks is None and self._book.decided(scenario.name)
            if stopped:
                break
        close(trial, self._book, self._place, stopped=stopped)

    def _wide(self, scenario: Scenario) -> None:
        device, requests = self._settings.device, self._place.requests
        trial = WideTrial(self.verifier, scenario, claims=self._claims, seed=self._seed, device=device)
        trial.run(affordable_mean(requests), self.verifier.at_most(WIDE_ROWS), self._alive, requests)
        close_wide(trial, self._book, self._place)

    def _tree(self) -> None:
        name, requests = self._place.scenario, self._place.requests
        device, refused = self._settings.device, self._refused
        trial = TreeTrial(self.verifier, name, seed=self._seed, device=device, refused=refused)
        result = trial.run(
            affordable_mean(requests), self.verifier.at_most(min(max(requests // 2, 1), TREE_ROWS)), requests
        )
        self._alive()
        close_tree(result, self._book, self._place)

    def _search(self, own_drafter: bool) -> None:
        requests = affordable_mean(self._place.requests)
        examples, guided = examples_of(requests)
        result = search(
            self.verifier,
            claims=self._claims,
            seed=self._seed,
            examples=examples - guided,
            guided=guided,
            rows=int(requests / examples),
            device=self._settings.device,
            alive=self._alive,
            needed=self._book.needed(SEARCHED),
            own_drafter=own_drafter,
            spare=self._budget - self.verifier.rows - self._place.requests,
            rows_at_once=self.verifier.at_most(ROWS_AT_ONCE),
            refused=self._refused,
        )
        close_search(result, self._book, self._place)
