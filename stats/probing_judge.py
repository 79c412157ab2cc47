"""Which thresholds are wrong: what each must be, the bounds that rounding sets, and what was found."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tokenlaw.stats.probing_bounds import Expected
from tokenlaw.stats.probing_questions import ACCEPTANCE, Answers, Numbers, Questions
from tokenlaw.stats.probing_search import Thresholds


@dataclass(frozen=True)
class Right:
    """What the threshold of each question must be, and the bounds that rounding sets; float64 ``[Q]``."""

    value: Numbers
    low: Numbers
    high: Numbers

    @staticmethod
    def of(questions: Questions, expected: Expected) -> "Right":
        """Thresholds of decisions as they are; shares of weights in the races."""
        context, place = questions.context, questions.place
        asked = questions.rival == ACCEPTANCE
        accepts, weights = expected.accepts, expected.weights
        at = (context, np.where(asked, place, 0))
        decisions = [part[at] for part in (accepts.value, accepts.low, accepts.high)]
        mine, theirs = (context, place, questions.token), (context, place, np.maximum(questions.rival, 0))
        shares = [
            _share(one[mine], other[theirs], otherwise)
            for one, other, otherwise in (
                (weights.value, weights.value, 0.0),
                (weights.low, weights.high, 0.0),
                (weights.high, weights.low, np.where(weights.high[mine] > 0, 1.0, 0.0)),
            )
        ]
        # Where rounding may leave nothing of the residual, a token of the target is right.
        nothing = weights.low[context, place].sum(-1) == 0
        shares[1], shares[2] = np.where(nothing, 0.0, shares[1]), np.where(nothing, np.inf, shares[2])
        parts = [np.where(asked, one, other) for one, other in zip(decisions, shares, strict=True)]
        return Right(*parts)

    def wrong(self, thresholds: Thresholds) -> Answers:
        """No below the lowest possible threshold, yes at or above the highest, or a third token.

        Where there is no threshold one of the two is so, unless rounding explains both answers.
        """
        off = (thresholds.yes >= self.high) | (thresholds.no < self.low)
        return np.asarray(off | thresholds.stray)

    def slack(self) -> Numbers:
        """How far rounding may move each threshold, at most."""
        value, low, high = (np.minimum(part, 1.0) for part in (self.value, self.low, self.high))
        return np.asarray(np.maximum(high - value, value - low))

    def distance(self, thresholds: Thresholds) -> Numbers:
        """How far each threshold is from the right one; infinite where there is none."""
        apart = np.abs(thresholds.values - np.minimum(self.value, 1.0))
        return np.where(np.isnan(apart), np.inf, apart)


def _share(mine: Numbers, theirs: Numbers, otherwise: Numbers | float) -> Numbers:
    whole = mine + theirs
    filled = np.array(np.broadcast_to(otherwise, mine.shape), dtype=np.float64)
    return np.asarray(np.divide(mine, whole, out=filled, where=whole > 0))


def guesses_of(questions: Questions, rules: list[Expected]) -> Float64[np.ndarray, "guesses questions"]:
    """What the thresholds are by each of some rules."""
    return np.stack([np.minimum(Right.of(questions, rule).value, 1.0) for rule in rules])
