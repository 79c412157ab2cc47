"""The suite of paged attention: it holds on honest kernels and every check refutes its own fault."""

import re

import pytest
import torch
from hypothesis import strategies as st

from support.attention_kernels import ALL, IDS, SUITE, Kernel, implementation, refuted, run
from tokenlaw.impl.faults import ATTENTION_FAULTS
from tokenlaw.impl.faults.attention_formula import GroupModulo, SoftcapAfterMask, WindowOffByOne
from tokenlaw.impl.faults.attention_memory import LogicalIsPhysical
from tokenlaw.impl.faults.kv_innocents import RoundsWeights, SplitsByBatch
from tokenlaw.properties import attention_search, attention_suite
from tokenlaw.properties.attention_search import Search
from tokenlaw.properties.attention_strategies import Dimensions, basic_cases
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.properties.trace import TraceError
from tokenlaw.spec.contracts import ContractError, Implementation
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict

LATEST = {fault.weakest_check: name for name, fault in ATTENTION_FAULTS.items()}
"""One fault of each check; the others take a minute."""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=[pytest.mark.slow] * (name not in LATEST.values()))
        for name, fault in ATTENTION_FAULTS.items()
    ],
)
def test_each_fault_is_refuted_by_its_check(fault):
    kernel, check = fault.make, fault.weakest_check
    found = run(kernel, checks=[check])[check]
    assert found.verdict is Verdict.REFUTED, found.message
    assert "case: lengths" in found.message
    again = SUITE.replay(implementation(kernel), found.counterexample)
    assert check in {evidence.check.id for evidence in again if evidence.verdict is Verdict.REFUTED}
    honest = SUITE.replay(implementation(Kernel), found.counterexample)
    assert {evidence.verdict for evidence in honest} == {Verdict.HOLDS}


FEW = Profile("few", examples=8, max_operations=1, seconds=60.0)


@pytest.mark.parametrize(
    ("kernel", "checks"),
    [
        (Kernel, ["attention/softcap", "attention/window", "attention/lse", "attention/chunked-prefill"]),
        pytest.param(RoundsWeights, ["attention/merge"], marks=pytest.mark.slow),
        (SplitsByBatch, ["attention/numerics", "attention/placement"]),
        *(
            pytest.param(kernel, IDS, marks=pytest.mark.slow)
            for kernel in (Kernel, RoundsWeights, SplitsByBatch)
        ),
    ],
)
def test_honest_kernels_hold(kernel, checks):
    """Kernels that only round otherwise are asked what could blame them for that."""
    evidence = run(kernel, checks=checks, capabilities=ALL - {"bitwise"}, profile=FEW)
    assert {
        name: found.message for name, found in evidence.items() if found.verdict is not Verdict.HOLDS
    } == {}
    for found in evidence.values():
        assert all(found.exercised[event] > 0 for event in found.check.exercised_by)


