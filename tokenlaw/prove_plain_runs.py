"""Plain runs of a program, with its own random numbers: do they have the law that was enumerated?

What is enumerated is the program with random numbers that are decided, run after run in one process. Where it
keeps state, draws numbers that nobody sees, or looks at what kind its numbers are, plain runs may be others.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tokenlaw.prove_generators import undisturbed
from tokenlaw.stats.enumeration.exploration import frozen
from tokenlaw.stats.enumeration.law import Raised

LEAST_RUNS, MOST_RUNS = 50, 2_000
"""How many runs are made; fewer than the first only if they are slow."""

LEAST_SECONDS = 0.25
"""So long plain runs may always take; else as long as the enumeration did."""

SECONDS_OF_LEAST_RUNS = 1.0
"""Within this time the least runs are made, whatever the enumeration took."""

_LATE = 4.0
"""After so many times the time that was planned no further runs are made."""

_PILOT = 3
_PILOT_SECONDS = 0.3


@dataclass(frozen=True)
class PlainRuns:
    """Outcomes of plain runs.

    Attributes
    ----------
    pilot : of the runs that told how long one takes.
    counts : of the others. How many they should be was decided before.
    cut : whether they became fewer, so that their number may depend on what came out.
    """

    pilot: Mapping[Hashable, int]
    counts: Mapping[Hashable, int]
    cut: bool = False

    @property
    def every(self) -> Mapping[Hashable, int]:
        """The counts of all runs."""
        return Counter(self.pilot) + Counter(self.counts)


def plain_runs(program: Callable[[], Any], seconds: float, goes_on: Callable[[int, int], bool]) -> PlainRuns:
    """Run a program with its own random numbers; generators are afterwards where they were before.

    Parameters
    ----------
    program : called without arguments.
    seconds : that the enumeration took; plain runs take about as long at most.
    goes_on : asked before each run, with the number of runs done and planned, whether more are wanted.

    Examples
    --------
    >>> found = plain_runs(lambda: 7, 0.0, lambda done, planned: True)
    >>> found.pilot, found.counts, found.cut
    (Counter({7: 3}), Counter({7: 1997}), False)
    """
    pilot, took = Counter[Hashable](), list[float]()
    with undisturbed(program):
        while len(took) < _PILOT and sum(took) < _PILOT_SECONDS and goes_on(len(took), _PILOT):
            started = time.perf_counter()
            pilot[plain_outcome(program)] += 1
            took.append(time.perf_counter() - started)
        planned = max(runs_planned(median(took), seconds) - len(took), 0) if took else 0
        counts = _counted(program, planned, _LATE * max(seconds, SECONDS_OF_LEAST_RUNS), goes_on)
    return PlainRuns(pilot, counts, counts.total() < planned)


def _counted(
    program: Callable[[], Any], planned: int, seconds: float, goes_on: Callable[[int, int], bool]
) -> Counter[Hashable]:
    counts, stop = Counter[Hashable](), time.perf_counter() + seconds
    for done in range(planned):
        if time.perf_counter() > stop or not goes_on(done, planned):
            break
        counts[plain_outcome(program)] += 1
    return counts


def runs_planned(each: float, seconds: float) -> int:
    """How many runs are made if one takes ``each`` seconds, and the enumeration took so many.

    >>> [runs_planned(each, 3.0) for each in (1e-5, 1e-2, 0.1, 10.0)]
    [2000, 300, 30, 1]
    >>> runs_planned(1e-2, 0.0), runs_planned(0.1, 0.0)
    (50, 10)
    """
    each = max(each, 1e-9)
    least = min(LEAST_RUNS, int(SECONDS_OF_LEAST_RUNS / each))
    return min(max(int(max(seconds, LEAST_SECONDS) / each), least, 1), MOST_RUNS)


def plain_outcome(program: Callable[[], Any]) -> Hashable:
    """What one run returns or raises, as an enumerated law has it."""
    try:
        return frozen(program())
    except (Exception, SystemExit) as error:
        return Raised(f"{type(error).__name__}: {error}")
