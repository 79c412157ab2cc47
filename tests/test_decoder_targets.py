"""Decoders behind every face: targets, audits, replays, the library."""

import json
from dataclasses import replace

import pytest
from targets import fake_decoders

import tokenlaw
from support.pooled_decoder import CAPABILITIES, PooledDecoder
from support.serving_decoders import Stopping
from tokenlaw.cli import main
from tokenlaw.counterexamples import in_words, load
from tokenlaw.errors import BadUse
from tokenlaw.joined import JoinedSuite
from tokenlaw.protocol import Limits
from tokenlaw.runner import audit, replay
from tokenlaw.spec.contracts import DECODER, ContractError, Implementation
from tokenlaw.spec.suites import PROFILES, CounterexampleError, Profile
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.suites import suites
from tokenlaw.targets import build_once, from_factory

GREEDY = "decoder/gre*"
SESSION = {
    "schema": "tokenlaw.session/1",
    "contract": "decoder",
    "vocabulary_size": 3,
    "target": {"kind": "hashed", "vocabulary_size": 3, "seed": 1, "certain": True},
    "operations": [{"op": "submit", "request": {"prompt": [0], "num_tokens": 4}}],
}


@pytest.fixture
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(fake_decoders.__file__.rpartition("/")[0])
    monkeypatch.setenv("PYTHONPATH", fake_decoders.__file__.rpartition("/")[0])


def found(offered):
    implementation = from_factory(offered, "mine")
    built, capabilities = build_once(implementation, *implementation.factories)
    return list(implementation.factories), capabilities, built


@pytest.mark.parametrize("offered", [fake_decoders.Plain, fake_decoders.make])
def test_factories_of_decoders_are_known_by_what_they_build(offered):
    contracts, capabilities, built = found(offered)
    assert (contracts, capabilities) == ([DECODER], frozenset())
    assert callable(built.decode)


@pytest.mark.parametrize("offered", [fake_decoders.decode, fake_decoders.OWN])
def test_a_decoder_itself_tells_the_law_of_its_target(offered):
    contracts, capabilities, _ = found(offered)
    assert (contracts, capabilities) == ([DECODER], {"own-models"})


def test_serving_is_found_by_its_members():
    assert found(PooledDecoder)[1] == {"requests", "abort", "fork", "logprobs", "free-blocks"}


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        (fake_decoders.modelless, "can't be given models: offer a factory, DecoderConfig -> decoder"),
        (fake_decoders.Nothing, "the factory returned Nothing, which fulfils no contract"),
        (lambda config: 3, "the factory returned int, which fulfils no contract"),
        (3, "is a int; expected an Implementation or a factory"),
    ],
)
def test_what_is_no_decoder_is_refused_in_one_line(offered, message):
    with pytest.raises(BadUse, match=message):
        from_factory(offered, "mine")


def test_a_capability_without_its_members_is_refused():
    with pytest.raises(BadUse, match="declares decoder capability 'fork' but Plain lacks fork"):
        build_once(fake_decoders.LYING, DECODER)


