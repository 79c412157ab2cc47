"""The suite of the verifier contract."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tokenlaw.spec.announcing import announce_evidence
from tokenlaw.spec.capabilities import effective_capabilities, needed
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import EXACT
from tokenlaw.spec.suites import DEFAULTS, CounterexampleError, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import UNCLAIMED, Check, Evidence, Verdict
from tokenlaw.spec.verifiers import build_verifier, claim_of, most_rows_of, precision_of, refusals_of
from tokenlaw.stats.e_values import log10_of
from tokenlaw.stats.law_book import SEARCH_NAME, WHOLE_RUN, LawBook, shown_once
from tokenlaw.stats.places import Place, place_of
from tokenlaw.stats.probing_cases import PROBE_NAME
from tokenlaw.stats.probing_check import ProbeRequest, probed, rows_of
from tokenlaw.stats.probing_outcome import Told
from tokenlaw.stats.proving_check import ProofRequest, paths_of, proof, proof_again
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.verifier_checks import (
    BY_ID,
    CLAIMED_BY,
    GATES,
    PROBED,
    PROTOCOL,
    PROVED,
    ROWS,
    TOGETHER,
    TOLERANT,
    TREES,
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
        sampled, budget = asked.checks - {PROVED, PROBED}, settings.budget or profile.requests
        book = LawBook(sampled, tried, settings, frozenset() if settings.tolerance else selected)
        found = {}
        if PROVED in asked.checks:
            found[PROVED] = proof(asked.proof(seed), paths_of(budget), lambda: progress("proof", 0, budget))
            announce_evidence(found[PROVED])
            budget -= found[PROVED].operations
        if PROBED in asked.checks:
            found[PROBED], used = probed(asked.probe(seed), rows_of(budget), progress)
            announce_evidence(found[PROBED])
            budget = max(budget - used, 0)
        if sampled:
            asked.start(book, seed, budget, progress).run(tried)
        found |= {row.check.id: asked.limited(row) for row in book.evidence()}
        chosen = [check for check in self.checks if check.id in selected]
        rows = [found.get(check.id) or asked.refusal(check, book) for check in chosen]
        return shown_once([asked.held_to(row) for row in rows])

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run the scenario of a counterexample again, with the same random numbers, for its check alone.

        Raises
        ------
        CounterexampleError
            The data isn't a counterexample of this contract, or the target can't be asked the same.
        """
        place = place_of(counterexample)
        settings = replace(
            settings,
            claims=place.claims,
            tolerance=place.tolerance,
            alpha=place.alpha,
            continued={check: {"log_e": log_e} for check, log_e in place.asked.items()},
        )
        asked = _Asked(implementation, settings, _checks_at(place))
        _require_askable(asked, place, implementation.name)
        if place.check == PROVED:
            paths = place.requests
            row = proof_again(
                asked.proof(place.seed), place.scenario, paths, lambda: progress("proof", 0, paths)
            )
            if row is None:
                raise CounterexampleError(f"there is no case {place.scenario!r} for {implementation.name}")
            return [row]
        if place.check == PROBED:
            if place.scenario != PROBE_NAME:
                raise CounterexampleError(f"{PROBED} has the scenario {PROBE_NAME!r}, not {place.scenario!r}")
            return [probed(asked.probe(place.seed), place.requests, progress)[0]]
        everything = asked.scenarios(place.seed)
        tried = {scenario.name: scenario for scenario in everything}
        if place.scenario not in {*tried, *TREE_NAMES, SEARCH_NAME, WHOLE_RUN}:
            raise CounterexampleError(f"there is no scenario {place.scenario!r} for {implementation.name}")
        book = LawBook(asked.checks, everything, settings)
        most = place.requests * (MORE_TO_SHRINK if place.scenario == SEARCH_NAME else 1)
        run = asked.start(book, place.seed, most, progress)
        if place.scenario == WHOLE_RUN:
            run.run(everything)
        elif place.scenario in TREE_NAMES:
            run.tree(place.scenario, place.requests)
        elif place.scenario == SEARCH_NAME:
            run.search(place.requests, own_drafter=asked.draws)
        elif place.looks:
            run.scenario(tried[place.scenario], place.requests, place.looks)
        else:
            run.small(tried[place.scenario], place.requests)
        run.end()
        return shown_once([row for row in book.evidence() if place.check in ("", row.check.id)])


