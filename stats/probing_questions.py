"""The questions of a probe, each with one threshold, and the rows of a call that answer them.

Two kinds of questions, about a context (drafts of a kind of row) and a place behind some of its drafts:

- Is the draft at the place accepted at the number x? The drafts before it get the number 0, those behind it
  one that is nearly 1 (`tokenlaw.stats.probing_bounds.firm`).
- Does token v win the race against token r, when v has the noise x, r has 1 - x and every other token 2^60?
  It does for x below ``law[v] / (law[v] + law[r])``. The drafts before the place get the number 0, those from
  it on nearly 1, so that the place is where the step ends.

The answer is yes below the threshold and no from there on, which is tested and not taken for granted.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from tokenlaw.spec.generation_contracts import NO_TOKEN
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.driver import LARGEST_SEED
from tokenlaw.stats.guarded import Guarded
from tokenlaw.stats.probing_cases import Contexts
from tokenlaw.stats.protocol import check_emitted

FAR, NEAREST = 2.0**60, 2.0**-60
"""Noise of tokens that mustn't win, and the least noise of one that is asked about."""

ACCEPTANCE = -1
"""Stands for the rival where the question is about acceptance."""

BELOW_ONE = {torch.float32: 1 - 2.0**-24, torch.float64: 1 - 2.0**-53}
"""The largest number below 1 of each precision."""

Index = Int64[np.ndarray, " questions"]
Answers = Bool[np.ndarray, " questions"]
Numbers = Float64[np.ndarray, " questions"]


class Asker:
    """Asks a verifier about rows whose numbers are all chosen.

    Parameters
    ----------
    verifier : counts the rows.
    contexts : what rows are made of.
    has_noise : whether the verifier takes noise; else the seed draws the added tokens.
    seed : of the run; every call gets another one, since nothing may depend on it.
    """

    def __init__(self, verifier: Guarded, contexts: Contexts, *, has_noise: bool, seed: int) -> None:
        self.contexts, self.has_noise = contexts, has_noise
        self._verifier, self._seed, self._calls = verifier, seed, 0

    def emitted(
        self,
        index: Index,
        uniforms: Float64[np.ndarray, "rows drafts"],
        noise: Float64[np.ndarray, "rows drafts+1 v"],
    ) -> Int64[np.ndarray, "rows drafts+1"]:
        """Emitted tokens of rows of the contexts with these numbers, in as many calls as are needed."""
        size = self._verifier.at_most(len(index)) or 1
        parts = [slice(start, start + size) for start in range(0, len(index), size)]
        found = [self._call(index[part], uniforms[part], noise[part]) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, noise.shape[1]), dtype=np.int64)

    def _call(self, index: Index, uniforms: np.ndarray, noise: np.ndarray) -> np.ndarray:
        self._calls += 1
        device = self.contexts.batch.draft_tokens.device
        batch = self.contexts.batch.rows(torch.from_numpy(index).to(device))
        keywords = {"uniforms": torch.from_numpy(np.ascontiguousarray(uniforms)).to(device)}
        if self.has_noise:
            keywords["noise"] = torch.from_numpy(np.ascontiguousarray(noise)).to(device)
        seed = derived_key(self._seed, self.contexts.scenario.name, "call", self._calls) % LARGEST_SEED
        emitted = self._verifier.verify(batch, seed=seed, **keywords)
        check_emitted(emitted, batch)
        return np.asarray(emitted.cpu().numpy())


def accepted_of(emitted: Int64[np.ndarray, "rows positions"]) -> Int64[np.ndarray, " rows"]:
    """Number of accepted drafts."""
    return np.asarray((emitted != NO_TOKEN).sum(1) - 1)


def up_to(places: Index, drafts: int, rejecting: float) -> Float64[np.ndarray, "rows drafts"]:
    """Numbers that accept the drafts before a place, if that is possible, and reject those from it on."""
    return np.where(np.arange(drafts)[None] < places[:, None], 0.0, rejecting)


