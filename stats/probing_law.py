"""The law that thresholds add up to, by going through all patterns of acceptance, beside the spec's."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.spec.generation_contracts import BLOCK, EXACT
from tokenlaw.spec.speculation import StepOutcome, chain_verification
from tokenlaw.stats.chain_laws import Array, KindLaws, completed
from tokenlaw.stats.probing_bounds import firm
from tokenlaw.stats.probing_cases import Contexts
from tokenlaw.stats.probing_questions import ACCEPTANCE, Scouted
from tokenlaw.stats.probing_search import Thresholds
from tokenlaw.stats.trial import kind_laws


@dataclass(frozen=True)
class Found:
    """What a verifier does in each context; NaN where that isn't known.

    Attributes
    ----------
    accepts : float64 ``[C, K]``, thresholds of the decisions about the drafts.
    added : float64 ``[C, K + 1, V]``, law of the token behind j accepted drafts.
    jointly : whether the longest prefix that passes is accepted, and not the drafts before the first failure.
    """

    accepts: Float64[np.ndarray, "contexts drafts"]
    added: Float64[np.ndarray, "contexts drafts+1 vocabulary"]
    jointly: bool

    @staticmethod
    def of(contexts: Contexts, scouted: Scouted, thresholds: Thresholds, *, jointly: bool) -> "Found":
        """Put the thresholds where they belong."""
        questions, values = thresholds.questions, thresholds.values
        values = np.where(values >= firm(thresholds.rounding), 1.0, values)
        accepts = np.full(contexts.draft.shape[:2], np.nan)
        odds = np.full(contexts.target.shape, np.nan)
        context, place = np.nonzero(scouted.ends)
        odds[context, place, scouted.favourite[context, place]] = 1.0
        asked = questions.rival == ACCEPTANCE
        accepts[questions.context[asked], questions.place[asked]] = values[asked]
        share = values[~asked]
        raced = questions.context[~asked], questions.place[~asked], questions.token[~asked]
        odds[raced] = share / (1 - share)
        return Found(accepts, odds / odds.sum(-1, keepdims=True), jointly)

    def length_laws(self, contexts: Contexts) -> Float64[np.ndarray, "contexts drafts+1"]:
        """Probability of each number of accepted drafts."""
        drafts = self.accepts.shape[1]
        there = np.arange(drafts)[None] < contexts.lengths[:, None]
        passes = np.where(there, self.accepts, 0.0)
        law = np.zeros((len(passes), drafts + 1))
        rest = np.ones(len(passes))
        if self.jointly:
            for place in range(drafts, 0, -1):
                law[:, place] = rest * passes[:, place - 1]
                rest = rest * (1 - passes[:, place - 1])
            law[:, 0] = rest
            return law
        for place in range(drafts):
            # Behind a draft that is never accepted nothing is known, and nothing matters.
            known = np.where(rest > 0, passes[:, place], 0.0)
            law[:, place] = rest * (1 - known)
            rest = rest * known
        law[:, drafts] = rest
        return law

    def joint(self, contexts: Contexts) -> Float64[np.ndarray, "contexts drafts+1 vocabulary"]:
        """Law of (accepted drafts, the token behind them), given the drafts."""
        lengths = self.length_laws(contexts)[..., None]
        return np.where(lengths == 0, 0.0, lengths * self.added)


@dataclass(frozen=True)
class Difference:
    """Two laws beside each other.

    Attributes
    ----------
    largest : of the differences between two cells.
    tv : total variation, the largest of all kinds of rows.
    place : where the largest difference is: the context, and the tokens that are emitted there.
    found, right : the probabilities there.
    laws : what was found and the spec's law, in which that place is.
    """

    largest: float
    tv: float
    place: tuple[int, tuple[int, ...]]
    found: float
    right: float
    laws: tuple[Array, Array]

    def where(self, contexts: Contexts, *, completed: bool) -> str:
        """Which rows the largest difference is about."""
        context, _ = self.place
        if completed and not contexts.scenario.deterministic:
            kind = contexts.scenario.kinds[int(contexts.kinds[context])]
            return f"rows of kind {kind.name!r} of {contexts.scenario.name!r}"
        return contexts.named(context)

    def words(self, contexts: Contexts, *, completed: bool) -> str:
        """The largest difference, and the total variation."""
        _, tokens = self.place
        did = "are completed to" if completed else "emit"
        where = self.where(contexts, completed=completed)
        return (
            f"{where} {did} {list(tokens)} with probability {self.found:.12g}, but it must be "
            f"{self.right:.12g} (composed of the thresholds that were found; TV {self.tv:.3g} in all)."
        )


def difference(
    contexts: Contexts, found: Found, chosen: Bool[np.ndarray, " contexts"], claims: str
) -> Difference:
    """Between what was found and the claimed law, in the chosen contexts, whole kinds of them.

    Where only exactness is claimed, between the completed law and that of target-only decoding.
    """
    rows, joint = np.flatnonzero(chosen), found.joint(contexts)
    if claims == EXACT:
        return _completed_difference(contexts, joint, rows)
    right = np.stack([_spec_joint(contexts, row, claims) for row in rows.tolist()])
    apart = np.nan_to_num(np.abs(joint[rows] - right), nan=1.0)  # what isn't known is as wrong as can be
    tv = _by_kind(contexts, rows, apart.sum((1, 2)) / 2)
    at, accepted, token = np.unravel_index(int(apart.argmax()), apart.shape)
    row = int(rows[at])
    tokens = (*contexts.drafts[row][: int(accepted)], int(token))
    return Difference(
        float(apart.max()),
        tv,
        (row, tokens),
        float(joint[row, accepted, token]),
        float(right[at, accepted, token]),
        (joint[row], right[at]),
    )


def _by_kind(contexts: Contexts, rows: Int64[np.ndarray, " rows"], tvs: Array) -> float:
    """Largest total variation of a kind, drafts included in the law."""
    sums = np.zeros(len(contexts.scenario.kinds))
    np.add.at(sums, contexts.kinds[rows], contexts.weights[rows] * tvs)
    return float(sums.max())


def _spec_joint(contexts: Contexts, row: int, claims: str) -> Array:
    """The spec's law of one context, ``[K + 1, V]``."""
    drafts = contexts.drafts[row]
    rule = block_verification if claims == BLOCK else chain_verification
    target, draft = contexts.target[row].tolist(), contexts.draft[row].tolist()
    law: Mapping[StepOutcome, float] = rule(
        drafts, target=target[: len(drafts) + 1], draft=draft[: len(drafts)]
    )
    found = np.zeros(contexts.target.shape[1:])
    for outcome, probability in law.items():
        found[outcome.accepted, outcome.tokens[-1]] = probability
    return found


