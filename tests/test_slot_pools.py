"""Pools of single slots: what fits depends on tokens, where a pool of blocks counts blocks."""

from dataclasses import replace

import pytest

import tokenlaw
from support.list_store import new
from support.slot_store import SlotStore
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.trace import Free, Trace
from tokenlaw.spec.contracts import KV_STORE, CacheConfig
from tokenlaw.spec.suites import PROFILES

CONFIG = CacheConfig(num_blocks=3, block_size=2, num_layers=1, num_kv_heads=1, head_size=2, max_sequences=3)


class Leaks(SlotStore):
    """Keeps the first slot of a sequence that ends."""

    def free(self, sequence: int) -> None:
        self.free_slots += self.slots.pop(sequence)[1:]


def test_as_many_blocks_may_be_more_tokens_than_there_is_room_for() -> None:
    """5 + 1 tokens fill six slots and count as four blocks of two; so do 3 + 4, which are one too many."""
    operations = (new(5), new(1), Free(0), Free(0), new(3), new(4))
    outcome = run_trace(SlotStore, Trace(operations, CONFIG, KV_STORE), frozenset(), frozenset())
    assert (outcome.violations, outcome.crash) == ([], None)


def test_as_many_tokens_as_before_must_fit_again() -> None:
    operations = (new(5), new(1), Free(0), Free(0), new(3), new(3))
    trace = Trace(operations, CONFIG, KV_STORE)
    assert run_trace(SlotStore, trace, frozenset(), frozenset()).violations == []
    found = run_trace(Leaks, trace, frozenset(), frozenset()).violations
    assert {one.check for one in found} == {"store/release"}


@pytest.mark.parametrize(
    ("seed", "examples"), [(0, 60), pytest.param(1, PROFILES["dev"].examples, marks=pytest.mark.slow)]
)
def test_an_audit_holds(seed: int, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, "dev", replace(PROFILES["dev"], examples=examples))
    report = tokenlaw.check_kv_store(SlotStore, seed=seed, controls=False, raises=False)
    refuted = report.with_verdict(tokenlaw.Verdict.REFUTED)
    assert [row.message for row in refuted] == []
