"""Makers of kinds of rows: each makes one kind, from a generator and the sizes.

Between them they vary what the tests that people use today hold still: see `tokenlaw.stats.scenarios`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from tokenlaw.stats import tables
from tokenlaw.stats.scenario import Kind
from tokenlaw.stats.truncations import min_p_apart, top_p_apart

SHIFTS = (112.0, 0.0, -112.0)
"""What may be added to all logits of a row: without taking off the largest, exp gives infinity or zero in
single precision."""

Make = Callable[[np.random.Generator, int, int], Kind]
"""Makes a kind from a generator, V and K."""


def plain(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Unlike laws, everything possible."""
    target, draft = _both(generator, vocabulary, drafts)
    return Kind("plain", target, draft, drafts)


def zeros(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Impossible tokens in target and draft, not the same ones."""
    target, draft = _both(generator, vocabulary, drafts)
    return Kind("zeros", tables.with_zeros(generator, target), tables.with_zeros(generator, draft), drafts)


def ties(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Target and draft agree bit for bit but for two tokens."""
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary), 1.0)
    return Kind("ties", target, tables.swapped(generator, target[:drafts]), drafts)


def equal(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """The draft is the target: everything is accepted, and the bonus token is what can be wrong."""
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("draft equals target", target, target[:drafts].clone(), drafts)


def disjoint(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Supports without a common token in half of the contexts: everything is rejected there."""
    target, draft = tables.disjoint(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("disjoint supports", target, draft[:drafts].clone(), drafts)


def certain(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """The target has one possible token at half of the places."""
    target, draft = _both(generator, vocabulary, drafts)
    hot = tables.one_hot(generator, (drafts + 1, vocabulary, vocabulary))
    where = torch.from_numpy(generator.random((drafts + 1, vocabulary, 1)) < 0.5)
    return Kind("certain tokens", torch.where(where, hot, target), draft, drafts)


def tiny(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Probabilities of 1e-8 on both sides."""
    target, draft = _both(generator, vocabulary, drafts)
    light = tables.with_tiny(generator, target), tables.with_tiny(generator, draft)
    return Kind("tiny probabilities", *light, drafts)


def residual(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Many rejections, and residuals of several tokens with unequal draft probabilities."""
    target, draft = tables.residual_pair(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("unequal residuals", target, draft[:drafts].clone(), drafts)


def warm(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A temperature other than 1."""
    temperature = float(generator.choice([0.4, 0.7, 1.4, 2.5]))
    target, draft = _both(generator, vocabulary, drafts)
    return Kind(f"temperature {temperature}", target, draft, drafts, temperature=temperature)


def cold(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A temperature near 0, and logits as close together: no row is greedy."""
    shape = (drafts + 1, vocabulary, vocabulary)
    target, draft = (0.1 * tables.spread(generator, shape) for _ in range(2))
    return Kind("temperature 0.1", target, draft[:drafts].clone(), drafts, temperature=0.1)


def greedy(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature 0; the draft agrees with the target about half of the time."""
    target, draft = _both(generator, vocabulary, drafts)
    same = torch.from_numpy(generator.random((drafts, vocabulary, 1)) < 0.5)
    return Kind("greedy", target, torch.where(same, target[:drafts], draft), drafts, temperature=0.0)


def top_k(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Top-k, which keeps other tokens of target and draft."""
    k = int(generator.integers(2, max(3, vocabulary // 2 + 1)))
    target, draft = _both(generator, vocabulary, drafts)
    return Kind(f"top-k {k}", target, draft, drafts, top_k=k)


def top_p(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Top-p."""
    target, draft = _both(generator, vocabulary, drafts)
    threshold = top_p_apart(generator, target, draft)
    return Kind(f"top-p {threshold:.3f}", target, draft, drafts, top_p=threshold)


def min_p(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Min-p."""
    target, draft = _both(generator, vocabulary, drafts)
    share = min_p_apart(generator, target, draft)
    return Kind(f"min-p {share:.3f}", target, draft, drafts, min_p=share)


def filters(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature, top-k and top-p at once: their order matters."""
    target, draft = _both(generator, vocabulary, drafts)
    temperature, k = float(generator.choice([0.6, 1.5])), max(2, vocabulary // 2)
    threshold = top_p_apart(generator, target, draft, temperature, k)
    name = f"temperature {temperature}, top-k {k}, top-p {threshold:.3f}"
    return Kind(name, target, draft, drafts, temperature=temperature, top_k=k, top_p=threshold)


def warm_min_p(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature and min-p at once: min-p looks at the law after the temperature."""
    target, draft = _both(generator, vocabulary, drafts)
    temperature = float(generator.choice([0.6, 1.8]))
    share = min_p_apart(generator, target, draft, temperature)
    name = f"temperature {temperature}, min-p {share:.3f}"
    return Kind(name, target, draft, drafts, temperature=temperature, min_p=share)


def greedy_filters(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature 0 with top-k, top-p and min-p, none of which changes anything then."""
    kind = greedy(generator, vocabulary, drafts)
    name = "greedy, with top-k, top-p and min-p"
    return replace(kind, name=name, top_k=max(2, vocabulary // 2), top_p=0.9, min_p=0.05)


def near_one(ratio: float) -> Make:
    """A maker of kinds whose ratio p / q is just below 1 for almost every draft."""

    def make(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
        target, draft = tables.near_one(generator, (drafts + 1, vocabulary, vocabulary), ratio)
        return Kind(f"ratio {ratio}", target, draft[:drafts].clone(), drafts)

    return make


def shifted(make: Make) -> Make:
    """A maker of kinds that another one makes, with another of `SHIFTS` added to the logits of every row.

    The laws stay what they are. For temperature 1 only: single precision has fewer digits for large logits,
    which taking off the largest one brings to light nowhere else.
    """

    def made(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
        kind = make(generator, vocabulary, drafts)
        target, draft = _shifted(kind.target_logits, 0), _shifted(kind.draft_logits, 1)
        return replace(kind, name=f"{kind.name}, large logits", target_logits=target, draft_logits=draft)

    return made


def _shifted(logits: tables.Logits, first: int) -> tables.Logits:
    """Another shift for every position and context, beginning with the one of this number."""
    positions, contexts, _ = logits.shape
    place = torch.arange(positions)[:, None] + torch.arange(contexts) + first
    return logits + torch.tensor(SHIFTS)[place % len(SHIFTS), None]


def wide(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A wide vocabulary with a long tail, which the draft neglects. All rows share their tables."""
    shape = (drafts + 1, 1, vocabulary)
    target = tables.tail(generator, shape, mass=0.3)
    draft = tables.tail(generator, shape, mass=0.02)[:drafts].clone()
    return Kind("long tail", target, draft, drafts)


def many_drafts(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Half as many contexts as tokens, and a draft of which most is accepted, so that rows get far."""
    shape = (drafts + 1, vocabulary // 2, vocabulary)
    target = tables.spread(generator, shape)
    noise = tables.spread(generator, (drafts, *shape[1:]), 0.6)
    return Kind("many drafts", target, target[:drafts] + noise, drafts)


def many_top_k(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """The same with a top-k that is larger than small arrays of engines, and keeps half of the tokens."""
    kind, k = many_drafts(generator, vocabulary, drafts), vocabulary // 2
    return replace(kind, name=f"many drafts, top-k {k}", top_k=k)


def _both(generator: np.random.Generator, vocabulary: int, drafts: int) -> tuple[torch.Tensor, torch.Tensor]:
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary))
    return target, tables.spread(generator, (drafts, vocabulary, vocabulary))
