"""Paths of random choices in words: as speculative steps where one reading fits, else choice by choice."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from tokenlaw.stats.enumeration.choices import Draw, Node, Question, Weight
from tokenlaw.stats.enumeration.deciding import Among
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Raised
from tokenlaw.stats.enumeration.narrative import narrate
from tokenlaw.stats.enumeration.uniforms import Piece, Threshold

Choice = tuple[Question, int, int]
"""The question, how many answers it has, and which one was taken."""


def drawn(token: int, source: str = "torch.multinomial") -> Choice:
    return Draw(source), 4, token


def below(threshold: float) -> Choice:
    return Threshold(threshold), 2, 0


def above(threshold: float) -> Choice:
    return Threshold(threshold), 2, 1


@dataclass(frozen=True)
class Heads:
    """A question of another kind."""

    def words(self, taken: int, weight: Weight) -> str:
        return f"coin {taken}"


def line(*choices: Choice) -> list[tuple[Node, int]]:
    node, taken = None, 0
    for question, answers, then in choices:
        node, taken = Node(node, taken, [1 / answers] * answers, question, 1.0, 0, 1.0), then
    return [] if node is None else node.line(taken)


STEPS: dict[str, tuple[list[Choice], tuple[int, ...], list[str]]] = {
    "one more token": (
        [drawn(2), drawn(0), below(0.69), above(0.31), drawn(1), drawn(3)],
        (2, 1, 3),
        [
            "draft 2, accepted (u < 0.69)",
            "draft 0, rejected (u >= 0.31)",
            "token 1 replaces it",
            "then one more token 3 was emitted",
        ],
    ),
    "draft and test in turn": (
        [drawn(2), below(0.69), drawn(0), above(0.31), drawn(1)],
        (2, 1),
        ["draft 2, accepted (u < 0.69)", "draft 0, rejected (u >= 0.31)", "token 1 replaces it"],
    ),
    "all tests at once": (
        [drawn(2), drawn(0), above(0.69), below(0.31), drawn(1)],
        (1,),
        ["draft 2, rejected (u >= 0.69)", "token 1 replaces it"],
    ),
    "all accepted": (
        [drawn(2), drawn(0), below(0.69), below(0.31), drawn(1)],
        (2, 0, 1),
        ["draft 2, accepted (u < 0.69)", "draft 0, accepted (u < 0.31)", "token 1 follows the drafts"],
    ),
    "a test that accepts large numbers": (
        [drawn(2), above(0.31), drawn(1)],
        (2, 1),
        ["draft 2, accepted (u >= 0.31)", "token 1 follows the drafts"],
    ),
    "which draft the test was about isn't known": (
        [drawn(2), drawn(0), above(0.31), drawn(1)],
        (2, 1),
        ["draft 2, accepted", "draft 0, rejected", "token 1 replaces it"],
    ),
    "a token that wasn't used": (
        [drawn(2), above(0.31), drawn(0), drawn(1)],
        (1,),
        ["draft 2, rejected (u >= 0.31)", "token 1 replaces it"],
    ),
    "a token that is certain": (
        [drawn(2), above(0.31)],
        (1,),
        ["draft 2, rejected (u >= 0.31)", "token 1 replaces it"],
    ),
    "a token by the inverse of its law": (
        [drawn(2), above(0.31), (Piece([0.0, 0.4, 0.8, 1.0]), 3, 1)],
        (1,),
        ["draft 2, rejected (u >= 0.31)", "token 1 replaces it"],
    ),
    "one of two tokens": (
        [drawn(1), below(0.31), above(0.5)],
        (1, 0),
        ["draft 1, accepted (u < 0.31)", "token 0 follows the drafts"],
    ),
    "named drafts without a test": (
        [drawn(2, "draft 0"), drawn(0, "draft 1"), drawn(1)],
        (2, 1),
        ["draft 2, accepted", "draft 0, rejected", "token 1 replaces it"],
    ),
    "outcomes with names": (
        [(Among("random.choices", [0, 3]), 2, 1), below(0.5), drawn(1)],
        (3, 1),
        ["draft 3, accepted (u < 0.5)", "token 1 follows the drafts"],
    ),
}


@pytest.mark.parametrize(("choices", "tokens", "told"), STEPS.values(), ids=STEPS)
def test_a_step_is_told(choices: list[Choice], tokens: tuple[int, ...], told: list[str]) -> None:
    assert narrate(line(*choices), tokens) == told


GENERIC: dict[str, tuple[list[Choice], Any]] = {
    "no test": ([drawn(2), drawn(1)], (2, 1)),
    "no draft": ([below(0.5), drawn(1)], (1,)),
    "tokens that nothing explains": ([drawn(2), above(0.3), drawn(1)], (0, 3, 3)),
    "replaced by itself, or accepted": ([drawn(2), drawn(2), below(0.3), drawn(2), drawn(2)], (2, 2)),
    "more tests than drafts": ([drawn(2), below(0.3), below(0.3), below(0.3), drawn(1)], (2, 1)),
    "a draft that isn't known": ([(Piece([0.0, 0.4, 1.0]), 2, 1), below(0.5), drawn(1)], (2, 1)),
    "other questions": ([(Heads(), 2, 1), below(0.5), drawn(1)], (1, 1)),
    "an outcome that isn't tokens": ([drawn(2), below(0.3), drawn(1)], "text"),
    "an outcome of truth values": ([drawn(2), below(0.3), drawn(1)], (True, False)),
}


@pytest.mark.parametrize(("choices", "outcome"), GENERIC.values(), ids=GENERIC)
def test_other_paths_are_told_choice_by_choice(choices: list[Choice], outcome: Any) -> None:
    told = narrate(line(*choices), outcome)
    assert told[-1] == f"outcome {outcome}"
    assert told[:-1] == [question.words(taken, 1 / answers) for question, answers, taken in choices]


def test_a_place_and_an_exception_are_told() -> None:
    path = line(drawn(2))
    path[0][0].place = "step.py:7 `draw()`"
    assert narrate(path, Raised("ValueError: no")) == [
        "torch.multinomial: 2 (probability 0.25) at step.py:7 `draw()`",
        "raises ValueError: no",
    ]
    assert narrate([], (1,)) == ["outcome (1,)"]


def test_a_step_of_a_program_is_told() -> None:
    target, draft = [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]

    def step() -> tuple[int, ...]:
        token = random.choices(range(3), draft)[0]
        if random.random() < target[token] / draft[token]:
            return token, random.choices(range(3), target)[0]
        rest = [max(0.0, mine - other) for mine, other in zip(target, draft, strict=True)]
        return random.choices(range(3), rest)[0], random.choices(range(3), target)[0]

    law = exact_law(step)
    node, taken = law.examples[0, 2] or pytest.fail("no path")
    told = narrate(node.line(taken), (0, 2))
    assert told in (
        ["draft 1, rejected (u >= 0.5)", "token 0 replaces it", "then one more token 2 was emitted"],
        ["random.choices: 0 (probability 0.25)", "random.choices: 2 (probability 0.25)", "outcome (0, 2)"],
    )
