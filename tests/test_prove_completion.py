"""What a program emits, completed to one length: long texts, texts that are too many, and what rows show."""

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from support.program_proofs import proof
from support.sampled_programs import chain_step, draw, target_law
from tokenlaw.spec.verdicts import Verdict

HALVES = [Fraction(1, 2), Fraction(1, 2)]


def halves(_: Sequence[int]) -> list[Fraction]:
    return HALVES


def until_one(longest: int, last: list[Fraction] = HALVES) -> list[int]:
    """Tokens 0 and 1 up to the first 1, whose probabilities at the last place may differ."""
    tokens: list[int] = []
    while len(tokens) < longest and 1 not in tokens:
        tokens.append(draw(last if len(tokens) == longest - 1 else HALVES))
    return tokens


def test_texts_are_told_apart_only_where_an_outcome_goes_on() -> None:
    """Of 40 tokens there are 2^40 texts; 41 of their beginnings matter."""
    found = proof(lambda: until_one(40), halves)
    assert found.verdict is Verdict.HOLDS
    assert "completed to 40 tokens" in found.message
    assert "TV = 0 exactly" in found.message
    wrong = proof(lambda: until_one(20, [Fraction(1, 4), Fraction(3, 4)]), halves)
    assert f"TV = {Fraction(1, 2**21)} (" in wrong.message or "TV = 4.768e-07 (" in wrong.message
    assert wrong.verdict is Verdict.REFUTED


def test_the_law_is_asked_only_where_outcomes_are() -> None:
    asked: list[Sequence[int]] = []

    def law(tokens: Sequence[int]) -> list[Fraction]:
        asked.append(tokens)
        return HALVES

    assert proof(lambda: until_one(12), law).verdict is Verdict.HOLDS
    assert len(asked) == len(set(asked)) < 30


def test_rows_say_where_any_tokens_may_follow() -> None:
    def step() -> list[int]:
        return [1] if random.random() < Fraction(3, 4) else [0, draw(HALVES)]

    found = proof(step, halves)
    assert "TV = 1/4 (" in found.message
    assert found.statistics is not None
    assert {row["outcome"] for row in found.statistics["outcomes"]} == {"[1, ...]", "[0, 0]", "[0, 1]"}


def test_a_text_that_ends_is_not_one_that_any_tokens_follow() -> None:
    def law(tokens: tuple[int, ...]) -> list[Fraction] | None:
        return None if tokens[-1:] == (1,) else HALVES

    found = proof(lambda: until_one(3, [Fraction(1), Fraction(0)]), law)
    assert found.statistics is not None
    assert {row["outcome"] for row in found.statistics["outcomes"]} == {
        "[1]",
        "[0, 1]",
        "[0, 0, 0]",
        "[0, 0, 1]",
    }


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenlaw.prove_spec.MOST_TEXTS", 10)


@pytest.mark.usefixtures("_few")
def test_too_many_texts_are_not_decided_and_the_reason_is_said() -> None:
    found = proof(chain_step, target_law)
    assert found.verdict is Verdict.UNKNOWN
    assert found.message.startswith("not decided: program, completed to 3 tokens, ")
    assert "TV is between 0 and 1 (" in found.message
    assert "only the first 2 tokens were compared" in found.message
    assert "run more paths" not in found.message
    assert found.statistics is not None
    assert (found.statistics["tokens"], found.statistics["tokens_compared"]) == (3, 2)


@pytest.mark.usefixtures("_few")
def test_what_is_wrong_at_the_beginning_is_refuted_however_many_texts_there_are() -> None:
    def early() -> list[int]:
        return [draw([Fraction(1)]), *chain_step()]

    found = proof(early, target_law)
    assert found.verdict is Verdict.REFUTED
    assert "and 1 (" in found.message
    assert "only the first 2 tokens were compared" in found.message


@pytest.mark.usefixtures("_few")
def test_what_the_spec_never_does_is_refuted_however_late_it_comes() -> None:
    found = proof(lambda: [*chain_step(), 7], target_law)
    assert found.verdict is Verdict.REFUTED
    assert "impossible under the spec" in found.message
