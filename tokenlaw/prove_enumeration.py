"""The law of a program or of a spec by name: how far it is followed, and who is told."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tokenlaw.prove_command import MAX_PATHS
from tokenlaw.prove_plain_runs import PlainRuns, plain_runs
from tokenlaw.prove_shapes import line_of, outcome_of, with_shapes
from tokenlaw.spec.suites import Progress
from tokenlaw.stats.enumeration.exact_law import exact_law, repeat_path
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.tape import Source, Tape

WHOLE = 1_000_000
"""Progress counts the explored probability in millionths."""

SECONDS_AFTER_STOP = 10.0
"""For so long the spec is enumerated if its program was stopped: nothing can be said without it."""

_TELL_SECONDS = 0.1
_RATE_SECONDS = 1.0
"""Earlier it isn't told how many paths a second are run: the first ones are slower."""


def never() -> bool:
    """The answer of somebody who never wants to stop."""
    return False


@dataclass(frozen=True)
class Bounds:
    """How far programs are followed, and how close laws must be.

    Attributes
    ----------
    max_paths : of each law that is enumerated.
    seconds : of the enumeration of each law; None for no limit.
    tolerance : total variation up to which laws count as equal
        (`tokenlaw.prove_verdict.Comparison.allowed`).
    stopped : whether somebody wants no more paths; what is known then is said.
    """

    max_paths: int = MAX_PATHS
    seconds: float | None = None
    tolerance: float | None = None
    stopped: Callable[[], bool] = never

    def want_plain_runs(self, law: Law) -> bool:
        """Whether plain runs are to be compared with a law: there is one, and nobody has stopped it."""
        return bool(law.probabilities) and not self.stopped()

    @property
    def of_spec(self) -> "Bounds":
        """How far the law of a spec is followed: a while, if the program was stopped before."""
        if not self.stopped():
            return self
        seconds = SECONDS_AFTER_STOP if self.seconds is None else min(self.seconds, SECONDS_AFTER_STOP)
        return replace(self, seconds=seconds, stopped=never)


@dataclass(frozen=True)
class Named:
    """A function, and what reports call it."""

    function: Callable[..., Any]
    name: str


class Enumeration:
    """The law of a program with the shapes of its paths.

    Parameters
    ----------
    named : the program.
    bounds : how far it is followed.
    progress : told now and then; the explored probability in millionths (`WHOLE`).
    """

    def __init__(self, named: Named, bounds: Bounds, progress: Progress) -> None:
        self.named, self._bounds, self._progress = named, bounds, progress
        self._tape = Tape()
        self._told = self._started = time.perf_counter()
        self.program = with_shapes(named.function, lambda: self._tape)

    def law(self) -> Law:
        """Run every path, or as many as the bounds allow."""
        bounds = self._bounds
        return exact_law(
            self.program,
            max_paths=bounds.max_paths,
            seconds=bounds.seconds,
            progress=self._tell,
            sources=self.sources,
        )

    def sources(self, tape: Tape) -> Iterable[Source]:
        """Random numbers are decided by this tape from now on."""
        self._tape = tape
        return default_sources(tape)

    def _tell(self, paths: int, explored: float) -> bool:
        now = time.perf_counter()
        if now - self._told >= _TELL_SECONDS and paths > 1:
            self._told = now
            seconds = now - self._started
            rate = f", {paths / seconds:,.0f} a second" if seconds >= _RATE_SECONDS else ""
            self._progress(f"{self.named.name}: paths {paths:,}{rate}", int(explored * WHOLE), WHOLE)
        return self._bounds.stopped()

    def plain_runs(self, law: Law) -> PlainRuns:
        """The program with its own random numbers, about as long as its law has taken."""
        return plain_runs(self.named.function, law.seconds, self._plain_goes_on)

    def run_again(self, law: Law) -> None:
        """Run the path of the law's first outcome once more, and one that leads to another outcome.

        Raises
        ------
        NotRepeatableError
            They lead to something else by now.
        """
        found = list(law.examples)
        others = [one for one in found[1:] if outcome_of(one) != outcome_of(found[0])]
        for one in (*found[:1], *others[-1:]):
            repeat_path(self.program, line_of(law.examples[one]), one, self.sources)

    def _plain_goes_on(self, done: int, planned: int) -> bool:
        now = time.perf_counter()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            self._progress(f"{self.named.name}: plain runs {done:,} of {planned:,}", WHOLE, WHOLE)
        return not self._bounds.stopped()
