"""Controls in reports: what they change of a verdict, and where they are told."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tokenlaw
from tokenlaw import junit, terminal
from tokenlaw.controls import Control, Kind, broken_off
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.report import Report, Target
from tokenlaw.runner import audit
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    KV_STORE,
)
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict

TARGETS = Path(__file__).parent / "targets"


def report(verdicts: dict[str, Verdict], *found: Control) -> Report:
    rows = [
        Evidence(Check(f"{contract}/some", "K0", "Some claim.", contract, Severity.LEAK), verdict)
        for contract, verdict in verdicts.items()
    ]
    return Report(Target("mine", "1"), tuple(rows), "dev", 0, {}, "tokenlaw audit mine", controls=found)


FAILED = Control(KV_STORE, Kind.BROKEN, Verdict.HOLDS, message="nothing\nrefuted it", fault="a row is stale")
PASSED = Control(KV_STORE, Kind.REFERENCE, Verdict.HOLDS)
LEFT_OUT = Control(BLOCK_MANAGER, Kind.BROKEN, None, message="the target itself is refuted")


def test_a_refutation_outweighs_a_void_contract_and_a_void_one_everything_else() -> None:
    holds, refuted, unknown = Verdict.HOLDS, Verdict.REFUTED, Verdict.UNKNOWN
    assert report({KV_STORE: holds}, PASSED, FAILED).verdict is Verdict.VOID
    assert report({KV_STORE: holds}, PASSED, FAILED).status == 2
    assert report({KV_STORE: holds}, PASSED).verdict is holds
    assert report({KV_STORE: holds, BLOCK_MANAGER: unknown}, FAILED).verdict is Verdict.VOID
    assert report({KV_STORE: holds, BLOCK_MANAGER: refuted}, FAILED).verdict is refuted
    assert report({KV_STORE: refuted}, replace(FAILED, kind=Kind.REFERENCE, verdict=refuted)).status == 2
    assert report({KV_STORE: holds}, FAILED).summary() == "mine 1: void (1 holds), profile dev, seed 0"


def test_controls_stand_in_every_view(capsys: pytest.CaptureFixture[str]) -> None:
    found = report({KV_STORE: Verdict.HOLDS}, PASSED, FAILED, LEFT_OUT)
    data = found.to_data()["controls"]
    assert {kind: row["verdict"] for kind, row in data[KV_STORE].items()} == {
        "reference": "holds",
        "broken wrapper": "holds",
    }
    assert data[KV_STORE]["broken wrapper"]["failed"]
    assert data[BLOCK_MANAGER]["broken wrapper"]["verdict"] is None
    terminal.show(found, {})
    out = capsys.readouterr().out
    assert "control of kv-store: reference: holds\n" in out
    assert "void: the audit of kv-store says nothing" in out
    suite = ElementTree.fromstring(junit.to_xml(found))[0]
    cases = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in suite}
    assert cases[KV_STORE, "control/reference"] == []
    assert cases[KV_STORE, "control/broken-wrapper"] == ["error"]
    assert cases[BLOCK_MANAGER, "control/broken-wrapper"] == ["skipped"]
    assert suite.get("errors") == "1"


def test_a_process_that_dies_in_a_control_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))
    assert [row.verdict for row in broken_off(KV_STORE, [], "it died")] == [Verdict.UNKNOWN, None]
    found = audit("fake_targets:Manager", registry="fake_suites:deadly")
    assert [str(row.verdict) for row in found.evidence] == ["holds"]
    reference, broken = found.controls
    assert (reference.kind, reference.verdict) == (Kind.REFERENCE, Verdict.HOLDS)
    assert broken.verdict is Verdict.UNKNOWN
    assert "the wrapper was too much" in broken.message
    assert found.verdict is Verdict.VOID


class MyBlock(BlockVerifier):
    """Somebody's."""


def test_the_reference_is_held_to_its_own_claim() -> None:
    """A block verifier that is held to the block rule: the chain rule of the reference isn't that one."""
    report = tokenlaw.check_verifier(MyBlock, claims="block", budget=40_000, raises=False)
    assert report.verdict is Verdict.HOLDS, report.summary()
    assert [one.verdict for one in report.controls] == [Verdict.HOLDS, Verdict.REFUTED]
