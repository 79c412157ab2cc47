"""The plots: what they say, in SVG as text; what names them; what is said without matplotlib."""

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tokenlaw import plot_plan, plots
from tokenlaw.cli import main
from tokenlaw.errors import BadUse
from tokenlaw.faults import Kill, Row
from tokenlaw.faults_report import to_data
from tokenlaw.html_data import ShownLaw, stored
from tokenlaw.impl.faults.targets import SUSPECTS
from tokenlaw.plot_lengths import laws_of
from tokenlaw.report import SCHEMA
from tokenlaw.stats.planner import plan

WASTE = Path(__file__).parents[1] / "examples" / "waste.py"

ROWS = [
    Row(
        SUSPECTS["no_copy_on_write"],
        (Kill("kv/content", 3, None, 900), Kill("kv/hit", 1, None, 900)),
        "",
        1.0,
    ),
    Row(SUSPECTS["bias_1pct"], (Kill("law/tokens", None, 12_000, 0),), "", 1.0),
    Row(SUSPECTS["group_modulo"], (), "", 1.0),
    Row(SUSPECTS["manager"], (), "", 1.0),
]


def needs_matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install tokenlaw[plots])")


def words(path: Path) -> list[str]:
    """The texts of an SVG, in their order."""
    return [text.strip() for text in re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())]


def law(where: str, found: float, **others: Any) -> dict[str, Any]:
    outcomes = [
        {
            "outcome": f"{number} drafts accepted",
            "exact": 0.5,
            "found": share,
            "count": 1,
            "low": low,
            "high": up,
        }
        for number, share, low, up in ((1, 1 - found, 0.3, 0.6), (0, found, found - 0.1, found + 0.1))
    ]
    told = {"what": "law of accepted drafts", "where": where, "counted": 4_000, "confidence": 0.999}
    return {**told, "outcomes": outcomes, **others}


def report_with(laws: list[dict[str, Any]]) -> dict[str, Any]:
    row = {
        "id": "law/length",
        "rule": "L7",
        "title": "t",
        "contract": "verifier",
        "severity": "wrong law",
        "verdict": "holds",
        "statistics": {"samples": 1, "lengths": laws},
    }
    target = {"name": "mine", "version": "1", "address": "", "contracts": ["verifier"], "capabilities": {}}
    return {"schema": SCHEMA, "target": target, "verdict": "holds", "status": 0, "checks": [row]}


def test_a_plan_is_drawn_with_both_tests_and_what_was_asked(tmp_path: Path) -> None:
    needs_matplotlib()
    path = tmp_path / "plan.svg"
    assert main(["plan", "--tv", "0.01", "--vocab", "8", "--plot", str(path)]) == 0
    told = words(path)
    assert "Samples that see a deviation, 8 outcomes" in told
    assert {"chi-square", "gate", "total variation (TV)", "samples"} <= set(told)
    assert f"asked: TV 0.01, {plan(0.01, 8).samples:,} samples (chi-square)" in told


def test_the_curves_of_a_plan_fall_and_go_through_what_was_asked() -> None:
    data = {"tv": 0.01, "cells": 8, "alpha": 1e-9, "beta": 1e-3}
    found = plot_plan.curves(data)
    asked = plan(0.01, 8)
    assert (0.01, asked.chi_square, asked.gate) in found
    assert found[0][0] == pytest.approx(0.001)
    assert found[-1][0] == pytest.approx(0.1)
    for column in (1, 2):
        sizes = [point[column] for point in found]
        assert sizes == sorted(sizes, reverse=True)


def test_the_matrix_is_drawn_from_what_json_wrote(tmp_path: Path) -> None:
    needs_matplotlib()
    saved, path = tmp_path / "faults.json", tmp_path / "faults.svg"
    saved.write_text(json.dumps(to_data(ROWS, of=4, profile="dev", seed=0, command="tokenlaw faults")))
    assert main(["report", str(saved), "--plot", str(path)]) == 0
    told = words(path)
    assert any(text.startswith("2 of 3 faults killed, silent on 1 of 1 innocents") for text in told)
    assert {"kv", "attention", "verifier", "kv/content", "kv/hit", "law/tokens"} <= set(told)
    assert {"no_copy_on_write", "group_modulo: MISSED", "manager (innocent)"} <= set(told)
    assert {"3", "1", "12k"} <= set(told)


