"""Verifiers as targets: objects, classes, factories, plain functions; and what their settings do."""

import json
from pathlib import Path
from typing import Any

import pytest

import tokenlaw
from support.fakes import LAWS, put_in_place
from tokenlaw.cli import main
from tokenlaw.errors import BadUse
from tokenlaw.options import ClaimName, ProfileName
from tokenlaw.protocol import Request
from tokenlaw.session import Session
from tokenlaw.settings import require_usable_settings
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import CLAIMS
from tokenlaw.spec.suites import PROFILES, Settings, ignore
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.spec.verifiers import claim_of, is_verify_function
from tokenlaw.targets import build_once, resolve

LAW = {"schema": "tokenlaw.law/1", "contract": VERIFIER, "words": "rows of a kind"}


@pytest.fixture(autouse=True)
def _targets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_in_place(monkeypatch, tmp_path, LAWS)


@pytest.mark.parametrize(
    ("attribute", "claim", "capabilities"),
    [
        ("Echo", "exact", {"draft", "uniforms"}),
        ("echo", "exact", {"draft", "uniforms"}),
        ("verify", "textbook", set()),
        ("bound", "textbook", set()),
        ("make_function", "textbook", set()),
        ("NAMED", "textbook", {"row-seeds"}),
    ],
)
def test_every_form_of_a_verifier_is_taken(attribute: str, claim: str, capabilities: set[str]) -> None:
    implementation = resolve(f"fake_verifiers:{attribute}")
    assert list(implementation.factories) == [VERIFIER]
    built, found = build_once(implementation, VERIFIER)
    assert found == capabilities
    assert claim_of(built, "it") == claim
    assert built.verify("rows", seed=3) == "rows"


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("without_seed", "takes a batch but no keyword seed; write verify(batch, *, seed)"),
        ("boasting", "claims 'everything'; a verifier claims one of textbook, block, exact, approximate"),
        ("make_nothing", "the factory returned int, which fulfils no contract"),
        ("NOTHING", "nothing: int is no verifier: it has no method verify"),
    ],
)
def test_what_is_no_verifier_is_one_line(attribute: str, message: str) -> None:
    with pytest.raises(BadUse) as caught:
        Session(Request(f"fake_verifiers:{attribute}", registry=LAWS))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_functions_are_known_by_the_names_of_their_parameters() -> None:
    assert not is_verify_function(lambda config, *, seed: config)
    assert not is_verify_function(lambda batch, other, *, seed: batch)
    assert not is_verify_function(print)


@pytest.mark.parametrize("name", ["raising", "bound_raising"])
def test_an_exception_of_a_plain_function_is_the_targets(name: str) -> None:
    session = Session(Request(f"fake_verifiers:{name}", registry=LAWS))
    (row,) = session.run(ignore, lambda _: None)
    assert row.verdict is Verdict.UNKNOWN
    assert row.message.startswith("the implementation raised KeyError: 'lost row'")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(alpha=0.0), "alpha 0.0: expected a number between 0 and 1"),
        (Settings(alpha=float("nan")), "alpha nan: expected"),
        (Settings(budget=0), "budget 0: expected 1 or more requests"),
        (Settings(tolerance=-0.5), "tolerance -0.5: expected 0 or a number below 1"),
        (Settings(claims="exakt"), "unknown claim 'exakt'; did you mean 'exact'?"),
        (Settings(device="moon"), "device 'moon' can't be used here: RuntimeError"),
        (Settings(device="meta"), "device 'meta' can't be used here"),
    ],
)
def test_settings_that_cannot_be_used_are_one_line(settings: Settings, message: str) -> None:
    with pytest.raises(BadUse) as caught:
        require_usable_settings(settings)
    assert str(caught.value).startswith(message)
    with pytest.raises(BadUse):
        Session(Request("fake_verifiers:verify", registry=LAWS, settings=settings))


@pytest.mark.parametrize("option", ["--alpha", "--tolerance"])
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_numbers_that_are_none_are_bad_use(
    option: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "fake_verifiers:verify", option, number]) == 3
    assert f"{option[2:]} {number}: expected" in capsys.readouterr().err


