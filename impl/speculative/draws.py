"""Drawing tokens by inverse cumulative laws, and by races, in float64.

The token that a number u in [0, 1) picks is the first whose cumulative weight exceeds u times the sum, as in
`tokenlaw.spec.sampling.draw`: an impossible token is never picked.
"""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor


def draw(
    weights: Float64[Tensor, "*rows vocabulary"], uniforms: Float64[Tensor, " *rows"]
) -> Int64[Tensor, " *rows"]:
    """One token for each row of weights, which are at least 0 and needn't sum to one.

    >>> draw(torch.tensor([[1.0, 0.0, 3.0]] * 3).double(), torch.tensor([0.0, 0.2, 0.25]).double())
    tensor([0, 0, 2])
    """
    cumulative = weights.cumsum(-1)
    thresholds = uniforms[..., None] * cumulative[..., -1:]
    # A sum that is NaN (rows that nobody reads) would give the token V.
    return torch.searchsorted(cumulative, thresholds, right=True)[..., 0].clamp_(max=weights.shape[-1] - 1)


def race(
    weights: Float64[Tensor, "*rows vocabulary"], noise: Float64[Tensor, "*rows vocabulary"]
) -> Int64[Tensor, " *rows"]:
    """The token with the largest weight over noise; exponential noise draws from the weights' law.

    >>> race(torch.tensor([[1.0, 0.0, 3.0]]).double(), torch.tensor([[0.5, 0.1, 2.0]]).double())
    tensor([0])
    """
    return (weights / noise).argmax(-1)


def draw_or_race(
    weights: Float64[Tensor, "rows vocabulary"],
    numbers: Float64[Tensor, " rows"] | Float64[Tensor, "rows vocabulary"],
) -> Int64[Tensor, " rows"]:
    """One token for each row, with one uniform number a row or with noise for every token."""
    return race(weights, numbers) if numbers.dim() == weights.dim() else draw(weights, numbers)


def draw_from_table(
    table: Float64[Tensor, "entries vocabulary"],
    entries: Int64[Tensor, " *rows"],
    uniforms: Float64[Tensor, " *rows"],
) -> Int64[Tensor, " *rows"]:
    """One token for each row, from the weights that its entry of a common table has.

    The cumulative laws of all entries stand one behind the other in one increasing sequence, entry i in
    i .. i + 1, so that one search finds all tokens. Weights that aren't finite count as equal ones; such an
    entry must not be asked for.

    >>> table = torch.tensor([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]]).double()
    >>> draw_from_table(table, torch.tensor([0, 0, 1]), torch.tensor([0.2, 0.25, 0.0]).double())
    tensor([0, 2, 1])
    """
    size, vocabulary = table.shape
    usable = torch.isfinite(table).all(-1, keepdim=True) & (table.sum(-1, keepdim=True) > 0)
    cumulative = torch.where(usable, table, 1.0).cumsum(-1)
    cumulative /= cumulative[:, -1:].clone()
    cumulative += torch.arange(size, device=table.device)[:, None]
    # Without the limit a number just below 1 could be rounded up into the next entry.
    limit = 1 - size * torch.finfo(torch.float64).eps
    places = uniforms.clamp(max=limit).add_(entries)
    return torch.searchsorted(cumulative.view(-1), places, right=True).sub_(entries, alpha=vocabulary)


def chosen(
    laws: Float64[Tensor, "batch positions vocabulary"], tokens: Int64[Tensor, "batch positions"]
) -> Float64[Tensor, "batch positions"]:
    """Probability of one token at every position.

    >>> chosen(torch.tensor([[[0.25, 0.75]]]), torch.tensor([[1]]))
    tensor([[0.7500]])
    """
    return laws.gather(-1, tokens[..., None])[..., 0]


def at_positions(
    laws: Float64[Tensor, "batch positions vocabulary"], positions: Int64[Tensor, " batch"]
) -> Float64[Tensor, "batch vocabulary"]:
    """The law of each row at one position.

    >>> at_positions(torch.tensor([[[0.25, 0.75], [1.0, 0.0]]]), torch.tensor([1]))
    tensor([[1., 0.]])
    """
    rows = torch.arange(len(laws), device=laws.device)
    if not laws.is_contiguous():  # rows that share memory
        return laws[rows, positions]
    # One selection in all laws takes half as long as indexing with pairs.
    return laws.flatten(0, 1).index_select(0, positions.add(rows, alpha=laws.shape[1]))
