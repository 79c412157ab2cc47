"""Where the answers of questions turn from yes to no: a grid first, then all thresholds halved together."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from tokenlaw.stats.probing_bounds import firm
from tokenlaw.stats.probing_questions import ACCEPTANCE, Answers, Asker, Numbers, Questions

TINY = 2.0**-24
CHOSEN = (0.0, TINY, 0.25, 0.5, 0.75, 1 - TINY)
"""Numbers at which every question is asked, whatever its threshold should be."""

EVEN = 0.5 + 2.0**-16
"""From here on a token's rival has the lesser noise, rounding or not."""

CLOSE = 2.0**-50
"""Relative distance from a guess at which float64 without detours answers as it should."""

FINEST = 2.0**-53
"""Thresholds are found as closely as this, or as the precision asks for, relatively."""


@dataclass(frozen=True)
class Guesses:
    """What may be true of each question; a guess only says where to ask first.

    Attributes
    ----------
    values : float64 ``[guesses, Q]``.
    rounding : relative distance within which a threshold is as good as a guess.
    """

    values: Float64[np.ndarray, "guesses questions"]
    rounding: float

    def grid(self, top: float) -> Float64[np.ndarray, "questions points"]:
        """Numbers to ask at, in increasing order; NaN in place of a number that is already there."""
        factors = np.array([1 - 2 * self.rounding, 1 - CLOSE, 1.0, 1 + CLOSE, 1 + 2 * self.rounding])
        around = (self.values[..., None] * factors).transpose(1, 0, 2).reshape(self.values.shape[1], -1)
        chosen = np.broadcast_to([*CHOSEN, top], (len(around), len(CHOSEN) + 1))
        points = np.sort(np.clip(np.concatenate([around, chosen], 1), 0.0, top), 1)
        points[:, 1:][points[:, 1:] == points[:, :-1]] = np.nan
        return points


@dataclass
class Thresholds:
    """How far the threshold of each question is known.

    Attributes
    ----------
    rounding : relative, of a decision.
    yes : the largest number that was answered with yes; minus infinity where there is none.
    no : the smallest number that was answered with no; infinity where there is none.
    stray : questions about a race that at some number a third token won, or that ended elsewhere.
    """

    questions: Questions
    rounding: float
    yes: Numbers
    no: Numbers
    stray: Answers

    @staticmethod
    def of(
        asker: Asker, questions: Questions, guesses: Guesses, top: float, order: np.random.Generator
    ) -> "Thresholds":
        """Ask at all points of the grid in one go, the rows in random order."""
        grid = guesses.grid(top)
        which, point = np.nonzero(~np.isnan(grid))
        shuffled = order.permutation(len(which))
        which, numbers = which[shuffled], grid[which, point][shuffled]
        count, is_race = len(questions), questions.rival != ACCEPTANCE
        # The rival of a race won it when all noise was equal.
        no = np.where(is_race, EVEN, np.inf)
        found = Thresholds(
            questions, guesses.rounding, np.full(count, -np.inf), no, np.zeros(count, dtype=bool)
        )
        found._ask(asker, which, numbers)
        return found

    def _ask(self, asker: Asker, which: np.ndarray, numbers: Numbers) -> None:
        answers, stray = self.questions.of(which).answers(asker, numbers, firm(self.rounding))
        np.maximum.at(self.yes, which[answers], numbers[answers])
        np.minimum.at(self.no, which[~answers], numbers[~answers])
        self.stray[which[stray]] = True

    @property
    def torn(self) -> Bool[np.ndarray, " questions"]:
        """Where a number is answered with no and a clearly larger one with yes: there is no threshold."""
        return np.asarray(self.yes > self.no * (1 + 2 * self.rounding))

    @property
    def widths(self) -> Numbers:
        """What is left between yes and no; 0 where all answers are alike, or where there is no threshold."""
        inside = (self.yes >= 0) & (self.no <= 1) & ~self.torn & ~self.stray
        return np.where(inside, self.no - self.yes, 0.0)

    def unknown(self, fine: float) -> Bool[np.ndarray, " questions"]:
        """Where more questions would say more."""
        return np.asarray(self.widths > np.maximum(self.no * fine, FINEST))

    def steps(self, fine: float) -> np.ndarray:
        """How many more rows each of them needs."""
        unknown, steps = self.unknown(fine), np.zeros(len(self.questions))
        width = self.no[unknown] - self.yes[unknown]
        steps[unknown] = np.ceil(np.log2(width / np.maximum(self.no[unknown] * fine, FINEST)))
        return steps

    def halve(self, asker: Asker, chosen: Answers, fine: float) -> None:
        """Halve the intervals of the chosen questions, all together, until they are fine enough."""
        while True:
            active = np.flatnonzero(chosen & self.unknown(fine))
            middle = (self.yes[active] + self.no[active]) / 2
            between = (middle > self.yes[active]) & (middle < self.no[active])
            if not between.any():
                return
            self._ask(asker, active[between], middle[between])

    @property
    def values(self) -> Numbers:
        """The thresholds: middles of what is left; 0 without a yes, 1 without a no, NaN if there is none."""
        middle = np.where(self.yes < 0, 0.0, np.where(self.no > 1, 1.0, (self.yes + self.no) / 2))
        return np.where(self.torn | self.stray, np.nan, middle)
