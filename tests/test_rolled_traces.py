"""Traces made without hypothesis: as legal as drawn ones, evenly spread, the same for the same dice."""

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

import tokenlaw.properties.decoder_strategy as sessions
import tokenlaw.properties.strategies as managers
from support.exploring import PROFILE, check, explored, fake
from tokenlaw.properties.block_manager_run import needed_capabilities
from tokenlaw.properties.decoder_strategy import rolled_session
from tokenlaw.properties.kv_store_moves import MOVES
from tokenlaw.properties.kv_store_strategy import Sizes, rolled_store_trace
from tokenlaw.properties.pressure_phrases import FULL
from tokenlaw.properties.strategies import perform, rolled_trace, supported_phrases
from tokenlaw.properties.trace import New, Trace
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import BLOCK_MANAGER, DECODER, KV_STORE, CacheConfig
from tokenlaw.spec.sessions import Abort, Fork, Submit
from tokenlaw.spec.suites import PROFILES

DEV = PROFILES["dev"]
EVERYTHING = frozenset(CAPABILITY_MEMBERS[BLOCK_MANAGER])
STORES = frozenset(CAPABILITY_MEMBERS[KV_STORE])
DECODERS = frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models"}
LONGER = replace(PROFILE, examples=250)


@pytest.mark.parametrize("capabilities", [EVERYTHING, frozenset({"fork"}), frozenset[str]()])
def test_a_rolled_trace_is_legal_and_depends_on_its_dice_alone(capabilities: frozenset[str]) -> None:
    for number in range(100):
        first, again = (rolled_trace(capabilities, DEV, number, random.Random(number)) for _ in range(2))
        assert first == again
        assert needed_capabilities(first) <= capabilities
        assert 1 <= len(first.operations) <= DEV.max_operations
        assert first.config.window is None or "window" in capabilities


def test_phrases_come_as_often_as_their_weights_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opens as many traces as any other, if the pool isn't one of the largest; the seeds are fixed."""
    names, opened = Counter[str](), Counter[str]()

    def counting(phrase: managers.Phrase, scene: managers.Scene) -> object:
        names[phrase.name] += 1
        opened[phrase.name] += not scene.history.live
        return perform(phrase, scene)

    monkeypatch.setattr(managers, "perform", counting)
    phrases = supported_phrases(EVERYTHING)
    count = 20 * len(phrases)
    for number in range(count):
        rolled_trace(EVERYTHING, DEV, number, random.Random(number))
    others = [phrase for phrase in phrases if phrase is not FULL]  # which opens those of the largest pools
    drawn = {phrase.name: (names[phrase.name] - 20) / phrase.weight for phrase in others}
    mean = sum(drawn.values()) / len(drawn)
    assert all(0.5 * mean < share < 2 * mean for share in drawn.values()), drawn
    assert all(opened[phrase.name] >= 15 for phrase in phrases), opened


def test_moves_of_stores_come_in_turn() -> None:
    moves = [move for needs, move in MOVES if needs <= STORES]
    first: list[object] = []
    for number in range(2 * len(moves)):
        trace = rolled_store_trace(STORES, Sizes(), number, random.Random(5))
        assert isinstance(trace.operations[0], New)
        assert len(trace.operations) >= 4
        first.append(trace.operations[1])
    assert first[: len(moves)] == first[len(moves) :]
    assert len({type(one) for one in first}) > 5


def test_moves_of_sessions_come_in_turn() -> None:
    """Two of them are told by what they submit: twins, and the largest number of tokens."""
    possible = [move for needs, move, _ in sessions.MOVES if needs <= DECODERS]
    opened = [
        rolled_session(DECODERS, None, 8, number, random.Random(5)).operations[1]
        for number in range(2 * len(possible))
    ]
    assert opened[: len(possible)] == opened[len(possible) :]
    assert {type(one) for one in opened} >= {Submit, Fork, Abort}


def test_two_traces_of_five_have_no_window() -> None:
    """Chances, with any dice: a share beyond these bounds comes once in a million."""
    windows = [rolled_trace(EVERYTHING, DEV, 0, random.Random(one)).config.window for one in range(1_000)]
    assert 325 < windows.count(None) < 475


def test_every_other_batch_of_an_exploration_is_rolled() -> None:
    """Batches are of 100 examples; the seed decides all dice, and the number with which a batch begins."""
    rolled: list[tuple[int, float]] = []

    def roll(number: int, dice: random.Random) -> Trace:
        rolled.append((number, dice.random()))
        return Trace((New((0,)),), CacheConfig())

    ask = partial(explored, [check("a", "new")], fake({}), roll=roll)
    ask(seed=1, profile=LONGER)
    numbers = [number for number, _ in rolled]
    assert numbers == [numbers[0] + place for place in range(100)] + [
        numbers[100] + place for place in range(50)
    ]
    assert numbers[0] != numbers[100]
    once = list(rolled)
    rolled.clear()
    ask(seed=1, profile=LONGER)
    assert rolled == once
    ask(seed=2, profile=replace(PROFILE, examples=10))
    assert rolled[150:] != once[:10]
    assert rolled[150][0] != once[0][0]
