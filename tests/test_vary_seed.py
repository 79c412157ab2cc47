"""``tokenlaw audit --vary-seed``: rates with their intervals, p-values, and processes that die on the way."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tokenlaw import cli, seeds
from tokenlaw.protocol import Request
from tokenlaw.runner import audit
from tokenlaw.seeds import SeedRun, Tally, vary_seed
from tokenlaw.seeds_report import interval, lines, spread, to_data
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict

TARGETS = Path(__file__).parent / "targets"


@pytest.fixture(autouse=True)
def _targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))


def row(verdict: Verdict, check: str = "law/some", **options: Any) -> Evidence:
    return Evidence(Check(check, "L0", "Some claim.", "verifier", Severity.WRONG_LAW), verdict, **options)


def p_value(observed: float, kind: str = "p-value") -> dict[str, Any]:
    return {"ledger": [{"kind": kind, "share": 1.0, "alpha": 0.05, "observed": observed}]}


def test_a_contract_of_which_nothing_is_supported_changes_no_verdict() -> None:
    run = SeedRun("mine")
    run.take(1, [row(Verdict.NOT_SUPPORTED)])
    run.take(1, [row(Verdict.HOLDS, "law/other")])
    assert run.verdicts == {1: Verdict.HOLDS}
    assert run.status == 0


def test_seeds_are_counted_by_check() -> None:
    run = SeedRun("mine")
    run.take(3, [row(Verdict.HOLDS), row(Verdict.NOT_SUPPORTED, "law/other")])
    run.take(4, [row(Verdict.REFUTED), row(Verdict.HOLDS, "law/other")])
    run.take(4, [row(Verdict.UNKNOWN, "law/third")])
    run.take(5, [row(Verdict.NOT_EXERCISED), row(Verdict.REFUTED, "law/other", known="reported")])
    found = {tally.check: (tally.refuted, tally.decided, tally.undecided) for tally in run.tallies.values()}
    assert found == {"law/some": ([4], 2, [5]), "law/other": ([], 1, []), "law/third": ([], 0, [4])}
    assert run.verdicts == {3: Verdict.HOLDS, 4: Verdict.REFUTED, 5: Verdict.NOT_EXERCISED}
    assert run.status == 1
    told = "\n".join(lines(run, "the command", asked=4))
    assert "refuted with 1 of 3 seeds (of 4 asked for)" in told
    assert "undecided with 1: 5" in told
    data = to_data(run, "the command", profile="dev", asked=4)
    assert data["refuted"]["seeds"] == [4]
    assert [one["id"] for one in data["checks"]] == ["law/some", "law/other", "law/third"]


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    low, high = interval(0, 500)
    assert (low, round(high, 6)) == (0.0, round(1 - 0.025 ** (1 / 500), 6))
    low, high = interval(500, 500)
    assert (round(low, 6), high) == (round(0.025 ** (1 / 500), 6), 1.0)
    assert interval(0, 0) == (0.0, 1.0)


def test_p_values_are_those_of_the_ledger() -> None:
    tally = Tally("law/some", "verifier")
    tally.take(0, row(Verdict.HOLDS, statistics=p_value(math.log(0.25))))
    tally.take(1, row(Verdict.HOLDS, statistics=p_value(math.log(8), "gate")))
    tally.take(2, row(Verdict.HOLDS, statistics=p_value(-2.0, "gate")))
    tally.take(3, row(Verdict.UNKNOWN, statistics=p_value(math.log(0.5))))
    tally.take(4, row(Verdict.HOLDS))
    assert tally.p_values == pytest.approx([0.25, 0.125, 1.0])


def test_p_values_may_be_too_large_but_not_too_small() -> None:
    even = [(number + 0.5) / 100 for number in range(100)]
    found = {name: spread(values) for name, values in (("even", even), ("large", [1.0] * 100))}
    small = spread([value / 3 for value in even])
    assert found["even"] is not None
    assert found["large"] is not None
    assert small is not None
    assert found["even"]["too_small"] > 0.9
    assert found["large"]["too_small"] == 1.0
    assert found["large"]["uniform"] < 1e-9
    assert small["too_small"] < 1e-9
    assert small["at_most_0.05"] == pytest.approx(0.15)
    assert spread([0.5] * 4) is None


def test_one_process_takes_all_seeds_of_a_contract() -> None:
    seen: list[tuple[str, int, int]] = []
    request = Request("fake_targets:BOTH", seed=7, registry="fake_suites:suites")
    run = vary_seed(request, 3, progress=lambda *event: seen.append(event))
    assert (run.target, run.version, run.status) == ("both", "1.2", 0)
    assert sorted(run.verdicts) == [7, 8, 9]
    assert {tally.contract: tally.held for tally in run.tallies.values() if tally.held} == {
        "block-manager": 3,
        "kv-store": 3,
    }
    assert seen == [(f"seed {7 + number % 3}", number + 1, 6) for number in range(6)]


def test_a_seed_in_which_the_process_dies_is_unknown_and_the_next_one_follows() -> None:
    run = vary_seed(Request("fake_targets:Dying", registry="fake_suites:suites"), 2)
    assert run.verdicts == {0: Verdict.UNKNOWN, 1: Verdict.UNKNOWN}
    assert run.status == 2


def test_each_seed_gives_what_an_audit_with_it_gives() -> None:
    options: dict[str, Any] = {"only": "law/calls", "contracts": ("verifier",)}
    run = vary_seed(Request("reference", seed=1, **options), 2)
    report = audit("reference", seed=2, controls=False, **options)
    (tally,) = (one for one in run.tallies.values() if one.check == "law/calls")
    (alone,) = report.ledger()
    assert tally.p_values[1] == pytest.approx(math.exp(alone["observed"]))
    assert tally.p_values[0] != tally.p_values[1]


def test_the_command_tells_rates_even_if_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(request: Request, count: int, *, run: SeedRun, **_: Any) -> SeedRun:
        run.take(request.seed, [row(Verdict.HOLDS)])
        raise KeyboardInterrupt

    monkeypatch.setattr(seeds, "vary_seed", interrupted)
    file = tmp_path / "seeds.json"
    arguments = ["audit", "mine:make", "--seed", "5", "--vary-seed", "9", "--json", str(file)]
    assert cli.main(arguments) == cli.INTERRUPTED
    assert "refuted with 0 of 1 seeds (of 9 asked for)" in capsys.readouterr().out
    data = json.loads(file.read_text())
    assert (data["schema"], data["seeds"], data["asked"]) == ("tokenlaw.seeds/1", [5], 9)
    assert data["command"].endswith("--vary-seed 9")


def test_options_of_one_audit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.xml"
    assert cli.main(["audit", "reference", "--vary-seed", "2", "--junit", str(file)]) == cli.BAD_USE
    assert "--vary-seed doesn't go with --junit" in capsys.readouterr().err
