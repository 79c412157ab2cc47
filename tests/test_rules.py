"""Every rule of block managers refutes a manager that breaks it: one negative control each at least."""

import pytest

from support.broken_managers import CopiesInADeclaredOrder, CopiesTwice, NoCopyOnWrite
from tokenlaw.impl.faults.kv_capacity import KeepsMoreThanItDeclares, RefusesTheLastBlock, TakesABlockEarly
from tokenlaw.impl.faults.kv_copies import CopiesBothWays, LosesCopies
from tokenlaw.impl.faults.kv_pool import CountsEveryRelease, FreeForgetsTail, LeaksOnRefusal, NoStepFence
from tokenlaw.impl.faults.kv_prefixes import HitsTheWholePrompt, KeyWithoutNamespace
from tokenlaw.impl.faults.kv_publishing import (
    KeepsCacheOverWeights,
    PublishesAtScheduling,
    PublishesDrafts,
    PublishesOldEpochs,
    PublishesPartialBlocks,
    ResetDoesNothing,
)
from tokenlaw.impl.faults.kv_rewinding import (
    AcceptsOneMore,
    DropsOptimistically,
    RollbackClips,
    RollbackDoesNothing,
)
from tokenlaw.impl.faults.kv_sharing import (
    ForkWithoutReferences,
    NamesForeignBlocks,
    NamesOneBlock,
    ReversesNeighbour,
)
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Fork,
    Free,
    FreeAgain,
    LateWrite,
    New,
    Operation,
    Reset,
    Rollback,
    Speculate,
    Trace,
    Weights,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig

ALL = REFERENCE.capabilities[BLOCK_MANAGER]


SHARED_TAIL = (New((1, 2)), Fork(0), Append(0, (9,)))
REWRITTEN_HALF = (New((1, 2, 3, 4)), Rollback(0, 2), Append(0, (9,)))
REWRITTEN_FULL_BLOCK = (New((1, 2, 3, 4)), Rollback(0, 1), Append(0, (9,)))