def test_a_matrix_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_matplotlib()
    saved = tmp_path / "faults.json"
    saved.write_text(json.dumps(to_data([], of=1, profile="dev", seed=0, command="tokenlaw faults")))
    assert main(["report", str(saved), "--plot", str(tmp_path / "faults.svg")]) == 3
    assert "nothing to plot: the matrix has neither faults nor innocents" in capsys.readouterr().err


def test_a_plot_and_another_view_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_matplotlib()
    same = str(tmp_path / "one.svg")
    saved = tmp_path / "faults.json"
    saved.write_text(json.dumps(to_data(ROWS, of=4, profile="dev", seed=0, command="tokenlaw faults")))
    for command in (["report", str(saved), "--html"], ["plan", "--tv", "0.1", "--vocab", "8", "--json"]):
        assert main([*command, same, "--plot", same]) == 3
        assert f"and --plot both name {same}; name two files" in capsys.readouterr().err


def test_accepted_drafts_are_drawn_against_theory(tmp_path: Path) -> None:
    needs_matplotlib()
    saved, path = tmp_path / "report.json", tmp_path / "lengths.svg"
    saved.write_text(json.dumps(report_with([law("rows of kind $a$", 0.5), law("rows of kind 'b'", 0.8)])))
    assert main(["report", str(saved), "--plot", str(path)]) == 0
    told = words(path)
    assert "Accepted drafts: exact law (bars) and what was measured (points)" in told
    assert {"rows of kind $a$", "rows of kind 'b'", "4,000 samples, 99.9% intervals"} <= set(told)
    assert told.count("drafts accepted") == 2
    assert told.count("too often") == 1  # 0.8, at least 0.7, where 0.5 is exact


def test_laws_of_one_outcome_are_left_out_and_reports_without_laws_refused() -> None:
    certain = law("certain", 0.5)
    certain["outcomes"] = certain["outcomes"][:1]
    laws = laws_of(stored(report_with([certain, law("drawn", 0.5)])), "r.json")
    assert [one.where for one in laws] == ["drawn"]
    assert isinstance(laws[0], ShownLaw)
    with pytest.raises(BadUse, match=r"r\.json: nothing to plot: it has no law of accepted drafts"):
        laws_of(stored(report_with([])), "r.json")


def test_waste_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_matplotlib()
    path = tmp_path / "waste.svg"
    monkeypatch.setattr(sys, "argv", ["waste.py", "--plot", str(path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(WASTE), run_name="__main__")
    assert ended.value.code == 0
    told = words(path)
    assert "Cache slots that are allocated and hold no token" in told
    assert {"paged, blocks of 16", "contiguous, maximum", "3.6 %", "90.3 %"} <= set(told)


def test_a_picture_can_be_a_png_and_is_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_matplotlib()
    monkeypatch.setattr(plot_plan, "curves", lambda _: [(0.1, 2_000, 3_000), (0.5, 87, 108)])
    data = {"tv": 0.5, "cells": 2, "alpha": 1e-9, "beta": 1e-3, "samples": 87, "test": "chi-square"}
    for name in ("a.PNG", "a.svg", "b.svg"):
        plot_plan.plot_plan(data, tmp_path / name)
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


COMMANDS = [
    ["plan", "--tv", "0.01", "--vocab", "8"],
    ["faults", "--only", "rollback_clips"],
    ["report", "absent.json"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_without_matplotlib_it_is_bad_use_before_any_work(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    assert main([*command, "--plot", "p.svg"]) == 3
    output = capsys.readouterr()
    assert output.err == "tokenlaw: --plot needs matplotlib: pip install 'tokenlaw[plots]'\n"
    assert output.out == ""
    assert not Path("p.svg").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("p.pdf", "--plot p.pdf: name a file that ends in .svg or .png"), ("no/p.svg", "can't be written")],
)
def test_a_place_that_won_t_do_is_bad_use(
    name: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: True)
    assert main(["plan", "--tv", "0.01", "--vocab", "8", "--plot", name]) == 3
    assert message in capsys.readouterr().err
