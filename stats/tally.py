"""Counts of outcomes: every cell of the joint law, as long as there are few enough of them."""

import numpy as np
import torch
from jaxtyping import Float64, Int64

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
        pairs = len(scenario.kinds) * scenario.drafts * scenario.vocabulary**2 + 1  # the last: none
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
        self._outcomes += torch.bincount(cells + self._shift, minlength=len(self._outcomes))
        if self._scenario.drafts:
            self._add_pairs(step)
        if self._scenario.own_drafter:
            self._add_drafts(step)

    def _add_pairs(self, step: Step) -> None:
        last = (step.emitted >= 0).sum(-1) - 1
        place = last.clamp(max=self._scenario.drafts - 1)[:, None]
        cells = place[:, 0].add(step.kinds, alpha=self._scenario.drafts)
        for tokens in (step.batch.draft_tokens, step.emitted):
            cells = tokens.gather(1, place)[:, 0].add(cells, alpha=self._scenario.vocabulary)
        cells = cells.where(last < step.batch.num_draft_tokens, len(self._pairs) - 1)
        self._pairs += torch.bincount(cells, minlength=len(self._pairs))

    def _add_drafts(self, step: Step) -> None:
        cells = step.kinds
        for position in range(self._scenario.drafts):
            cells = cells * self._scenario.vocabulary + step.batch.draft_tokens[:, position]
        self._drafts += torch.bincount(cells, minlength=len(self._drafts))

    def outcomes(self) -> Counts:
        """Counts ``[kinds] + [V + 1] * (K + 1)``."""
        shape = (len(self._scenario.kinds),) + (self._base,) * (self._scenario.drafts + 1)
        return self._outcomes.cpu().numpy().copy().reshape(shape)

    def pairs(self) -> Counts:
        """Counts ``[kinds, K, V, V]`` of rejected draft and recovered token by position."""
        size = self._scenario.vocabulary
        return self._pairs[:-1].cpu().numpy().copy().reshape(-1, max(self._scenario.drafts, 1), size, size)

    def drafts(self) -> Counts:
        """Counts ``[kinds] + [V] * K`` of what the implementation's own drafter drew; empty without one."""
        if not self._scenario.own_drafter:
            return np.zeros((len(self._scenario.kinds), 0), dtype=np.int64)
        shape = (len(self._scenario.kinds),) + (self._scenario.vocabulary,) * self._scenario.drafts
        return self._drafts.cpu().numpy().copy().reshape(shape)


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
