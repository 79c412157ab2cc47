"""Exploration against fake targets: what is found, shrunk, muted, counted, and left undecided."""

import time
from functools import partial

import pytest

from support.exploring import CAPABILITIES, PROFILE, check, explored, fake, first_match, kinds
from tokenlaw.properties.exploration import explore
from tokenlaw.properties.narrowing import crash_place
from tokenlaw.properties.running import Outcome, Violation
from tokenlaw.properties.strategies import rolled_trace, traces
from tokenlaw.properties.trace import Fork, Free, New, Rollback, Trace, to_data
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict


def test_a_three_operation_fault_is_found_and_shrunk_to_it():
    [evidence] = explored([check("a", "new")], fake({"kv/a": (New, Fork, Free)}))
    assert evidence.verdict is Verdict.REFUTED
    assert kinds(evidence) == ["new", "fork", "free"]
    assert "kv/a (K0) is refuted: a is right" in evidence.message
    assert "fork sequence 0 -> sequence 1" in evidence.message
    assert "may follow" not in evidence.message


def test_several_faults_have_their_own_counterexamples():
    checks = [check("a"), check("b"), check("c"), check("d", "new")]
    patterns = {"kv/a": (New,), "kv/b": (Fork, Rollback), "kv/c": (Fork,)}
    a, b, c, d = explored(checks, fake(patterns))
    assert [kinds(one) for one in (a, b, c)] == [["new"], ["fork", "rollback"], ["fork"]]
    assert d.verdict is Verdict.HOLDS
    assert "may follow from kv/c" in b.message
    assert "may follow" not in c.message


def test_a_muted_finding_that_also_stands_alone_has_no_caveat():
    """Every drawn trace breaks a first, but free alone breaks b: shrinking gets rid of the rest."""
    _, b = explored([check("a"), check("b")], fake({"kv/a": (New,), "kv/b": (Free,)}))
    assert kinds(b) == ["free"]
    assert "may follow" not in b.message


def test_a_crash_leaves_everything_else_unknown():
    checks = [check("a"), check("b"), check("c", needs=["swap"])]
    runs = []

    def run(trace, muted):
        runs.append(trace)
        return fake({"kv/a": (Fork,)}, crash_on=(New, Rollback))(trace, muted)

    a, b, c = explored(checks, run)
    assert (a.verdict, b.verdict, c.verdict) == (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.NOT_SUPPORTED)
    assert kinds(b) == ["new", "rollback"]
    assert "KeyError: 7" in b.message
    assert "1. new sequence 0" in b.message
    assert "needs swap" in c.message


def test_the_crash_is_told_once_in_full():
    a, b = explored([check("a"), check("b")], fake({}, crash_on=(New,)))
    assert kinds(a) == ["new"]
    assert b.counterexample is None
    assert b.message == "the target crashed: KeyError: 7"


def test_a_target_that_always_crashes_is_given_up_early():
    runs = []

    def run(trace, muted):
        runs.append(trace)
        return Outcome(crash="Traceback:\n  File 'x', line 1\nKeyError: 7")

    [evidence] = explored([check("a")], run)
    assert evidence.verdict is Verdict.UNKNOWN
    assert len(runs) < PROFILE.examples
    assert kinds(evidence) == []


def test_nothing_more_is_tried_when_everything_is_refuted():
    runs = []

    def run(trace, muted):
        runs.append(trace)
        return Outcome([Violation("kv/a", 0, "x", "y")])

    explored([check("a")], run)
    assert len(runs) < PROFILE.examples


def test_what_never_happened_is_not_exercised():
    holds, never = explored([check("a", "new"), check("b", "new", "eclipse")], fake({}))
    assert (holds.verdict, never.verdict) == (Verdict.HOLDS, Verdict.NOT_EXERCISED)
    assert never.message == "never happened: eclipse"
    assert never.exercised["eclipse"] == 0
    assert holds.exercised["new"] > PROFILE.examples


def test_no_operations_is_no_evidence():
    [evidence] = explored([check("a")], lambda trace, muted: Outcome())
    assert evidence.verdict is Verdict.NOT_EXERCISED


def test_only_selected_checks_are_told_about():
    checks = [check("a"), check("b")]
    told = []
    doing = []
    with listening(lambda _: None, told.append):
        [evidence] = explored(
            checks,
            fake({"kv/a": (New,), "kv/b": (Fork,)}),
            selected=frozenset({"kv/b"}),
            progress=lambda what, *_: doing.append(what),
        )
    assert "shrinking kv/b" in doing
    assert "shrinking kv/a" not in doing
    assert evidence.check.id == "kv/b"
    assert kinds(evidence) == ["fork"]
    assert {one.check.id for one in told} == {"kv/b"}


