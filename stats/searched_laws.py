"""Small pairs of laws for a search: integer weights, so that zeros, ties and certain tokens are frequent."""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Float32, Float64
from torch import Tensor

from tokenlaw.spec.row_laws import OFF_TOP_K
from tokenlaw.stats.scenario import Kind, Scenario, Tables

Weights = tuple[tuple[tuple[int, ...], ...], ...]
"""For each position and context a weight for each token, not all of them 0; a position may have one context
for all tokens before it, as the first one has."""

_WEIGHTS = (0, 1, 2, 3, 4, 5, 6)
_VOCABULARIES, _DRAFTS = (2, 3, 4, 5), (1, 2, 3)
_TEMPERATURES = (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 0.0)
_TOP_K = (OFF_TOP_K, OFF_TOP_K, OFF_TOP_K, OFF_TOP_K, 1, 2, 3)
_CLOSE = (False, False, False, True)
_RENEWED = 1 / 3

_UNTIE = 1 / 16
"""How much less each token's logit is than that of the one before, where a truncation or an argmax would meet
ties: engines break these in their own ways."""

_CLOSENESS = 1 / 128
"""What a weight adds to a logit where draft and target are close: ratios differ from 1 by 5 % at most."""


@dataclass(frozen=True)
class LawPair:
    """A pair of small laws, and how it is asked about.

    Attributes
    ----------
    target : weights at K + 1 positions.
    draft : weights at K positions.
    temperature, top_k : sampling parameters of both sides.
    close : the draft's weights are small changes of the target's law, not a law of their own.
    ragged : rows with one draft less are in the same batches.
    own_drafter : the implementation draws the drafts.
    """

    target: Weights
    draft: Weights
    temperature: float = 1.0
    top_k: int = OFF_TOP_K
    close: bool = False
    own_drafter: bool = False
    ragged: bool = True

    def without(self, refused: frozenset[str]) -> "LawPair":
        """The pair without settings that a verifier refuses."""
        plain = ("greedy" if self.temperature == 0 else "temperature") in refused
        return replace(
            self,
            temperature=1.0 if plain else self.temperature,
            top_k=OFF_TOP_K if "top_k" in refused else self.top_k,
            ragged=self.ragged and "ragged" not in refused,
        )

    @property
    def vocabulary(self) -> int:
        """V."""
        return len(self.target[0][0])

    @property
    def drafts(self) -> int:
        """K."""
        return len(self.draft)

    def scenario(self, name: str) -> Scenario:
        """Rows with all K drafts, and rows with one draft less, in the same batches."""
        target = self._logits(self.target)
        draft = self._logits(self.draft)
        if self.close:
            draft = target[: self.drafts] + _CLOSENESS * self._table(self.draft)
        kinds = tuple(
            Kind(f"{length} of {self.drafts} drafts", target, draft, length, self.temperature, self.top_k)
            for length in (self.drafts, self.drafts - 1)[: 1 + self.ragged]
        )
        return Scenario(name, kinds, 1.0, own_drafter=self.own_drafter)

    def _logits(self, weights: Weights) -> Float32[Tensor, "positions contexts vocabulary"]:
        untied = self.temperature == 0 or self.top_k != OFF_TOP_K
        return self._table(weights).log() - _UNTIE * untied * torch.arange(self.vocabulary)

    def _table(self, weights: Weights) -> Float32[Tensor, "positions contexts vocabulary"]:
        contexts = max(len(rows) for rows in self.target + self.draft)
        filled = [rows if len(rows) == contexts else rows * contexts for rows in weights]
        return torch.tensor(filled, dtype=torch.float32)

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> "LawPair":
        """What `to_data` gave, also after a way through JSON."""
        target, draft = (
            tuple(tuple(tuple(row) for row in rows) for rows in data[name]) for name in ("target", "draft")
        )
        settings = {name: data[name] for name in ("temperature", "top_k", "close", "own_drafter", "ragged")}
        return LawPair(target, draft, **settings)

    def describe(self) -> str:
        """K, settings, and the laws that they make of the weights, a line for each row."""
        tables = Tables.of(self.scenario("described"))
        settings = [f"V = {self.vocabulary}", f"K = {self.drafts}"]
        settings += [f"temperature {self.temperature:g}"] if self.temperature != 1 else []
        settings += [f"top-k {self.top_k}"] if self.top_k != OFF_TOP_K else []
        settings += ["own drafts"] if self.own_drafter else []
        lines = [f"{', '.join(settings)}, and these laws (all settings applied):"]
        lines += self._rows("target", self.target, tables.target[0])
        lines += self._rows("draft", self.draft, tables.draft[0])
        return "\n".join(lines)

    def _rows(
        self, name: str, weights: Weights, laws: Float64[Tensor, "positions contexts vocabulary"]
    ) -> list[str]:
        return [
            f"  {name} at position {position}{self._after(context, len(rows))}: "
            + " ".join(f"{number:.4g}" for number in laws[position, context].tolist())
            for position, rows in enumerate(weights)
            for context in range(len(rows))
        ]

    def _after(self, context: int, contexts: int) -> str:
        tokens = [str(token) for token in range(self.vocabulary) if token % contexts == context]
        return f" after {' or '.join(tokens)}" if contexts > 1 else ""


def law_of(weights: tuple[int, ...]) -> tuple[int, ...]:
    """The weights; where all of them are 0, those of a law that is certain of token 0.

    >>> law_of((0, 2)), law_of((0, 0))
    ((0, 2), (1, 0))
    """
    return weights if any(weights) else (1, *weights[1:])


def drawn_pair(dice: random.Random, *, own_drafter: bool) -> LawPair:
    """A random pair; half of them are for the implementation's own drafter, if it has one."""
    vocabulary, drafts = dice.choice(_VOCABULARIES), dice.choice(_DRAFTS)
    contexts = dice.choice((1, 2, 2, vocabulary))

    def table(positions: int) -> Weights:
        return tuple(
            tuple(_drawn_row(dice, vocabulary) for _ in range(contexts if position else 1))
            for position in range(positions)
        )

    return LawPair(
        table(drafts + 1),
        table(drafts),
        dice.choice(_TEMPERATURES),
        dice.choice(_TOP_K),
        dice.choice(_CLOSE),
        own_drafter and dice.choice((False, True)),
    )


def varied_pair(dice: random.Random, pair: LawPair) -> LawPair:
    """The pair with about a third of its rows drawn anew."""

    def table(weights: Weights) -> Weights:
        return tuple(
            tuple(_drawn_row(dice, pair.vocabulary) if dice.random() < _RENEWED else row for row in rows)
            for rows in weights
        )

    return replace(pair, target=table(pair.target), draft=table(pair.draft))


def _drawn_row(dice: random.Random, vocabulary: int) -> tuple[int, ...]:
    return law_of(tuple(dice.choice(_WEIGHTS) for _ in range(vocabulary)))
