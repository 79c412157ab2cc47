"""The sessions of decoders: honest ones hold, each fault breaks its check, and what is found is small."""

import re

import pytest
from targets import fake_decoders

from support.pooled_decoder import CAPABILITIES, PooledDecoder
from support.serving_decoders import FAULTS, Crashing, Stopping
from tokenlaw.properties import narrowing
from tokenlaw.properties.decoder_checks import DECODER_CHECKS
from tokenlaw.properties.decoder_suite import DecoderTraces, needed_by
from tokenlaw.spec.contracts import DECODER, ContractError, Implementation
from tokenlaw.spec.sessions import SessionError, session_of
from tokenlaw.spec.suites import CounterexampleError, Profile
from tokenlaw.spec.verdicts import Verdict

ALL = frozenset(check.id for check in DECODER_CHECKS)
PROFILE = Profile("test", examples=300, max_operations=40, seconds=60.0)
SHORT = Profile("test", examples=80, max_operations=40, seconds=60.0)


def implementation(factory, capabilities=CAPABILITIES):
    return Implementation("target", "0", {DECODER: factory}, {DECODER: frozenset(capabilities)})


def evidence(factory, *, capabilities=CAPABILITIES, selected=ALL, profile=PROFILE, seed=0):
    rows = DecoderTraces().run(
        implementation(factory, capabilities),
        profile=profile,
        seed=seed,
        selected=frozenset(selected),
        progress=lambda *_: None,
    )
    return {row.check.id: row for row in rows}


def with_verdict(rows, verdict):
    return {check for check, row in rows.items() if row.verdict is verdict}


