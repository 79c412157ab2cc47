"""Laws of decoders where a proof isn't all: samples, answers that are none, models of their own, replays."""

import math

import pytest

from support.decoder_law_runs import ALL, Make, audited, implementation, replayed
from support.faulty_decoders import Endless, Overlong, Raising, SharedSamples, SharedStream
from support.small_decoders import AllAtOnce, LargeModels, OwnModels, SmallDecoder, Undecided
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.spec.verdicts import PROVED, SAMPLED, Verdict
from tokenlaw.stats.decoder_checks import FORK, LAW, LOGPROBS, REQUESTS, SAMPLES, SAMPLING, STOP
from tokenlaw.stats.decoder_suite import DecoderLaws


def test_a_session_that_goes_another_way_is_no_evidence() -> None:
    """All tokens at once leave nothing to fork."""
    row = audited(AllAtOnce, FORK, budget=30_000)[FORK]
    assert row.verdict is not Verdict.REFUTED
    assert "had ended before it could be forked" in row.message


def test_an_exact_decoder_that_cannot_be_proved_is_sampled() -> None:
    """Refuted with probability 1e-9 at most."""
    row = audited(Undecided, LAW, budget=30_000)[LAW]
    assert row.verdict is Verdict.HOLDS, row.message
    assert row.statistics is not None
    assert row.statistics["evidence"] == SAMPLED
    assert row.statistics["samples"] == row.operations
    assert row.statistics["power"]["tv"] < 1
    (entry,) = row.statistics["ledger"]
    assert (entry["share"], entry["alpha"]) == (1.0, 1e-9)
    assert "can't be decided" in row.message


def test_samples_of_a_counterexample_are_the_same_again() -> None:
    """Samples share their random numbers, at TV 0.5: missed by 100 samples with probability below 1e-6."""
    row = audited(SharedSamples, SAMPLES, budget=90_000)[SAMPLES]
    assert row.verdict is Verdict.REFUTED, row.message
    assert "samples at TV" in row.message
    again = replayed(SharedSamples, row)
    assert again.operations == row.operations
    assert "samples at TV" in again.message


def test_random_numbers_that_nobody_sees_prove_nothing() -> None:
    """Also where each path is right by itself."""
    row = audited(Undecided, LOGPROBS, budget=30_000)[LOGPROBS]
    assert row.verdict is Verdict.HOLDS
    assert row.statistics is not None
    assert row.statistics["evidence"] == SAMPLED


def test_all_checks_share_one_alpha() -> None:
    found = audited(Undecided, budget=30_000)
    ledgers = [row.statistics["ledger"][0] for row in found.values() if row.statistics]
    assert math.isclose(sum(entry["share"] for entry in ledgers), 1.0)
    assert math.isclose(sum(entry["alpha"] for entry in ledgers), 1e-9)


def test_evidence_of_earlier_runs_counts_along() -> None:
    earlier = {LAW: {"log_e": 1e3}}
    row = audited(Undecided, LAW, budget=30_000, continued=earlier)[LAW]
    assert row.verdict is Verdict.REFUTED
    assert row.statistics is not None
    assert row.statistics["log_e"] > 900


def test_what_raises_is_unknown_with_its_traceback() -> None:
    row = audited(Raising, LAW, budget=30_000)[LAW]
    assert row.verdict is Verdict.UNKNOWN
    assert "ZeroDivisionError" in row.message
    assert "Traceback" in row.message


@pytest.mark.parametrize(
    ("make", "words"), [(Overlong, "tokens, 3 were asked for"), (Endless, "nothing grew")]
)
def test_what_is_no_legal_answer_has_no_place_in_a_law(make: Make, words: str) -> None:
    check = FORK if make is Endless else SAMPLING
    row = audited(make, check)[check]
    assert row.verdict is Verdict.REFUTED
    assert "no legal answer" in row.message
    assert words in row.message


def test_checks_without_their_capability_are_not_asked() -> None:
    found = audited(SmallDecoder, capabilities=frozenset({"stop"}))
    assert {check for check, row in found.items() if row.verdict is Verdict.HOLDS} == {LAW, STOP}
    assert found[FORK].verdict is Verdict.NOT_SUPPORTED
    assert "fork (method fork)" in found[FORK].message


def test_a_decoder_with_models_of_its_own_is_held_to_their_law() -> None:
    found = audited(OwnModels, LAW, STOP, REQUESTS, capabilities=ALL | {"own-models"})
    assert {row.verdict for row in found.values()} == {Verdict.HOLDS}
    assert all(row.statistics and row.statistics["evidence"] == PROVED for row in found.values())


def test_laws_over_a_real_vocabulary_are_asked_as_far_as_they_can_be() -> None:
    """Of 3,000 tokens a single one is asked for; two random ones have nine million outcomes."""
    found = audited(LargeModels, LAW, SAMPLES, capabilities=ALL | {"own-models"}, budget=2_000)
    assert found[LAW].operations > 0
    assert found[SAMPLES].verdict is Verdict.NOT_EXERCISED
    assert "too many outcomes" in found[SAMPLES].message


def test_a_damaged_counterexample_says_what_is_wrong() -> None:
    data = audited(SharedStream, REQUESTS)[REQUESTS].counterexample
    assert data is not None
    for changed, words in (
        ({"schema": "x"}, "schema"),
        ({"paths": -1}, "number of paths"),
        ({"case": "x"}, "has no situation 'x'"),
        ({"more": 1}, "unknown: more"),
        ({"session": {**data["session"], "block_size": 3}}, "changed, or saved by another version"),
    ):
        with pytest.raises(CounterexampleError, match=words):
            DecoderLaws().replay(implementation(SharedStream), {**data, **changed})
    with pytest.raises(CounterexampleError, match="needs requests"):
        DecoderLaws().replay(implementation(SharedStream, frozenset()), data)
