"""Implementations that draw from shared generators: the same trace finds the same numbers."""

import random
from typing import Any

import numpy as np
import torch

from tokenlaw.impl.faults.targets import SUSPECTS
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.decoder_run import run_session
from tokenlaw.properties.kv_store_run import run_trace as run_store_trace
from tokenlaw.properties.trace import New, Trace
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, CacheConfig, Implementation
from tokenlaw.spec.session_models import Hashed
from tokenlaw.spec.sessions import Session, Step
from tokenlaw.spec.suites import PROFILES, ignore
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.suites import suites

CONFIG = CacheConfig()


def drawn() -> tuple[float, ...]:
    """A number of each generator."""
    return random.random(), float(np.random.random()), float(torch.rand(()))


def test_the_same_run_finds_the_same_numbers_and_leaves_no_trace() -> None:
    heard: list[tuple[float, ...]] = []

    def made(name: str, *arguments: Any) -> Any:
        heard.append(drawn())
        contract = SUSPECTS[name].contract
        return SUSPECTS[name].implementation().factories[contract](*arguments)

    traces = [Trace((New((0,)),), CONFIG), Trace((New((1,)),), CONFIG)]
    stored = [Trace((New((0,) * count),), CONFIG, KV_STORE) for count in (1, 2)]
    sessions = [
        Session((Step(),), 2, Hashed(2, seed), Hashed(2, 1), num_blocks=2, block_size=2, max_sequences=1)
        for seed in (0, 1)
    ]
    for run, name, examples in (
        (run_trace, "manager", traces),
        (run_store_trace, "store", stored),
        (run_session, "draft_is_target", sessions),
    ):
        ask: Any = run
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)
        before = drawn()
        for example in (*examples, *examples):
            ask(lambda *given, name=name: made(name, *given), example, frozenset())
        after = drawn()
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)
        assert (before, after) == (drawn(), drawn())
        first, second, again, last = heard[-4:]
        assert first == again != second == last


class Flaky(PagedBlockManager):
    """Tells its blocks in the wrong order now and then."""

    def block_table(self, sequence: int) -> list[int]:
        table = super().block_table(sequence)
        return table[::-1] if random.random() < 0.02 else table


def test_a_fault_that_comes_by_chance_is_found_again_and_shrunk() -> None:
    suite = suites()[BLOCK_MANAGER]
    target = Implementation("flaky", "1", {BLOCK_MANAGER: Flaky})
    asked: dict[str, Any] = {
        "profile": PROFILES["dev"],
        "seed": 3,
        "selected": frozenset({"kv/content"}),
        "progress": ignore,
    }
    random.seed(1)
    (found,) = suite.run(target, **asked)
    random.seed(2)
    (again,) = suite.run(target, **asked)
    assert found.verdict is Verdict.REFUTED
    assert "deterministic" not in found.message
    assert (found.message, found.counterexample) == (again.message, again.counterexample)
    assert found.counterexample is not None
    replayed = {row.check.id: row.verdict for row in suite.replay(target, found.counterexample)}
    assert replayed["kv/content"] is Verdict.REFUTED