def test_the_command_line_carries_settings_to_the_suite_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--claims", "block", "--alpha", "1e-6", "--budget", "70000", "--tolerance", "0.01"]
    assert main(["audit", "fake_verifiers:verify", *options, "--json", "r.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "holds          law/fake (L1) The fake law holds. [70,000 samples, would have seen TV >= 0.013]",
        "",
        "law/fake: Any law at TV >= 0.0125 would have been refuted.",
    ]
    data = json.loads(Path("r.json").read_text())
    given = {"claims": "block", "alpha": 1e-6, "budget": 70_000, "tolerance": 0.01, "device": "cpu"}
    assert data["settings"] == given | {"continued": []}
    assert data["checks"][0]["statistics"]["told"] == {"claims": "block", "device": "cpu", "tolerance": 0.01}
    assert data["ledger"] == [
        {"check": "law/fake", "kind": "gate", "share": 1.0, "alpha": 1e-6, "observed": 1.5}
    ]
    repeat = "--claims block --alpha 1e-06 --budget 70000 --tolerance 0.01"
    assert data["command"] == f"tokenlaw audit fake_verifiers:verify --profile dev --seed 0 {repeat}"
    assert lines[-1] == f"repeat: {data['command']}"


def test_a_budget_gets_the_time_that_it_takes() -> None:
    usual = Session(Request("fake_verifiers:verify", registry=LAWS))
    budget = 10 * PROFILES["dev"].requests
    long = Session(Request("fake_verifiers:verify", registry=LAWS, settings=Settings(budget=budget)))
    assert long.seconds - usual.seconds == 2.0 * 9 * PROFILES["dev"].seconds


def test_a_law_replays(capsys: pytest.CaptureFixture[str]) -> None:
    Path("law.json").write_text(json.dumps(LAW))
    assert main(["replay", "law.json", "--target", "fake_verifiers:verify"]) == 1
    assert "on cpu: rows of a kind" in capsys.readouterr().out
    assert main(["replay", "law.json", "--target", "fake_verifiers:verify", "--device", "moon"]) == 3
    assert "device 'moon' can't be used here" in capsys.readouterr().err


def test_names_of_the_command_line_are_those_of_the_spec() -> None:
    assert [str(name) for name in ClaimName] == list(CLAIMS)
    assert [str(name) for name in ProfileName] == list(PROFILES)


def told(report: tokenlaw.Report) -> Any:
    assert report.evidence[0].statistics is not None
    return report.evidence[0].statistics["told"]


def test_the_library_takes_every_form() -> None:
    from fake_verifiers import Echo, echo, make_function, verify

    for form, claim in ((Echo, "exact"), (echo, "exact"), (make_function, "textbook"), (verify, "textbook")):
        assert told(tokenlaw.check_verifier(form))["claims"] == claim
    report = tokenlaw.check_verifier(echo, claims="block", budget=10, capabilities=["draft", "row-seeds"])
    assert told(report)["claims"] == "block"
    assert report.target.capabilities == {VERIFIER: ("draft", "row-seeds")}
    expected = "Echo, capabilities=['draft', 'row-seeds'], claims='block', budget=10, profile='dev', seed=0"
    assert report.command == f"tokenlaw.check_verifier({expected}, only='*')"
    assert report.settings == Settings(claims="block", budget=10)


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        (42, {}, "an int is no verifier: give an object with verify, or a function of"),
        (lambda batch, *, seed: batch, {"claims": "all"}, "unknown claim 'all'; known: approximate, block"),
        (lambda batch, *, seed: batch, {"alpha": 2}, "alpha 2: expected a number between 0 and 1"),
        (lambda batch, *, seed: batch, {"device": "moon"}, "device 'moon' can't be used here"),
        (lambda: 42, {}, "int is no verifier"),
    ],
)
def test_the_library_refuses_in_one_line(form: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tokenlaw.BadUse) as caught:
        tokenlaw.check_verifier(form, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
