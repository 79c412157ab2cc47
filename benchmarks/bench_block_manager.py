"""Checked operations a second of processor time on the reference block manager, all rules on.

Run with ``pytest benchmarks/bench_block_manager.py -s``. Figures are printed and stored in ``extra_info`` of
the benchmark's JSON.

The growth with the pool is that of the read-back, which looks at every block and every live position.
Measured on 2026-11-29 on 2 cores that were shared with other work (Python 3.11, torch 2.13.0 CPU): the same
8,000 operations, at most 48 blocks live, in microseconds of one core.

======  ==================  ==================  ===========
blocks  without read-back   read back every 16  a read-back
======  ==================  ==================  ===========
    64                88.0                96.0          129
   128                88.0                98.1          162
   256                89.7               105.3          249
   512                95.6               130.5          559
======  ==================  ==================  ===========

With 2,000 operations the figures without read-back are 93.3, 91.4, 89.0 and 88.7: nor does the cost grow with
the length of the trace.
"""

import math
import random
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.history import History
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

POOLS, FEW_BLOCKS = (64, 128, 256, 512), 48
NEVER = 10**9
ROUNDS = 3

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


def fitting_trace(operations: int, blocks: int) -> Trace:
    """A seeded trace of sequences that never need more than so many blocks, if nothing is shared."""
    source, history = random.Random(20_261), History()
    made: list[Operation] = []
    while len(made) < operations:
        (make,) = source.choices(list(MAKERS), list(MAKERS.values()))
        operation = make(source)
        held = sum(len(sequence.tokens) // 4 + 1 for sequence in (*history.live, *history.swapped))
        # An operation brings 24 tokens at most, a fork a copy of what the longest sequence holds.
        longest = max((len(sequence.tokens) // 4 + 1 for sequence in history.live), default=0)
        if held + max(8, longest) > blocks:
            operation = Free(source.randrange(64)) if history.live else SwapIn(0)
        history.apply(operation)
        made.append(operation)
    return Trace(tuple(made))


@pytest.mark.parametrize("operations", [2_000, 8_000])
def test_growth_with_the_pool_is_that_of_the_read_back(operations: int) -> None:
    """The same operations in growing pools, with and without read-backs, in turn: microseconds each."""
    trace = fitting_trace(operations, FEW_BLOCKS)
    costs = {(blocks, every): math.inf for blocks in POOLS for every in (NEVER, 16)}
    for _ in range(ROUNDS):
        costs = {asked: min(cost, _cost(trace, *asked)) for asked, cost in costs.items()}
    print(f"\n{operations} operations  without read-back  every 16  a read-back of the pool")
    for blocks in POOLS:
        without, every_16 = costs[blocks, NEVER], costs[blocks, 16]
        share = (every_16 - without) * 16
        print(f"{blocks:6} blocks {without:14.1f} us {every_16:9.1f} us {share:13.0f} us")
    growth = costs[POOLS[-1], NEVER] / costs[POOLS[0], NEVER]
    print(f"{POOLS[-1] // POOLS[0]} times the pool, without read-back: {growth:.2f} times the cost")


def _cost(trace: Trace, blocks: int, read_back_every: int) -> float:
    """Microseconds of processor time for an operation."""
    sized = Trace(trace.operations, CacheConfig(num_blocks=blocks))
    capabilities = REFERENCE.capabilities[BLOCK_MANAGER]
    started = time.process_time()
    outcome = run_trace(PagedBlockManager, sized, capabilities, frozenset(), read_back_every)
    cost = time.process_time() - started
    assert (outcome.violations, outcome.crash, outcome.exercised["out of blocks"]) == ([], None, 0)
    return cost / len(trace.operations) * 1e6


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
