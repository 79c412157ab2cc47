"""Plain runs of a proved program: does it draw anew each time?

Seeds that a program sets itself don't matter to a proof, which is over all of them. One that sets the same
seed before it draws has the proved law over seeds, but gives one and the same outcome run after run.
"""

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from tokenlaw.stats.enumeration.exploration import frozen
from tokenlaw.stats.enumeration.law import Law, Raised

ALPHA = 1e-9
"""Probability that a program that draws anew is said to repeat itself."""

MOST_RUNS, MOST_SECONDS = 1000, 2.0


@dataclass(frozen=True)
class Alike:
    """Plain runs that all had one outcome.

    Attributes
    ----------
    runs : how many.
    chance : the probability of that, if each draws anew.
    """

    runs: int
    chance: float

    def words(self, name: str) -> str:
        """What a proof of the program of this name says."""
        return (
            f"but {self.runs} plain runs of {name} all had the same outcome, which has the probability "
            f"{self.chance:.2g} if each draws anew: it sets the same seed, and the proof is over all seeds"
        )


def repeats(program: Callable[[], Any], law: Law) -> Alike | None:
    """Plain runs that had one outcome too often to be chance; None if they differ, or if it may be chance.

    Parameters
    ----------
    program : called without arguments, its random numbers undisturbed.
    law : that it was proved to have.

    Examples
    --------
    >>> repeats(lambda: 0, Law({0: 0.5, 1: 0.5}))
    Alike(runs=31, chance=9.313225746154785e-10)
    >>> repeats(lambda: 0, Law({0: 1.0})) is None
    True
    """
    first, stop = _plain(program), time.perf_counter() + MOST_SECONDS
    for runs in range(1, MOST_RUNS + 1):
        chance = math.fsum(float(weight) ** runs for weight in law.probabilities.values())
        if chance <= ALPHA:
            return Alike(runs, chance)
        if time.perf_counter() > stop or _plain(program) != first:
            return None
    return None


def _plain(program: Callable[[], Any]) -> Hashable:
    try:
        return frozen(program())
    except (Exception, SystemExit) as error:
        return Raised(f"{type(error).__name__}: {error}")
