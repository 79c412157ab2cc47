"""Language models small enough to know everything about: the next-token law stands in a table.

In the spec a language model is a function from the tokens so far to the law of the next token, so
``lambda tokens: (0.7, 0.3)`` is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Generic

import numpy as np

from tokenlaw.spec.laws import Number, Tokens, check_count, check_law, check_tokens, normalised, one_hot

LanguageModel = Callable[[Tokens], Sequence[Number]]
"""Law of the next token, given all tokens so far (prompt included)."""

LARGEST_WEIGHT = 6
"""Random rows are integer weights 0 .. 6, divided by their sum: zeros and ties are frequent."""

ONE_HOT_SHARE = 0.125
"""Share of random rows of which one token is certain."""


@dataclass(frozen=True)
class TableModel(Generic[Number]):
    """A language model of order m: the next token depends on the last m tokens.

    Near the start, where fewer than m tokens exist, it depends on all of them.

    Attributes
    ----------
    order : m, the number of tokens looked at; 0 or more.
    rows : law of the next token for every context of 0 .. m tokens; every row has one number for each token.

    Raises
    ------
    ValueError
        A context is missing or superfluous, rows have different lengths, or a row isn't a law; when called
        with a token outside the vocabulary.

    Examples
    --------
    >>> half, one, zero = Fraction(1, 2), Fraction(1), Fraction(0)
    >>> model = TableModel(order=1, rows={(): (half, half), (0,): (one, zero), (1,): (zero, one)})
    >>> model(()), model((0, 1))
    ((Fraction(1, 2), Fraction(1, 2)), (Fraction(0, 1), Fraction(1, 1)))
    >>> TableModel(order=1, rows={(): (0.5, 0.5), (0,): (1.0, 0.0)})
    Traceback (most recent call last):
    ValueError: order 1 and 2 tokens need one row for each context; missing: [(1,)], superfluous: []
    """

    order: int
    rows: Mapping[Tokens, Sequence[Number]]

    def __post_init__(self) -> None:
        check_count(self.order, "order of a table model")
        expected = set(contexts(self.vocabulary_size, self.order))
        missing, superfluous = sorted(expected - set(self.rows)), sorted(set(self.rows) - expected)
        if missing or superfluous:
            raise ValueError(
                f"order {self.order} and {self.vocabulary_size} tokens need one row for each context; "
                f"missing: {missing}, superfluous: {superfluous}"
            )
        for context, row in self.rows.items():
            if len(row) != self.vocabulary_size:
                raise ValueError(
                    f"the row of context {context} has {len(row)} numbers for {self.vocabulary_size} tokens"
                )
            check_law(row, f"row of context {context}")

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens, read from the row of the empty context."""
        if () not in self.rows:
            raise ValueError("a table model needs a row for the empty context ()")
        return len(self.rows[()])

    def __call__(self, tokens: Tokens) -> Sequence[Number]:
        """Law of the next token."""
        check_tokens(tokens, self.vocabulary_size)
        return self.rows[tuple(tokens[max(0, len(tokens) - self.order) :])]


def contexts(vocabulary_size: int, order: int) -> list[Tokens]:
    """All contexts of at most ``order`` tokens, the shortest first.

    >>> contexts(vocabulary_size=2, order=1)
    [(), (0,), (1,)]
    """
    check_count(vocabulary_size, "vocabulary size", least=1)
    return [
        context for length in range(order + 1) for context in product(range(vocabulary_size), repeat=length)
    ]


def random_law(vocabulary_size: int, generator: np.random.Generator) -> tuple[Fraction, ...]:
    """Random law over tokens in which zeros, ties and a certain token occur often.

    >>> random_law(3, np.random.default_rng(3))
    (Fraction(5, 6), Fraction(0, 1), Fraction(1, 6))
    """
    weights = [Fraction(int(weight)) for weight in generator.integers(0, LARGEST_WEIGHT + 1, vocabulary_size)]
    if generator.random() < ONE_HOT_SHARE or not any(weights):
        return one_hot(int(generator.integers(vocabulary_size)), vocabulary_size)
    return normalised(weights)


def random_table_model(vocabulary_size: int, order: int, seed: int) -> TableModel[Fraction]:
    """Table model whose rows are random laws; the same seed gives the same model.

    >>> model = random_table_model(vocabulary_size=3, order=1, seed=1)
    >>> model((2,)) == random_table_model(vocabulary_size=3, order=1, seed=1)((0, 2))
    True
    """
    generator = np.random.default_rng(seed)
    rows = {context: random_law(vocabulary_size, generator) for context in contexts(vocabulary_size, order)}
    return TableModel(order, rows)


def in_floats(model: TableModel[Fraction]) -> TableModel[float]:
    """The same model in double precision.

    >>> in_floats(TableModel(order=0, rows={(): (Fraction(1, 4), Fraction(3, 4))}))(())
    (0.25, 0.75)
    """
    return TableModel(model.order, {context: tuple(map(float, row)) for context, row in model.rows.items()})