BROKEN: list[tuple[str, type[PagedBlockManager], tuple[Operation, ...], CacheConfig]] = [
    ("kv/content", LosesCopies, SHARED_TAIL, CacheConfig()),
    (
        "kv/content",
        KeepsCacheOverWeights,
        (New((1, 2, 3, 4)), Weights(), New((1, 2, 3, 4, 5))),
        CacheConfig(),
    ),
    ("kv/refcount", ForkWithoutReferences, (New((1, 2)), Fork(0)), CacheConfig()),
    ("kv/partition", FreeForgetsTail, (New((1, 2)), Free(0)), CacheConfig()),
    ("kv/partition", RefusesTheLastBlock, (New((1,) * 8),), CacheConfig(num_blocks=2)),
    # Both forks append the same token: no content check can see the torn block.
    ("kv/write-shared", NoCopyOnWrite, (*SHARED_TAIL[:2], Append(0, (9,)), Append(1, (9,))), CacheConfig()),
    ("kv/write-shared", NoCopyOnWrite, REWRITTEN_FULL_BLOCK, CacheConfig()),
    ("kv/copy-budget", CopiesTwice, SHARED_TAIL, CacheConfig()),
    ("kv/copy-order", CopiesTwice, SHARED_TAIL, CacheConfig()),
    ("kv/copy-order", CopiesBothWays, SHARED_TAIL, CacheConfig()),
    ("kv/waste", TakesABlockEarly, (New((1, 2, 3)), Append(0, (4,))), CacheConfig()),
    ("kv/waste", KeepsMoreThanItDeclares, (New((1, 2, 3)), Speculate(0, (7, 7), 0)), CacheConfig()),
    ("kv/waste", NamesOneBlock, (New((1, 2, 3, 4, 5)),), CacheConfig()),
    ("kv/waste", NamesForeignBlocks, (New((1,)),), CacheConfig()),
    ("kv/cached-immutable", NoCopyOnWrite, REWRITTEN_HALF, CacheConfig()),
    ("kv/hit", HitsTheWholePrompt, (New((1, 2, 3, 4)), New((1, 2, 3, 4))), CacheConfig()),
    ("kv/hit", KeyWithoutNamespace, (New((1, 2, 3, 4), "a"), New((1, 2, 3, 4, 5), "b")), CacheConfig()),
    ("kv/hit", ResetDoesNothing, (New((1, 2, 3, 4)), Free(0), Reset(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/hit", ResetDoesNothing, (New((1, 2, 3, 4)), Reset(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/publish", PublishesAtScheduling, (Abort((1, 2, 3, 4)),), CacheConfig()),
    ("kv/publish", PublishesPartialBlocks, (New((1, 2)),), CacheConfig()),
    # The reused block still holds 3 and 4, so content alone looks full and right.
    (
        "kv/publish",
        PublishesPartialBlocks,
        (New((1, 2, 3, 4)), Free(0), New((1, 2))),
        CacheConfig(num_blocks=1),
    ),
    ("kv/publish", PublishesDrafts, (New((1, 2)), Speculate(0, (7, 7), 0)), CacheConfig()),
    ("kv/epoch", KeepsCacheOverWeights, (New((1, 2, 3, 4)), Weights(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/epoch", PublishesOldEpochs, (New((1, 2, 3)), Weights(), Append(0, (4,))), CacheConfig()),
    ("kv/bystanders", ReversesNeighbour, (New((1,) * 5), New((2,)), Append(1, (3,))), CacheConfig()),
    ("kv/atomic", LeaksOnRefusal, (New((1,) * 9),), CacheConfig(num_blocks=2)),
    ("kv/release", CountsEveryRelease, (New((1,)), Free(0), FreeAgain()), CacheConfig()),
    ("kv/rollback", RollbackDoesNothing, (New((1, 2, 3)), Rollback(0, 1)), CacheConfig()),
    ("kv/rollback", RollbackClips, (New((1, 2, 3)), Rollback(0, 4)), CacheConfig()),
    ("kv/rollback", RollbackClips, (New((1, 2, 3)), Rollback(0, -1)), CacheConfig()),
    ("kv/accept", AcceptsOneMore, (New((1,)), Speculate(0, (2, 3), 1)), CacheConfig()),
    ("kv/window", DropsOptimistically, (New((1,) * 6), Append(0, (2, 3))), CacheConfig(window=4)),
    ("kv/in-flight", NoStepFence, (New((1, 2)), LateWrite(0, (3,), (7, 8))), CacheConfig(num_blocks=1)),
]


def run(manager: type[PagedBlockManager], operations: tuple[Operation, ...], config: CacheConfig) -> Outcome:
    return run_trace(manager, Trace(operations, config), ALL)


@pytest.mark.parametrize(("check", "manager", "operations", "config"), BROKEN)
def test_broken_manager_is_refuted(
    check: str, manager: type[PagedBlockManager], operations: tuple[Operation, ...], config: CacheConfig
) -> None:
    outcome = run(manager, operations, config)
    assert outcome.crash is None
    assert check in {violation.check for violation in outcome.violations}
    assert run(PagedBlockManager, operations, config).violations == []
    alone = frozenset(other.id for other in BLOCK_MANAGER_CHECKS if other.id != check)
    muted = run_trace(manager, Trace(operations, config), ALL, muted=alone)
    assert {violation.check for violation in muted.violations} == {check}


def test_a_block_twice_in_one_table_is_held_by_one_table() -> None:
    outcome = run(NamesOneBlock, (New((1, 2, 3, 4)), Append(0, (5,))), CacheConfig())
    found = {violation.check: violation.found for violation in outcome.violations}
    assert found["kv/waste"] == "[0] in [0, 0]"
    assert {violation.block for violation in outcome.violations if violation.check == "kv/refcount"} == {1}


def test_every_rule_has_a_negative_control() -> None:
    assert {check.id for check in BLOCK_MANAGER_CHECKS} == {check for check, *_ in BROKEN}


def test_declared_order_of_copies_is_respected() -> None:
    outcome = run(CopiesInADeclaredOrder, SHARED_TAIL, CacheConfig())
    assert "kv/copy-order" not in {violation.check for violation in outcome.violations}
