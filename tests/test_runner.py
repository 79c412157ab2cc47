"""Audits in child processes: what a target does to its process becomes a verdict, never a broken run."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tokenlaw import process
from tokenlaw.errors import BadUse, ToolFault
from tokenlaw.protocol import Limits
from tokenlaw.report import Report
from tokenlaw.runner import audit, replay
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE
from tokenlaw.spec.verdicts import Verdict

TARGETS = Path(__file__).parent / "targets"


@pytest.fixture
def _real_children(warm_children: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children start as those of every audit do."""
    monkeypatch.setattr(process, "subprocess", subprocess)


@pytest.fixture(autouse=True)
def _targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))


def run(name: str, registry: str = "suites", **options: Any) -> Report:
    return audit(f"fake_targets:{name}", registry=f"fake_suites:{registry}", **options)


def has_ended(pid: Path) -> bool:
    """True when the process whose number stands in the file isn't alive, a zombie at most."""
    status = Path(f"/proc/{pid.read_text()}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.usefixtures("_real_children")
def test_every_contract_is_run_and_described() -> None:
    seen: list[tuple[str, int, int]] = []
    report = run("BOTH", seed=3, progress=lambda *event: seen.append(event))
    assert [(row.check.id, row.verdict) for row in report.evidence] == [
        ("fake/content", Verdict.HOLDS),
        ("fake/forks", Verdict.NOT_SUPPORTED),
        ("store/content", Verdict.HOLDS),
    ]
    assert report.verdict is Verdict.HOLDS
    assert report.target.name == "both"
    assert report.target.contracts == (BLOCK_MANAGER, KV_STORE)
    assert report.target.capabilities == {BLOCK_MANAGER: (), KV_STORE: ()}
    assert report.command == "tokenlaw audit fake_targets:BOTH --profile dev --seed 3"
    assert seen[0] == ("traces", 0, 5)


def test_a_plain_factory_is_wrapped_and_its_capabilities_are_probed() -> None:
    report = run("Forking", only="fake/forks")
    assert [(row.check.id, row.verdict) for row in report.evidence] == [("fake/forks", Verdict.HOLDS)]
    assert (report.target.name, report.target.version) == ("fake_targets:Forking", "7.5")
    assert report.target.capabilities == {BLOCK_MANAGER: ("fork",)}


@pytest.mark.usefixtures("_real_children")
def test_noise_on_stdout_and_processes_left_behind_disturb_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINGERING_PID", str(tmp_path / "pid"))
    assert run("Noisy").verdict is Verdict.HOLDS
    assert capfd.readouterr() == ("", "")
    assert has_ended(tmp_path / "pid")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Dying", ["exited with status 7", "my last words", "1. new sequence 0: tokens 0 0"]),
        ("Segfaulting", ["signal 11 (SIGSEGV)", "in append", "fake_targets.py"]),
    ],
)
def test_an_accident_makes_every_check_unknown(name: str, expected: list[str]) -> None:
    report = run(name)
    second = Verdict.UNKNOWN if name == "Segfaulting" else Verdict.NOT_SUPPORTED
    assert [row.verdict for row in report.evidence] == [Verdict.UNKNOWN, second]
    assert report.evidence[1].message.endswith("(see fake/content)") == (second is Verdict.UNKNOWN)
    assert "end_with_parent" not in report.evidence[0].message
    for text in expected:
        assert text in report.evidence[0].message
    assert report.evidence[0].counterexample["operations"] == [
        {"op": "new", "tokens": [0, 0], "namespace": ""}
    ]


def test_what_was_refuted_before_the_process_died_stays_refuted() -> None:
    report = run("RefutedThenDying")
    refuted, unknown = report.evidence
    assert report.status == 1
    assert refuted.verdict is Verdict.REFUTED
    assert refuted.counterexample["operations"][0]["tokens"] == [2, 0]
    assert refuted.message.endswith("later in the run: " + unknown.message.partition("\n")[0])
    assert unknown.verdict is Verdict.UNKNOWN
    assert "exited with status 7" in unknown.message
    assert unknown.counterexample["operations"][0]["tokens"] == [3, 0]


