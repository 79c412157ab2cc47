"""Language models as plain data, for sessions."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from tokenlaw.spec.laws import Tokens, check_law, check_tokens
from tokenlaw.spec.models import LanguageModel, TableModel, contexts

MAX_ROWS = 10_000
"""Rows of a table that is read from a file."""

RATIO = 3.0
"""In the laws of a `Hashed` model each token is so many times as probable as the next less probable one."""


class Table(msgspec.Struct, frozen=True, tag_field="kind", tag="table", forbid_unknown_fields=True):
    """A `TableModel`: its rows in the order of `tokenlaw.spec.models.contexts`, the shortest context first.

    >>> Table(order=1, rows=((0.5, 0.5), (1.0, 0.0), (0.0, 1.0))).model()((0, 1))
    (0.0, 1.0)
    """

    order: int
    rows: tuple[tuple[float, ...], ...]

    def model(self) -> LanguageModel[float]:
        """The language model; raises ValueError if the rows aren't those of one."""
        names = contexts(len(self.rows[0]), self.order)
        return TableModel(self.order, dict(zip(names, self.rows, strict=True)))

    def problems(self, vocabulary_size: int) -> Iterator[str]:
        """What is wrong with it for a vocabulary of this size, in words."""
        wanted = (
            sum(vocabulary_size**length for length in range(self.order + 1)) if 0 <= self.order < 20 else 0
        )
        if not 0 < wanted <= MAX_ROWS:
            yield f"order {self.order} over {vocabulary_size} tokens: at most {MAX_ROWS} rows are read"
        elif len(self.rows) != wanted:
            yield f"order {self.order} and {vocabulary_size} tokens need {wanted} rows, not {len(self.rows)}"
        for number, row in enumerate(self.rows):
            if len(row) != vocabulary_size:
                yield f"row {number} has {len(row)} numbers for {vocabulary_size} tokens"
            else:
                try:
                    check_law(row, f"row {number}")
                except ValueError as error:
                    yield str(error)


class Hashed(msgspec.Struct, frozen=True, tag_field="kind", tag="hashed", forbid_unknown_fields=True):
    """A model that looks at every token: one that is wrong or missing anywhere changes the law.

    Attributes
    ----------
    vocabulary_size : V.
    seed : another seed gives another model.
    certain : whether one token has all of the probability; otherwise they differ by factors of `RATIO`.
    stray_seed : seed of another model, which it follows after a quarter of all contexts; None for none.

    Examples
    --------
    >>> [round(probability, 2) for probability in Hashed(vocabulary_size=3, seed=0).model()((0, 1))]
    [0.23, 0.08, 0.69]
    >>> Hashed(vocabulary_size=3, seed=0, certain=True).model()((0, 1))
    (0.0, 0.0, 1.0)
    """

    vocabulary_size: int
    seed: int
    certain: bool = False
    stray_seed: int | None = None

    def model(self) -> LanguageModel[float]:
        """The language model."""
        return _HashedModel(self)

    def problems(self, vocabulary_size: int) -> Iterator[str]:
        """What is wrong with it for a vocabulary of this size, in words."""
        if self.vocabulary_size != vocabulary_size:
            yield f"it is a model of {self.vocabulary_size} tokens; the session has {vocabulary_size}"
        for seed in (self.seed, self.stray_seed or 0):
            if not 0 <= seed < 2**63:
                yield f"its seed is {seed}; it must be 0 to 2**63 - 1"


Model = Table | Hashed
"""A language model as plain data."""


@dataclass(frozen=True)
class _HashedModel:
    told: Hashed

    def __call__(self, tokens: Tokens) -> tuple[float, ...]:
        """Law of the next token."""
        check_tokens(tokens, self.told.vocabulary_size)
        return _hashed_law(self.told, tuple(tokens))


@lru_cache(maxsize=100_000)
def _hashed_law(told: Hashed, tokens: Tokens) -> tuple[float, ...]:
    vocabulary = range(told.vocabulary_size)
    context = ",".join(map(str, tokens))
    strays = told.stray_seed is not None and _digest(f"{told.stray_seed}:{context}")[0] % 4 == 0
    seed = told.stray_seed if strays else told.seed
    keys = [_digest(f"{seed}:{context};{token}") for token in vocabulary]
    ranked = sorted(vocabulary, key=keys.__getitem__)
    ratio = 0.0 if told.certain else 1 / RATIO
    weights: Mapping[int, float] = {token: ratio**place for place, token in enumerate(ranked)}
    mass = sum(weights.values())
    return tuple(weights[token] / mass for token in vocabulary)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode()).digest()


def uniform_model(vocabulary_size: int) -> LanguageModel[float]:
    """Every token is equally probable, always.

    >>> uniform_model(4)(())
    (0.25, 0.25, 0.25, 0.25)
    """
    row = (1 / vocabulary_size,) * vocabulary_size
    return lambda tokens: row


def table_of(model: TableModel[float]) -> Table:
    """A table model as plain data.

    >>> table_of(TableModel(order=0, rows={(): (0.25, 0.75)}))
    Table(order=0, rows=((0.25, 0.75),))
    """
    rows = (model.rows[context] for context in contexts(model.vocabulary_size, model.order))
    return Table(model.order, tuple(tuple(map(float, row)) for row in rows))
