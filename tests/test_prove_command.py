"""``tokenlaw prove``: exit statuses, what it prints and writes; the program can't take the run down."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tokenlaw
from tokenlaw.cli import main
from tokenlaw.protocol import ProofRequest, Request
from tokenlaw.prove_runner import law_alone
from tokenlaw.prove_session import opened
from tokenlaw.report import Report, Target
from tokenlaw.spec.suites import ignore
from tokenlaw.spec.verdicts import Evidence, Verdict

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebooks" / "speculative_decoding.ipynb"

PROGRAMS = """
import random, sys, time
from random import random as uniform

def law(tokens):
    return [0.25, 0.75]

def right():
    print("refuted" * 1000)
    sys.stdout.flush()
    return [int(uniform() < 0.75)]

def hanging():
    if random.random() < 0.5:
        time.sleep(1000)
    return [0]

class Wrong:
    claims = "exact"
    def verify(self, batch, *, seed):
        import torch
        return torch.zeros(batch.shape[0], batch.shape[1] + 1, dtype=torch.int64)
"""


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A working directory with programs; what is imported from there ends with the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("programs.py").write_text(PROGRAMS)
    before = set(sys.modules)
    yield
    for name in {"programs", "loading", "neighbour_of_loading", NOTEBOOK.stem} - before:
        sys.modules.pop(name, None)


def served(target: str, spec: str | None, *, max_paths: int = 1_000) -> list[Evidence]:
    """What a child process would say, without one."""
    proof = ProofRequest(spec, max_paths, None, None)
    _, session = opened(Request(target, contract="program", profile="prove", proof=proof), proof)
    return list(session.run(ignore, lambda _: None))


def test_the_fault_of_the_notebook_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "prove",
        f"{NOTEBOOK}::speculative_step",
        "--spec",
        f"{NOTEBOOK}::target_law",
        "--json",
        "r.json",
    ]
    assert main(command) == 1
    output = capsys.readouterr().out
    assert "TV = 0.108, tolerance 1e-06 (" in output
    assert "rejected" in output
    assert "then one more token" in output
    assert "without the last token of such paths the law would be exact" in output
    assert "not run: %matplotlib inline (cell 1)" in output
    data = json.loads(Path("r.json").read_text())
    assert (data["verdict"], data["profile"]) == ("refuted", "prove")
    (row,) = data["checks"]
    assert (row["id"], row["statistics"]["evidence"]) == ("program/law", "proved")
    assert row["statistics"]["tv_at_least"] == pytest.approx(0.108)
    assert row["statistics"]["path"]
    assert len(row["statistics"]["outcomes"]) == 10


def test_the_mended_step_of_the_notebook_is_proved() -> None:
    (row,) = served(f"{NOTEBOOK}::mended_step", f"{NOTEBOOK}::target_law")
    assert row.verdict is Verdict.HOLDS
    assert row.message.startswith(
        "proved: mended_step, completed to 3 tokens, has the target-only law of target_law: TV <= 1e-12, "
        "tolerance 1e-06 ("
    )


def test_a_law_alone_is_no_comparison_but_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "programs:right", "--json", "-"]) == 0
    output = capfd.readouterr()
    assert json.loads(output.out)["verdict"] == "not exercised"
    assert "nothing was compared" in output.err
    assert re.search(r"\[1\] +0.75", output.err)
    # What the program prints is its own.
    assert "programs:right: not exercised\nrepeat: tokenlaw prove programs:right\n" in output.err
    assert "refuted" not in output.err


def test_functions_kept_by_a_neighbour_are_decided_and_numbers_drawn_while_loading_are_not() -> None:
    Path("neighbour_of_loading.py").write_text(
        "from random import random as uniform\ndef toss(p): return int(uniform() < p)"
    )
    Path("loading.py").write_text(
        "import neighbour_of_loading, numpy, random, torch\n"
        "random.seed(3); SHARE = random.random()\n"
        "generator = numpy.random.default_rng(3); TABLE = generator.dirichlet([1, 1, 1])\n"
        "torch.manual_seed(3); WEIGHTS = torch.randn(3).softmax(0)\n"
        "def step():\n"
        "    first = int(generator.choice(3, p=TABLE))\n"
        "    second = int(torch.multinomial(WEIGHTS, 1))\n"
        "    return [first, second, neighbour_of_loading.toss(SHARE)]\n"
        "def law(tokens):\n"
        "    return [TABLE, WEIGHTS.tolist(), [1 - SHARE, SHARE]][len(tokens)]\n"
    )
    (row,) = served("loading.py::step", "loading.py::law")
    assert row.verdict is Verdict.HOLDS, row.message
    assert row.operations == 18


def test_an_unfinished_law_alone_is_not_all_that_was_asked_for() -> None:
    (row,) = served("programs.py::right", None, max_paths=1)
    report = Report(Target("programs.py::right", ""), (row,), "prove", 0, {}, "")
    assert not law_alone(report)
    assert report.status == 2


def test_a_program_that_hangs_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["prove", "programs.py::hanging", "--spec", "programs.py::law", "--timeout", "2"]
    assert main(command) == 2
    output = capsys.readouterr().out
    assert "it hung (no progress" in output
    assert "in hanging" in output
    assert output.endswith(
        "repeat: tokenlaw prove programs.py::hanging --spec programs.py::law --timeout 2\n"
    )


def test_a_verifier_is_proved_by_its_own_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "programs:Wrong", "--json", "r.json"]) == 1
    assert "programs:Wrong: refuted" in capsys.readouterr().out
    (row,) = json.loads(Path("r.json").read_text())["checks"]
    assert (row["id"], row["verdict"], row["statistics"]["evidence"]) == ("law/proved", "refuted", "proved")


@pytest.mark.parametrize(("options", "status"), [([], 1), (["--tolerance", "0.9"], 0)])
def test_a_verifier_is_held_to_the_claim_and_the_tolerance_that_are_given(
    options: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Block verification hasn't the joint law of the textbook's chain rule, but a closer one than 0.9."""
    command = ["prove", "reference-block", "--claims", "textbook", "--max-paths", "1500"]
    assert main([*command, *options, "--json", "r.json"]) == status
    assert capsys.readouterr().out.endswith(f"repeat: tokenlaw {' '.join([*command, *options])}\n")
    assert json.loads(Path("r.json").read_text())["settings"]["claims"] == "textbook"


