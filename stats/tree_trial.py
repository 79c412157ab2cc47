"""Speculation with several candidates: trees of drafts, whose emitted tokens are completed and counted.

Whatever the rule, its completed law must be target-only; so one check serves all of them. Trees are tried
with siblings drawn with and without replacement, and with the most probable tokens of a draft as candidates.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import TreeBatch
from tokenlaw.spec.philox import derived_key, uniforms
from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.driver import LARGEST_SEED
from tokenlaw.stats.e_values import average_log_e, log10_of
from tokenlaw.stats.measures import PoissonMeasure
from tokenlaw.stats.protocol import check_tree
from tokenlaw.stats.row_kinds import Make
from tokenlaw.stats.scenario import Tables, without
from tokenlaw.stats.scenarios import TREE_FILTERS, TREE_KINDS, make_scenario
from tokenlaw.stats.tally import complete
from tokenlaw.stats.tree_drafts import draw_tree
from tokenlaw.stats.trial import kind_laws, poisson_size

ROOT = -1

SHAPES: dict[str, tuple[int, ...]] = {
    "two candidates": (ROOT, ROOT),
    "four candidates": (ROOT, ROOT, ROOT, ROOT),
    "two by two": (ROOT, ROOT, 0, 0, 1, 1),
    "one deep, one shallow": (ROOT, 0, 1, ROOT),
}
"""Parents of the nodes of each tree; the last one is numbered depth first, the others level by level."""

DRAWN_WITH, DRAWN_WITHOUT, LIKELIEST = "with replacement", "without replacement", "likeliest candidates"
WAYS = (DRAWN_WITH, DRAWN_WITHOUT, LIKELIEST)

_TREES = {f"{shape}, {way}": (shape, way) for shape in SHAPES for way in WAYS}
TREE_NAMES = tuple(_TREES)
"""Every shape, drawn in every way."""


def tree_kinds(name: str) -> tuple[Make, ...]:
    """Makers of the kinds of rows of one of `TREE_NAMES`: truncations and greedy rows in every second one."""
    return (TREE_KINDS, TREE_FILTERS)[TREE_NAMES.index(name) % 2]


VOCABULARY = 5


@dataclass(frozen=True)
class TreeResult:
    """One tree, drawn in one way.

    Attributes
    ----------
    name : of the tree and the way.
    log_e : average over the kinds of rows.
    samples : rows.
    later : rows in which a first candidate was rejected.
    worst : the kind that is farthest off, in words.
    expected, cells : mean number of samples of each kind, and possible outcomes of each.
    kinds : how many of them there are.
    """

    name: str
    log_e: float
    samples: int
    later: int
    worst: str
    expected: float
    cells: int
    kinds: int


class TreeTrial:
    """One shape of tree and one way to draw it, on kinds of rows of order 1.

    Parameters
    ----------
    verifier : with ``verify_tree``.
    name : one of `TREE_NAMES`.
    seed, device : of the run.
    refused : rows that the verifier doesn't take, of `tokenlaw.spec.generation_contracts.REFUSALS`.
    """

    def __init__(
        self, verifier: Any, name: str, *, seed: int, device: str, refused: frozenset[str] = frozenset()
    ) -> None:
        shape, self._way = _TREES[name]
        self._verifier, self._parents = verifier, SHAPES[shape]
        self.name, self._seed = name, seed
        self._depths = node_depths(self._parents)
        depth = max(self._depths)
        scenario = make_scenario(
            f"tree: {self.name}",
            tree_kinds(name),
            vocabulary=VOCABULARY,
            drafts=depth,
            share=1.0,
            seed=seed,
            ragged=False,
        )
        self._tables = Tables.of(without(scenario, refused) or scenario, device)
        self._laws = kind_laws(self._tables)
        self._measures = [PoissonMeasure(completed(laws), strict=True) for laws in self._laws]

    def run(self, mean: float, rows: int, most: int | None = None) -> TreeResult:
        """Verify a Poisson number of rows, in calls of so many rows; none if it exceeds ``most``."""
        names = (self._seed, self._tables.scenario.name)
        size = poisson_size(mean, *names)
        if most is not None and size > most:
            size, mean = 0, 0.0
        outcomes, later = self._counted(size, rows)
        expected = mean / len(self._measures)
        log_es = [
            measure.log_e(complete(outcomes[index], laws, *names, index), expected)
            for index, (measure, laws) in enumerate(zip(self._measures, self._laws, strict=True))
        ]
        worst = int(np.argmax(log_es))
        kind = self._tables.scenario.kinds[worst].name
        text = (
            f"Tree of {self.name}, rows of kind {kind!r}: log10 e = {log10_of(log_es[worst])} after "
            f"{size} rows."
        )
        average = average_log_e(log_es, [1 / len(log_es)] * len(log_es))
        cells = max(measure.cells for measure in self._measures)
        return TreeResult(self.name, average, size, later, text, expected, cells, len(log_es))

    def _counted(self, size: int, rows: int) -> tuple[np.ndarray, int]:
        """Counts ``[kinds] + [V + 1] * (depth + 1)`` of emitted tokens."""
        depth, kinds = max(self._depths), len(self._measures)
        base = VOCABULARY + 1
        counts = torch.zeros(
            kinds * base ** (depth + 1), dtype=torch.int64, device=self._tables.target.device
        )
        later = 0
        for first in range(0, size, rows):
            chosen, batch = self._batch(first, min(first + rows, size))
            seed = derived_key(self._seed, self.name, first) % LARGEST_SEED
            emitted = self._verifier.verify_tree(batch, seed=seed)
            check_tree(emitted, batch)
            powers = torch.tensor([base**place for place in range(depth, -1, -1)], device=emitted.device)
            cells = chosen * base ** (depth + 1) + ((emitted + 1) * powers).sum(-1)
            counts += torch.bincount(cells, minlength=len(counts))
            later += int((emitted[:, 0] != batch.tokens[:, 0]).sum())
        return counts.cpu().numpy().reshape((kinds,) + (base,) * (depth + 1)), later

    def _batch(self, first: int, last: int) -> tuple[Int64[Tensor, " batch"], TreeBatch]:
        tables, parents = self._tables, self._parents
        samples = torch.arange(first, last, device=tables.target.device)
        numbers = uniforms(derived_key(self._seed, self.name, "samples"), samples, 1 + len(parents))
        kinds = (numbers[:, 0] * len(self._measures)).long()
        tokens = self._drawn(kinds, numbers[:, 1:])
        target, draft = [], []
        for node in range(ROOT, len(parents)):
            place = 0 if node == ROOT else self._depths[node]
            before = kinds if node == ROOT else tokens[:, node]
            rows = tables.row(kinds, place, before)
            target.append(tables.target_logits[:, place].flatten(0, 1)[rows])
            deepest = min(place, tables.scenario.drafts - 1)
            draft.append(tables.draft_logits[:, deepest].flatten(0, 1)[rows])
        batch = TreeBatch(
            tokens,
            parents,
            torch.stack(target, 1),
            None if self._way == LIKELIEST else torch.stack(draft, 1),
            self._way == DRAWN_WITH,
            tables.params.rows(kinds),
        )
        return kinds, batch

    def _drawn(self, kinds: Tensor, numbers: Tensor) -> Int64[Tensor, "batch nodes"]:
        tables = self._tables

        def law_of(depth: int, before: Tensor) -> Tensor:
            return tables.draft[:, depth].flatten(0, 1)[tables.row(kinds, depth, before)]

        if self._way == LIKELIEST:
            return self._likeliest(law_of, len(kinds))
        return draw_tree(self._parents, law_of, numbers, self._way == DRAWN_WITH)

    def _likeliest(self, law_of: Any, rows: int) -> Int64[Tensor, "batch nodes"]:
        """The most probable tokens of the draft as children of every node."""
        parents = self._parents
        tokens = torch.zeros(rows, len(parents), dtype=torch.int64, device=self._tables.target.device)
        for parent in sorted(set(parents)):
            depth = 0 if parent == ROOT else self._depths[parent]
            law = law_of(depth, tokens[:, parent] if parent != ROOT else tokens[:, 0])
            order = torch.argsort(law, dim=-1, descending=True, stable=True)
            for place, node in enumerate(node for node, up in enumerate(parents) if up == parent):
                tokens[:, node] = order[:, place]
        return tokens


def node_depths(parents: tuple[int, ...]) -> list[int]:
    """Depth of each node, 1 for the children of the root.

    >>> node_depths((-1, 0, 1, -1))
    [1, 2, 3, 1]
    """
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    return depths
