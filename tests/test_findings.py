"""What refutes a law, in words: how far off it is, at least and at most."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from support.law_runs import FirstToken, small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.stats.findings import gate_finding
from tokenlaw.stats.measures import COMPLETED, JOINT
from tokenlaw.stats.row_kinds import equal, plain
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


class RejectsEqual(ChainVerifier):
    """Where p and q are equal, half of the first drafts are rejected: exact, but not by the textbook."""

    def verify(self, batch: VerifyBatch, *, seed: int, **numbers: Any) -> Tensor:
        emitted = super().verify(batch, seed=seed, **numbers)
        generator = torch.Generator().manual_seed(seed + 1)
        hit = torch.rand(len(emitted), generator=generator) < 0.5
        emitted[hit] = NO_TOKEN
        emitted[hit, 0] = torch.multinomial(batch.target_probs[:, 0], 1, generator=generator)[hit, 0]
        return emitted


def test_rejections_that_rounding_may_bring_about_are_told_where_there_are_too_many() -> None:
    """Of about 2,000 rows half are rejected, which rounding does once in millions."""
    scenario = small_scenario((equal,), drafts=1, ragged=False)
    trial = Trial(RejectsEqual(), scenario, claims="textbook", seed=0, device="cpu", tolerance=0.0)
    trial.run_stage(2_000.0, 1_000, lambda: None)
    text = gate_finding(trial, JOINT, 9 * math.log(10), ALPHA)
    found = re.search(r"a draft rejected where p and q differ by rounding only: (\d+) times", text)
    assert found is not None
    assert 800 < int(found[1]) < 1_200
    distance, least, most, _ = bounds(text.split("\n")[0])
    assert distance == pytest.approx(0.5, abs=0.06)
    assert least < 0.5 < most
