"""Small programs with random numbers, over fractions: what `tokenlaw.prove` is tried on."""

import random
from collections.abc import Sequence
from fractions import Fraction

Tokens = Sequence[int]

TARGET = {
    None: [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
    0: [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
    1: [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
    2: [Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)],
}
DRAFT = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]


def target_law(tokens: Tokens) -> list[Fraction]:
    """The law of the next token."""
    return TARGET[tokens[-1] if tokens else None]


def draw(law: Sequence[Fraction]) -> int:
    """One token."""
    return random.choices(range(len(law)), weights=law)[0]


def chain_step(drafts: int = 2, *, bonus_after_rejection: bool = False) -> list[int]:
    """A step of speculative decoding; with the fault, the rejection of the last draft doesn't end it."""
    drafted = [draw(DRAFT) for _ in range(drafts)]
    tokens: list[int] = []
    for position, draft in enumerate(drafted):
        law = target_law(drafted[:position])
        if random.random() < law[draft] / DRAFT[draft]:
            tokens.append(draft)
            continue
        rest = [max(target - other, Fraction(0)) for target, other in zip(law, DRAFT, strict=True)]
        tokens.append(draw(rest))
        if position < drafts - 1 or not bonus_after_rejection:
            return tokens
    return [*tokens, draw(target_law(drafted))]


def bonus_step() -> list[int]:
    """The step with its fault."""
    return chain_step(bonus_after_rejection=True)


def target_only() -> list[int]:
    """Three tokens of the target itself."""
    tokens: list[int] = []
    while len(tokens) < 3:
        tokens.append(draw(target_law(tokens)))
    return tokens