def test_what_a_target_writes_to_the_channel_is_ignored() -> None:
    report = run("Forging")
    assert [row.verdict for row in report.evidence] == [Verdict.HOLDS, Verdict.NOT_SUPPORTED]


@pytest.mark.usefixtures("_real_children")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_process_that_left_the_session_is_ended_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINGERING_PID", str(tmp_path / "pid"))
    assert run("Daemonizing").verdict is Verdict.HOLDS
    assert wait_until(lambda: has_ended(tmp_path / "pid"))


def test_the_child_ends_with_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINGERING_PID", str(tmp_path / "pid"))
    program = (
        "from tokenlaw.runner import audit; audit('fake_targets:Hanging', registry='fake_suites:suites')"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        assert wait_until((tmp_path / "pid").exists)
        parent.kill()
    assert wait_until(lambda: has_ended(tmp_path / "pid"))


@pytest.mark.usefixtures("_real_children")
def test_a_hang_is_found_early_with_its_stack_and_its_trace() -> None:
    report = run("Hanging", limits=Limits(quiet=0.5))
    assert report.verdict is Verdict.UNKNOWN
    message = report.evidence[0].message
    assert "it hung" in message
    assert "wait_for_ever" in message
    assert report.evidence[0].counterexample["operations"][0]["tokens"] == [2, 0]


def test_a_run_that_never_ends_is_stopped() -> None:
    report = run("Manager", registry="slow", limits=Limits(factor=0, per_check=0, slack=1))
    assert report.verdict is Verdict.UNKNOWN
    assert "it went on, but took longer in all than its profile allows" in report.evidence[0].message


def test_a_target_that_hangs_while_it_is_imported_is_unknown() -> None:
    report = audit("hanging_module:x", registry="fake_suites:suites", limits=Limits(start=2))
    assert [(row.check.id, row.verdict) for row in report.evidence] == [("target/load", Verdict.UNKNOWN)]
    assert "hanging_module.py" in report.evidence[0].message
    assert report.target.name == "hanging_module:x"


def test_too_much_memory_is_unknown() -> None:
    report = run("Hanging", limits=Limits(memory=2**20))
    assert report.verdict is Verdict.UNKNOWN
    assert "the limit is 0.0 GiB" in report.evidence[0].message


def test_a_fault_of_a_suite_is_not_blamed_on_the_target() -> None:
    with pytest.raises(ToolFault, match="the suite is at fault"):
        run("Manager", registry="faulty")


def test_bad_use_arrives_as_one_line() -> None:
    with pytest.raises(BadUse, match="its factory raised ValueError: no device"):
        run("raising_factory")
    with pytest.raises(BadUse, match="raised KeyboardInterrupt while it was imported or built"):
        run("interrupted_factory")


def test_an_object_instead_of_a_name_is_bad_use() -> None:
    with pytest.raises(BadUse, match=r"audit takes the name .* not the class Path; for an object use"):
        audit(Path)
    with pytest.raises(BadUse, match=r"replay takes the name .* not a int; for an object use"):
        replay({}, 3)


def test_a_replay_names_its_file_and_its_command() -> None:
    data = {"schema": "tokenlaw.trace/1", "contract": BLOCK_MANAGER, "operations": [{"op": "reset"}]}
    report = replay(data, "fake_targets:Manager", source="saved.json", registry="fake_suites:suites")
    assert [(row.check.id, row.verdict) for row in report.evidence] == [("fake/content", Verdict.HOLDS)]
    assert report.command == "tokenlaw replay saved.json --target fake_targets:Manager"


def test_the_parent_stays_light() -> None:
    modules = "tokenlaw.runner, tokenlaw.terminal, tokenlaw.junit"
    program = f"import sys, {modules}; print(*{{'torch', 'hypothesis'}} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_limits_grow_with_the_profile_and_the_checks() -> None:
    assert Limits().seconds(20.0, 16) == 2 * 20 + 16 * 45 + 60
