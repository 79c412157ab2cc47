"""``tokenlaw faults``: what it says of a row, its matrix as data, its exit status, and how it ends."""

import functools
import json
import re
import runpy
import shlex
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tokenlaw import faults
from tokenlaw.checks import load_suites
from tokenlaw.cli import main
from tokenlaw.cli_faults import Family
from tokenlaw.faults import Kill, Row, audit_all
from tokenlaw.faults_report import lines, summary, to_data, word
from tokenlaw.impl.faults import targets
from tokenlaw.impl.faults.targets import FAMILIES, SUSPECTS, Suspect
from tokenlaw.spec.contracts import BLOCK_MANAGER
from tokenlaw.spec.suites import ignore
from tokenlaw.spec.verdicts import Evidence, Verdict


def row(name: str, *kills: Kill, unknown: str = "") -> Row:
    return Row(SUSPECTS[name], kills, unknown, 1.5)


THREE = Kill("kv/content", 3, None, 900, seconds=0.25)
ROWS = [
    row("no_copy_on_write", THREE, Kill("kv/hit", 1, None, 900)),
    row("bias_1pct", Kill("law/tokens", None, 12_000, 0, seconds=1.04)),
    row("group_modulo"),
    row("manager"),
    row("kernel", unknown="attention/gqa: it died"),
    row("store", THREE),
]


def test_what_is_said_of_a_row() -> None:
    assert [word(one) for one in ROWS] == ["killed", "killed", "missed", "silent", "ALARMED", "ALARMED"]
    assert [one.lonely for one in ROWS] == [False, True, False, False, False, False]
    told = lines(ROWS)
    assert "kv/content (3 operations, 0.2 s), kv/hit (1 operation, 0.0 s)" in told[0]
    assert told[1].endswith("law/tokens (12,000 samples, 1.0 s); seen by one check alone")
    assert "no check" in told[2]
    assert told[6] == "kernel: attention/gqa: it died"
    assert told[-1] == (
        "2 of 3 faults killed (1 seen by one check alone), silent on 1 of 3 innocents; 9 s of processor time"
    )
    assert summary(ROWS[3:4]) == "silent on 1 of 1 innocents; 2 s of processor time"


def test_a_kill_knows_how_long_it_took() -> None:
    check = load_suites()[BLOCK_MANAGER].checks[0]
    data = {"operations": [{}, {}]}
    found = Evidence(check, Verdict.REFUTED, operations=900, seconds=0.256, counterexample=data)
    assert faults._kill(found) == Kill(check.id, 2, None, 900, seconds=0.26)


def test_the_matrix_as_data() -> None:
    data = to_data(ROWS, of=7, profile="dev", seed=3, command="tokenlaw faults")
    json.dumps(data)
    assert (data["complete"], data["killed"], data["seed"]) == (False, 2, 3)
    first = data["faults"][0]
    assert first["refuted"][0] == {
        "check": "kv/content",
        "operations": 3,
        "samples": None,
        "tried": 900,
        "paths": None,
        "evaluations": None,
        "seconds": 0.25,
    }
    assert (first["verdict"], first["classes"], first["one_check_alone"]) == ("killed", ["C1"], False)
    assert [one["verdict"] for one in data["innocents"]] == ["silent", "alarmed", "alarmed"]


def test_the_page_of_a_matrix(tmp_path: Path) -> None:
    long = row("hit_stays_free", THREE, Kill("kv/release", 11, None, 900))
    proved = row("bonus_argmax", Kill("law/proved", None, None, 700, paths=55))
    matrix = tmp_path / "matrix.json"
    planted: Any = SUSPECTS["second_query_tile"].planted
    kernel = row("second_query_tile", Kill(planted.weakest_check, None, None, 12))
    matrix.write_text(
        json.dumps(to_data([*ROWS, long, proved, kernel], of=9, profile="dev", seed=3, command=""))
    )
    writer = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "generate_faults.py"))
    page = writer["document"](*writer["rows_of"]([matrix]), "2026-01-02")
    assert "Measured on 2026-01-02" in page
    assert "| kv | 2 of 2 | 0 | 1 of 2 | 6 |" in page
    assert "| attention | 1 of 2 | 1 | 0 of 1 | 4 |" in page
    assert "law/tokens (12,000 samples; 1.0 s) \\*" in page
    assert "law/proved (55 paths; 0.0 s) \\*" in page
    assert f"{planted.weakest_check} (12 tried; 0.0 s)" in page
    [unseen] = re.findall("call the weakest: (.*?)\\.", " ".join(page.split()))
    assert "bias_1pct" in unseen.split(", ")
    assert "second_query_tile" not in unseen
    assert "**missed**" in page
    assert "longer than 6 here: hit_stays_free kv/release (11)" in " ".join(page.split())
    assert "Not measured yet: copy_on_write_from_three" in page
    assert "the family decoder" in page


