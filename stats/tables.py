"""Random tables of logits, in the shapes that faults need in order to show.

Every function takes a numpy generator and the shape ``[positions, contexts, V]``, and returns float32.
Impossible tokens have the logit minus infinity.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

APART = 0.01
"""Least difference of two logits of a row, where ties aren't meant."""

Logits = Float32[Tensor, "positions contexts vocabulary"]
Shape = tuple[int, int, int]

END, OF_TAIL = 5, 0.1
"""The last so many tokens of a wide vocabulary hold this part of the tail's mass."""

TINY = -18.4
"""Logit of a token of probability about 1e-8."""


def spread(generator: np.random.Generator, shape: Shape, deviation: float = 1.5) -> Logits:
    """Normal logits: every token possible, rows unlike each other.

    Tokens of a row are `APART` at least, so that no rounding decides which is the largest, or the k-th.
    """
    logits = generator.normal(0.0, deviation, shape)
    return _float(logits + APART * logits.argsort(-1).argsort(-1))


def with_zeros(generator: np.random.Generator, logits: Logits, share: float = 0.3) -> Logits:
    """Some tokens made impossible, at least two of each row left."""
    drop = torch.from_numpy(generator.random(tuple(logits.shape)) < share)
    keep = torch.from_numpy(generator.random(tuple(logits.shape))).argsort(-1) < 2
    return logits.masked_fill(drop & ~keep, -torch.inf)


def with_tiny(generator: np.random.Generator, logits: Logits) -> Logits:
    """One token of each row with a probability of about 1e-8."""
    token = torch.from_numpy(generator.integers(0, logits.shape[-1], (*logits.shape[:-1], 1)))
    return torch.log_softmax(logits.double(), -1).float().scatter(-1, token, TINY)


def swapped(generator: np.random.Generator, logits: Logits) -> Logits:
    """The same rows with two of their tokens exchanged: all other probabilities are equal bit for bit."""
    size = logits.shape[-1]
    first = int(generator.integers(size))
    second = (first + 1 + int(generator.integers(size - 1))) % size
    order = np.arange(size)
    order[[first, second]] = order[[second, first]]
    return logits[..., torch.from_numpy(order)].contiguous()


def disjoint(generator: np.random.Generator, shape: Shape) -> tuple[Logits, Logits]:
    """Target and draft that share no token at about half of the positions and contexts."""
    target, draft = spread(generator, shape), spread(generator, shape)
    half = torch.from_numpy(generator.random(shape).argsort(-1) < shape[-1] // 2)
    apart = torch.from_numpy(generator.random(shape[:-1]) < 0.5)[..., None]
    return target.masked_fill(apart & half, -torch.inf), draft.masked_fill(apart & ~half, -torch.inf)


def one_hot(generator: np.random.Generator, shape: Shape) -> Logits:
    """One token of each row is certain."""
    token = torch.from_numpy(generator.integers(0, shape[-1], (*shape[:-1], 1)))
    return torch.full(shape, -torch.inf).scatter(-1, token, 0.0)


def near_one(generator: np.random.Generator, shape: Shape, ratio: float) -> tuple[Logits, Logits]:
    """The draft is nearly always one token, which the target gives ``ratio`` times as often.

    Rejections are as rare as 1 - ratio, so a small error of the acceptance probability changes their number
    much: accepting 0.3 % too readily removes four of five rejections at a ratio of 0.9962.
    """
    likely = 0.98
    weights = generator.dirichlet(np.full(shape[-1] - 1, 2.0), shape[:-1])
    rest = np.log(np.maximum(weights, 1e-3))
    draft = np.concatenate([np.full((*shape[:-1], 1), np.log(likely)), np.log(1 - likely) + _law(rest)], -1)
    target = np.concatenate(
        [np.full((*shape[:-1], 1), np.log(likely * ratio)), np.log(1 - likely * ratio) + _law(rest)], -1
    )
    order = generator.permutation(shape[-1])
    return _float(target[..., order]), _float(draft[..., order])


def residual_pair(generator: np.random.Generator, shape: Shape) -> tuple[Logits, Logits]:
    """The draft prefers one token; the residual has several, unequally likely as drafts.

    Coupled random numbers show here: with one residual token there is nothing to get wrong.
    """
    draft = np.log(generator.dirichlet(np.full(shape[-1], 1.0), shape[:-1]) * 0.5 + 0.02)
    favourite = generator.integers(0, shape[-1], (*shape[:-1], 1))
    np.put_along_axis(draft, favourite, np.log(0.5), -1)
    target = np.log(generator.dirichlet(np.full(shape[-1], 0.8), shape[:-1]) + 0.01)
    np.put_along_axis(target, favourite, np.log(0.05), -1)
    return _float(target), _float(draft)


def tail(generator: np.random.Generator, shape: Shape, mass: float) -> Logits:
    """A wide vocabulary: few heavy tokens in front, and a long flat tail with so much of the mass.

    The very last tokens hold some of that: the last tile of a kernel, where no tile divides V.
    """
    size = shape[-1]
    heavy = max(size // 256, 4)
    head = generator.dirichlet(np.full(heavy, 1.0), shape[:-1]) * (1 - mass)
    flat = generator.dirichlet(np.full(size - heavy - END, 20.0), shape[:-1]) * mass * (1 - OF_TAIL)
    end = generator.dirichlet(np.full(END, 20.0), shape[:-1]) * mass * OF_TAIL
    return _float(np.log(np.maximum(np.concatenate([head, flat, end], -1), 1e-12)))


def _law(logits: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities."""
    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _float(numbers: np.ndarray) -> Logits:
    return torch.from_numpy(np.ascontiguousarray(numbers)).float()
