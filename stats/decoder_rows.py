"""The row of the report for each check of a decoder's laws."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.sessions import to_data
from tokenlaw.spec.verdicts import PROVED, SAMPLED, Check, Evidence, Verdict
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_checks import EVENT
from tokenlaw.stats.decoder_places import DecoderPlace
from tokenlaw.stats.decoder_proving import MOST_PATHS, CaseProof
from tokenlaw.stats.decoder_sampling import CaseSamples
from tokenlaw.stats.decoder_words import refuted_by_proof, refuted_by_samples
from tokenlaw.stats.e_values import average_log_e
from tokenlaw.stats.law_outcome import finite
from tokenlaw.stats.ledger import Kind
from tokenlaw.stats.power import MISS


@dataclass
class CheckLaws:
    """What a run knows about one check.

    Attributes
    ----------
    share, alpha : its part of the run's alpha, and what that is.
    before : natural logarithm of the e-value of earlier runs.
    seed, tolerance, proof_tolerance : of the run; the last one with what rounding needs.
    cases : all that it is asked in, in this run.
    proofs, samples : what was found out about some of them.
    to_sample : the cases that aren't proved, between which alpha is shared.
    """

    check: Check
    share: float
    alpha: float
    before: float
    seed: int
    tolerance: float
    proof_tolerance: float
    cases: list[Case]
    proofs: list[CaseProof] = field(default_factory=list)
    samples: list[CaseSamples] = field(default_factory=list)
    to_sample: int = 0
    seconds: float = 0.0

    @property
    def refuting_proof(self) -> CaseProof | None:
        """The proof of the law that is farthest off, if one is too far."""
        refuted = [one for one in self.proofs if one.refuted(self.proof_tolerance)]
        return max(refuted, key=lambda one: one.least, default=None)

    def unproved(self) -> list[Case]:
        """Cases to be sampled: those that can't be proved, and all of every run where none is proved.

        Where some are, others are only left unfinished.
        """
        if self._proved:
            return [one.case for one in self.proofs if one.reason]
        return [case for case in self.cases if not case.larger]

    @property
    def case_alpha(self) -> float:
        """The part of alpha of each case that is sampled."""
        return self.alpha / max(self.to_sample, 1)

    @property
    def refuting_samples(self) -> CaseSamples | None:
        """The samples with the largest e-value, if that refutes."""
        worst = max(self.samples, key=lambda one: one.log_e, default=None)
        enough = -math.log(self.case_alpha) - self.before
        return worst if worst is not None and worst.samples and worst.log_e >= enough else None

    def place(self, case: Case, *, paths: int = 0, samples: int = 0) -> DecoderPlace:
        """Where a case is run again."""
        return DecoderPlace(
            self.check.id,
            case.title,
            paths,
            samples,
            self.seed,
            self.tolerance,
            self.case_alpha,
            self.before,
            to_data(case.session),
        )

    def evidence(self) -> Evidence:
        """The row."""
        proof, samples = self.refuting_proof, self.refuting_samples
        if proof is not None:
            place = self.place(proof.case, paths=MOST_PATHS)
            message = "\n".join([refuted_by_proof(proof), *self._others(proof)])
            return self._row(Verdict.REFUTED, message, place)
        if samples is not None:
            place = self.place(samples.case, samples=samples.planned)
            needed = -math.log(self.case_alpha) - self.before
            return self._row(Verdict.REFUTED, refuted_by_samples(samples, needed), place)
        crashes = [one.crash for one in self.samples if one.crash]
        if crashes:
            return self._row(Verdict.UNKNOWN, crashes[0])
        if not self._judged:
            return self._row(Verdict.NOT_EXERCISED, f"no law was found out: {self._why_not()}")
        told = [tv for tv in self._visible if tv < 1]
        if not self._proved and not told:
            few = sum(one.samples for one in self.samples)
            text = f"{few} samples promise to refute nothing (alpha {self.alpha:.2g}). {self._unjudged()}"
            return self._row(Verdict.NOT_EXERCISED, text.strip())
        texts = [self._certificate(), self._power(told), self._unjudged()]
        return self._row(Verdict.HOLDS, " ".join(filter(None, texts)))

    @property
    def _proved(self) -> list[CaseProof]:
        return [one for one in self.proofs if one.proved(self.proof_tolerance)]

    @property
    def _judged(self) -> int:
        """Cases of which something is known."""
        decided = sum(one.decided(self.proof_tolerance) for one in self.proofs)
        return decided + sum(one.samples > 0 for one in self.samples)

    @property
    def _visible(self) -> list[float]:
        return [tv for one in self.samples for tv in one.visible]

    def _why_not(self) -> str:
        if not self.cases:
            return "over the decoder's own vocabulary its situations have too many outcomes"
        reasons = [one.reason for one in self.samples] + [one.reason for one in self.proofs]
        return next(filter(None, reasons), "there was no time")

    def _others(self, worst: CaseProof) -> list[str]:
        names = [
            f"{one.case.title} (TV {one.least:.2g})"
            for one in self.proofs
            if one is not worst and one.refuted(self.proof_tolerance)
        ]
        return [f"Refuted as well: {', '.join(names)}."] if names else []

    def _certificate(self) -> str:
        """What is proved, in a sentence, and why the rest isn't."""
        if not self._proved:
            reasons = [one.reason for one in self.proofs if one.reason]
            return (
                f"Its random numbers can't be decided ({reasons[0]}), so it was sampled." if reasons else ""
            )
        most, paths = max(one.most for one in self._proved), sum(one.paths for one in self._proved)
        text = (
            f"Proved by running every path of its random numbers: in {len(self._proved)} of "
            f"{len(self.cases)} small situations all laws are within TV {most:.1e} of the exact ones, "
            f"{paths} paths."
        )
        reasons = [f"{one.case.title}: {one.reason}" for one in self.proofs if one.reason]
        if reasons:
            return f"{text} Not proved: {reasons[0]}."
        left = len(self.cases) - len(self._proved)
        return f"{text} Not finished: {left} more." if left else text

    def _unjudged(self) -> str:
        """Cases that couldn't even be sampled."""
        reasons = [f"{one.case.title}: {one.reason}" for one in self.samples if one.reason]
        return f"Not judged: {'; '.join(reasons)}." if reasons else ""

    def _power(self, told: list[float]) -> str:
        if not told:
            return ""
        samples, rest = sum(one.samples for one in self.samples), len(self._visible) - len(told)
        return (
            f"With {samples} samples any law at TV >= {max(told):.2g} from the exact one, in any of "
            f"{len(told)} laws, would have been refuted with probability >= {1 - MISS} "
            f"(alpha {self.case_alpha:.2g})."
        ) + (f" Of {rest} more laws nothing can be promised." if rest else "")

    def _row(self, verdict: Verdict, message: str, place: DecoderPlace | None = None) -> Evidence:
        paths, samples = sum(one.paths for one in self.proofs), sum(one.samples for one in self.samples)
        return Evidence(
            self.check,
            verdict,
            {EVENT: self._judged},
            paths + samples,
            self.seconds,
            message,
            None if place is None else place.to_data(),
            self._statistics(paths, samples) if self._judged else None,
        )

    def _statistics(self, paths: int, samples: int) -> Mapping[str, Any]:
        known = [one for one in self.proofs if one.decided(self.proof_tolerance)]
        found: dict[str, Any] = {"evidence": PROVED, "paths": paths}
        found["laws"] = sum(len(one.comparisons) for one in known)
        bounds = [(one.least, one.most) for one in known]
        if samples:
            found |= self._sampled(samples)
            bounds = [bound for one in self.samples for bound in one.bounds]
        if bounds:
            found["tv_at_least"] = max(least for least, _ in bounds)
            found["tv_at_most"] = max(most for _, most in bounds)
        return found

    def _sampled(self, samples: int) -> dict[str, Any]:
        log_es = [one.log_e for one in self.samples if one.samples]
        weights = [1 / self.to_sample] * self.to_sample
        # What couldn't be sampled counts as e = 1.
        log_e = average_log_e([*log_es, *[0.0] * (self.to_sample - len(log_es))], weights)
        observed = finite(log_e + self.before)
        entry = {"kind": str(Kind.GATE), "share": self.share, "alpha": self.alpha, "observed": observed}
        found: dict[str, Any] = {
            "evidence": SAMPLED,
            "samples": samples,
            "ledger": [entry],
            "log_e": observed,
        }
        told = [tv for tv in self._visible if tv < 1]
        if told:
            found["power"] = {"tv": max(told), "probability": 1 - MISS, "laws": len(told)}
        return found