@dataclass(frozen=True)
class Questions:
    """Q questions.

    Attributes
    ----------
    context, place : of each, int64 ``[Q]``.
    token : the token that may win the race; of questions about acceptance the draft.
    rival : the other token of the race, or `ACCEPTANCE`.
    """

    context: Index
    place: Index
    token: Index
    rival: Index

    def __len__(self) -> int:
        return len(self.context)

    def of(self, chosen: np.ndarray) -> "Questions":
        """Some of them, by their numbers or by a mask."""
        return Questions(*(part[chosen] for part in (self.context, self.place, self.token, self.rival)))

    def answers(self, asker: Asker, x: Numbers, rejecting: float) -> tuple[Answers, Answers]:
        """Yes or no for each question at its number, and where neither token of a race won it."""
        emitted = asker.emitted(self.context, *self._numbers(asker.contexts, x, rejecting))
        accepted, last = accepted_of(emitted), emitted[np.arange(len(self)), self.place]
        is_race = self.rival != ACCEPTANCE
        ends_here = accepted == self.place
        won = ends_here & (last == self.token)
        stray = is_race & ~won & ~(ends_here & (last == self.rival))
        return np.where(is_race, won, accepted > self.place), stray

    def _numbers(self, contexts: Contexts, x: Numbers, rejecting: float) -> tuple[np.ndarray, np.ndarray]:
        """Uniforms and noise of the rows."""
        rows, drafts = np.arange(len(self)), contexts.draft.shape[1]
        uniforms = up_to(self.place, drafts, rejecting)
        asked = self.rival == ACCEPTANCE
        uniforms[rows[asked], self.place[asked]] = x[asked]
        noise = np.ones((len(self), drafts + 1, contexts.target.shape[-1]))
        raced = rows[~asked]
        place, token, rival = self.place[raced], self.token[raced], self.rival[raced]
        # At other places the two have the worst noise: whoever reads it there finds another winner.
        noise[raced, :, token] = noise[raced, :, rival] = FAR
        noise[raced, place] = FAR
        noise[raced, place, token] = np.maximum(x[raced], NEAREST)
        noise[raced, place, rival] = 1 - x[raced]
        return uniforms, noise


@dataclass(frozen=True)
class Scouted:
    """What a first look found: with numbers that accept j drafts and reject the others, if that can be.

    Attributes
    ----------
    accepted : int64 ``[C, K + 1]``, drafts that were accepted.
    favourite : int64 ``[C, K + 1]``, the token behind them when all noise is equal.
    there : bool ``[C, K + 1]``, whether the context has j drafts.
    """

    accepted: Int64[np.ndarray, "contexts drafts+1"]
    favourite: Int64[np.ndarray, "contexts drafts+1"]
    there: Bool[np.ndarray, "contexts drafts+1"]

    @staticmethod
    def of(asker: Asker, rejecting: float) -> "Scouted":
        """Ask one row for each context and place."""
        contexts = asker.contexts
        places, drafts = np.arange(contexts.draft.shape[1] + 1), contexts.draft.shape[1]
        there = places[None] <= contexts.lengths[:, None]
        index, place = np.nonzero(there)
        noise = np.ones((len(index), drafts + 1, contexts.target.shape[-1]))
        emitted = asker.emitted(index, up_to(place, drafts, rejecting), noise)
        accepted, favourite = np.full(there.shape, -1), np.full(there.shape, -1)
        accepted[index, place] = accepted_of(emitted)
        favourite[index, place] = emitted[np.arange(len(index)), accepted[index, place]]
        return Scouted(accepted, favourite, there)

    @property
    def ends(self) -> Bool[np.ndarray, "contexts drafts+1"]:
        """Places where a step can end."""
        return np.asarray(self.there & (self.accepted == np.arange(self.there.shape[1])[None]))

    def questions(self, contexts: Contexts, *, jointly: bool, has_noise: bool) -> Questions:
        """All that can be asked: decisions about drafts that are reached, races where a step can end.

        ``jointly``: each draft is decided about, whatever becomes of the drafts before it.
        """
        places = np.arange(self.there.shape[1])
        reached = self.there if jointly else self.there & (self.accepted >= places[None])
        context, place = np.nonzero(reached[:, :-1] & self.there[:, 1:])
        tokens = contexts.batch.draft_tokens.cpu().numpy()[context, place]
        parts = [(context, place, tokens, np.full_like(tokens, ACCEPTANCE))]
        if has_noise:
            ending, at = np.nonzero(self.ends)
            for step in range(1, contexts.target.shape[-1]):
                rival = self.favourite[ending, at]
                parts.append((ending, at, (rival + step) % contexts.target.shape[-1], rival))
        return Questions(*(np.concatenate(part) for part in zip(*parts, strict=True)))
