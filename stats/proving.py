"""Proof of a verifier: its exact law in small situations, from all paths of its random numbers.

The unmodified verifier runs once for each path, or for many paths at once in the rows of a batch. Nothing is
sampled: what is proved holds up to the stated total variation, for certain, in the situations that were
tried; what is refuted is wrong in one of them by at least as much as is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.stats.enumeration.choices import CLOSE
from tokenlaw.stats.enumeration.errors import EnumerationError, NotRepeatableError
from tokenlaw.stats.enumeration.exact_law import Enumerator
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.law_pairs import Proof, require_answers
from tokenlaw.stats.proving_cases import Case
from tokenlaw.stats.proving_laws import Comparison, compared
from tokenlaw.stats.proving_programs import Program
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.trial import kind_laws

ROUNDING = 1e-6
"""Total variation that arithmetic in float32 may cause; a law that is farther off is wrong."""

ROWS = 23
"""Rows of a batch in which every row follows a path of its own; no other size in a batch is that number."""

LEAST_REPEATS, REPEATED_PATHS = 2, 64
"""A refuted law is enumerated so many times again, with other seeds, and until so many paths were run."""

FURTHER = 1_000_000
"""Runs of a repetition are numbered from a multiple of this on, so that they have other seeds."""

UNSEEN = (
    "with another seed the same choices give other tokens, so it makes random numbers of the seed in a way "
    "that isn't seen, or keeps state between calls"
)

ENOUGH_REFUTED = 2
"""After so many refuted cases the others aren't tried."""

GIVE_UP = 2
"""If so many cases can't be enumerated, and none before them could, the others aren't tried."""


@dataclass(frozen=True)
class CaseProof(Proof[Comparison]):
    """What was found out about one case."""

    case: Case


