"""The suite of the verifier contract."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tokenlaw.spec.capabilities import effective_capabilities, needed
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.suites import DEFAULTS, CounterexampleError, Profile, Progress, Settings
from tokenlaw.spec.verdicts import UNCLAIMED, Check, Evidence, Verdict
from tokenlaw.spec.verifiers import build_verifier, claim_of, most_rows_of, refusals_of
from tokenlaw.stats.law_book import SEARCH_NAME, LawBook
from tokenlaw.stats.law_outcome import finite
from tokenlaw.stats.places import place_of
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.verifier_checks import (
    BY_ID,
    CLAIMED_BY,
    PROTOCOL,
    ROWS,
    SEARCHED,
    SMALL_CHECKS,
    TOLERANT,
    VERIFIER_CHECKS,
    WEIGHTS,
)
from tokenlaw.stats.verifier_run import VerifierRun

MORE_TO_SHRINK = 10
"""A search that is replayed may take so many times its rows in all, to make what it finds small."""


class VerifierSuite:
    """All checks of the verifier contract; see `tokenlaw.spec.suites.Suite`."""

    contract = VERIFIER
    checks: tuple[Check, ...] = VERIFIER_CHECKS

    def run(
        self,
        implementation: Implementation,
        *,
        profile: Profile,
        seed: int,
        selected: frozenset[str],
        progress: Progress,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Try the scenarios of the seed within the budget."""
        asked = _Asked(implementation, settings, selected)
        tried = asked.scenarios(seed)
        book = LawBook(asked.checks, tried, settings, frozenset() if settings.tolerance else selected)
        if asked.checks:
            budget = settings.budget or profile.requests
            asked.start(book, seed, budget, progress).run(tried)
        found = {row.check.id: asked.limited(row) for row in book.evidence()}
        chosen = [check for check in self.checks if check.id in selected]
        return [found.get(check.id) or asked.refusal(check, book) for check in chosen]

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run the scenario of a counterexample again, with the same random numbers, for its check alone.

        Raises
        ------
        CounterexampleError
            The data isn't a counterexample of this contract, or the target can't be asked the same.
        """
        place = place_of(counterexample)
        settings = replace(settings, claims=place.claims, tolerance=place.tolerance)
        asked = _Asked(implementation, settings, frozenset({place.check}))
        if place.check == PROTOCOL and not place.looks:
            asked = _Asked(implementation, settings, frozenset({PROTOCOL, *SMALL_CHECKS}))
        if place.check == SEARCHED:  # The part of alpha that the search had decides where it ended.
            asked = _Asked(implementation, settings, frozenset(BY_ID))
        if not asked.checks:
            reason = asked.reason(BY_ID[place.check])
            raise CounterexampleError(f"{implementation.name} can't be asked about {place.check}: {reason}")
        everything = asked.scenarios(place.seed)
        tried = {scenario.name: scenario for scenario in everything}
        if place.scenario not in {*tried, *TREE_NAMES, SEARCH_NAME}:
            raise CounterexampleError(f"there is no scenario {place.scenario!r} for {implementation.name}")
        book = LawBook(asked.checks, everything, settings)
        most = place.requests * (MORE_TO_SHRINK if place.scenario == SEARCH_NAME else 1)
        run = asked.start(book, place.seed, most, lambda *_: None)
        if place.scenario in TREE_NAMES:
            run.tree(place.scenario, place.requests)
        elif place.scenario == SEARCH_NAME:
            run.search(place.requests, own_drafter=asked.draws)
        elif place.looks:
            run.scenario(tried[place.scenario], place.requests, place.looks)
        else:
            run.small(tried[place.scenario], place.requests)
        run.end()
        return [row for row in book.evidence() if row.check.id == place.check]


class _Asked:
    """The verifier of an implementation, what it is held to, and the checks that this gives rise to."""

    def __init__(self, implementation: Implementation, settings: Settings, selected: frozenset[str]) -> None:
        self._verifier = build_verifier(implementation)
        self._capabilities = effective_capabilities(implementation, VERIFIER, self._verifier)
        self._settings = settings
        self._claims = settings.claims or claim_of(self._verifier, implementation.name)
        self._refused = refusals_of(self._verifier, implementation.name)
        self.draws = "draft" in self._capabilities
        self.seeds = "row-seeds" in self._capabilities
        self.checks = frozenset(
            check.id for check in VERIFIER_CHECKS if check.id in selected and not self.reason(check)
        )

    def scenarios(self, seed: int) -> list[Scenario]:
        """The scenarios of a seed that the verifier takes."""
        return scenarios(seed, own_drafter=self.draws, seeded=self.seeds, refused=self._refused)

    def reason(self, check: Check) -> str:
        """Why a check isn't asked; empty if it is."""
        missing = check.needs - self._capabilities
        if missing:
            return needed(VERIFIER, missing)
        if self._claims not in CLAIMED_BY[check.id]:
            return f"{UNCLAIMED} {self._claims!r}"
        if check.id == ROWS and most_rows_of(self._verifier, "") == 1:
            return "it takes one row a call"
        if self._settings.tolerance and check.id not in TOLERANT:
            return "not asked with a tolerance"
        return ""

    def refusal(self, check: Check, book: LawBook) -> Evidence:
        """The row of a check that isn't asked; what isn't claimed may still have been watched."""
        message, log_e = self.reason(check), book.watched(check.id)
        if log_e is not None:
            outcome = "it would be refuted" if log_e >= -math.log(self._settings.alpha) else "it stands"
            message += f"; {outcome} (log10 e = {finite(log_e) / math.log(10):.1f})"
        return Evidence(check, Verdict.NOT_SUPPORTED, message=message)

    def limited(self, row: Evidence) -> Evidence:
        """The row, with what was left out because the verifier refuses it."""
        if not self._refused or row.check.id not in WEIGHTS:
            return row
        left_out = sorted(self._refused)
        note = f"Left out, since the verifier refuses it: {', '.join(left_out)}."
        statistics = {**(row.statistics or {}), "refused": left_out}
        return replace(row, message=f"{row.message} {note}".strip(), statistics=statistics)

    def start(self, book: LawBook, seed: int, budget: int, progress: Progress) -> VerifierRun:
        """A run that writes into the book."""
        return VerifierRun(
            self._verifier,
            claims=self._claims,
            book=book,
            seed=seed,
            settings=self._settings,
            budget=budget,
            progress=progress,
            refused=self._refused,
        )
