"""One run of the laws of a decoder: proofs first, then samples of what can't be proved."""

import time
from collections.abc import Sequence

from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.spec.suites import Progress
from tokenlaw.spec.verdicts import Evidence
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_proving import MOST_PATHS, Asked, CaseProof, Prover
from tokenlaw.stats.decoder_rows import CheckLaws
from tokenlaw.stats.decoder_sampling import MOST_SAMPLES, Sampler
from tokenlaw.stats.decoder_situations import LARGER_ROUNDS

LEAST_FOR_SAMPLES = 0.25
"""Proofs may take all of the processor time; samples have what they leave, and at least this part."""

GENEROUS = 4.0
"""A case may take so many times the average of what is left; most take less."""

GIVE_UP = 2
"""If none of so many cases can be enumerated, the others aren't tried."""

ROUND_BUDGET = 3_000_000
"""For so many requests of the budget all cases are tried once more, with other models."""


def rounds_of(budget: int) -> int:
    """Rounds of larger cases, for so many requests.

    >>> rounds_of(600_000), rounds_of(6_000_000), rounds_of(200_000_000)
    (0, 2, 4)
    """
    return min(budget // ROUND_BUDGET, LARGER_ROUNDS)


class LawRun:
    """Finds out the laws of a decoder.

    Parameters
    ----------
    asked : the decoder.
    laws : what is known of each check, empty at first.
    seconds : for everything, of a `Stopwatch`.
    progress : as in `tokenlaw.spec.suites.Progress`.
    """

    def __init__(self, asked: Asked, laws: Sequence[CheckLaws], seconds: float, progress: Progress) -> None:
        self._asked, self._seconds, self._progress, self._done = asked, seconds, progress, 0
        self._laws = {one.check.id: one for one in laws}
        # The first ones of all checks come first: where time is short, every check has something.
        ranked = [(case.larger, rank, case) for one in laws for rank, case in enumerate(one.cases)]
        self._cases = [case for _, _, case in sorted(ranked, key=lambda ranks: ranks[:2])]

    def run(self) -> list[Evidence]:
        """A row for each check."""
        used = Stopwatch()
        self._prove(self._seconds)
        self._sample(max(self._seconds - used(), self._seconds * LEAST_FOR_SAMPLES))
        return [one.evidence() for one in self._laws.values()]

    def _prove(self, seconds: float) -> None:
        used, tried = Stopwatch(), list[CaseProof]()
        with Prover(self._asked, alive=self._alive) as prover:
            for number, case in enumerate(self._cases):
                left = seconds - used()
                gave_up = len(tried) >= GIVE_UP and all(one.reason for one in tried)
                if left <= 0 or gave_up or prover.hidden:
                    break
                laws = self._laws[case.check]
                if laws.refuting_proof is None:
                    share = GENEROUS * left / (len(self._cases) - number)
                    tried.append(self._proof(prover, case, min(share, left)))
        if prover.hidden or (tried and all(one.reason for one in tried)):
            self._forget(prover.hidden or tried[0].reason)
        for laws in self._laws.values():
            if laws.refuting_proof is not None:
                announce_evidence(laws.evidence())

    def _forget(self, reason: str) -> None:
        """Nothing is proved, for this reason."""
        for laws in self._laws.values():
            reasons = [CaseProof(case=one.case, reason=one.reason or reason) for one in laws.proofs]
            laws.proofs = reasons or [CaseProof(case=case, reason=reason) for case in laws.cases[:1]]

    def _alive(self) -> None:
        self._progress("laws", min(self._done, len(self._cases)), len(self._cases))

    def _proof(self, prover: Prover, case: Case, seconds: float) -> CaseProof:
        laws, started = self._laws[case.check], time.perf_counter()
        self._done += 1
        self._alive()
        announce(laws.place(case, paths=MOST_PATHS).to_data())
        found = prover.prove(case, seconds=seconds)
        laws.proofs.append(found)
        laws.seconds += time.perf_counter() - started
        return found

    def _sample(self, seconds: float) -> None:
        open_cases: list[Case] = []
        for laws in self._laws.values():
            if laws.refuting_proof is None:
                unproved = laws.unproved()
                laws.to_sample = len(unproved)
                open_cases += unproved
        used = Stopwatch()
        for number, case in enumerate(open_cases):
            laws = self._laws[case.check]
            if laws.refuting_samples is None:
                self._sample_case(laws, case, (seconds - used()) / (len(open_cases) - number))

    def _sample_case(self, laws: CheckLaws, case: Case, seconds: float) -> None:
        started = time.perf_counter()
        announce(laws.place(case, samples=MOST_SAMPLES).to_data())
        sampler = Sampler(self._asked, case, laws.case_alpha, laws.before, self._alive)
        laws.samples.append(sampler.sampled(seconds=seconds))
        laws.seconds += time.perf_counter() - started
        if laws.refuting_samples is not None:
            announce_evidence(laws.evidence())
