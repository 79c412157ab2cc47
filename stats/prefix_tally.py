"""Tokens counted by the class of the tokens before them, where sequences are too many to be counted.

A class is the context that the tables know, which decides the law of the next token, and within it a hash of
the whole prefix, so that a dependence on earlier tokens shows as well. All prefixes of a class have the same
next law, as `tokenlaw.stats.conditional_gate` asks for.

- Under the textbook's rule a row gets to position j when its first j drafts are accepted. There it goes on
  with the token x with the probability min(p, q)(x), or ends with y with (p - q)+(y); after all drafts it
  ends with p. These laws, multiplied along the positions, are the joint law of accepted length and tokens.
- Any other exact rule decides in its own way how long a row gets. So every row is extended to K + 1 tokens by
  target-only sampling, after which the law at every position is p. Multiplied, these are the completed law.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int32
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.cells import worst_cells
from tokenlaw.stats.chain_laws import ROUNDING, KindLaws
from tokenlaw.stats.conditional_gate import ClassCounts, ClassLaws, class_log_es, conditional_log_e
from tokenlaw.stats.counts import Counts, Law
from tokenlaw.stats.driver import Step, uniforms
from tokenlaw.stats.prefix_cells import PrefixCells
from tokenlaw.stats.scenario import Tables

MOST_GROUPS = 61
"""Tokens of larger vocabularies are counted modulo this. A prime: kernels err at powers of two."""

MOST_CELLS = 3
"""Cells that a finding shows."""

Masses = Float64[np.ndarray, "positions ways contexts vocabulary"]


class WorstClass(NamedTuple):
    """A class of prefixes: where it stands, what came next, how often it should, and the name of a cell."""

    place: str
    counts: Counts
    law: Law
    name: Callable[[int], str]


class PrefixTally:
    """Counts of one kind of rows, all of which have K drafts.

    Parameters
    ----------
    tables : of a scenario of one kind, on the device to be used.
    laws : of that kind.
    claims : what the verifier is held to.
    seed : of the run, for the hash and the completions.

    Attributes
    ----------
    laws : ``[K + 1, classes, 2 * groups]`` under the textbook's rule, tokens that go on before those that
        end a row; else ``[K + 1, classes, groups]``.
    """

    def __init__(self, tables: Tables, laws: KindLaws, *, claims: str, seed: int) -> None:
        self._tables, self._textbook = tables, claims == TEXTBOOK
        scenario, self._contexts = tables.scenario, tables.scenario.contexts
        self._groups = min(scenario.vocabulary, MOST_GROUPS)
        self._cells = PrefixCells(
            scenario.drafts + 1,
            scenario.vocabulary,
            self._contexts,
            self._groups,
            ends=self._textbook,
            seed=derived_key(seed, scenario.name, "hash"),
            device=tables.target.device,
        )
        target = laws.target[:, None]
        masses, doubtful = chain_masses(laws) if self._textbook else (target, np.zeros_like(target))
        by_class = self._by_class(masses)
        self.laws: ClassLaws = by_class / by_class.sum(-1, keepdims=True)
        # What only rounding may bring about isn't counted, where it has a cell of its own.
        self._left_out = (self.laws == 0) & (self._by_class(doubtful) > 0)
        size = math.prod(self._cells.shape)
        self._counts = torch.zeros(size, dtype=torch.int64, device=tables.target.device)
        self._key, self._rows = derived_key(seed, scenario.name, "completions"), 0

    def _by_class(self, masses: Masses) -> ClassLaws:
        """The masses of each group of tokens, once for each class of a context."""
        positions, ways, contexts, _ = masses.shape
        grouped = np.stack([masses[..., token :: self._groups].sum(-1) for token in range(self._groups)], -1)
        by_context = grouped.transpose(0, 2, 1, 3).reshape(positions, contexts, ways * self._groups)
        return np.repeat(by_context, self._cells.hashes, axis=1)

    def add(self, step: Step) -> None:
        """Count the rows of one call."""
        ones = torch.ones_like(step.kinds)
        for cells in self._cells.of(step.columns.entries if self._textbook else self._completed(step)):
            self._counts.index_add_(0, cells, ones)

    def _completed(self, step: Step) -> list[Int32[Tensor, " batch"]]:
        """The entries of a step, each row extended by target-only sampling."""
        samples = torch.arange(self._rows, self._rows + len(step.kinds), device=step.kinds.device)
        self._rows += len(step.kinds)
        completed, before = [], torch.zeros_like(step.kinds)
        for position, numbers in enumerate(uniforms(self._key, samples, step.emitted.shape[1])):
            rows = self._tables.row(step.kinds, position, before)
            drawn = self._tables.completing.draw(position, rows, numbers)
            before = torch.where(step.emitted[:, position] == NO_TOKEN, drawn, step.emitted[:, position])
            completed.append(before.int().add_(1))
        return completed

    def counts(self) -> ClassCounts:
        """Counts in the shape of the laws."""
        counts = self._counts.cpu().numpy().reshape(self._cells.shape)[..., :-1]
        return np.where(self._left_out, 0, counts)

    def log_e(self) -> float:
        """Log e-value of the counts."""
        return conditional_log_e(self.counts(), self.laws)

    def tokens(self, *, first: int = 0) -> int:
        """Tokens that were counted, from a position on."""
        return int(self.counts()[first:].sum())

    def cells(self) -> int:
        """Cells of a law with as many degrees of freedom as those of all classes that were met."""
        met = self.counts().any(-1)
        return 1 + int((np.count_nonzero(self.laws, -1) - 1)[met].sum())

    def finding(self) -> str:
        """The class that speaks most against its law, with its worst cells."""
        worst = self.worst()
        lines = [
            f"    {worst.name(cell.cell)}: {cell.observed} times, expected {cell.expected:.1f} "
            f"(p = {cell.p_value:.1e})"
            for cell in worst_cells(worst.counts, worst.law, most=MOST_CELLS)
        ]
        return "\n".join([f"  {worst.place}, {int(worst.counts.sum())} tokens:", *lines])

    def worst(self) -> WorstClass:
        """The class that speaks most against its law."""
        counts = self.counts()
        places = np.argwhere(counts.any(-1))
        chosen = tuple(places.T)
        impossible = (counts[chosen] * (self.laws[chosen] == 0)).sum(-1)
        weights = class_log_es(np.where(self.laws[chosen] == 0, 0, counts[chosen]), self.laws[chosen]).max(-1)
        position, index = places[np.lexsort((weights, impossible))[-1]].tolist()
        name = partial(self._named, position)
        return WorstClass(
            self._place(position, index), counts[position, index], self.laws[position, index], name
        )

    def _place(self, position: int, index: int) -> str:
        """Where a class of prefixes stands, in words."""
        if not position:
            return "at position 0"
        context, part = divmod(index, self._cells.hashes)
        before = f"the token before is {context} modulo {self._contexts}, " if self._contexts > 1 else ""
        return f"at position {position}, where {before}hash {part} of {self._cells.hashes}"

    def _named(self, position: int, cell: int) -> str:
        """What a cell stands for."""
        way, group = divmod(cell, self._groups)
        token = f"token {group}"
        if self._groups < self._tables.scenario.vocabulary:
            token = f"a token that is {group} modulo {self._groups}"
        if not self._textbook:
            return token
        if position == len(self.laws) - 1:
            return f"{token} after all drafts"
        return f"{token} in place of a rejected draft" if way else f"draft accepted, {token}"


def chain_masses(laws: KindLaws) -> tuple[Masses, Masses]:
    """Masses ``[K + 1, 2, contexts, V]`` of going on with a token and of ending with one, by the chain rule.

    Returns
    -------
    The masses, and a mask in their shape: 1 where only rounding may bring about a token that ends a row.
    """
    positions, contexts, vocabulary = laws.target.shape
    masses = np.zeros((positions, 2, contexts, vocabulary))
    doubtful = np.zeros_like(masses)
    target, draft = laws.target[:-1], laws.draft
    close = np.abs(target - draft) <= ROUNDING * np.maximum(target, draft)
    masses[:-1, 0] = np.minimum(target, draft)
    masses[:-1, 1] = np.where(close, 0.0, np.maximum(target - draft, 0.0))
    masses[-1, 0] = laws.target[-1]
    doubtful[:-1, 1] = close
    return masses, doubtful
