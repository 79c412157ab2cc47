"""What a probe must find: each decision's threshold and each added token's weights, and how far rounding may
move them.

With r the relative rounding of a probability (`ROUNDINGS`), a ratio p / q lies within ``p / q * (1 +- r)``
and a weight ``(p - q)+`` within ``(p - q +- r max(p, q))+``. What is impossible by more than that has the
bounds 0, 0: a token with p < q can't replace a rejected draft in any arithmetic.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64

from tokenlaw.spec.generation_contracts import BLOCK
from tokenlaw.stats.chain_laws import ROUNDING
from tokenlaw.stats.probing_cases import Contexts

ROUNDINGS = {torch.float32: ROUNDING, torch.float64: ROUNDING * 2.0**-29}
"""Relative difference of p and q that rounding explains, by precision. `tokenlaw.stats.chain_laws.ROUNDING`
is derived for 24 bits, and float64 has 29 more: 1.4e-14."""


def firm(rounding: float) -> float:
    """The number that rejects in all questions: so far below 1 that no certain decision is rounded to it.

    Drafts with a threshold above it count as always accepted. What is thereby left out of a law is less than
    rounding explains.
    """
    return 1 - 8 * rounding


Array = Float64[np.ndarray, "contexts *more"]


@dataclass(frozen=True)
class Between:
    """Numbers and what rounding makes of them at least and at most; arrays of one shape."""

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Expected:
    """What the drafts of each context lead to.

    Attributes
    ----------
    accepts : ``[C, K]``, threshold of the decision about each draft; above 1 it's accepted for certain.
    weights : ``[C, K + 1, V]``, of the token behind j accepted drafts, not normalised.
    """

    accepts: Between
    weights: Between

    def doubtful(self, contexts: Contexts, rounding: float) -> Bool[np.ndarray, " contexts"]:
        """Contexts in which rounding decides at 0, or at `firm`, whether a draft is accepted."""
        low, high = self.accepts.low, self.accepts.high
        at_zero, at_firm = (low <= 0) & (high > 0), (low <= firm(rounding)) & (high >= firm(rounding))
        there = np.arange(low.shape[1])[None] < contexts.lengths[:, None]
        return np.asarray(((at_zero | at_firm) & there).any(1))


def expected(contexts: Contexts, claims: str, precision: torch.dtype) -> Expected:
    """By block verification where it is claimed, else by the chain rule."""
    rounding = ROUNDINGS[precision]
    if claims == BLOCK:
        return _block(contexts, rounding)
    exact = precision == torch.float64
    return Expected(_ratios(contexts, rounding, exact), _residuals(contexts, rounding))


def one_hot(contexts: Contexts, rounding: float) -> Expected:
    """By the rule that counts every draft as certain; a guess where the rule isn't known."""
    certain = np.eye(contexts.target.shape[-1])[_tokens(contexts)]
    taken = Contexts(**{**vars(contexts), "draft": certain})
    return Expected(_ratios(taken, rounding, exact=False), _residuals(taken, rounding))


def _tokens(contexts: Contexts) -> np.ndarray:
    return contexts.batch.draft_tokens.cpu().numpy()


def _chosen(laws: Array, contexts: Contexts) -> Array:
    """Probabilities of the drafts."""
    return np.asarray(np.take_along_axis(laws, _tokens(contexts)[..., None], -1)[..., 0])


def _ratios(contexts: Contexts, rounding: float, exact: bool) -> Between:
    """p / q of each draft; in float64 quotients of powers of two below 1, such as 1/2, aren't rounded."""
    p, q = _chosen(contexts.target[:, :-1], contexts), _chosen(contexts.draft, contexts)
    ratio = np.divide(p, q, out=np.ones_like(p), where=q > 0)
    doubt = np.where(_power_of_two(p) & _power_of_two(q) & (ratio < 1) & exact, 0.0, rounding)
    return Between(ratio, ratio * (1 - doubt), ratio * (1 + doubt))


def _power_of_two(numbers: Array) -> np.ndarray:
    return np.asarray(np.frexp(numbers)[0] == 0.5)


def _residuals(contexts: Contexts, rounding: float) -> Between:
    """``(p - q)+`` in front of each draft's end, p behind the last one."""
    return _excess(contexts, np.ones(contexts.target.shape[:2]), rounding)


def _excess(contexts: Contexts, factors: Array, rounding: float) -> Between:
    """``(f p - q)+``, and f p behind a row's last draft, for factors ``[C, K + 1]``."""
    scaled = factors[..., None] * contexts.target
    draft = np.zeros_like(scaled)
    draft[:, :-1] = contexts.draft
    places = np.arange(scaled.shape[1])
    draft[places[None] >= contexts.lengths[:, None]] = 0.0
    doubt = rounding * np.maximum(scaled, draft)
    difference = scaled - draft
    return Between(*(np.maximum(difference + sign * doubt, 0.0) for sign in (0, -1, 1)))


def _block(contexts: Contexts, rounding: float) -> Expected:
    """Sun et al. 2024, with the letters of `tokenlaw.spec.block_verification`."""
    ratios, drafts = _ratios(contexts, rounding, exact=False).value, contexts.scenario.drafts
    factors = np.ones((len(contexts.drafts), drafts + 1))
    for place in range(drafts):
        factors[:, place + 1] = np.minimum(1.0, factors[:, place] * ratios[:, place])
    # Each factor is a product of up to K quotients, so its rounding is as many times as large.
    doubt = rounding * (1 + drafts)
    weights = _excess(contexts, factors, doubt)
    last = np.arange(1, drafts + 1)[None] == contexts.lengths[:, None]
    tests = [
        np.where(
            last,
            factors[:, 1:] * (1 + sign * doubt),
            _partly(mass[:, 1:].sum(-1), factors[:, 1:], sign * doubt),
        )
        for sign, mass in ((0, weights.value), (-1, weights.low), (1, weights.high))
    ]
    return Expected(Between(*_uncovered(tests, contexts, firm(rounding))), weights)


def _partly(mass: Array, factors: Array, doubt: float) -> Array:
    """``h = m / (m + 1 - f)``; 0 where m is 0."""
    rest = mass + np.maximum(1 - np.minimum(factors * (1 + doubt), 1.0), 0.0)
    return np.asarray(np.divide(mass, rest, out=np.zeros_like(mass), where=mass > 0))


def _uncovered(tests: list[Array], contexts: Contexts, passing: float) -> list[Array]:
    """What shows of each test: nothing where a longer prefix passes in any case."""
    value, low, high = (test.copy() for test in tests)
    for place in range(value.shape[1] - 2, -1, -1):
        longer = np.arange(place + 1, value.shape[1])[None] < contexts.lengths[:, None]
        covered = ((value[:, place + 1 :] >= passing) & longer).any(1)
        for part in (value, low, high):
            part[covered, place] = 1.0
    return [value, low, high]
