"""Checked operations a second of processor time on the reference block manager, all rules on.

Run with ``pytest benchmarks/bench_block_manager.py -s``. Operations a second are printed and stored in
``extra_info`` of the benchmark's JSON.
"""

import random
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.trace import (
    Append,
    Fork,
    Free,
    LateWrite,
    New,
    Operation,
    Rollback,
    Speculate,
    SwapIn,
    SwapOut,
    Trace,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig

Make = Callable[[random.Random], Operation]

MAKERS: dict[Make, int] = {
    lambda r: New(_tokens(r, 24)): 18,
    lambda r: Append(r.randrange(64), _tokens(r, 5)): 40,
    lambda r: Fork(r.randrange(64)): 5,
    lambda r: Speculate(r.randrange(64), _tokens(r, 5), r.randrange(6)): 12,
    lambda r: Rollback(r.randrange(64), r.randrange(5)): 5,
    lambda r: Free(r.randrange(64)): 16,
    lambda r: SwapOut(r.randrange(64)): 1,
    lambda r: SwapIn(r.randrange(64)): 2,
    lambda r: LateWrite(r.randrange(64), _tokens(r, 5), _tokens(r, 9)): 1,
}
"""Makers of operations and their weights."""


def _tokens(source: random.Random, longest: int) -> tuple[int, ...]:
    return tuple(source.choices(range(3), k=source.randint(1, longest)))


def random_trace(operations: int, num_blocks: int) -> Trace:
    """A seeded trace with vocabulary 3 and blocks of 4."""
    source = random.Random(20_260)
    makers = source.choices(list(MAKERS), list(MAKERS.values()), k=operations)
    return Trace(tuple(make(source) for make in makers), CacheConfig(num_blocks=num_blocks))


@pytest.mark.benchmark(min_rounds=3, max_time=0.5, timer=time.process_time)
@pytest.mark.parametrize("read_back_every", [1, 16])
@pytest.mark.parametrize("num_blocks", [64, 512])
@pytest.mark.parametrize("operations", [2_000, 8_000])
def test_checked_operations_per_second(
    benchmark: BenchmarkFixture, operations: int, num_blocks: int, read_back_every: int
) -> None:
    """Pool sizes and trace lengths; the rate must not fall with the length of the trace."""
    trace = random_trace(operations, num_blocks)
    capabilities = REFERENCE.capabilities[BLOCK_MANAGER]
    outcome = benchmark(run_trace, PagedBlockManager, trace, capabilities, frozenset(), read_back_every)
    assert (outcome.violations, outcome.crash) == ([], None)
    assert benchmark.stats is not None
    rate = operations / benchmark.stats.stats.min
    benchmark.extra_info["operations_per_second"] = round(rate)
    print(f"\n{operations} operations, {num_blocks} blocks, read back every {read_back_every}: {rate:,.0f}/s")
