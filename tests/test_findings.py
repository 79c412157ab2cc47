"""What refutes a law, in words: how far off it is, at least and at most."""

import math
import re

import pytest

from support.law_runs import FirstToken, small_scenario
from tokenlaw.stats.findings import gate_finding
from tokenlaw.stats.measures import COMPLETED
from tokenlaw.stats.scenarios import plain
from tokenlaw.stats.trial import Trial

ALPHA = 1e-10


def told(share: float, stages: int, alpha: float | None = ALPHA) -> str:
    trial = Trial(
        FirstToken(share), small_scenario((plain,)), claims="exact", seed=0, device="cpu", tolerance=0.0
    )
    for _ in range(stages):
        trial.run_stage(4_000.0 / stages, 1_000, lambda: None)
    return gate_finding(trial, COMPLETED, 9 * math.log(10), alpha).split("\n")[0]


def bounds(text: str) -> tuple[float, float, float, float]:
    """Plug-in distance, its bounds, and the probability that these are wrong."""
    pattern = r"TV (\S+) from .* zero(?:, at least (\S+))?, at most (\S+) \(confidence 1 - (\S+)\)\."
    found = re.search(pattern, text)
    assert found is not None
    return float(found[1]), float(found[2] or 0), float(found[3]), float(found[4])


def test_a_finding_has_bounds_and_they_hold() -> None:
    """The true distance is the share times that of "always 0": with all rows it is what the plug-in shows."""
    whole, least, most, alpha = bounds(told(1.0, 1))
    assert 0 < least < whole < most <= 1
    assert alpha == ALPHA / 2
    for share in (0.0, 0.2, 0.6):
        _, least, most, _ = bounds(told(share, 1))
        assert least <= share * whole + 0.02
        assert most >= share * whole - 0.02
    assert bounds(told(0.0, 1))[1] == 0


def test_looks_share_alpha_so_that_a_trial_may_stop_at_any() -> None:
    """The parts 1 / (j (j + 1)) of look j sum to one."""
    alphas = [bounds(told(0.5, looks))[3] for looks in (1, 2, 3)]
    assert alphas == pytest.approx([ALPHA / 2, ALPHA / 6, ALPHA / 12], rel=0.05)
    assert "at most" not in told(0.5, 1, None)