@dataclass(frozen=True)
class Fake(Suspect):
    """Under the name and the description of a planted one, a target of the tests of the face."""

    at: str = ""

    @property
    def address(self) -> str:
        return f"fake_targets:{self.at}"


def fake(name: str, at: str) -> Fake:
    return Fake(SUSPECTS[name].contract, SUSPECTS[name].planted, at)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Fake suites and suspects, and an empty folder; returns what runs them."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "targets"))
    monkeypatch.chdir(tmp_path)
    suspects = [
        fake("no_copy_on_write", "Refuted"),
        fake("loses_copies", "Manager"),
        fake("manager", "Manager"),
    ]
    monkeypatch.setattr(targets, "SUSPECTS", {one.name: one for one in suspects})
    with_fakes = functools.partial(audit_all, registry="fake_suites:suites")
    monkeypatch.setattr(faults, "audit_all", with_fakes)
    return with_fakes


def test_the_command_writes_its_matrix(
    fakes: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["faults", "--family", "kv", "--json", "matrix.json", "--processes", "2"]) == 1
    output = capsys.readouterr().out.splitlines()
    assert output[0].endswith("3 faults and innocents, profile dev, seed 0")
    told = [line for line in output[1:] if not line.startswith("...")]
    assert [line.split()[:2] for line in told[:3]] == [
        ["killed", "no_copy_on_write"],
        ["missed", "loses_copies"],
        ["silent", "manager"],
    ]
    assert output[-1] == "repeat: tokenlaw faults --seed 0 --profile dev --family kv"
    data = json.loads((tmp_path / "matrix.json").read_text())
    assert data["complete"]
    assert [row["verdict"] for row in data["faults"]] == ["killed", "missed"]
    assert data["command"] == output[-1].removeprefix("repeat: ")


@pytest.mark.parametrize("only", ["no_*", "manager"])
def test_the_command_holds_where_all_are_killed_and_none_alarms(
    fakes: Callable[..., Any], capfd: pytest.CaptureFixture[str], only: str
) -> None:
    assert main(["faults", "--only", only, "--json", "-"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert data["complete"]
    assert data["command"].endswith(f"--only {shlex.quote(only)}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "nothing_such"], "--only 'nothing_such' matches no fault"),
        (["--family", "attention", "--only", "no_copy_on_write"], "matches no fault"),
        (["--family", "kernel"], "Invalid value for '--family': 'kernel' is not one of"),
        (["--json", "missing/matrix.json"], "can't be written"),
    ],
)
def test_bad_use_of_the_command(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", *options]) == 3
    assert message in capsys.readouterr().err


def test_a_fault_that_takes_its_process_down_is_missed_and_says_why(fakes: Callable[..., Any]) -> None:
    (row,) = fakes([fake("no_copy_on_write", "Dying")], progress=ignore)
    assert (row.right, row.kills, row.seconds) == (False, (), None)
    assert "ended early" in row.unknown


def test_an_interrupt_ends_the_audits_that_run(
    fakes: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two audits that never end by themselves, and a third that must not start."""

    def interrupt(futures: list[Future[Row]]) -> NoReturn:
        wait(futures, timeout=2)
        raise KeyboardInterrupt

    monkeypatch.setattr(faults, "as_completed", interrupt)
    suspects = [fake(name, "Manager") for name in ("manager", "loses_copies", "no_copy_on_write")]
    with pytest.raises(KeyboardInterrupt):
        audit_all(suspects, processes=2, progress=ignore, registry="fake_suites:slow")


def test_every_family_can_be_asked_for() -> None:
    assert {str(one) for one in Family} == set(FAMILIES)
