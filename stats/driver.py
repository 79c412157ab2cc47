"""Asks a verifier about samples of a scenario, and hands what it emitted to a tally.

Sample i of a scenario has its kind, its drafts and its row seed from Philox with counter i, so they don't
depend on how samples are split into calls, on processes or on devices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.philox import derived_key, philox
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters
from tokenlaw.stats.protocol import Columns, check_drafts, check_emitted
from tokenlaw.stats.scenario import Tables

SMALL_CALLS = (1, 2, 3, 5, 8, 13, 32)
"""Sizes of the first calls of a scenario: some engines have paths of their own for small batches."""

FIRST_OF_ONE_KIND, OF_ONE_KIND = sum(SMALL_CALLS), 512
"""From which sample on the next so many are asked kind by kind, a call for each: engines have paths for
batches that are greedy throughout, or have no drafts at all. Kinds are drawn as ever, so that counts of them
stay independent."""

PADDING, PADDED_LOGIT = 3, 50.0
"""Places behind the vocabulary in every second call, and the logit that stands there, to win any draw."""

AHEAD = 2**15
"""Samples whose numbers are drawn at once: for a few rows they cost nearly as much as for thousands."""

STRETCH = 64
"""Seeds of every second so many rows count up."""

LARGEST_SEED = 2**31 - 1
"""Seeds of calls and rows stay below this: some engines take 32 bits, signed."""


Numbers = list[Float64[Tensor, " batch"]]
"""Uniform numbers, one for each row in every tensor."""


@dataclass(frozen=True)
class Step:
    """One call: what was asked, and what came back.

    Attributes
    ----------
    kinds : int64 ``[B]``, which kind each row is.
    batch : what the verifier was given.
    emitted : int64 ``[B, K + 1]``, checked.
    columns : the same, position by position.
    """

    kinds: Int64[Tensor, " batch"]
    batch: VerifyBatch
    emitted: Int64[Tensor, "batch drafts+1"]
    columns: Columns


class Driver:
    """Runs samples of one scenario through one verifier.

    Parameters
    ----------
    verifier : a `tokenlaw.spec.generation_contracts.Verifier`.
    tables : of the scenario, on the device to be used.
    seed : of the run.
    """

    def __init__(self, verifier: Any, tables: Tables, seed: int) -> None:
        self.verifier, self.tables = verifier, tables
        self._target_logits, self._draft_logits = map(_LogitRows, (tables.target_logits, tables.draft_logits))
        self._key = derived_key(seed, tables.scenario.name, "samples")
        self._number = derived_key(seed, tables.scenario.name, "row seeds") % LARGEST_SEED
        self._seed = seed

    def steps(self, first: int, last: int, rows: int) -> Iterator[Step]:
        """The calls for samples ``first`` .. ``last - 1``, of ``rows`` rows each, smaller ones first."""
        at, (kinds, numbers) = first, self.drawn(first, min(first + AHEAD, last))
        for start, end in _calls(first, last, rows):
            if end > at + len(kinds):
                at, (kinds, numbers) = start, self.drawn(start, max(end, min(start + AHEAD, last)))
            asked = slice(start - at, end - at)
            chosen = kinds[asked], [some[asked] for some in numbers]
            if (start, end - start) == (FIRST_OF_ONE_KIND, OF_ONE_KIND):
                yield from self._kind_by_kind(*chosen, start)
            else:
                yield self.ask(*chosen, self.call_seed(start))

    def _kind_by_kind(self, kinds: Int64[Tensor, " batch"], numbers: Numbers, start: int) -> Iterator[Step]:
        """One call for the rows of each kind."""
        for kind in sorted(set(kinds.tolist())):
            mine = kinds == kind
            yield self.ask(kinds[mine], [some[mine] for some in numbers], self.call_seed(start, kind))

    def step(self, first: int, last: int) -> Step:
        """One call for samples ``first`` .. ``last - 1``.

        Raises
        ------
        ProtocolError
            What came back isn't what the contract asks for.
        """
        kinds, numbers = self.drawn(first, last)
        return self.ask(kinds, numbers, self.call_seed(first))

    def drawn(self, first: int, last: int) -> tuple[Int64[Tensor, " batch"], Numbers]:
        """Kinds and numbers of samples ``first`` .. ``last - 1``, for `ask` or `batch`."""
        samples = torch.arange(first, last, device=self.tables.target.device)
        scenario = self.tables.scenario
        kind, *numbers = uniforms(self._key, samples, 1 + scenario.drafts + 2 * scenario.seeded)
        if scenario.seeded:
            numbers[scenario.drafts :] = self._numbered(samples, *numbers[scenario.drafts :])
        return (kind * len(scenario.kinds)).long(), numbers

    def _numbered(self, samples: Int64[Tensor, " batch"], *random: Float64[Tensor, " batch"]) -> Numbers:
        """The numbers for row seeds, so that in every second stretch of rows all have seeds that count up.

        Users number their requests, and numbers of seeds next to each other must be independent as well.
        """
        counted = samples // STRETCH % 2 == 1
        seeds = ((samples + self._number) % LARGEST_SEED).double().add_(0.5) / LARGEST_SEED
        upward = (seeds, torch.zeros_like(seeds))
        return [torch.where(counted, up, other) for up, other in zip(upward, random, strict=True)]

    def call_seed(self, *names: int | str) -> int:
        """Seed of one call."""
        return derived_key(self._seed, self.tables.scenario.name, "call", *names) % LARGEST_SEED

    def ask(self, kinds: Int64[Tensor, " batch"], numbers: Numbers, seed: int) -> Step:
        """One call for rows of given kinds; K random numbers a row for drafts, and two for row seeds."""
        batch = self.batch(kinds, numbers, seed)
        emitted = self.verifier.verify(batch, seed=seed)
        return Step(kinds, batch, emitted, check_emitted(emitted, batch))

    def batch(self, kinds: Int64[Tensor, " batch"], numbers: Numbers, seed: int) -> VerifyBatch:
        """The batch of a call, its drafts drawn."""
        tables, scenario = self.tables, self.tables.scenario
        params = _parameters(tables.params, kinds)
        if scenario.seeded:
            params = _seeded(params, numbers[scenario.drafts :])
        view = bool(seed & 1)
        before = torch.zeros_like(kinds)
        drafts, rows = list[Tensor](), list[Tensor]()
        for position in range(scenario.drafts + 1):
            rows.append(tables.row(kinds, position, before))
            if position == scenario.drafts:
                break
            if scenario.own_drafter:
                logits = self._draft_logits.at(position, rows[-1], view=view)
                before = self.verifier.draft(logits, params, position=position, seed=seed)
                check_drafts(before, position, len(kinds), scenario.vocabulary, kinds.device)
                before = before.clone()  # a drafter may have one buffer for all positions
            else:
                before = self.drafted(position, rows[-1], numbers)
            drafts.append(before)
        return VerifyBatch(
            torch.stack(drafts, 1) if drafts else kinds.new_empty((len(kinds), 0)),
            tables.lengths.index_select(0, kinds),
            self._target_logits.along(rows, len(kinds), view=view),
            None if scenario.deterministic else self._draft_logits.along(rows[:-1], len(kinds), view=view),
            params,
        )

    def drafted(
        self, position: int, rows: Int64[Tensor, " batch"], numbers: Numbers
    ) -> Int64[Tensor, " batch"]:
        """Drafts of the harness at one position, drawn from these rows of the flattened table."""
        return self.tables.drawn.draw(position, rows, numbers[position])


def _calls(first: int, last: int, rows: int) -> Iterator[tuple[int, int]]:
    """First sample of each call, and the one behind its last."""
    start = first
    for size in [*SMALL_CALLS, OF_ONE_KIND] if first == 0 else []:
        if start + size <= last and size <= rows:
            yield start, start + size
            start += size
    for begin in range(start, last, rows):
        yield begin, min(begin + rows, last)


def _parameters(params: RowParameters, kinds: Int64[Tensor, " batch"]) -> RowParameters:
    """Parameters of rows of these kinds; of one kind only, all share its memory."""
    parts = (params.temperature, params.top_k, params.top_p, params.min_p)
    if len(params.temperature) == 1:
        return RowParameters(*(part.expand(len(kinds)) for part in parts))
    return RowParameters(*(part.index_select(0, kinds) for part in parts))


class _LogitRows:
    """Rows of a table of logits; where it has one for each position only, all share its memory.

    Views are of rows that go on behind the vocabulary, as those of models whose vocabulary is padded.
    """

    def __init__(self, table: Float[Tensor, "kinds positions contexts vocabulary"]) -> None:
        self._size, self._vocabulary = table.shape[0] * table.shape[2], table.shape[3]
        longer = torch.nn.functional.pad(table, (0, PADDING), value=PADDED_LOGIT)
        self._rows, self._longer = (one.transpose(0, 1).flatten(0, 2) for one in (table, longer))

    def at(
        self, position: int, rows: Int64[Tensor, " batch"], *, view: bool
    ) -> Float[Tensor, "batch vocabulary"]:
        """Of one position; ``rows`` are those of `tokenlaw.stats.scenario.Tables.row`."""
        if self._size == 1:
            return self._all(view)[position].expand(len(rows), -1)[:, : self._vocabulary]
        return self._all(view).index_select(0, rows + position * self._size)[:, : self._vocabulary]

    def along(
        self, rows: list[Int64[Tensor, " batch"]], batch: int, *, view: bool
    ) -> Float[Tensor, "batch positions vocabulary"]:
        """Of as many positions as there are columns of rows."""
        table = self._all(view)
        if self._size == 1 or not rows:
            return table[: len(rows)].expand(batch, -1, -1)[..., : self._vocabulary]
        places = torch.stack([column + position * self._size for position, column in enumerate(rows)], 1)
        # index_select is several times as fast as indexing.
        found = table.index_select(0, places.flatten()).reshape(*places.shape, table.shape[1])
        return found[..., : self._vocabulary]

    def _all(self, view: bool) -> Float[Tensor, "rows longer"]:
        """Rows of all positions, one position after the other."""
        return self._longer if view else self._rows


def _seeded(params: RowParameters, numbers: Numbers) -> RowParameters:
    """The parameters with a seed for the rows whose second number is below a half."""
    seeds = torch.where(numbers[1] < 0.5, (numbers[0] * LARGEST_SEED).long(), UNSEEDED)
    return RowParameters(params.temperature, params.top_k, params.top_p, params.min_p, seeds)


def uniforms(key: int, samples: Int64[Tensor, " batch"], count: int) -> Numbers:
    """Uniform numbers in [0, 1) of 32 bits, ``count`` for each sample: one word of Philox each.

    Shorter than those of `tokenlaw.spec.philox.uniforms`: they only choose kinds and drafts, where a law that
    is off by 2^-32 can't be told from the exact one.
    """
    mask = 2**32 - 1
    zero = torch.zeros_like(samples)
    numbers: Numbers = []
    for block in range(-(-count // 4)):
        words = philox((samples & mask, samples >> 32, zero + block, zero), (key & mask, key >> 32))
        numbers += [word.double().mul_(2.0**-32) for word in words]
    return numbers[:count]
