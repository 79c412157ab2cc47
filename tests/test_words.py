"""Failure messages: complete, and with sequences named as the one who reads the trace counts them."""

import pytest

from tokenlaw.properties.running import Violation
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Attend,
    Chunked,
    Evict,
    Fork,
    Free,
    FreeAgain,
    FreeSwapped,
    LateWrite,
    New,
    Overflow,
    Reorder,
    Reset,
    Rollback,
    Speculate,
    SwapIn,
    SwapOut,
    Trace,
    Weights,
)
from tokenlaw.properties.words import explain, lines, tell
from tokenlaw.spec.contracts import KV_STORE, CacheConfig
from tokenlaw.spec.verdicts import Check, Severity

CHECK = Check(
    "kv/write-shared", "K4", "Nobody writes a shared block.", "block-manager", Severity.CROSS_SEQUENCE
)
TWO = (New((1, 2)), New((0,), "a"))

LINES = [
    (New((1,), "b"), "new sequence 2 in namespace 'b': token 1"),
    (Append(3, (2, 0)), "append to sequence 1: tokens 2 0"),
    (Fork(0), "fork sequence 0 -> sequence 2"),
    (Speculate(0, (1, 1), 1), "speculate on sequence 0: draft tokens 1 1, the first 1 accepted"),
    (Rollback(0, 1), "roll sequence 0 back by 1"),
    (Free(1), "free sequence 1"),
    (FreeAgain(), "free again: nothing was freed"),
    (Abort((1,)), "admit sequence 2, abort it unwritten: token 1"),
    (Abort((1,), 0), "schedule for sequence 0, abort it unwritten: token 1"),
    (
        Chunked((1, 0), 1, namespace="b"),
        "new sequence 2 in namespace 'b': tokens 1 0; write and commit the first 1, then the others",
    ),
    (
        Chunked((1, 0), 5, 0, aborted=True),
        "append to sequence 0: tokens 1 0; write and commit the first 2, then abort it",
    ),
    (Evict(1), "evict up to 1 cached block"),
    (Reset(), "reset the cache"),
    (SwapOut(1), "swap sequence 1 out"),
    (SwapIn(0), "SwapIn: no sequence to act on"),
    (Reorder((1, 1)), "reorder: sequence 0 continues 1, 1 continues 1"),
    (Weights(), "the weights change"),
    (
        LateWrite(0, (2,), (1,)),
        "append to sequence 0: token 2; free it; new sequence 2: token 1; only then write what was appended",
    ),
    (Overflow(1, 2), "append 2 tokens beyond the room of sequence 1"),
    (Attend((1, 3, 0)), "attend with 2 sequences: 1 0"),
]


@pytest.mark.parametrize(("operation", "line"), LINES, ids=lambda value: type(value).__name__)
def test_each_operation_has_its_line(operation, line):
    assert lines(Trace((*TWO, operation)))[-1] == line


def test_sequences_keep_their_numbers_when_others_go():
    told = lines(Trace((*TWO, Free(0), FreeAgain(), Append(0, (1,)), SwapOut(0), SwapIn(0), New((2,)))))
    assert told[2:] == [
        "free sequence 0",
        "free sequence 0 again",
        "append to sequence 1: token 1",
        "swap sequence 1 out",
        "swap sequence 1 in",
        "new sequence 2: token 2",
    ]


def test_live_sequences_stay_in_order_of_creation():
    told = lines(Trace((*TWO, SwapOut(0), SwapIn(0), Free(0))))
    assert told[-1] == "free sequence 0"


def test_a_swapped_sequence_is_freed_by_its_own_number():
    told = lines(Trace((*TWO, SwapOut(0), FreeSwapped(0), Free(0))))
    assert told[-2:] == ["free sequence 0, which is swapped out", "free sequence 1"]


def test_the_message_is_complete():
    trace = Trace((New((1,)), Fork(0), Append(1, (2,))), CacheConfig(num_blocks=1, block_size=4, window=3))
    violation = Violation(CHECK.id, 2, "one holder", "two holders", sequence=1, position=0)
    assert explain(CHECK, violation, trace) == (
        "kv/write-shared (K4) is refuted: Nobody writes a shared block.\n"
        "  severity: another sequence's content\n"
        "  at:       operation 3 (append to sequence 1: token 2), sequence 1, position 0\n"
        "  expected: one holder\n"
        "  found:    two holders\n"
        "trace (1 block of 4 tokens, window 3):\n"
        "  1. new sequence 0: token 1\n"
        "  2. fork sequence 0 -> sequence 1\n"
        "  3. append to sequence 1: token 2"
    )


def test_the_shape_of_a_store_is_told():
    told = tell(Trace((), CacheConfig(num_layers=1), contract=KV_STORE))
    assert "1 layer, 2 KV heads, head size 4, float32" in told
