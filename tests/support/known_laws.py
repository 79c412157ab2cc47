"""Laws that many tests of statistics are about."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float64


def zipf(cells: int) -> Float64[np.ndarray, " cells"]:
    """Zipf's law: the cell of rank r has a probability in proportion to 1 / r."""
    weights = 1 / np.arange(1, cells + 1)
    return weights / weights.sum()


def independent(*laws: Mapping[Any, float]) -> dict[Any, float]:
    """The law of a tuple of independent outcomes."""
    found: dict[Any, float] = {}
    for outcomes in product(*(law.items() for law in laws)):
        weight = 1.0
        for _, share in outcomes:
            weight *= share
        found[tuple(outcome for outcome, _ in outcomes)] = weight
    return found