def test_check_decoder_holds_and_refutes(tmp_path, monkeypatch):
    """A broken wrapper gets a quarter of the examples; 15 show nothing of it with 1 seed of 3."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PROFILES, "dev", replace(PROFILES["dev"], examples=240))
    report = tokenlaw.check_decoder(fake_decoders.make, only=GREEDY)
    assert report.verdict is Verdict.HOLDS
    assert tokenlaw.check_decoder(fake_decoders.decode, only=GREEDY).verdict is Verdict.HOLDS
    with pytest.raises(tokenlaw.Refuted, match=r"decoder/greedy .* is refuted") as raised:
        tokenlaw.check_decoder(fake_decoders.Wrong, only=GREEDY)
    assert "tokenlaw.check_decoder(Wrong, profile='dev', seed=0, only='decoder/gre*')" in str(raised.value)
    (saved,) = tmp_path.glob(".tokenlaw/counterexamples/*/decoder-greedy.json")
    assert in_words(load(saved)).startswith("session (vocabulary of ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "an int is no factory of decoders"),
        ((fake_decoders.modelless,), "can't be given models"),
        ((lambda config: 3,), "the decoder factory returned int, which lacks decode"),
    ],
)
def test_check_decoder_refuses_what_is_none(arguments, message):
    with pytest.raises(BadUse, match=message):
        tokenlaw.check_decoder(*arguments)
    with pytest.raises(BadUse, match="unknown decoder capability 'forks'"):
        tokenlaw.check_decoder(fake_decoders.Plain, capabilities={"forks"})


@pytest.mark.usefixtures("_own_folder")
def test_an_audit_saves_what_a_replay_reads(capsys, tmp_path):
    assert main(["audit", "fake_decoders:Wrong", "--only", GREEDY, "--no-controls"]) == 1
    (saved,) = tmp_path.glob(".tokenlaw/counterexamples/*/decoder-greedy.json")
    assert main(["replay", str(saved), "--target", "fake_decoders:Wrong"]) == 1
    assert main(["replay", str(saved), "--target", "fake_decoders:Plain"]) == 0
    assert "submit: prompt " in capsys.readouterr().out


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "tokenlaw.session/2"}, "schema 'tokenlaw.session/2' of a decoder"),
        ({"vocabulary_size": 2}, "target: it is a model of 3 tokens; the session has 2"),
        ({"seed": 3}, "not a session: Object contains unknown field `seed`"),
        (
            {"operations": [{"op": "fork", "request_index": 0}]},
            "it needs fork, requests, which fake_decoders:Plain",
        ),
    ],
)
def test_a_bad_session_is_bad_use(changes, message, tmp_path, capsys):
    (tmp_path / "session.json").write_text(json.dumps(SESSION | changes))
    assert main(["replay", "session.json", "--target", "fake_decoders:Plain"]) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"tokenlaw: session.json: {message}" in error


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize(("name", "cause"), [("Hanging", "it hung"), ("Dying", "exited with status 7")])
def test_a_decoder_that_hangs_or_dies_is_unknown_with_its_session(name, cause):
    limits = Limits(quiet=2.0)
    report = audit(f"fake_decoders:{name}", only=GREEDY, limits=limits)
    (row,) = report.evidence
    assert row.verdict is Verdict.UNKNOWN
    assert cause in row.message
    assert row.counterexample["schema"] == "tokenlaw.session/1"
    again = replay(row.counterexample, f"fake_decoders:{name}", limits=limits)
    assert again.verdict is Verdict.UNKNOWN


def test_an_audit_of_an_object_names_the_function_for_it():
    with pytest.raises(BadUse, match="check_verifier or check_decoder"):
        audit(PooledDecoder)


class Part:
    """A suite that says what it was asked."""

    def __init__(self, name, contract=DECODER):
        self.contract = contract
        self.checks = (Check(name, "X1", "Some claim.", contract, Severity.LEAK),)
        self.asked = []

    def run(self, implementation, *, selected, **arguments):
        self.asked.append(selected)
        return [Evidence(check, Verdict.HOLDS) for check in self.checks if check.id in selected]

    def replay(self, implementation, counterexample, **arguments):
        return [Evidence(self.checks[0], Verdict.REFUTED)]


def run(suite, selected):
    arguments = {"profile": Profile("test", 1, 1, 1.0), "seed": 0, "progress": lambda *_: None}
    return suite.run(Implementation("x", "1", {}), selected=frozenset(selected), **arguments)


def test_joined_suites_run_what_is_selected_and_replay_what_is_theirs():
    one, two = Part("a/one"), Part("a/two")
    suite = JoinedSuite({"s/1": one, "s/2": two})
    assert [row.check.id for row in run(suite, {"a/two"})] == ["a/two"]
    assert (one.asked, two.asked) == ([], [frozenset({"a/two"})])
    assert [row.check.id for row in run(suite, {"a/one", "a/two"})] == ["a/one", "a/two"]
    (row,) = suite.replay(Implementation("x", "1", {}), {"schema": "s/2"})
    assert row.check.id == "a/two"
    with pytest.raises(CounterexampleError, match=r"schema 's/3' of a decoder; .* reads 's/1' and 's/2'"):
        suite.replay(Implementation("x", "1", {}), {"schema": "s/3"})


def test_only_suites_of_one_contract_with_checks_of_their_own_are_joined():
    with pytest.raises(ValueError, match="suites of one contract"):
        JoinedSuite({"s/1": Part("a/one"), "s/2": Part("a/two", "verifier")})
    with pytest.raises(ValueError, match="a check of one id"):
        JoinedSuite({"s/1": Part("a/one"), "s/2": Part("a/one")})


def test_the_decoder_suite_has_sessions_and_laws():
    suite = suites()[DECODER]
    assert isinstance(suite, JoinedSuite)
    ids = {check.id for check in suite.checks}
    assert {"decoder/greedy", "decoder/law"} <= ids
    implementation = Implementation("stopping", "1", {DECODER: Stopping}, {DECODER: CAPABILITIES})
    rows = suite.run(
        implementation,
        profile=Profile("test", 80, 40, 5.0, requests=1_000),
        seed=0,
        selected=frozenset({"decoder/stop"}),
        progress=lambda *_: None,
    )
    assert [row.verdict for row in rows] == [Verdict.REFUTED]
    none = Implementation("x", "1", {DECODER: lambda config: 3})
    with pytest.raises(ContractError, match="which lacks decode"):
        suite.replay(none, SESSION)
