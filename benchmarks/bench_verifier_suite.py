"""What the suite of laws costs beside the verifier, and that its memory doesn't grow with the samples.

``pytest benchmarks/bench_verifier_suite.py -s``; with ``-m ""`` a run of 1e8 requests as well, which takes
ten minutes. CPU seconds of one process and one thread; the verifier's own are measured call by call and taken
off. On a busy machine every figure is larger: repeat, and take the least.
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
LARGEST_BUDGET = 100_000_000

REPEATS = 5

PEAK = """
import resource, sys, torch, tokenlaw
torch.set_num_threads(1)
from tokenlaw.impl.speculative import ChainVerifier
report = tokenlaw.check_verifier(ChainVerifier, budget=int(sys.argv[1]), raises=False)
print(report.verdict, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
"""Prints the peak resident set of its process, in MiB."""


class Timed(ChainVerifier):
    """Sums up the CPU seconds of its own calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: torch.Tensor | None = None,
        noise: torch.Tensor | None = None,
    ) -> torch.Tensor:
        started = time.process_time()
        found = super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)
        self.seconds += time.process_time() - started
        return found

    def draft(self, *arguments: Any, **options: Any) -> torch.Tensor:
        started = time.process_time()
        found = super().draft(*arguments, **options)
        self.seconds += time.process_time() - started
        return found


def own_seconds() -> float:
    """CPU seconds of a default run without those of the verifier."""
    verifier, started = Timed(), time.process_time()
    report = tokenlaw.check_verifier(lambda: verifier, controls=False, raises=False)
    seconds = time.process_time() - started - verifier.seconds
    assert str(report.verdict) == "holds"
    return seconds


def test_own_cost_of_the_default_run(benchmark: BenchmarkFixture) -> None:
    """Bar of the project: one second. The first run of a process loads modules too, and is told apart."""
    torch.set_num_threads(1)
    first, later = own_seconds(), list[float]()
    benchmark.pedantic(lambda: later.append(own_seconds()), rounds=REPEATS)
    benchmark.extra_info["own_seconds"] = min(later)
    print(f"\nown CPU seconds of a default run: {min(later):.2f}, the first of a process {first:.2f}")


def peak(budget: int) -> float:
    """Peak resident set of a run in a process of its own, MiB."""
    command = [sys.executable, "-P", "-c", PEAK, str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    verdict, mebibytes = done.stdout.split()
    assert verdict == "holds"
    print(f"\n{budget:,} requests: peak resident set {float(mebibytes):.0f} MiB")
    return float(mebibytes)


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "budgets", [BUDGETS, pytest.param((BUDGETS[0], LARGEST_BUDGET), marks=pytest.mark.slow)]
)
def test_memory_is_flat(benchmark: BenchmarkFixture, budgets: tuple[int, ...]) -> None:
    """Bar of the project: at 1e8 requests at most 10 % above the peak at 1e6."""
    peaks: list[float] = []
    benchmark.pedantic(lambda: peaks.extend(map(peak, budgets)), rounds=1)
    benchmark.extra_info["peak_mebibytes"] = dict(zip(map(str, budgets), peaks, strict=True))
    assert peaks[-1] <= 1.1 * peaks[0]