def test_a_selection_changes_nothing_about_what_is_selected():
    """What a check that isn't selected asks is asked as well, and its fault is blamed on no other."""
    checks = [check("a"), check("b"), check("c")]
    patterns = {"kv/a": (New,), "kv/b": (New, Fork), "kv/c": (Fork, Free)}

    def run(trace, muted):
        """What breaks a spreads to b wherever a isn't looked at."""
        spread = {id_: found for id_, found in patterns.items() if id_ != "kv/b" or "kv/a" in muted}
        return fake(spread)(trace, muted)

    everything = explored(checks, run)
    for one in everything:
        [alone] = explored(checks, run, selected=frozenset({one.check.id}))
        assert (alone.verdict, alone.message) == (one.verdict, one.message)
        assert alone.counterexample == one.counterexample
    assert "may follow from kv/a" in everything[1].message


def test_a_fault_that_comes_and_goes_is_reported_as_such():
    seen = []

    def run(trace, muted):
        seen.append(trace)
        broken = len(seen) == 5 and not muted
        return Outcome([Violation("kv/a", 0, "x", "y")] if broken else [], operations=1)

    [evidence] = explored([check("a")], run)
    assert evidence.verdict is Verdict.REFUTED
    assert "isn't deterministic" in evidence.message
    assert evidence.counterexample == to_data(seen[4])


def test_time_ends_the_run_and_is_told():
    [evidence] = explored([check("a", "new")], fake({}), profile=Profile("test", 100_000, 20, 0.3))
    assert evidence.verdict is Verdict.HOLDS
    assert "of 100000 examples ran" in evidence.message


def test_the_same_seed_gives_the_same_traces():
    def seen(seed):
        collected = []
        few = Profile("few", examples=40, max_operations=20, seconds=60.0)
        explored([check("a")], fake({}), seed=seed, profile=few, before_run=collected.append)
        return collected

    first = seen(1)
    assert first == seen(1)
    assert first != seen(2)


def test_the_hook_sees_each_trace_before_it_runs():
    told, ran = [], []

    def run(trace, muted):
        assert told[-1] == trace
        ran.append(trace)
        return fake({"kv/a": (New, Fork)})(trace, muted)

    explored([check("a")], run, before_run=told.append)
    assert told == ran


def test_batches_keep_adding_examples():
    """More examples than one hypothesis run holds, and none of the batches repeats another."""
    profile = Profile("test", examples=250, max_operations=4, seconds=60.0)
    told = []
    explore(
        [check("a")],
        traces(CAPABILITIES, profile),
        partial(rolled_trace, CAPABILITIES, profile),
        fake({}),
        profile=profile,
        seed=3,
        selected=frozenset({"kv/a"}),
        capabilities=CAPABILITIES,
        progress=lambda *call: None,
        before_run=told.append,
    )
    assert len(told) == 250
    assert told[:100] != told[100:200]


def test_a_slow_start_leaves_the_time_to_search_as_it_is():
    """The first call of a target may import and compile for longer than the whole search may take."""
    ran = []

    def run(trace, muted):
        time.sleep(0 if ran else 0.6)
        ran.append(trace)
        return fake({})(trace, muted)

    explored([check("a")], run, profile=Profile("test", examples=5, max_operations=4, seconds=0.5))
    assert len(ran) > 1


def test_progress_ends_complete():
    calls = []
    explored([check("a")], fake({}), progress=lambda *call: calls.append(call))
    assert calls[-1] == ("done", PROFILE.examples, PROFILE.examples)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('File "a", line 1\nKeyError: 1', 'File "a", line 1\nKeyError: 2', True),
        ('File "a", line 1\nKeyError: 1', 'File "a", line 2\nKeyError: 1', False),
        ('File "a", line 1\nKeyError: 1', 'File "a", line 1\nValueError: 1', False),
    ],
)
def test_crashes_are_told_apart_by_place_and_kind(first, second, same):
    assert (crash_place(first) == crash_place(second)) is same


def test_traces_of_a_wrong_kind_are_no_trace():
    assert first_match(Trace((New((1,)),)), (Fork,)) is None


def test_findings_are_announced_when_they_are_made_and_when_they_are_shrunk():
    heard = []
    with listening(lambda _: None, heard.append):
        [evidence] = explored([check("a", "new")], fake({"kv/a": (New, Fork, Free)}))
    first, last = heard
    assert {found.verdict for found in heard} == {Verdict.REFUTED}
    assert len(kinds(first)) > len(kinds(last)) == 3
    assert last.counterexample == evidence.counterexample
    assert last.message == evidence.message
