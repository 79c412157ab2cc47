"""One run of the laws: small checks first, then scenario by scenario, then trees and the search."""

import time
from collections.abc import Callable
from dataclasses import replace as changed
from functools import partial
from typing import Any

from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.suites import Settings
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.examiner import ROWS_AT_ONCE
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.law_book import SEARCH_NAME, TRIAL_GATES, WHOLE_RUN, LawBook, wide_checks
from tokenlaw.stats.neighbours import CALLS as CALLS_COMPARED
from tokenlaw.stats.neighbours import compare_calls
from tokenlaw.stats.places import Place
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.search import search
from tokenlaw.stats.small_checks import BOUNDARY_FACTOR, ROWS_OF_CHECKS, boundary, replay, row_seeds
from tokenlaw.stats.tree_trial import TREE_NAMES, TreeTrial
from tokenlaw.stats.trial import Trial, affordable_mean, largest_rows, stages
from tokenlaw.stats.trial_closing import TRIAL_CHECKS, close, close_search, close_tree, close_wide, compared
from tokenlaw.stats.verifier_checks import (
    BOUNDARY,
    CALLS,
    PROTOCOL,
    REPLAY,
    ROW_SEEDS,
    SEARCHED,
    SMALL_CHECKS,
    TOGETHER,
    TREES,
)
from tokenlaw.stats.wide_trial import WideTrial

TREE_SHARE = 0.08
"""Part of the budget for trees, where the implementation takes them."""

WIDE_ROWS = 1024
"""Rows of a call with a wide vocabulary, which share their memory."""

SEARCH_SHARE = 0.03
"""Part of the budget for the search; what it finds is made smaller with what others left of the budget."""

SEARCH_ROWS, MOST_EXAMPLES = 1_500, 600
"""Rows of an example of the search, or more where there would be too many examples."""

UNGUIDED = 24
"""A search of more examples than this is guided by hypothesis in its second half."""

SMALL_ROWS = 6_144
"""Rows of the small checks, or an eighth of a small budget; two thirds are for the comparison of calls."""

_SMALL = "small checks"

TREE_ROWS = 2_048
"""Rows of a call with trees."""


def small_rows(requests: int) -> tuple[int, int]:
    """Rows of a small check, and of each of the calls that are compared, for so many requests in all.

    >>> small_rows(SMALL_ROWS), small_rows(62)
    ((256, 128), (2, 1))
    """
    return requests // 3 // ROWS_OF_CHECKS, requests * 2 // 3 // CALLS_COMPARED


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
        parts = self._parts(scenarios)
        self._book.whole = self._at(WHOLE_RUN, self._budget)
        self.small(scenarios[0], int(parts.pop(_SMALL)))
        for scenario in scenarios:
            if scenario.name in parts:
                self.scenario(scenario, int(parts[scenario.name]))
        for name in TREE_NAMES:
            if name in parts:
                self.tree(name, int(parts[name]))
        if SEARCH_NAME in parts:
            self.search(int(parts[SEARCH_NAME]), own_drafter=any(one.own_drafter for one in scenarios))
        self.end()

    def _parts(self, scenarios: list[Scenario]) -> dict[str, float]:
        """Rows for everything that some check is asked of; shares of what isn't asked go to the rest."""
        asked = any(map(self._book.asks, SMALL_CHECKS))
        small = float(min(SMALL_ROWS, self._budget // 8)) if asked else 0.0
        shares = {
            scenario.name: scenario.share
            for scenario in scenarios
            if any(map(self._book.asks, self._checks_of(scenario)))
        }
        total = sum(shares.values()) or 1.0
        others = {name: TREE_SHARE / len(TREE_NAMES) for name in TREE_NAMES if self._book.asks(TREES)}
        others |= {SEARCH_NAME: SEARCH_SHARE} if self._book.asks(SEARCHED) else {}
        left = 1 - sum(others.values())
        parts = others | {name: left * share / total for name, share in shares.items()}
        # A search alone gets half: the rest makes small what it finds.
        whole = max(sum(parts.values()), 2 * parts.get(SEARCH_NAME, 0.0))
        return {_SMALL: small} | {name: (self._budget - small) * part / whole for name, part in parts.items()}

    @staticmethod
    def _checks_of(scenario: Scenario) -> tuple[str, ...]:
        """Checks for which a scenario is run."""
        return wide_checks(scenario) if scenario.wide else (*TRIAL_CHECKS, PROTOCOL)

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
        settings = self._settings
        return Place(
            scenario, requests, self._seed, self._claims, settings.tolerance, settings.alpha, looks=looks
        )

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
        if not any(map(self._book.asks, wide_checks(scenario))):
            return
        device, requests = self._settings.device, self._place.requests
        trial = WideTrial(self.verifier, scenario, claims=self._claims, seed=self._seed, device=device)
        trial.run(affordable_mean(requests), self.verifier.at_most(WIDE_ROWS), self._alive, requests)
        close_wide(trial, self._book, self._place)

    def _tree(self) -> None:
        name, requests = self._place.scenario, self._place.requests
        trial = TreeTrial(self.verifier, name, seed=self._seed, device=self._settings.device)
        result = trial.run(
            affordable_mean(requests), self.verifier.at_most(min(max(requests // 2, 1), TREE_ROWS)), requests
        )
        self._alive()
        close_tree(result, self._book, self._place)

    def _search(self, own_drafter: bool) -> None:
        requests = affordable_mean(self._place.requests)
        examples = max(1, min(MOST_EXAMPLES, int(requests / SEARCH_ROWS)))
        guided = examples // 2 if examples > UNGUIDED else 0
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
