"""Probability laws over floats or over fractions: types, checks and the little arithmetic they need.

Two kinds of law. A law over tokens is a sequence with one probability for each token of the vocabulary.
A law over outcomes is a ``dict`` from outcome to probability, without outcomes of probability zero, so that
two laws over fractions are equal exactly when the dictionaries are equal.

Everything is generic over the number type: with ``fractions.Fraction`` equality is exact, with ``float``
the same lines run in double precision.
"""

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)
"""The number type of a law: all of its numbers are floats, or all of them are fractions."""

Outcome = TypeVar("Outcome", bound=Hashable)

Tokens = tuple[int, ...]
"""A sequence of token ids, each in ``0 .. vocabulary size - 1``."""

FLOAT_TOLERANCE = 1e-9
"""How far from one the sum of a law over floats may be. A law over fractions sums to one exactly."""


def check_law(law: Sequence[Number], name: str) -> None:
    """Refuse whatever isn't a law over tokens.

    Parameters
    ----------
    law : one probability for each token, length at least 1.
    name : what the message calls the law.

    Raises
    ------
    ValueError
        The law is empty, a probability is NaN or negative, or the sum isn't one: exactly for fractions,
        within ``FLOAT_TOLERANCE`` for floats.

    Examples
    --------
    >>> check_law([Fraction(1, 3), Fraction(2, 3)], "target law")
    >>> check_law([0.5, 0.4], "target law")
    Traceback (most recent call last):
    ValueError: the probabilities of the target law sum to 0.9 instead of 1
    """
    if len(law) == 0:
        raise ValueError(f"the {name} is empty; it needs one probability for each token")
    for token, probability in enumerate(law):
        # Written so that NaN, for which every comparison is false, is refused as well.
        if not probability >= 0:
            raise ValueError(f"the {name} gives token {token} the probability {probability}")
    mass = total(law)
    exact = not isinstance(mass, float)
    if mass != 1 if exact else not abs(mass - 1) <= FLOAT_TOLERANCE:
        raise ValueError(f"the probabilities of the {name} sum to {mass} instead of 1")


def check_same_vocabulary(*laws: Sequence[Number]) -> None:
    """Refuse laws over vocabularies of different sizes.

    >>> check_same_vocabulary([0.5, 0.5], [0.2, 0.3, 0.5])
    Traceback (most recent call last):
    ValueError: all laws must be over one vocabulary, but their sizes are 2, 3
    """
    sizes = [len(law) for law in laws]
    if len(set(sizes)) > 1:
        raise ValueError(f"all laws must be over one vocabulary, but their sizes are {str(sizes)[1:-1]}")


def check_tokens(tokens: Iterable[int], vocabulary_size: int) -> None:
    """Refuse token ids outside ``0 .. vocabulary_size - 1``.

    >>> check_tokens([0, 3], vocabulary_size=3)
    Traceback (most recent call last):
    ValueError: token 3 is outside the vocabulary 0..2
    """
    for token in tokens:
        if not 0 <= token < vocabulary_size:
            raise ValueError(f"token {token} is outside the vocabulary 0..{vocabulary_size - 1}")


def check_count(count: int, name: str, least: int = 0) -> None:
    """Refuse a count below ``least``.

    >>> check_count(-1, "number of tokens")
    Traceback (most recent call last):
    ValueError: the number of tokens must be at least 0, but is -1
    """
    if count < least:
        raise ValueError(f"the {name} must be at least {least}, but is {count}")


def one_like(number: Number) -> Number:
    """The number one in the type of the given number.

    >>> one_like(Fraction(1, 2)), one_like(0.5)
    (Fraction(1, 1), 1.0)
    """
    return type(number)(1)


def total(numbers: Sequence[Number]) -> Number:
    """Sum of one or more numbers, in their own type.

    >>> total([Fraction(1, 3), Fraction(1, 6)])
    Fraction(1, 2)
    """
    return sum(numbers[1:], start=numbers[0])


def positive_part(number: Number) -> Number:
    """``(x)+ = max(x, 0)``.

    >>> positive_part(Fraction(-1, 2)), positive_part(0.25)
    (Fraction(0, 1), 0.25)
    """
    return number if number > 0 else number - number


def normalised(weights: Sequence[Number]) -> tuple[Number, ...]:
    """Divide weights by their sum.

    Raises
    ------
    ValueError
        The weights sum to zero.

    Examples
    --------
    >>> normalised([Fraction(1), Fraction(3)])
    (Fraction(1, 4), Fraction(3, 4))
    """
    mass = total(weights)
    if mass == 0:
        raise ValueError("weights that sum to zero can't be normalised to a law")
    return tuple(weight / mass for weight in weights)


def one_hot(token: int, vocabulary_size: int) -> tuple[Fraction, ...]:
    """The law of a token that is certain; use ``float`` on its numbers for a law over floats.

    >>> one_hot(1, 3)
    (Fraction(0, 1), Fraction(1, 1), Fraction(0, 1))
    """
    check_tokens([token], vocabulary_size)
    return tuple(Fraction(int(other == token)) for other in range(vocabulary_size))


def collect(weighted: Iterable[tuple[Outcome, Number]]) -> dict[Outcome, Number]:
    """Law over outcomes from (outcome, probability) pairs: equal outcomes add up, impossible ones go.

    >>> collect([("a", Fraction(1, 4)), ("b", Fraction(0)), ("a", Fraction(3, 4))])
    {'a': Fraction(1, 1)}
    """
    law: dict[Outcome, Number] = {}
    for outcome, probability in weighted:
        if probability > 0:
            law[outcome] = law[outcome] + probability if outcome in law else probability
    return law
