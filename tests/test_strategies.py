"""Generated traces: legal, complete, within the capabilities, and rich in what the rules need."""

import random
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.properties.block_manager_run import needed_capabilities
from tokenlaw.properties.history import History
from tokenlaw.properties.phrases import PHRASES
from tokenlaw.properties.scene import VOCABULARY, Scene
from tokenlaw.properties.strategies import VOCABULARIES, perform, supported_phrases, traces
from tokenlaw.properties.trace import (
    Append,
    Chunked,
    Fork,
    Free,
    FreeSwapped,
    LateWrite,
    New,
    Rollback,
    Speculate,
    SwapIn,
    SwapOut,
    decode,
)
from tokenlaw.properties.words import lines, tell
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig
from tokenlaw.spec.suites import PROFILES

EVERYTHING = frozenset(CAPABILITY_MEMBERS[BLOCK_MANAGER])
DEFAULT = CacheConfig()
DEV = PROFILES["dev"]
BY_NAME = {phrase.name: phrase for phrase in PHRASES}


def performed(name, seeds=range(200), capabilities=EVERYTHING, config=DEFAULT):
    """What a phrase does in fresh scenes: (trace of operations, scene) for each seed of its dice."""
    for seed in seeds:
        scene = Scene(config, capabilities, dice=random.Random(seed))
        yield perform(BY_NAME[name], scene), scene


@given(st.data())
def test_traces_are_plain_data_within_the_capabilities(data):
    capabilities = data.draw(st.frozensets(st.sampled_from(sorted(EVERYTHING))))
    trace = data.draw(traces(capabilities, DEV))
    assert decode(msgspec.json.encode(trace), "here") == trace
    assert needed_capabilities(trace) <= capabilities
    assert 1 <= len(trace.operations) <= DEV.max_operations
    assert 3 <= trace.config.num_blocks <= 160
    assert trace.config.num_blocks <= 64 or trace.config.block_size == 1
    assert trace.config.block_size in (1, 2, 3, 4)
    assert trace.config.window is None or "window" in capabilities


@given(traces(EVERYTHING, DEV))
def test_tokens_are_of_a_small_vocabulary_and_prompts_never_empty(trace):
    fields = [getattr(one, name, ()) for one in trace.operations for name in ("tokens", "drafts", "prompt")]
    used = {token for tokens in fields for token in tokens}
    assert any(used <= set(ids) for ids in VOCABULARIES)
    assert all(getattr(operation, "tokens", (0,)) for operation in trace.operations)


def test_large_ids_are_told_apart_by_their_high_bits_alone():
    """What keeps the low 8, 16 or 30 bits of an id, or makes a 32-bit float of it, confuses two of them."""
    large = [ids for ids in VOCABULARIES if max(ids) >= VOCABULARY]
    assert 0 < len(large) <= len(VOCABULARIES) // 3
    for narrow in (lambda one: one % 2**8, lambda one: one % 2**16, lambda one: one % 2**30, np.float32):
        assert any(len({narrow(token) for token in ids}) < VOCABULARY for ids in large)
    assert any(f"{a}{b}" == f"{b}{a}" for ids in large for a, b in combinations(ids, 2))
    assert all(len(set(ids)) == VOCABULARY and 0 <= min(ids) <= max(ids) < 2**31 for ids in VOCABULARIES)


def test_a_part_is_committed_never_nothing_and_never_all():
    chunked = [one for operations, _ in performed("write in chunks") for one in operations]
    chunked = [one for one in chunked if isinstance(one, Chunked)]
    assert all(1 <= one.written < len(one.tokens) for one in chunked)
    assert {one.aborted for one in chunked} == {True, False}


@given(traces(EVERYTHING, DEV))
def test_every_trace_can_be_told(trace):
    told = lines(trace)
    assert len(told) == len(trace.operations)
    assert all(f"{number}. {line}" in tell(trace) for number, line in enumerate(told, start=1))


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.name)
def test_every_phrase_is_reachable(phrase):
    """Each is offered exactly when its capabilities are there, and each does something."""
    assert phrase in supported_phrases(EVERYTHING)
    for capability in phrase.needs:
        assert phrase not in supported_phrases(EVERYTHING - {capability})
    assert all(operations for operations, _ in performed(phrase.name, range(20)))


def test_mandatory_calls_alone_have_phrases():
    assert len(supported_phrases(frozenset())) >= 10


@given(traces(frozenset(), DEV, phrases=[BY_NAME["grow"]]))
def test_only_the_given_phrases_are_used(trace):
    assert {type(operation) for operation in trace.operations} <= {New, Append}


