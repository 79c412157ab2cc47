"""The suite of the laws of the decoder contract."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tokenlaw.spec.capabilities import check_mandatory, effective_capabilities, needed
from tokenlaw.spec.contracts import DECODER, ContractError, Implementation
from tokenlaw.spec.decoders import built_decoder, default_config
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.suites import DEFAULTS, CounterexampleError, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import Check, Evidence, Verdict
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_checks import BY_ID, DECODER_LAW_CHECKS
from tokenlaw.stats.decoder_own_models import OwnModels
from tokenlaw.stats.decoder_places import DecoderPlace, case_at, place_of
from tokenlaw.stats.decoder_proving import Asked, CaseProof, Prover
from tokenlaw.stats.decoder_rows import CheckLaws
from tokenlaw.stats.decoder_run import LawRun, rounds_of
from tokenlaw.stats.decoder_sampling import Sampler
from tokenlaw.stats.decoder_situations import law_cases
from tokenlaw.stats.law_book import shown_once
from tokenlaw.stats.ledger import Kind, Ledger, Stake
from tokenlaw.stats.proving import ROUNDING


class DecoderLaws:
    """All checks of laws of the decoder contract; see `tokenlaw.spec.suites.Suite`."""

    contract = DECODER
    checks: tuple[Check, ...] = DECODER_LAW_CHECKS

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
        """Find out the laws of all small situations, in the profile's seconds of processor time."""
        budget = settings.budget or profile.requests
        chosen = [check for check in self.checks if check.id in selected]
        try:
            subject = _Subject(implementation, seed, settings, rounds_of(budget))
        except ContractError:
            raise
        except Exception:
            told = f"the decoder couldn't be built.\n{traceback.format_exc()}"
            return shown_once([Evidence(check, Verdict.UNKNOWN, message=told) for check in chosen])
        laws = subject.laws(selected)
        seconds = profile.seconds * budget / profile.requests
        found = {row.check.id: row for row in LawRun(subject.asked, laws, seconds, progress).run()}
        return shown_once([found.get(check.id) or subject.refusal(check) for check in chosen])

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run the situation of a counterexample again: all its paths, or as many samples of the same seeds.

        Raises
        ------
        CounterexampleError
            The data isn't a counterexample of these checks, or the target can't be asked the same.
        """
        place = place_of(counterexample)
        settings = replace(settings, alpha=place.alpha, tolerance=place.tolerance, continued=None)
        subject = _Subject(implementation, place.seed, settings, rounds_of(10**9))
        laws = subject.laws(frozenset({place.check}))
        if not laws:
            reason = subject.refusal(BY_ID[place.check]).message
            raise CounterexampleError(f"{implementation.name} can't be asked about {place.check}: {reason}")
        return [_again(subject.asked, laws[0], place, lambda: progress("laws", 0, 1))]


def _again(asked: Asked, laws: CheckLaws, place: DecoderPlace, alive: Callable[[], None]) -> Evidence:
    """The row of one situation."""
    case = case_at(place, laws.cases)
    laws.cases, laws.to_sample, laws.before = [case], 1, place.before
    laws.share, laws.alpha = 1.0, place.alpha
    if place.samples:
        sampler = Sampler(asked, case, place.alpha, place.before, alive)
        laws.samples.append(sampler.sampled(samples=place.samples))
        return laws.evidence()
    with Prover(asked, alive=alive) as prover:
        proof = prover.prove(case, paths=place.paths)
    laws.proofs.append(CaseProof(case=case, reason=prover.hidden) if prover.hidden else proof)
    return laws.evidence()


class _Subject:
    """The decoder of an implementation, and the cases that it is asked about."""

    def __init__(self, implementation: Implementation, seed: int, settings: Settings, rounds: int) -> None:
        self._settings, self._seed = settings, seed
        make = partial(built_decoder, implementation.factories[DECODER], implementation.name)
        decoder = make(default_config())
        check_mandatory(DECODER, decoder, implementation.name)
        self._capabilities = effective_capabilities(implementation, DECODER, decoder)
        own = OwnModels(make, self._capabilities) if "own-models" in self._capabilities else None
        cases = law_cases(seed) if own is None else own.cases(seed)
        possible = [case for case in cases if case.needs <= self._capabilities]
        self._cases = [case for case in possible if case.larger <= rounds]
        self.asked = Asked(
            make,
            self._capabilities,
            _table_model if own is None else own.model,
            seed,
            tolerance=max(ROUNDING, settings.tolerance),
            sampling_tolerance=settings.tolerance,
        )

    def laws(self, selected: frozenset[str]) -> list[CheckLaws]:
        """Nothing is known yet of any check that is asked."""
        asked = [check for check in DECODER_LAW_CHECKS if check.id in selected and not self._missing(check)]
        if not asked:
            return []
        alpha, earlier = self._settings.alpha, self._settings.continued or {}
        ledger = Ledger.allot(alpha, [Stake(check.id, Kind.GATE) for check in asked])
        return [
            CheckLaws(
                check,
                ledger.entry(check.id).share,
                ledger.alpha_of(check.id),
                float(earlier.get(check.id, {}).get("log_e") or 0.0),
                self._seed,
                self.asked.sampling_tolerance,
                self.asked.tolerance,
                [case for case in self._cases if case.check == check.id],
            )
            for check in asked
        ]

    def refusal(self, check: Check) -> Evidence:
        """The row of a check that isn't asked."""
        return Evidence(check, Verdict.NOT_SUPPORTED, message=needed(DECODER, self._missing(check)))

    def _missing(self, check: Check) -> frozenset[str]:
        return check.needs - self._capabilities


def _table_model(case: Case) -> LanguageModel[float]:
    """The target of the configuration."""
    return case.session.config.target
