"""What the suite of laws costs beside the verifier, and that its memory doesn't grow with the samples.

``pytest benchmarks/bench_verifier_suite.py -s``. CPU seconds of this process; the verifier's own are
measured call by call and taken off.
"""

import subprocess
import sys
import time
from typing import Any

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

import tokenlaw
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch

BUDGETS = (1_000_000, 10_000_000)

RUN = """
import resource, sys, torch, tokenlaw
torch.set_num_threads(1)
from tokenlaw.impl.speculative import ChainVerifier
report = tokenlaw.check_verifier(ChainVerifier, budget=int(sys.argv[1]), only=sys.argv[2], raises=False)
print(report.verdict, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Timed(ChainVerifier):
    """Sums up the CPU seconds of its own calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def verify(self, batch: VerifyBatch, **options: Any) -> torch.Tensor:
        started = time.process_time()
        found = super().verify(batch, **options)
        self.seconds += time.process_time() - started
        return found

    def draft(self, *arguments: Any, **options: Any) -> torch.Tensor:
        started = time.process_time()
        found = super().draft(*arguments, **options)
        self.seconds += time.process_time() - started
        return found


def test_own_cost_of_the_default_run(benchmark: BenchmarkFixture) -> None:
    torch.set_num_threads(1)
    own: list[float] = []

    def run() -> None:
        verifier, started = Timed(), time.process_time()
        report = tokenlaw.check_verifier(lambda: verifier, raises=False)
        own.append(time.process_time() - started - verifier.seconds)
        assert str(report.verdict) == "holds"

    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    print(f"\nown CPU seconds of a default run: {min(own):.2f} to {max(own):.2f}")


@pytest.mark.parametrize("only", ["law/[a-hj-z]*"])
def test_memory_is_flat(benchmark: BenchmarkFixture, only: str) -> None:
    peaks: list[float] = []

    def run() -> None:
        for budget in BUDGETS:
            done = subprocess.run(
                [sys.executable, "-P", "-c", RUN, str(budget), only],
                capture_output=True,
                text=True,
                check=True,
            )
            peaks.append(float(done.stdout.split()[-1]))

    benchmark.pedantic(run, rounds=1)
    for budget, peak in zip(BUDGETS, peaks, strict=True):
        print(f"\n{budget:,} requests: peak resident set {peak:.0f} MiB")