class Prover:
    """Enumerates cases of one verifier, while it is entered.

    Parameters
    ----------
    make : builds the verifier.
    claims : what it is held to.
    seed, device : of the run.
    tolerance : total variation up to which a law may differ.
    rows : rows of a batch at most.
    alive : called after every path.

    Attributes
    ----------
    hidden : why nothing that was enumerated counts: random numbers that weren't seen. Empty if all were.
    programs : all that were run.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        claims: str,
        seed: int,
        device: str,
        tolerance: float,
        rows: int | None,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._alive = alive
        self._make, self._claims, self._seed, self._device = make, claims, seed, device
        self._tolerance = tolerance
        self._in_batches = rows is None or rows >= ROWS
        self.hidden, self.programs = "", list[Program]()
        self._enumerator = Enumerator(make())

    def __enter__(self) -> "Prover":
        self._enumerator.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        try:
            self._enumerator.__exit__(*exception)
        except EnumerationError as error:
            self.hidden = self.hidden or str(error)

    @property
    def verified(self) -> int:
        """Rows that the verifier was given."""
        return sum(program.verified for program in self.programs)

    def prove(self, case: Case, *, max_paths: int, seconds: float) -> CaseProof:
        """Enumerate a case; in a batch if the verifier's random numbers can be told apart by rows there."""
        try:
            # In a batch the independence of rows is taken for granted, so what refutes is looked at alone.
            batched = self._batched(case, max_paths, seconds)
            if batched is not None:
                found = self._proof(case, batched)
                if not found.refuted(self._tolerance):
                    return found
            found = self._proof(case, self._alone(case, max_paths, seconds))
            if found.refuted(self._tolerance):
                self._confirm(found, seconds)
        except EnumerationError as error:
            return CaseProof(case=case, reason=str(error))
        return found

    def is_over(self, proofs: Sequence[CaseProof]) -> bool:
        """Whether more cases would say the same: enough is refuted, or nothing can be decided."""
        if sum(proof.refuted(self._tolerance) for proof in proofs) == ENOUGH_REFUTED:
            return True
        return bool(self.hidden) or (len(proofs) == GIVE_UP and all(proof.reason for proof in proofs))

    def _batched(self, case: Case, max_paths: int, seconds: float, first: int = 0) -> Law | None:
        """The law of a row in a batch; None where that can't be enumerated."""
        if not self._in_batches or case.group:
            return None
        try:
            law = self._law(self._program(case, rows=ROWS, first=first), ROWS, max_paths, seconds)
        except EnumerationError as error:
            # Rounding that depends on the place in a batch is no reason against other cases.
            self._in_batches = isinstance(error, NotRepeatableError)
            return None
        return law

    def _alone(self, case: Case, max_paths: int, seconds: float, first: int = 0) -> Law:
        try:
            return self._law(self._program(case, first=first), 1, max_paths, seconds)
        except NotRepeatableError:
            # Who keeps something from call to call may still be known from the first call on.
            program = self._program(case, first=first, afresh=True)
        try:
            return self._law(program, 1, max_paths, seconds)
        except NotRepeatableError as error:
            self.hidden = UNSEEN
            raise NotRepeatableError(UNSEEN) from error

    def _law(self, program: Program, rows: int, max_paths: int, seconds: float) -> Law:
        return self._enumerator.laws(
            program,
            rows,
            max_paths=max_paths,
            seconds=seconds,
            progress=lambda *_: self._alive(),
            clock=Stopwatch(),
        )

    def _program(self, case: Case, *, rows: int = 1, first: int = 0, afresh: bool = False) -> Program:
        shape = {"rows": rows, "first": first}
        program = Program(self._make, case, seed=self._seed, device=self._device, afresh=afresh, **shape)
        self.programs.append(program)
        return program

    def _proof(self, case: Case, law: Law) -> CaseProof:
        require_answers(law)
        laws = kind_laws(Tables.of(case.scenario, self._device))
        comparisons = tuple(compared(law, case, laws, self._claims))
        return CaseProof(case=case, comparisons=comparisons, law=law)

    def _confirm(self, found: CaseProof, seconds: float) -> None:
        """Enumerate a refuted law again with other seeds: random numbers that nobody saw would change it."""
        _, law = found.found_wrong()
        paths = law.paths
        for repeat in range(1, max(LEAST_REPEATS, REPEATED_PATHS // paths) + 1):
            first = repeat * FURTHER
            again = self._batched(found.case, paths, seconds, first) if law.complete else None
            if again is None or not same_law(law, again):
                again = self._alone(found.case, paths, seconds, first)
            if again.paths == paths and not same_law(law, again):
                self.hidden = UNSEEN
                raise NotRepeatableError(UNSEEN)


def same_law(one: Law, other: Law) -> bool:
    """Whether two laws are equal up to rounding."""
    outcomes = {*one.probabilities, *other.probabilities}
    pairs = ((one.probabilities.get(each, 0), other.probabilities.get(each, 0)) for each in outcomes)
    return all(abs(float(first - second)) <= CLOSE for first, second in pairs)


def prove_cases(
    prover: Prover, cases: Sequence[Case], *, max_paths: int, seconds: float, enter: Callable[[Case], None]
) -> list[CaseProof]:
    """Prove case after case, until the paths or the seconds of all together are used up.

    Parameters
    ----------
    prover : not entered yet.
    max_paths, seconds : of all cases; a case that would exceed them is left out.
    enter : told about each case before it is begun.

    Returns
    -------
    What was found out; cases without an entry weren't begun or weren't finished.
    """
    proofs: list[CaseProof] = []
    with prover:
        used = Stopwatch()
        for case in cases:
            left = seconds - used()
            if max_paths <= 0 or left <= 0 or prover.is_over(proofs):
                break
            enter(case)
            proofs.append(prover.prove(case, max_paths=max_paths, seconds=left))
            max_paths -= proofs[-1].paths
    if prover.hidden:
        return [CaseProof(case=proof.case, reason=proof.reason or prover.hidden) for proof in proofs]
    return proofs
