"""Samples of a decoder whose random numbers can't be decided: counts against the exact laws."""

import math
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.stats.counts import Counts
from tokenlaw.stats.counts import Law as TableLaw
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_laws import Cell, Comparison, Question, compared
from tokenlaw.stats.decoder_programs import DecoderProgram, OtherWayError, Outcome
from tokenlaw.stats.decoder_proving import Asked
from tokenlaw.stats.distances import tv_bounds
from tokenlaw.stats.e_values import average_log_e, dirichlet_log_e, product_log_e
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.power import visible_mass, visible_tv
from tokenlaw.stats.tolerant import tolerant_log_e

PILOT = 4
"""Samples by which it is found out how long one takes; they aren't counted."""

FIRST_LOOK = 32
"""After so many samples, and whenever there are twice as many, it is looked whether they refute."""

MOST_SAMPLES = 100_000
"""Samples of one case, at most."""

COUNTED, PILOTED = 1 << 40, 1 << 41
"""Runs are numbered from these on, so that samples and paths have other seeds."""


@dataclass(frozen=True)
class CaseSamples:
    """What samples said about one case.

    Attributes
    ----------
    samples : how many were counted, of those that were planned.
    log_e : natural logarithm of the e-value of all its laws together.
    worst : the law that speaks most against it, as frequencies beside probabilities; None without samples.
    visible : for each law the smallest deviation that would have been refuted; infinity if that isn't known.
    bounds : for each law that isn't conditional, what its total variation is at least and at most.
    reason : why it can't be sampled.
    crash : what the decoder raised.
    """

    case: Case
    samples: int = 0
    planned: int = 0
    log_e: float = 0.0
    worst: Comparison | None = None
    visible: tuple[float, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()
    reason: str = ""
    crash: str = ""

    def found_wrong(self) -> Comparison:
        """The law that speaks most against it; raises `ValueError` without samples."""
        if self.worst is None:
            raise ValueError(f"nothing was sampled: {self.reason}")
        return self.worst


@dataclass
class Sampler:
    """Samples one case.

    Attributes
    ----------
    asked : the decoder.
    case : the case.
    alpha : probability that it may refute an exact decoder.
    before : natural logarithm of an e-value of earlier runs.
    alive : called after every sample.
    """

    asked: Asked
    case: Case
    alpha: float
    before: float
    alive: Callable[[], None] = lambda: None
    _counts: Counter[Outcome] = field(default_factory=Counter)

    def samples_in(self, seconds: float) -> int:
        """How many there is processor time for, at least one; what the decoder raises is raised."""
        program = self._program(PILOTED)
        used = Stopwatch()
        for _ in range(PILOT):
            program()
        return max(1, min(int(seconds / max(used(), 1e-6) * PILOT), MOST_SAMPLES))

    def sampled(self, *, seconds: float = 0.0, samples: int = 0) -> CaseSamples:
        """Count as many samples as are asked for, or as there is time for; fewer if they refute."""
        try:
            number = samples or self.samples_in(seconds)
            program = self._program(COUNTED)
            look = FIRST_LOOK
            for drawn in range(1, number + 1):
                self._counts[program()] += 1
                self.alive()
                if drawn == look and drawn < number:
                    look *= 2
                    if self._refutes(self._log_e(program)):
                        break
        except OtherWayError as error:
            return CaseSamples(self.case, reason=str(error))
        except Exception:
            told = f"{self.case.title}: the decoder raised an exception.\n{traceback.format_exc()}"
            return CaseSamples(self.case, crash=told)
        return self._found(program, number)

    def _program(self, first: int) -> DecoderProgram:
        return self.asked.program(self.case, first=first, afresh=False)

    def _log_e(self, program: DecoderProgram) -> float:
        """Of all laws together: any of them may be wrong."""
        log_es = [self._gate(question) for question in self.asked.questions(program)]
        return average_log_e(log_es, [1 / len(log_es)] * len(log_es))

    def _gate(self, question: Question) -> float:
        """Of one law: draws of different groups are independent, given their groups."""
        parts = counts_of(self._counts, question)
        return product_log_e(
            [_log_e(counts, question.law(group), self.asked) for group, counts in parts.items()]
        )

    def _refutes(self, log_e: float) -> bool:
        return log_e + self.before >= -math.log(self.alpha)

    def _found(self, program: DecoderProgram, planned: int) -> CaseSamples:
        asked = self.asked.questions(program)
        samples, part = self._counts.total(), self.alpha / len(asked)
        law = Law({outcome: count / samples for outcome, count in self._counts.items()}, paths=samples)
        worst = max(asked, key=self._gate)
        # Bounds hold only if the number of samples doesn't depend on what was drawn.
        whole = samples == planned
        bounds = [self._bounds(question, part) for question in asked if whole and not question.is_conditional]
        return CaseSamples(
            self.case,
            samples,
            planned,
            self._log_e(program),
            compared(law, worst),
            tuple(_visible(question, samples, part) for question in asked),
            tuple(bounds),
        )

    def _bounds(self, question: Question, alpha: float) -> tuple[float, float]:
        (counts,) = counts_of(self._counts, question).values()
        return tv_bounds(*_arrays(counts, question.law(None)), alpha)


def counts_of(counts: Mapping[Outcome, int], question: Question) -> dict[Hashable, Counter[Cell]]:
    """How often each cell was seen, in each group."""
    found: dict[Hashable, Counter[Cell]] = defaultdict(Counter)
    for outcome, count in counts.items():
        found[question.group(outcome)][question.cell(outcome)] += count
    return found


def _arrays(counts: Mapping[Cell, int], law: Mapping[Cell, float]) -> tuple[Counts, TableLaw]:
    """Counts and probabilities of the same cells; the last one has all that is impossible."""
    strays = sum(count for cell, count in counts.items() if cell not in law)
    masses = np.array([*law.values(), 0.0])
    return np.array([*(counts.get(cell, 0) for cell in law), strays]), masses / masses.sum()


def _log_e(counts: Mapping[Cell, int], law: Mapping[Cell, float], asked: Asked) -> float:
    if not law:
        return math.inf  # no legal answer
    found = _arrays(counts, law)
    return (
        tolerant_log_e(*found, asked.sampling_tolerance)
        if asked.sampling_tolerance
        else dirichlet_log_e(*found)
    )


def _visible(question: Question, samples: int, alpha: float) -> float:
    """The deviation that samples show for all but certain; of a conditional law that isn't known."""
    if question.is_conditional:
        return math.inf
    cells = len(question.law(None))
    return visible_mass(samples) if cells == 1 else visible_tv(samples, cells, alpha)
