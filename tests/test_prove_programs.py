"""Programs against their specs, in this process: proved, refuted with the path to blame, or left open."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import tokenlaw
from support.program_proofs import proof
from support.sampled_programs import bonus_step, chain_step, draw, target_law, target_only
from tokenlaw.spec.verdicts import PROVED, Verdict

HALF = Fraction(1, 2)


def test_a_textbook_step_is_proved_in_rational_numbers() -> None:
    found = proof(chain_step)
    assert found.verdict is Verdict.HOLDS
    assert found.message.startswith(
        "proved: program, completed to 3 tokens, has the target-only law of spec: TV = 0 exactly, in "
        f"rational numbers ({found.operations} paths)\n"
    )
    assert found.statistics is not None
    assert found.statistics["evidence"] == PROVED
    assert (found.statistics["tv_at_least"], found.statistics["tv_at_most"]) == (0, 0)
    assert found.statistics["rational"]


def test_target_only_decoding_is_proved_against_a_program_as_well() -> None:
    assert proof(target_only).verdict is Verdict.HOLDS
    assert proof(target_only, target_only).verdict is Verdict.HOLDS
    assert proof(chain_step, target_only).verdict is Verdict.REFUTED


def test_rounding_is_no_difference_but_small_deviations_are() -> None:
    def toss(shift: float) -> Callable[[], list[int]]:
        return lambda: [int(random.random() < 0.3 + shift)]

    def law(_: Any) -> list[float]:
        return [0.7, 0.3]

    assert "TV <= 1e-07, tolerance 1e-06" in proof(toss(1e-7), law).message
    assert proof(toss(1e-7), law, tolerance=1e-8).verdict is Verdict.REFUTED
    assert proof(toss(2e-6), law).verdict is Verdict.REFUTED
    assert proof(toss(2e-6), law, tolerance=1e-5).verdict is Verdict.HOLDS
    exact = proof(lambda: [int(random.random() < Fraction(1, 10**9))], lambda _: [1, 0])
    assert exact.verdict is Verdict.REFUTED


def test_an_unfinished_law_refutes_but_does_not_prove() -> None:
    refuted, open_, other = (proof(step, max_paths=10) for step in (bonus_step, chain_step, target_only))
    assert refuted.verdict is Verdict.REFUTED
    assert "TV is between" in refuted.message
    assert "without the last token" not in refuted.message
    for found in (open_, other):
        assert found.verdict is Verdict.UNKNOWN
        assert "of the probability unexplored" in found.message
    assert proof(target_only, target_only, max_paths=10).verdict is Verdict.UNKNOWN


def test_texts_that_end_are_not_continued() -> None:
    def law(tokens: tuple[int, ...]) -> dict[int, Fraction] | None:
        return None if tokens[-1:] == (9,) else {1: HALF, 9: HALF}

    def text(stop: bool = True) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < 3:
            tokens.append(9 if random.random() < HALF else 1)
            if stop and tokens[-1] == 9:
                break
        return tokens

    assert proof(text, law).verdict is Verdict.HOLDS
    assert "impossible under the spec" in proof(lambda: text(stop=False), law).message


def test_exceptions_and_exits_are_outcomes() -> None:
    def leaving() -> list[int]:
        if random.random() < HALF:
            raise SystemExit(3)
        if random.random() < HALF:
            raise ValueError("no")
        return [0]

    found = proof(leaving, lambda tokens: [1])
    assert found.verdict is Verdict.REFUTED
    assert "raises SystemExit: 3" in found.message
    assert "raises ValueError: no" in found.message


def test_a_program_that_always_fails_is_not_refuted() -> None:
    def failing() -> list[int]:
        raise KeyError("absent")

    for spec in (target_law, target_only, None):
        found = proof(failing, spec)
        assert found.verdict is Verdict.UNKNOWN
        assert "raises KeyError: 'absent', test_prove_programs.py:" in found.message


def test_what_emits_nothing_proves_nothing() -> None:
    found = proof(lambda: [])
    assert found.verdict is Verdict.UNKNOWN
    assert "emits no token" in found.message


def test_single_tokens_and_batches_of_one_are_sequences() -> None:
    assert proof(lambda: draw(target_law([]))).verdict is Verdict.HOLDS
    assert proof(lambda: [target_only()]).verdict is Verdict.HOLDS


def test_what_cannot_be_enumerated_is_unknown_and_says_why() -> None:
    undecidable = proof(lambda: [random.gauss(0, 1)])
    assert undecidable.verdict is Verdict.UNKNOWN
    assert "gauss" in undecidable.message
    state = [0]

    def keeping() -> list[int]:
        state[0] += 1
        return [state[0]]

    assert "the same choices led to" in proof(keeping).message
    assert "can't be compared" in proof(lambda: {1, 2}).message


def test_without_a_spec_the_law_is_told_and_nothing_more() -> None:
    found = proof(target_only, None)
    assert found.verdict is Verdict.NOT_EXERCISED
    assert "nothing was compared" in found.message
    assert "[2, 2, 2]          9/64" in found.message
    assert "... and 17 outcomes more" in found.message


@pytest.mark.parametrize(
    ("program", "spec", "message"),
    [
        (lambda a: a, target_law, "program needs a; a program is called without arguments"),
        (3, target_law, "program is a int"),
        (target_only, 3, "spec is a int"),
        (target_only, lambda a, b: a, "spec needs a, b; a spec is a program"),
        (target_only, lambda tokens: [0.5, 0.6], r"spec\(\(\)\): the probabilities sum to 1.1 instead of 1"),
        (target_only, lambda tokens: [HALF, Fraction(1, 3)], "sum to 0.833333333 instead of 1"),
        (target_only, lambda tokens: [1.5, -0.5], r"token 1 has the probability -0.5"),
        (target_only, lambda tokens: [float("nan"), 1.0], r"token 0 has the probability nan"),
        (target_only, lambda tokens: [[0.5, 0.5]], r"which is no number"),
        (target_only, lambda tokens: "law", "returned a str"),
        (target_only, lambda tokens: tokens[5], r"spec\(\(\)\) raised IndexError"),
    ],
)
def test_bad_use(program: Any, spec: Any, message: str) -> None:
    with pytest.raises(tokenlaw.BadUse, match=message):
        proof(program, spec)


def test_the_library_raises_what_it_finds() -> None:
    report = tokenlaw.prove(chain_step, spec=target_law)
    assert report.summary() == "chain_step in this process: holds (1 holds)"
    with pytest.raises(tokenlaw.Refuted, match="one more token") as refuted:
        tokenlaw.prove(bonus_step, spec=target_law)
    assert refuted.value.report.status == 1
    assert "repeat: tokenlaw.prove(bonus_step, spec=target_law)" in str(refuted.value)
    with pytest.raises(tokenlaw.Inconclusive, match="unexplored"):
        tokenlaw.prove(chain_step, spec=target_law, max_paths=5)
    assert tokenlaw.prove(bonus_step, spec=target_law, raises=False).verdict is Verdict.REFUTED
