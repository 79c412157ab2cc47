"""Proof of a decoder: the exact law of whole sessions, from all paths of its random numbers.

The unmodified decoder carries a session out once for each path. What is proved holds up to the stated total
variation in the situations that were tried; what is refuted is wrong in one of them by at least that much.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_laws import Comparison, Question, compared, questions
from tokenlaw.stats.decoder_programs import DecoderProgram, Make, Outcome
from tokenlaw.stats.enumeration.errors import EnumerationError, NotRepeatableError
from tokenlaw.stats.enumeration.exact_law import Enumerator
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.law_pairs import Proof, require_answers
from tokenlaw.stats.proving import FURTHER, LEAST_REPEATS, REPEATED_PATHS, UNSEEN, same_law

MOST_PATHS = 3_000
"""Paths of one case, at most."""

WITHOUT_CHOICE = 8
"""A law without any choice is enumerated so many times again, also if it seems right."""


@dataclass(frozen=True)
class Asked:
    """A decoder and what its cases have in common.

    Attributes
    ----------
    make : builds it.
    capabilities : that it has.
    model : law of its target.
    seed : of the run.
    tolerance : total variation up to which a law may differ, that of rounding included.
    sampling_tolerance : that of samples, which see no rounding; 0 for none.
    """

    make: Make
    capabilities: frozenset[str]
    model: Callable[[Case], LanguageModel[float]]
    seed: int
    tolerance: float
    sampling_tolerance: float = 0.0

    def program(self, case: Case, *, first: int = 0, afresh: bool = True) -> DecoderProgram:
        """What is run for a case."""
        parts = (self.make, case, self.model(case), self.capabilities)
        return DecoderProgram(*parts, seed=self.seed, first=first, afresh=afresh)

    def questions(self, program: DecoderProgram) -> list[Question]:
        """The laws that are asked for."""
        return questions(program.case.check, program.plan, program.model)


@dataclass(frozen=True)
class CaseProof(Proof[Comparison]):
    """What was found out about one case.

    Attributes
    ----------
    program : whose outcomes they are; None where the case can't be enumerated.
    """

    case: Case
    program: DecoderProgram | None = None


@dataclass
class Prover:
    """Enumerates cases of one decoder, while it is entered.

    Attributes
    ----------
    asked : the decoder.
    hidden : why nothing that was enumerated counts: random numbers that weren't seen. Empty if all were.
    alive : called after every path.
    """

    asked: Asked
    hidden: str = ""
    alive: Callable[[], None] = lambda: None
    _enumerator: Enumerator = field(init=False)

    def __enter__(self) -> "Prover":
        self._enumerator = Enumerator(self.asked)
        self._enumerator.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        try:
            self._enumerator.__exit__(*exception)
        except EnumerationError as error:
            self.hidden = self.hidden or str(error)

    def prove(self, case: Case, *, seconds: float | None = None, paths: int = MOST_PATHS) -> CaseProof:
        """Enumerate a case in so many seconds of processor time, and so many paths, at most."""
        try:
            program = self.asked.program(case)
            law = self._run(program, paths, seconds)
            require_answers(law)
            comparisons = tuple(compared(law, question) for question in self.asked.questions(program))
            found = CaseProof(case=case, comparisons=comparisons, law=law, program=program)
            if found.refuted(self.asked.tolerance):
                self._confirm(case, law, max(LEAST_REPEATS, REPEATED_PATHS // law.paths))
            elif law.paths == 1:
                self._confirm(case, law, WITHOUT_CHOICE)
        except EnumerationError as error:
            return CaseProof(case=case, reason=str(error))
        return found

    def _run(self, program: DecoderProgram, paths: int, seconds: float | None = None) -> Law:
        def one() -> list[Outcome]:
            return [program()]

        return self._enumerator.laws(
            one,
            1,
            max_paths=paths,
            seconds=seconds,
            progress=lambda *_: self.alive(),
            clock=Stopwatch(),
        )

    def _confirm(self, case: Case, law: Law, repeats: int) -> None:
        """Enumerate a law again with other seeds: random numbers that nobody saw would change it."""
        for repeat in range(1, repeats + 1):
            again = self._run(self.asked.program(case, first=repeat * FURTHER), law.paths)
            if not same_law(law, again):
                self.hidden = UNSEEN
                raise NotRepeatableError(UNSEEN)
