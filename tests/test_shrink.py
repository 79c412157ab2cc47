"""The shrinker: minimal in operations, simple in arguments, faithful to the failure it was asked about."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.properties.history import History
from tokenlaw.properties.shrink import shrink
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Batch,
    Chunked,
    Evict,
    Fork,
    Free,
    New,
    Reset,
    Rollback,
    Speculate,
    SpeculateBatch,
    Trace,
    Weights,
)
from tokenlaw.spec.contracts import CacheConfig

KINDS = {"new": New((2, 1, 2)), "fork": Fork(3), "free": Free(2), "reset": Reset(), "weights": Weights()}


def kinds(trace):
    return [type(operation) for operation in trace.operations]


def is_subsequence(wanted, present):
    rest = iter(present)
    return all(kind in rest for kind in wanted)


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=3, max_size=25), st.data())
def test_result_is_minimal_in_operations(names, data):
    places = sorted(data.draw(st.sets(st.integers(0, len(names) - 1), min_size=1, max_size=3)))
    wanted = [type(KINDS[names[place]]) for place in places]
    trace = Trace(tuple(KINDS[name] for name in names))
    small = shrink(trace, lambda candidate: is_subsequence(wanted, kinds(candidate)))
    assert kinds(small) == wanted


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=25), st.integers(1, 4))
def test_counting_failures_are_minimal_too(names, least):
    """Any operations will do, but so many of them: a greedy step may not stop at a local chunk."""
    trace = Trace(tuple(KINDS[name] for name in names))
    if len(names) >= least:
        assert len(shrink(trace, lambda t: len(t.operations) >= least).operations) == least


@pytest.mark.parametrize("freed", [False, True])
def test_what_only_fills_the_pool_goes_with_the_blocks_that_it_fills(freed):
    """It fails with a full pool only: neither operations nor a block can be left out alone."""
    fillers = (New((0,)), Free(0)) if freed else (New((0,)),)

    def fails(trace):
        found = kinds(trace)
        filled = trace.config.num_blocks
        return found.count(New) == filled and found.count(Free) == filled * freed

    small = shrink(Trace(fillers * 5, CacheConfig(num_blocks=5)), fails)
    assert kinds(small) == [type(one) for one in fillers]
    assert small.config.num_blocks == 1


def test_a_batch_stays_with_its_sequences():
    """It fails while the sequence of token 9 goes on in a batch beside that of token 8, wherever they are."""

    def fails(trace):
        history = History()
        for operation in trace.operations[:-1]:
            history.apply(operation)
        first = [sequence.tokens[0] for sequence in history.live]
        last = trace.operations[-1] if trace.operations else None
        if not isinstance(last, Batch | SpeculateBatch) or 8 not in first:
            return False
        return 9 in {first[place % len(first)] for place in last.sequences}

    news = tuple(New((token,)) for token in (1, 2, 3, 8, 9))
    for last in (Batch((4,), (0,)), SpeculateBatch((4,), (0,), (1,), (0,))):
        small = shrink(Trace((*news, last)), fails)
        assert [one.tokens for one in small.operations[:-1]] == [(8,), (9,)]


def test_namespaces_become_as_short_as_they_may():
    """What fails needs two of them, or two that begin alike."""
    long = [New((0,), f"adapter-of-tenant-{number}") for number in (1, 2)]

    def two(trace):
        return len({one.namespace for one in trace.operations}) == 2

    def alike(trace):
        first, second = (
            {one.namespace[:7] for one in trace.operations},
            {one.namespace for one in trace.operations},
        )
        return len(first) == 1 and len(second) == 2 and max(map(len, second)) > 7

    assert {one.namespace for one in shrink(Trace(tuple(long)), two).operations} == {"", "a"}
    assert shrink(Trace(tuple(long)), alike).operations == tuple(long)


def test_operations_follow_their_sequence():
    """Four unneeded sequences stand before the one that matters, so plain removal changes every index."""
    operations = (*(New((0, i)) for i in range(4)), New((1,)), Append(4, (2,)), Free(0), Append(3, (1,)))

    def fails(trace):
        history = History()
        for operation in trace.operations:
            history.apply(operation)
        return any(sequence.tokens[-2:] == (2, 1) for sequence in history.live)

    assert shrink(Trace(operations), fails).operations == (New((2, 1)),)


def test_arguments_and_configuration_become_simple():
    trace = Trace(
        (New((2, 1, 2, 1, 0, 2), "tenant"), Speculate(7, (1, 2, 1), 2), Rollback(5, 9), Evict(6)),
        CacheConfig(num_blocks=40, block_size=4, window=9),
    )

    def fails(candidate):
        return kinds(candidate) == [New, Append, Rollback, Evict] or kinds(candidate) == kinds(trace)

    small = shrink(trace, fails)
    assert small.operations == (New((0,)), Append(0, (0,)), Rollback(0, 0), Evict(0))
    assert (small.config.num_blocks, small.config.block_size, small.config.window) == (1, 1, None)


def test_equal_prompts_shrink_together():
    prompt = (2, 1, 2, 0, 1, 2, 2, 1, 1)

    def fails(trace):
        prompts = [operation.tokens for operation in trace.operations if isinstance(operation, New)]
        return any(len(p) > 4 and p in prompts[i + 1 :] for i, p in enumerate(prompts))

    small = shrink(Trace((New(prompt), Reset(), New(prompt))), fails)
    assert small.operations == (New((0,) * 5), New((0,) * 5))


def test_a_different_failure_is_not_taken():
    """Removing everything crashes differently; the predicate alone decides."""
    trace = Trace((New((1,)), Fork(0), Free(0)))
    assert shrink(trace, lambda candidate: candidate == trace) == trace


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_budget_bounds_the_runs(runs):
    calls = []

    def fails(trace):
        calls.append(trace)
        return bool(trace.operations)

    small = shrink(Trace((Reset(),) * 60), fails, max_runs=runs)
    assert len(calls) == runs
    assert small.operations


def test_shrinking_is_deterministic():
    trace = Trace(tuple(KINDS[name] for name in sorted(KINDS) * 5))

    def fails(candidate):
        return is_subsequence([Fork, New, Weights], kinds(candidate))

    assert msgspec.json.encode(shrink(trace, fails)) == msgspec.json.encode(shrink(trace, fails))


def test_what_is_written_in_chunks_becomes_a_plainer_operation():
    trace = Trace((New((1, 2)), Chunked((2, 1, 0), 2, 0), Chunked((1, 1, 1), 3, 0, aborted=True)))
    small = shrink(trace, lambda t: len(t.operations) == 3)
    assert small.operations == (New((0,)), Append(0, (0,)), Abort((0,), 0))

    def fails(candidate):
        return any(
            isinstance(one, Chunked) and 0 < one.written < len(one.tokens) for one in candidate.operations
        )

    assert shrink(trace, fails).operations == (Chunked((0, 0), 1, 0),)


def test_large_ids_become_as_small_as_what_they_show_allows():
    """Ids that are equal modulo 256, and different ones."""

    def fails(trace):
        tokens = {token for operation in trace.operations for token in operation.tokens}
        return len(tokens) == 2 and len({token % 256 for token in tokens}) == 1

    small = shrink(Trace((New((0, 65536)), Append(0, (256, 65536)))), fails)
    assert small.operations == (New((0, 256)),)