def _checks_at(place: Place) -> frozenset[str]:
    """What is asked at a place: its check, and what decides about that; everything where it has none.

    Whatever is asked, the protocol may be broken by it: so everything is asked for this check as well.
    """
    return frozenset({place.check, *place.asked} if place.check not in ("", PROTOCOL) else BY_ID)


def _require_askable(asked: "_Asked", place: Place, name: str) -> None:
    """Raise `CounterexampleError` for a check, or a scenario, that isn't one of the verifier's."""
    needed = place.check or (TREES if place.scenario in TREE_NAMES else PROTOCOL)
    if needed not in asked.checks:
        raise CounterexampleError(f"{name} can't be asked about {needed}: {asked.reason(BY_ID[needed])}")


class _Asked:
    """The verifier of an implementation, what it is held to, and the checks that this gives rise to."""

    def __init__(self, implementation: Implementation, settings: Settings, selected: frozenset[str]) -> None:
        self._implementation, self._verifier = implementation, build_verifier(implementation)
        self._capabilities = effective_capabilities(implementation, VERIFIER, self._verifier)
        self._settings = settings
        self._claims = settings.claims or claim_of(self._verifier, implementation.name)
        self._refused = refusals_of(self._verifier, implementation.name)
        self.draws = "draft" in self._capabilities
        self.seeds = "row-seeds" in self._capabilities
        possible = frozenset(check.id for check in VERIFIER_CHECKS if not self.reason(check))
        self.checks = possible & selected
        if TOGETHER in self.checks and not self.checks & GATES:  # alone it is about all of them
            self.checks |= possible & GATES

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
        if check.id == PROBED and self._claims == EXACT and "noise" not in self._capabilities:
            return f"{needed(VERIFIER, {'noise'})}: the claim {EXACT!r} says nothing about acceptance alone"
        if check.id == ROWS and most_rows_of(self._verifier, "") == 1:
            return "it takes one row a call"
        if self._settings.tolerance and check.id not in TOLERANT:
            return "not asked with a tolerance"
        return ""

    def refusal(self, check: Check, book: LawBook) -> Evidence:
        """The row of a check that isn't asked; what isn't claimed may still have been watched."""
        message, log_e = self.reason(check), book.watched(check.id)
        if log_e == math.inf:
            message += "; it would be refuted by an outcome that is impossible under it"
        elif log_e is not None:
            outcome = "it would be refuted" if log_e >= -math.log(self._settings.alpha) else "it stands"
            message += f"; {outcome} (log10 e = {log10_of(log_e)})"
        return Evidence(check, Verdict.NOT_SUPPORTED, message=message)

    def held_to(self, row: Evidence) -> Evidence:
        """The row; what it was asked of the law is only known with the claim."""
        if row.statistics is None:
            return row
        return replace(row, statistics={**row.statistics, "claims": self._claims})

    def limited(self, row: Evidence) -> Evidence:
        """The row, with what was left out because the verifier refuses it."""
        if not self._refused or row.check.id not in WEIGHTS:
            return row
        left_out = sorted(self._refused)
        note = f"Left out, since the verifier refuses it: {', '.join(left_out)}."
        statistics = {**(row.statistics or {}), "refused": left_out}
        return replace(row, message=f"{row.message}\n{note}".strip(), statistics=statistics)

    def proof(self, seed: int) -> ProofRequest:
        """What is proved."""
        return ProofRequest(
            lambda: build_verifier(self._implementation),
            claims=self._claims,
            own_drafter=self.draws,
            trees="trees" in self._capabilities,
            refused=self._refused,
            most_rows=most_rows_of(self._verifier, self._implementation.name),
            seed=seed,
            settings=self._settings,
        )

    def probe(self, seed: int) -> ProbeRequest:
        """What is probed."""
        told = Told(
            self._claims,
            precision_of(self._verifier, self._implementation.name),
            "noise" in self._capabilities,
            self._refused,
        )
        return ProbeRequest(lambda: build_verifier(self._implementation), told, seed, self._settings)

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
