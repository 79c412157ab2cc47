"""What mutation testing of budgets, capabilities, announcements and verifiers found untested."""

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from tokenlaw.spec import stopwatch
from tokenlaw.spec.announcing import announce, announce_evidence, listening
from tokenlaw.spec.capabilities import missing_members, needed, probe_capabilities
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    DECODER,
    DEVICE,
    HOST,
    NO_BLOCK,
    PAGED_ATTENTION,
    VERIFIER,
    BlockCopy,
    CacheConfig,
)
from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.spec.suites import DEFAULTS, PROFILES, Profile, Settings
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict, exit_status

CHECK = Check("kv/some", "K0", "Some claim.", BLOCK_MANAGER, Severity.LEAK)


def test_budgets_never_change_by_the_way() -> None:
    """Reports of two versions are compared as if they had tried equally much."""
    assert [astuple(profile) for profile in PROFILES.values()] == [
        ("dev", 400, 40, 20.0, 600_000),
        ("ci", 2_000, 60, 90.0, 6_000_000),
        ("deep", 50_000, 120, 1_800.0, 200_000_000),
    ]
    assert list(PROFILES) == [profile.name for profile in PROFILES.values()]
    assert Profile("mine", examples=1, max_operations=1, seconds=1.0).requests == 0


def test_without_settings_nothing_deviates_and_one_run_in_a_billion_is_wrong() -> None:
    settings = Settings()
    assert (settings.alpha, settings.tolerance, settings.device) == (1e-9, 0.0, "cpu")
    assert settings == DEFAULTS


def test_a_cache_has_the_documented_shape_unless_another_is_asked_for() -> None:
    """Counterexamples on file leave out what is usual."""
    assert astuple(CacheConfig()) == (16, 4, None, 2, 2, 4, 8, "float32", "cpu")
    assert astuple(BlockCopy(1, 2)) == (1, 2, "device", "device")
    assert (NO_BLOCK, DEVICE, HOST) == (-1, "device", "host")


def test_evidence_counts_nothing_that_nobody_counted() -> None:
    evidence = Evidence(CHECK, Verdict.NOT_SUPPORTED)
    assert (evidence.operations, evidence.seconds, dict(evidence.exercised)) == (0, 0.0, {})


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_exit_status_tells_conforming_from_refuted_from_all_else(verdict: Verdict) -> None:
    assert exit_status(verdict) == {Verdict.HOLDS: 0, Verdict.REFUTED: 1}.get(verdict, 2)


def test_evidence_is_told_to_the_keeper_within_its_block() -> None:
    evidence, kept, heard = Evidence(CHECK, Verdict.HOLDS), list[Any](), list[Any]()
    with listening(heard.append):
        announce_evidence(evidence)
        with listening(heard.append, kept.append):
            announce_evidence(evidence)
            announce("a trace")
        announce_evidence(evidence)
    announce_evidence(evidence)
    assert (kept, heard) == ([evidence], ["a trace", "a trace"])


class Windowed:
    """Members of a block manager that are read, and one that can't be called."""

    window: int | None = 4
    lookahead = 0
    fork = None


def test_an_attribute_is_there_unless_it_is_zero_and_a_method_if_it_can_be_called() -> None:
    members = ("window", "lookahead", "fork", "rollback")
    assert missing_members(members, Windowed()) == ["lookahead", "fork", "rollback"]
    without_limit = Windowed()
    without_limit.window = None  # the attribute exists: this manager has no window now
    assert missing_members(members, without_limit) == ["lookahead", "fork", "rollback"]


class Verifies:
    """Shows by a keyword and by a method what it can do."""

    def verify(self, batch: object, *, seed: int, noise: object = None) -> object:
        return batch

    def draft(self, logits: object) -> object:
        return logits


def test_what_can_only_be_declared_is_not_found() -> None:
    assert probe_capabilities(VERIFIER, Verifies()) == {"noise", "draft"}


@pytest.mark.parametrize(
    ("contract", "capability", "told"),
    [
        (BLOCK_MANAGER, "window", "needs window (attribute window)"),
        (BLOCK_MANAGER, "fork", "needs fork (method fork)"),
        (BLOCK_MANAGER, "namespaces", "needs namespaces (keyword namespace of allocate)"),
        (PAGED_ATTENTION, "alibi", "needs alibi (keyword alibi_slopes of attend)"),
        (DECODER, "requests", "needs requests (methods submit and step and generated and is_finished)"),
        (VERIFIER, "draft", "needs draft (method draft)"),
        (VERIFIER, "row-seeds", "needs row-seeds (declare it in Implementation.capabilities)"),
    ],
)
def test_what_a_check_lacks_is_told_with_where_it_is_looked_for(
    contract: str, capability: str, told: str
) -> None:
    assert needed(contract, {capability}) == told


def test_time_before_a_stopwatch_was_made_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"perf_counter": 100.0, "process_time": 50.0}
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now["perf_counter"])
    monkeypatch.setattr(stopwatch.time, "process_time", lambda: now["process_time"])
    monkeypatch.setattr(stopwatch, "SCHEDULING", Path("there is no such file"))
    used = Stopwatch()
    assert used() == 0.0
    now.update(perf_counter=106.0)
    assert used() == 2.0
    now.update(process_time=54.0)
    assert used() == 4.0
