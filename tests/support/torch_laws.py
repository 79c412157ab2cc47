"""Small helpers of the tests of torch's random operators."""

from collections.abc import Callable, Hashable
from typing import Any

import pytest
import torch

from tokenlaw.stats.enumeration.exact_law import exact_law


def check_law(program: Callable[[], Any], expected: dict[Hashable, float]) -> None:
    """The program's law is the expected one to 1e-12."""
    law = exact_law(program)
    assert {key: float(weight) for key, weight in law.probabilities.items()} == pytest.approx(
        expected, abs=1e-12
    )


def draws(weights: Any) -> dict[Hashable, float]:
    """The law of an index that is drawn with these weights, in float64."""
    shares = torch.as_tensor(weights).double()
    shares = shares / shares.sum()
    return {index: share for index, share in enumerate(shares.tolist()) if share > 0}


def coin(weight: float) -> dict[Hashable, float]:
    """The law of whether something of this probability happens."""
    return {outcome: share for outcome, share in ((True, weight), (False, 1 - weight)) if share}
