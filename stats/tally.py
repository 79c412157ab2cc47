"""Counts of outcomes: every cell of the joint law, as long as there are few enough of them."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.chain_laws import KindLaws
from tokenlaw.stats.driver import Step
from tokenlaw.stats.scenario import Tables

Counts = Int64[np.ndarray, "*cells"]


class JointTally:
    """Counts every tuple of emitted tokens of every kind, and pairs (rejected draft, recovered token).

    Parameters
    ----------
    tables : of the scenario.
    seed : of the run, for the completions.

    Cells are those of `tokenlaw.stats.chain_laws`. All counts stay on the device until they're asked for.
    """

    def __init__(self, tables: Tables, seed: int) -> None:
        scenario = tables.scenario
        self._scenario, self._seed = scenario, seed
        self._base = scenario.vocabulary + 1
        device = tables.target.device
        cells = self._base ** (scenario.drafts + 1)
        self._shift = (cells - 1) // scenario.vocabulary  # no token counts as 0, token 0 as 1
        self._outcomes = torch.zeros(len(scenario.kinds) * cells, dtype=torch.int64, device=device)
        self._rejections = _Rejections.of(tables)
        # Behind the pairs of all kinds stand those of rows without a rejection.
        pairs = (len(scenario.kinds) * scenario.drafts * scenario.vocabulary + 1) * scenario.vocabulary
        self._pairs = torch.zeros(pairs, dtype=torch.int64, device=device)
        self._drafts = torch.zeros(
            len(scenario.kinds) * scenario.vocabulary**scenario.drafts if scenario.own_drafter else 0,
            dtype=torch.int64,
            device=device,
        )

    def add(self, step: Step) -> None:
        """Count the rows of one call."""
        cells = step.kinds
        for column in step.emitted.unbind(1):
            cells = column.add(cells, alpha=self._base)
        cells = cells + self._shift
        ones = torch.ones_like(cells)
        self._outcomes.index_add_(0, cells, ones)
        if self._scenario.drafts:
            pairs = self._rejections.pairs(cells, step.batch.draft_tokens)
            self._pairs.index_add_(0, pairs, ones)
        if self._scenario.own_drafter:
            cells = step.kinds
            for column in step.batch.draft_tokens.unbind(1):
                cells = column.add(cells, alpha=self._scenario.vocabulary)
            self._drafts.index_add_(0, cells, ones)

    def outcomes(self) -> Counts:
        """Counts ``[kinds] + [V + 1] * (K + 1)``."""
        shape = (len(self._scenario.kinds),) + (self._base,) * (self._scenario.drafts + 1)
        return self._outcomes.cpu().numpy().copy().reshape(shape)

    def pairs(self) -> Counts:
        """Counts ``[kinds, K, V, V]`` of rejected draft and recovered token by position."""
        size = self._scenario.vocabulary
        found = self._pairs[:-size].cpu().numpy().reshape(-1, max(self._scenario.drafts, 1), size, size)
        return found.swapaxes(-1, -2).copy()

    def drafts(self) -> Counts:
        """Counts ``[kinds] + [V] * K`` of what the implementation's own drafter drew; empty without one."""
        if not self._scenario.own_drafter:
            return np.zeros((len(self._scenario.kinds), 0), dtype=np.int64)
        shape = (len(self._scenario.kinds),) + (self._scenario.vocabulary,) * self._scenario.drafts
        return self._drafts.cpu().numpy().copy().reshape(shape)


@dataclass(frozen=True)
class _Rejections:
    """What an outcome of a kind tells of the rejected draft; looked up, as finding it anew takes far longer.

    Attributes
    ----------
    places : int64 ``[kinds * cells]``, its position; any, where no draft was rejected.
    recovered : int64, the same shape: number of (kind, position, recovered token), and behind all of them
        the one for rows without a rejection.
    vocabulary : V.
    """

    places: Int64[Tensor, " cells"]
    recovered: Int64[Tensor, " cells"]
    vocabulary: int

    @staticmethod
    def of(tables: Tables) -> "_Rejections":
        """For every cell of every kind, impossible ones too."""
        scenario, device = tables.scenario, tables.target.device
        drafts, size = scenario.drafts, scenario.vocabulary
        tokens = np.indices((size + 1,) * (drafts + 1)).reshape(drafts + 1, -1) - 1
        last = np.maximum((tokens >= 0).sum(0) - 1, 0)
        places = np.minimum(last, max(drafts - 1, 0))
        token = np.maximum(np.take_along_axis(tokens, last[None], 0)[0], 0)
        kinds = np.arange(len(scenario.kinds))[:, None]
        found = (kinds * drafts + places) * size + token
        rejected = last < tables.lengths.cpu().numpy()[:, None]
        recovered = np.where(rejected, found, len(kinds) * drafts * size)
        places = np.tile(places, len(kinds))
        return _Rejections(
            torch.tensor(places, device=device), torch.tensor(recovered.ravel(), device=device), size
        )

    def pairs(
        self, cells: Int64[Tensor, " batch"], draft_tokens: Int64[Tensor, "batch drafts"]
    ) -> Int64[Tensor, " batch"]:
        """Number of (kind, position, recovered token, rejected draft) of each row."""
        places = self.places.index_select(0, cells)
        rejected = draft_tokens.gather(1, places[:, None])[:, 0]
        return rejected.add_(self.recovered.index_select(0, cells), alpha=self.vocabulary)


def of_kind(counts: Counts, kind: int, length: int) -> Counts:
    """Counts of one kind, with one axis for each of its ``length + 1`` positions."""
    found = counts[kind]
    return np.asarray(found[(...,) + (0,) * (found.ndim - length - 1)])


def complete(counts: Counts, laws: KindLaws, *names: int | str) -> Counts:
    """Each counted outcome extended to ``length + 1`` tokens by target-only sampling.

    Draws numbers of outcomes, not outcomes, so that its cost doesn't grow with them. ``names`` seed it.

    Returns
    -------
    Counts ``[V] * (length + 1)``, of the same total.
    """
    generator = np.random.Generator(np.random.Philox(derived_key("completions", *names)))
    length = laws.length
    longer = np.zeros((), dtype=np.int64)
    for position in range(length + 1):
        ended = counts[(slice(1, None),) * (position + 1) + (0,) * (length - position)]
        if position:
            ended = ended + _drawn(generator, longer, laws.at(position))
        longer = ended
    return longer


def _drawn(
    generator: np.random.Generator, counts: Counts, laws: Float64[np.ndarray, "before vocabulary"]
) -> Counts:
    """The next token of so many sequences each; the last axis of the counts is the token before.

    What rounding leaves over goes to the last cell of numpy's multinomial: that must be the likeliest token,
    never an impossible one.
    """
    order = np.argsort(laws, axis=-1)
    ordered = np.take_along_axis(laws, order, -1)
    drawn = generator.multinomial(counts, np.broadcast_to(ordered, (*counts.shape, laws.shape[-1])))
    place = np.broadcast_to(order, drawn.shape)
    placed = np.zeros_like(drawn)
    np.put_along_axis(placed, place, drawn, -1)
    return placed