@pytest.mark.parametrize(
    ("target", "spec", "message"),
    [
        ("absent.py::f", None, "absent.py::f: there is no file absent.py"),
        ("programs.py::right", "programs.py::hanging.x", "programs has no attribute 'hanging.x'"),
        ("programs.py::law", None, "programs.py::law needs tokens; a program is called without arguments"),
        ("programs.py::right", "programs.py::right.__call__.__name__", "is a str; expected a function"),
        ("reference", "programs:law", "reference is a verifier, which knows what it must equal"),
        ("programs.py::Wrong", None, "programs.py::Wrong is a verifier; write module:attribute"),
        ("programs", None, "programs is a module: write programs:ATTRIBUTE"),
    ],
)
def test_bad_use_says_what_is_wrong(target: str, spec: str | None, message: str) -> None:
    with pytest.raises(tokenlaw.BadUse, match=re.escape(message)):
        served(target, spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["programs.py::right", "--max-paths", "0"], "Invalid value for '--max-paths'"),
        (["programs.py::right", "--seconds", "-1"], "Invalid value for '--seconds'"),
        (["programs.py::right", "--tolerance", "-1e-9"], "Invalid value for '--tolerance'"),
        (["programs.py::right", "--claims", "some"], "Invalid value for '--claims'"),
        (["programs.py::right", "--claims", "exact"], "right is a program; --claims is what a verifier is"),
        (["programs.py::right", "--timeout", "0.09"], "Invalid value for '--timeout'"),
        (["programs.py::right", "--timeout", "86401"], "Invalid value for '--timeout'"),
        (["programs.py::right", "--json", "."], "--json .: is a folder"),
    ],
)
def test_bad_use_is_one_line_and_status_3(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", *arguments]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