def _completed_difference(contexts: Contexts, joint: Array, rows: Int64[np.ndarray, " rows"]) -> Difference:
    """Extended by target-only sampling; drafts that weren't drawn must give the right law each."""
    laws, deterministic = kind_laws(contexts.tables), contexts.scenario.deterministic
    groups = (
        [[row] for row in rows]
        if deterministic
        else [rows[contexts.kinds[rows] == k] for k in set(contexts.kinds[rows])]
    )
    worst: list[Difference] = []
    for group in groups:
        law = laws[int(contexts.kinds[group[0]])]
        weights = contexts.weights[group] / contexts.weights[group].sum()
        found = sum(
            w * _completed(law, contexts.drafts[row], joint[row])
            for w, row in zip(weights, group, strict=True)
        )
        right = completed(law)
        apart = np.nan_to_num(np.abs(found - right), nan=1.0)
        cell = np.unravel_index(int(apart.argmax()), apart.shape)
        tokens = tuple(int(token) for token in cell)
        worst.append(
            Difference(
                float(apart.max()),
                float(apart.sum() / 2),
                (int(group[0]), tokens),
                float(found[cell]),
                float(right[cell]),
                (found, right),
            )
        )
    return max(worst, key=lambda one: (one.largest, one.tv))


def _completed(laws: KindLaws, drafts: tuple[int, ...], joint: Array) -> Array:
    """Law of as many tokens as there are drafts and one more, given the drafts."""
    law = np.zeros((laws.vocabulary,) * (len(drafts) + 1))
    for accepted in range(len(drafts) + 1):
        rest = joint[accepted]
        for position in range(accepted + 1, len(drafts) + 1):
            rest = rest[..., None] * laws.at(position)
        law[drafts[:accepted]] += rest
    return law
