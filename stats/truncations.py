"""Truncations of generated kinds that no rounding moves: far from every edge of the tables."""

import numpy as np
import torch

from tokenlaw.spec.row_laws import OFF_TOP_K, RowParameters, row_laws

MARGIN = 1e-3
"""Truncations of generated kinds stay so far from their edges that rounding doesn't move them."""


def _sorted_laws(
    target: torch.Tensor, draft: torch.Tensor, temperature: float = 1.0, k: int = OFF_TOP_K
) -> torch.Tensor:
    """Laws of both sides before the last truncation, likeliest tokens first."""
    logits = torch.cat([target, draft])
    params = RowParameters(
        torch.full((len(logits),), temperature, dtype=torch.float64),
        torch.full((len(logits),), k),
        torch.ones(len(logits), dtype=torch.float64),
        torch.zeros(len(logits), dtype=torch.float64),
    )
    return row_laws(logits, params).sort(-1, descending=True).values


def top_p_apart(
    generator: np.random.Generator,
    target: torch.Tensor,
    draft: torch.Tensor,
    temperature: float = 1.0,
    k: int = OFF_TOP_K,
) -> float:
    """A top-p that no cumulative sum of the tables comes close to."""
    sums = _sorted_laws(target, draft, temperature, k).cumsum(-1).flatten()
    return _apart(sums.numpy(), 0.75 + 0.1 * generator.random(), 0.95)


def min_p_apart(
    generator: np.random.Generator, target: torch.Tensor, draft: torch.Tensor, temperature: float = 1.0
) -> float:
    """A min-p that no ratio to a largest probability comes close to."""
    laws = _sorted_laws(target, draft, temperature)
    return _apart((laws / laws[..., :1]).flatten().numpy(), 0.08 + 0.1 * generator.random(), 0.4)


def _apart(edges: np.ndarray, start: float, end: float) -> float:
    """The first of evenly spaced numbers that is far from every edge, or the one that is farthest."""
    candidates = np.linspace(start, end, 400)
    ordered = np.sort(edges)
    place = np.searchsorted(ordered, candidates)
    below = candidates - ordered[np.maximum(place - 1, 0)]
    above = ordered[np.minimum(place, len(ordered) - 1)] - candidates
    distance = np.minimum(np.abs(below), np.abs(above))
    far = np.flatnonzero(distance >= MARGIN)
    return float(candidates[far[0] if len(far) else int(distance.argmax())])
