"""The laws on a GPU: the same samples as on a CPU, and the same verdicts.

Run with ``pytest -m gpu tests/test_gpu_laws.py``; every test skips where torch sees no GPU.
"""

from typing import Any

import numpy as np
import pytest
import torch

from support.law_runs import Seeded, audited
from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.impl.speculative import BlockVerifier, ChainVerifier, TreeVerifier
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.tally import JointTally

DEVICE = "cuda"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="torch sees no GPU"),
]


def counts(device: str) -> np.ndarray:
    """Outcomes of one scenario under a verifier that looks at rows alone."""
    scenario = scenarios(3, own_drafter=False, seeded=True)[0]
    tables = Tables.of(scenario, device)
    tally = JointTally(tables, 3)
    for step in Driver(Seeded(), tables, 3).steps(0, 20_000, 4_096):
        tally.add(step)
    return tally.outcomes()


def test_counts_are_those_of_a_cpu() -> None:
    assert (counts(DEVICE) == counts("cpu")).all()


@pytest.mark.parametrize("make", [ChainVerifier, BlockVerifier, TreeVerifier])
def test_exact_verifiers_hold(make: Any) -> None:
    """False alarm: 1e-9 each, the alpha of a run."""
    found = audited(make, budget=2_000_000, device=DEVICE)
    assert {row.verdict for row in found.values()} <= {Verdict.HOLDS, Verdict.NOT_SUPPORTED}


@pytest.mark.parametrize("name", ["no_residual", "bonus_draft", "ratio_x1.003", "dup_rows"])
def test_faults_are_refuted(name: str) -> None:
    found = audited(VERIFIER_FAULTS[name].make, budget=600_000, device=DEVICE)
    assert Verdict.REFUTED in {row.verdict for row in found.values()}
