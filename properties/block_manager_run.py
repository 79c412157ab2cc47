"""Run a trace on a block manager with symbolic KV, judging every rule after every operation."""

from collections.abc import Callable, Mapping
from typing import Any

from tokenlaw.properties import block_manager_operations as sequences
from tokenlaw.properties import block_manager_pool_operations as pool
from tokenlaw.properties import block_manager_steps as steps
from tokenlaw.properties.block_manager_calls import RefusedError
from tokenlaw.properties.manager_door import CrashedError, Door
from tokenlaw.properties.rules import JUDGES
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.settled import settled
from tokenlaw.properties.step import Moment, Step
from tokenlaw.properties.trace import (
    Abort,
    Append,
    AppendLayer,
    Attend,
    Batch,
    Chunked,
    Evict,
    Fork,
    Free,
    FreeAgain,
    FreeSwapped,
    LateWrite,
    New,
    Operation,
    Overflow,
    Reorder,
    Reset,
    Rollback,
    Speculate,
    SpeculateBatch,
    SwapIn,
    SwapOut,
    Trace,
    Weights,
)
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import CacheConfig

_Carry = Callable[[World, Step, Any], None]

_CARRY: Mapping[type[Any], _Carry] = {
    New: sequences.new,
    Append: sequences.append,
    Batch: steps.batch,
    Fork: sequences.fork,
    Speculate: steps.speculate,
    SpeculateBatch: steps.speculate_batch,
    Rollback: sequences.rollback,
    Free: sequences.free,
    FreeAgain: sequences.free_again,
    Abort: sequences.abort,
    Chunked: sequences.chunked,
    Evict: pool.evict,
    Reset: pool.reset,
    Weights: pool.weights,
    SwapOut: pool.swap_out,
    SwapIn: pool.swap_in,
    FreeSwapped: pool.free_swapped,
    LateWrite: pool.late_write,
}
"""Operation -> how it is carried out."""

_NEEDS: Mapping[type[Any], frozenset[str]] = {
    Batch: frozenset({"commit"}),
    Chunked: frozenset({"commit"}),
    Fork: frozenset({"fork"}),
    Speculate: frozenset({"speculate"}),
    SpeculateBatch: frozenset({"speculate", "commit"}),
    Rollback: frozenset({"rollback"}),
    Evict: frozenset({"evict"}),
    Reset: frozenset({"reset"}),
    Weights: frozenset({"epochs"}),
    SwapOut: frozenset({"swap", "copies"}),
    SwapIn: frozenset({"swap", "copies"}),
    FreeSwapped: frozenset({"swap", "copies"}),
    LateWrite: frozenset({"in-flight", "commit"}),
    Reorder: frozenset({"reorder"}),
    Overflow: frozenset({"reserve"}),
    AppendLayer: frozenset({"layers"}),
    Attend: frozenset({"attend"}),
}
"""Operation -> capabilities without which it can't be carried out; the last four are of other contracts."""


def needed_capabilities(trace: Trace) -> frozenset[str]:
    """Capabilities that a block manager must have for every operation of the trace to be carried out."""
    return frozenset().union(*(_needs(operation) for operation in trace.operations))


def _needs(operation: Operation) -> frozenset[str]:
    needs = _NEEDS.get(type(operation), frozenset())
    return needs | {"namespaces"} if getattr(operation, "namespace", "") else needs


@settled
def run_trace(
    manager_factory: Callable[[CacheConfig], Any],
    trace: Trace,
    capabilities: frozenset[str],
    muted: frozenset[str] = frozenset(),
    read_back_every: int = 1,
    watch: Callable[[World, Step], None] = lambda *_: None,
) -> Outcome:
    """Run a trace on a fresh manager and judge it.

    Parameters
    ----------
    manager_factory : builds a `tokenlaw.spec.contracts.BlockManager` from the configuration of the trace.
    trace : operations; those whose capabilities are absent are skipped.
    capabilities : what the manager can do beyond the mandatory part.
    muted : ids of checks whose violations are ignored.
    read_back_every : after this many operations, and at the end, all live sequences are read back and all
        reference counts, tables and cached keys compared; in between, only what an operation touched.
    watch : called after each operation, also after one that breaks a rule, but not after a crash.

    Returns
    -------
    Outcome
        ``violations`` holds all unmuted ones of the first operation that has any, and the run stops there; it
        also stops at a crash. ``operations`` counts those that were carried out.
    """
    outcome = Outcome()
    try:
        world = World(Door(lambda: manager_factory(trace.config), capabilities), trace.config, JUDGES, muted)
    except CrashedError as crash:
        return Outcome(crash=str(crash))
    outcome.exercised, outcome.violations = world.exercised, world.violations
    last = len(trace.operations) - 1
    try:
        for number, operation in enumerate(trace.operations):
            due = number == last or (number + 1) % read_back_every == 0
            step = world.begin(number, operation, due)
            if _needs(operation) <= capabilities:
                _carry_out(world, step)
                outcome.operations += 1
            if due:
                _read_back(world, step)
            watch(world, step)
            if world.violations:
                break
    except CrashedError as crash:
        outcome.crash = str(crash)
    return outcome


def _carry_out(world: World, step: Step) -> None:
    try:
        _CARRY[type(step.operation)](world, step, step.operation)
    except RefusedError:
        if world.violations:
            return
    if not isinstance(step.operation, SwapOut):
        world.apply_copies(step)
    world.observe_keys(step, step.touched)
    world.judge(Moment.FINISHED, step)


def _read_back(world: World, step: Step) -> None:
    world.observe_all_keys(step)
    world.judge(Moment.READ_BACK, step)