def test_every_check_of_an_honest_decoder_holds():
    rows = evidence(PooledDecoder)
    assert {id_: row.message for id_, row in rows.items() if row.verdict is not Verdict.HOLDS} == {}
    assert rows["decoder/speculation"].exercised["rejected at 3"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_every_fault_breaks_its_check(fault, monkeypatch):
    monkeypatch.setattr(narrowing, "SECONDS", 0.05)  # whether it is found matters here, not how small
    check = FAULTS[fault]
    rows = evidence(fault, selected={check})
    assert rows[check].verdict is Verdict.REFUTED, rows[check].message


def test_a_fault_of_one_kind_of_request_leaves_the_others_alone(monkeypatch):
    monkeypatch.setattr(narrowing, "SECONDS", 0.05)
    rows = evidence(Stopping, profile=SHORT)
    refuted = with_verdict(rows, Verdict.REFUTED)
    assert "decoder/stop" in refuted
    assert not refuted & {"decoder/greedy", "decoder/speculation", "decoder/fork", "decoder/bystanders"}


def test_what_is_found_is_small_readable_and_runs_again():
    row = evidence(Stopping, selected={"decoder/stop"})["decoder/stop"]
    assert [one["op"] for one in row.counterexample["operations"]] == ["submit"]
    assert re.search(r"submit: prompt \d, ", row.message)  # which token depends on the models
    assert "expected: tokens " in row.message
    (again,) = (
        one
        for one in DecoderTraces().replay(implementation(Stopping), row.counterexample)
        if one.check.id == "decoder/stop"
    )
    assert again.verdict is Verdict.REFUTED
    honest = DecoderTraces().replay(implementation(PooledDecoder), row.counterexample)
    assert not {one.verdict for one in honest} & {Verdict.REFUTED, Verdict.UNKNOWN}
    assert sum(one.operations for one in honest) > 0


def test_a_crash_is_unknown_with_its_session(monkeypatch):
    monkeypatch.setattr(narrowing, "SECONDS", 0.05)
    rows = evidence(Crashing, selected={"decoder/fork", "decoder/greedy"})
    assert with_verdict(rows, Verdict.UNKNOWN) == {"decoder/fork", "decoder/greedy"}
    (first,) = (row for row in rows.values() if row.counterexample)
    assert "KeyError" in first.message
    assert "fork: unfinished request" in first.message
    assert "fork" in [one["op"] for one in first.counterexample["operations"]]


def test_a_plain_function_is_asked_for_what_it_can_do():
    rows = evidence(fake_decoders.make, capabilities=(), profile=SHORT)
    assert with_verdict(rows, Verdict.HOLDS) == {
        "decoder/greedy",
        "decoder/speculation",
        "decoder/bystanders",
        "decoder/support",
        "decoder/progress",
        "decoder/protocol",
    }
    assert with_verdict(rows, Verdict.NOT_SUPPORTED) == ALL - with_verdict(rows, Verdict.HOLDS)


class OwnModels(PooledDecoder):
    """Has models of its own, over five tokens, whatever it is given."""

    def __init__(self, config):
        mine = session_of(
            {
                "schema": "tokenlaw.session/1",
                "operations": [],
                "vocabulary_size": 5,
                "target": {"kind": "hashed", "vocabulary_size": 5, "seed": 3},
                "draft": {"kind": "hashed", "vocabulary_size": 5, "seed": 3, "stray_seed": 4},
                "num_blocks": config.num_blocks,
                "block_size": config.block_size,
                "max_sequences": config.max_sequences,
            }
        )
        super().__init__(mine.config)

    def target_law(self, tokens):
        return self.target(tokens)


def test_a_decoder_with_models_of_its_own_is_held_to_those():
    rows = evidence(OwnModels, capabilities=CAPABILITIES | {"own-models"}, profile=SHORT)
    assert with_verdict(rows, Verdict.HOLDS) | {"decoder/speculation"} == ALL  # few are rejected so late
    assert with_verdict(rows, Verdict.REFUTED) == set()


class NoLaw(OwnModels):
    def target_law(self, tokens):
        return (0.5, 0.9)


def test_a_target_law_that_is_none_is_refused():
    with pytest.raises(ContractError, match=r"target_law\(.*\) isn't a law: its numbers sum to 1\.4"):
        evidence(NoLaw, capabilities=CAPABILITIES | {"own-models"})


def test_a_replay_needs_what_its_session_asks_for():
    data = {
        "schema": "tokenlaw.session/1",
        "vocabulary_size": 2,
        "target": {"kind": "table", "order": 0, "rows": [[0.5, 0.5]]},
        "operations": [
            {"op": "submit", "request": {"prompt": [0], "num_tokens": 2, "stop": [1], "samples": 2}},
            {"op": "abort", "request_index": 0},
        ],
    }
    assert needed_by(session_of(data)) == {"stop", "samples", "requests", "abort"}
    target = implementation(PooledDecoder, CAPABILITIES - {"abort"})
    with pytest.raises(CounterexampleError, match="it needs abort, which target doesn't offer"):
        DecoderTraces().replay(target, data)
    with pytest.raises(SessionError, match="it has no operations"):
        DecoderTraces().replay(target, data | {"operations": []})
    with pytest.raises(CounterexampleError, match="it needs own-models"):
        DecoderTraces().replay(implementation(PooledDecoder), data | {"target": None})


def test_what_needs_no_answer_is_not_asked():
    """A grammar that allows only what bias and tokens forbid has no answer: no decoder can be blamed."""
    request = {
        "prompt": [0],
        "num_tokens": 2,
        "grammar": {"transitions": [{"0": 0}]},
        "sampling": {"temperature": 0, "allowed_tokens": [1]},
    }
    data = {
        "schema": "tokenlaw.session/1",
        "vocabulary_size": 2,
        "target": {"kind": "hashed", "vocabulary_size": 2, "seed": 1},
        "operations": [{"op": "submit", "request": request}],
    }
    rows = {row.check.id: row for row in DecoderTraces().replay(implementation(PooledDecoder), data)}
    assert with_verdict(rows, Verdict.NOT_EXERCISED) == ALL


def test_checks_have_ids_rules_and_titles_of_their_own():
    assert len(ALL) == len({check.rule for check in DECODER_CHECKS}) == len(DECODER_CHECKS)
    assert {check.id.partition("/")[0] for check in DECODER_CHECKS} == {DECODER}