def test_forks_diverge_with_different_tokens():
    for operations, _ in performed("fork and diverge"):
        appended = {
            operation.sequence: operation.tokens[0]
            for operation in operations
            if isinstance(operation, Append)
        }
        assert len(set(appended.values())) == len(appended)
        assert any(isinstance(operation, Fork) for operation in operations)


def test_every_position_of_a_shared_prefix_is_made_to_differ():
    places = set()
    for seed in range(400):
        scene = Scene(CacheConfig(), EVERYTHING, dice=random.Random(seed))
        scene.history.apply(New((0, 1, 2, 0, 1, 2, 0, 1)))
        [operation] = perform(BY_NAME["differ at one position"], scene)
        known = scene.history.live[0].tokens
        differing = [
            i for i, pair in enumerate(zip(known, operation.tokens, strict=False)) if pair[0] != pair[1]
        ]
        assert len(differing) == 1
        places |= set(differing)
    assert places == set(range(8))


def test_speculation_reaches_every_triple():
    """Every (length mod block, drafts, accepted) for blocks of 4 and 0 to 6 drafts."""
    triples = set()
    for operations, scene in performed("speculate", range(6_000)):
        history = History()
        for operation in operations:
            if isinstance(operation, Speculate):
                length = len(history.live[operation.sequence].tokens)
                triples.add((length % scene.block, len(operation.drafts), operation.accepted))
            history.apply(operation)
    assert triples == {(fill, k, kept) for fill in range(4) for k in range(7) for kept in range(k + 1)}


def test_crossing_takes_the_head_of_one_prompt_and_the_tail_of_another():
    for operations, scene in performed("cross two prefixes"):
        first, second, crossed = [operation.tokens for operation in operations if isinstance(operation, New)]
        assert crossed[: scene.block] == first[: scene.block] != second[: scene.block]
        assert crossed[scene.block :] == second[scene.block :]


def test_rolling_back_too_far_is_illegal_every_time():
    for operations, scene in performed("roll back too far"):
        count = operations[-1].count
        assert count < 0 or count > len(scene.history.live[operations[-1].sequence].tokens)


@pytest.mark.parametrize("blocks", [3, 5])
def test_the_pool_is_filled_to_the_last_slot(blocks):
    config = CacheConfig(num_blocks=blocks)
    for operations, scene in performed("fill exactly", config=config):
        admitted = next(operation for operation in operations if isinstance(operation, New))
        following = operations[operations.index(admitted) + 1]
        more = len(following.tokens) if isinstance(following, Append) and following.sequence == 0 else 0
        assert blocks * scene.block in (len(admitted.tokens), len(admitted.tokens) + more)


def test_history_follows_the_operations():
    history = History()
    for operation in (New((1, 2)), Fork(0), Append(3, (0,)), Rollback(0, 5), Speculate(0, (1, 2, 0), 2)):
        history.apply(operation)
    assert [sequence.tokens for sequence in history.live] == [(1, 2, 1, 2), (1, 2, 0)]
    for operation in (Free(0), LateWrite(0, (2,), (0, 0))):
        history.apply(operation)
    assert [sequence.tokens for sequence in history.live] == [(0, 0)]
    assert [sequence.number for sequence in history.freed] == [0, 1]
    assert history.created == 3


def test_history_follows_what_is_written_in_chunks():
    history = History()
    for operation in (Chunked((1, 2), 1), Chunked((0,), 0, 0), Chunked((2, 2), 1, aborted=True)):
        history.apply(operation)
    assert [sequence.tokens for sequence in history.live] == [(1, 2, 0)]
    history.apply(Chunked((1,), 0, 0, aborted=True))
    assert [sequence.tokens for sequence in history.freed] == [(2, 2), (1, 2, 0)]
    assert (history.live, history.created) == ([], 2)


def test_who_comes_back_from_the_host_comes_back_at_once_or_later():
    between = set()
    for operations, _ in performed("swap all again"):
        out = [place for place, one in enumerate(operations) if isinstance(one, SwapOut)]
        between |= {type(operations[place + 1]) for place in out}
    assert between == {New, SwapIn}


@pytest.mark.parametrize(("blocks", "window", "aborts"), [(4, None, 2), (4, 4, 5), (6, 5, 4), (64, 4, 10)])
def test_more_is_aborted_on_the_host_than_fits_there(blocks, window, aborts):
    """Of a window of W tokens a sequence holds W / 4 blocks, rounded up."""
    config = CacheConfig(num_blocks=blocks, block_size=4, window=window)
    for operations, _ in performed("abort on the host", seeds=range(20), config=config):
        assert sum(isinstance(one, FreeSwapped) for one in operations) == aborts