@pytest.mark.parametrize(
    ("kernel", "check", "after"),
    [
        (GroupModulo, "attention/gqa", ["attention/chunked-prefill", "attention/layout", "attention/merge"]),
        pytest.param(
            SoftcapAfterMask,
            "attention/softcap",
            ["attention/window", "attention/lse"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_fault_is_reported_by_its_own_check_only(kernel, check, after):
    assert refuted(run(kernel, checks=[check, *after], profile=FEW)) == {check}


def test_consequences_of_a_broken_base_are_marked():
    evidence = run(LogicalIsPhysical, checks=["attention/numerics", "attention/gqa"])
    assert "note:" not in evidence["attention/numerics"].message
    assert "attention/numerics was refuted before" in evidence["attention/gqa"].message


def test_same_seed_same_evidence():
    first, again = (run(SoftcapAfterMask, checks=["attention/softcap"], seed=5) for _ in range(2))
    assert first["attention/softcap"].message == again["attention/softcap"].message
    assert first["attention/softcap"].operations == again["attention/softcap"].operations


class Plain(Kernel):
    """Has the mandatory part only, in float32 only."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale):
        if query.dtype != torch.float32:
            raise TypeError("float32 only")
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale)


def test_what_is_not_declared_is_not_supported():
    verdicts = {name: found.verdict for name, found in run(Plain, capabilities=(), profile=FEW).items()}
    held = {"attention/numerics", "attention/inputs", "attention/placement", "attention/independence"}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.HOLDS} == held
    assert {verdicts[name] for name in set(IDS) - held} == {Verdict.NOT_SUPPORTED}


def test_what_is_not_exercised_is_no_pass():
    suite = AttentionSuite(Dimensions(group_sizes=(1,)))
    found = run(Kernel, checks=["attention/gqa"], suite=suite)["attention/gqa"]
    assert found.verdict is Verdict.NOT_EXERCISED
    assert "grouped heads" in found.message


def test_a_slow_machine_still_exercises_every_check():
    evidence = run(Kernel, profile=Profile("none", examples=40, max_operations=1, seconds=0.0))
    assert {found.verdict for found in evidence.values()} == {Verdict.HOLDS}
    assert evidence["attention/numerics"].operations < 10
    message = evidence["attention/numerics"].message
    assert re.search(r"; the time was over after \d of the \d\d cases of every run$", message)


def test_a_run_that_draws_less_than_it_may_says_so(monkeypatch):
    monkeypatch.setattr(Search, "_late", lambda search: search.cases >= 40)
    profile = Profile("short", examples=160, max_operations=1, seconds=60.0)
    found = run(Kernel, checks=["attention/lse"], profile=profile)["attention/lse"]
    assert found.verdict is Verdict.HOLDS
    drawn = re.search(r"; the time was over after (\d+) of 40 drawn cases$", found.message)
    assert 0 < int(drawn[1]) < 40


def test_fewer_cases_than_asked_for_are_no_matter_of_time(monkeypatch):
    """There may be no more to draw."""
    monkeypatch.setattr(
        attention_search, "cases", lambda scope, can, sizes: st.just(next(basic_cases(scope, sizes, can)))
    )
    assert "the time" not in run(Kernel, checks=["attention/lse"], profile=FEW)["attention/lse"].message


def test_a_run_that_tried_all_its_cases_says_nothing_of_the_time():
    assert "the time" not in run(Kernel, checks=["attention/lse"], profile=FEW)["attention/lse"].message


def test_what_is_left_of_the_time_is_shared_by_the_checks_that_are_left(monkeypatch):
    """One of three uses twelve seconds of twenty: the others get four each."""
    spent, shares = iter([0.0, 12.0, 16.0]), []

    class Told(Search):
        def __init__(self, entry, subject, dimensions, seconds):
            shares.append(seconds)
            super().__init__(entry, subject, dimensions, 0.0)

    monkeypatch.setattr(attention_suite, "Stopwatch", lambda: lambda: next(spent))
    monkeypatch.setattr(attention_suite, "Search", Told)
    profile = Profile("few", examples=4, max_operations=1, seconds=20.0)
    run(Kernel, checks=["attention/lse", "attention/gqa", "attention/inputs"], profile=profile)
    assert shares == [20 / 3, 4.0, 4.0]


class Crashes(Kernel):
    def gather(self, cache, table, length):
        if length > 4:
            raise IndexError("page out of range")
        return super().gather(cache, table, length)


def test_exceptions_are_unknown_with_the_smallest_case():
    found = run(Crashes, checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.UNKNOWN
    assert "IndexError: page out of range" in found.message
    assert found.counterexample["lengths"] == [5]


class NoDevice(Kernel):
    def __init__(self):
        raise OSError("no such device")


def test_a_factory_that_raises_is_unknown():
    evidence = run(NoDevice)
    assert {found.verdict for found in evidence.values()} == {Verdict.UNKNOWN}
    assert all("no such device" in found.message for found in evidence.values())


class WrongShape(Kernel):
    def attend(self, query, *arguments, **options):
        return super().attend(query, *arguments, **options).squeeze(1)


class WrongDtype(Kernel):
    def attend(self, query, *arguments, **options):
        return super().attend(query, *arguments, **options).double()


@pytest.mark.parametrize(
    ("kernel", "text"),
    [(WrongShape, "expected: shape [1, 1, "), (WrongDtype, "found:    torch.float64")],
)
def test_wrong_shape_and_dtype_are_named(kernel, text):
    found = run(kernel, checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.REFUTED
    assert text in found.message


class MovesBits(Kernel):
    """A rounding error that depends on where the first block lies: allowed, unless bitwise is claimed."""

    def gather(self, cache, table, length):
        return super().gather(cache, table, length).float() * (1 + 2e-7 * float(table[0] > 0))


def test_equal_bits_are_asked_only_of_those_who_claim_them():
    checks = ["attention/placement"]
    assert refuted(run(MovesBits, checks=checks)) == {"attention/placement"}
    assert refuted(run(MovesBits, checks=checks, capabilities=ALL - {"bitwise"})) == set()


def test_replay_names_what_the_target_lacks():
    found = run(WindowOffByOne, checks=["attention/window"])["attention/window"]
    with pytest.raises(TraceError, match="doesn't declare window"):
        SUITE.replay(implementation(Kernel, ALL - {"window"}), found.counterexample)


def test_an_implementation_without_the_contract_is_refused():
    with pytest.raises(ContractError, match="no paged-attention factory"):
        SUITE.replay(Implementation("none", "1", {}), {"schema": "tokenlaw.attention/1"})


def test_every_check_has_a_fault():
    assert {fault.weakest_check for fault in ATTENTION_FAULTS.values()} == set(IDS)
