"""The programs whose laws are enumerated: draft, verify, and hand over what was emitted.

What the harness itself draws (kinds of rows, drafts) is decided by the tape too, with exact weights. So one
enumeration has everything that can happen, and drafts that share random numbers with the verification are
seen exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.spec.draft_trees import (
    ROOT,
    most_probable,
    siblings_before,
    with_replacement,
    without_replacement,
)
from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.driver import LARGEST_SEED, Driver, Numbers
from tokenlaw.stats.enumeration.choices import Draw
from tokenlaw.stats.enumeration.states import current
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.protocol import ProtocolError, check_emitted, check_tree
from tokenlaw.stats.proving_cases import Case
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.tree_trial import DRAWN_WITH, LIKELIEST, node_depths


@dataclass(frozen=True)
class Illegal:
    """Stands for tokens where an answer broke the contract."""

    message: str

    def __str__(self) -> str:
        return f"no legal answer: {self.message}"


Outcome = tuple[tuple[int, ...], tuple[Tokens | Illegal, ...]]
"""Kinds of some rows, and the tokens that each of them emitted."""

KIND, DRAFT, CANDIDATE = "kind of row", "draft", "candidate"
"""What the harness draws."""


def chosen(weights: Sequence[float], what: str, row: int = 0) -> int:
    """One of several values, decided by the tape of the enumeration that is running.

    Rows of a batch that follow one path together have that of row 0.
    """
    tape = current.get()
    assert isinstance(tape, Tape)
    total = sum(weights)
    return tape.choose([weight / total for weight in weights], Draw(what), row if tape.rows > 1 else 0)


class EnumeratedDriver(Driver):
    """Builds batches whose drafts the tape decides, unless the implementation draws them."""

    def drafted(
        self, position: int, rows: Int64[Tensor, " batch"], numbers: Numbers
    ) -> Int64[Tensor, " batch"]:
        """One draft for each row; what stands behind a row's last draft says nothing, and is no choice."""
        laws = self.tables.draft[:, position].flatten(0, 1)[rows].tolist()
        lengths = self.tables.lengths[rows // self.tables.scenario.contexts].tolist()
        tokens = [
            chosen(law, f"{DRAFT} {position}", row) if position < length else 0
            for row, (law, length) in enumerate(zip(laws, lengths, strict=True))
        ]
        return torch.tensor(tokens, dtype=torch.int64, device=rows.device)


class Program:
    """One case of one verifier: called without arguments, it does what is enumerated.

    Every run has other seeds. For who draws random numbers where they can be decided that changes nothing;
    who makes them of the seed in another way gives something else for the same choices, and is found out.

    Parameters
    ----------
    make : builds the verifier.
    case : what is asked.
    seed : of the run.
    device : of all tensors.
    rows : how many rows follow a path of their own.
    first : number of the first run; a run's seeds depend on its number.
    afresh : whether the verifier is built again for every run.

    Attributes
    ----------
    verified : rows that the verifier was given.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        case: Case,
        *,
        seed: int,
        device: str,
        rows: int = 1,
        first: int = 0,
        afresh: bool = False,
    ) -> None:
        self.case, self.tables = case, Tables.of(case.scenario, device)
        self._make, self._afresh, self._verifier = make, afresh, None if afresh else make()
        self._seed, self._rows, self._runs = seed, rows, count(first)
        self.verified = 0

    def __call__(self) -> list[Outcome]:
        """One outcome for each path that the run follows."""
        run = next(self._runs)
        verifier = self._make() if self._afresh else self._verifier
        if self.case.group:
            kinds = sum(self.case.group, ())
            return [(kinds, self._together(verifier, run))]
        drawn = [chosen([1.0] * len(self.case.scenario.kinds), KIND, row) for row in range(self._rows)]
        if self._rows == 1:
            return [((drawn[0],), self._or_illegal(lambda: self._call(verifier, drawn, run, 0)))]
        emitted = self._call(verifier, drawn, run, 0)
        return [((kind,), (tokens,)) for kind, tokens in zip(drawn, emitted, strict=True)]

    def _together(self, verifier: Any, run: int) -> tuple[Tokens, ...]:
        """Tokens of all rows of a group."""

        def calls() -> list[Tokens]:
            made = [self._call(verifier, list(kinds), run, at) for at, kinds in enumerate(self.case.group)]
            return [tokens for rows in made for tokens in rows]

        return self._or_illegal(calls)

    @staticmethod
    def _or_illegal(work: Callable[[], list[Tokens]]) -> tuple[Any, ...]:
        """Tokens of some rows; where the answer isn't a legal one, what is wrong with it."""
        try:
            return tuple(work())
        except ProtocolError as error:
            return (Illegal(str(error)),)

    def _call(self, verifier: Any, kinds: list[int], run: int, number: int) -> list[Tokens]:
        """Tokens that each row emits."""
        self.verified += len(kinds)
        seed = derived_key(self._seed, self.case.name, run, number) % LARGEST_SEED
        rows = torch.tensor(kinds, device=self.tables.target.device)
        if self.case.parents:
            tree = tree_batch(self.case, self.tables, rows)
            emitted = verifier.verify_tree(tree, seed=seed)
            check_tree(emitted, tree)
        else:
            batch = EnumeratedDriver(verifier, self.tables, self._seed).batch(rows, [], seed)
            emitted = verifier.verify(batch, seed=seed)
            check_emitted(emitted, batch)
        return [tuple(token for token in row if token != NO_TOKEN) for row in emitted.tolist()]


def tree_batch(case: Case, tables: Tables, kinds: Int64[Tensor, " batch"]) -> TreeBatch:
    """A batch of trees, whose tokens the tape decides node by node, each after its earlier siblings."""
    parents, depths = case.parents, [0, *node_depths(case.parents)]
    drawn = [_tree_tokens(case, tables, kind, row) for row, kind in enumerate(kinds.tolist())]
    tokens = torch.tensor(drawn, device=kinds.device)
    target, draft = [], []
    for node in range(ROOT, len(parents)):
        before = kinds if node == ROOT else tokens[:, node]
        rows, depth = tables.row(kinds, depths[node + 1], before), depths[node + 1]
        target.append(tables.target_logits[:, depth].flatten(0, 1)[rows])
        deepest = min(depth, tables.scenario.drafts - 1)
        draft.append(tables.draft_logits[:, deepest].flatten(0, 1)[rows])
    draft_logits = None if case.way == LIKELIEST else torch.stack(draft, 1)
    params = tables.params.rows(kinds)
    return TreeBatch(tokens, parents, torch.stack(target, 1), draft_logits, case.way == DRAWN_WITH, params)


def _tree_tokens(case: Case, tables: Tables, kind: int, row: int) -> Tokens:
    """Tokens of one row's tree."""
    parents, depths = case.parents, [0, *node_depths(case.parents)]
    siblings = {DRAWN_WITH: with_replacement, LIKELIEST: most_probable}.get(case.way, without_replacement)
    tokens: Tokens = ()
    for node, parent in enumerate(parents):
        context = 0 if parent == ROOT else tokens[parent] % tables.scenario.contexts
        law = tuple(tables.draft[kind, depths[parent + 1], context].tolist())
        rest = siblings(law, siblings_before(node, tokens, parents))
        tokens = (*tokens, chosen(rest, f"{CANDIDATE} {node}", row))
    return tokens
