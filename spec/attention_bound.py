"""How far attention in low precision may be from float64: a derived bound, not a guessed tolerance.

Standard forward error analysis: Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 3; for
the softmax see also Blanchard, Higham and Higham, IMA Journal of Numerical Analysis 41, 2021.

Model of the implementation
---------------------------
Inputs and output are of ``dtype`` with unit roundoff u, and both sides get the *same rounded inputs*.
Sums run in float32 (not TF32) or better, in any order, with U = ``ACCUMULATE[dtype]``. Scaled operands and
scores are stored in ``score_dtype`` with u_s: float32, thus U, in fused kernels; ``dtype`` in eager code.
Probabilities may be rounded to ``dtype`` before they meet the values. Partial states and the lse are
float32. Keys may be visited in tiles of at least 16 with a running maximum, and in splits that are
merged by their lse, in base e or 2. Nothing overflows.

Derivation
----------
For one query and head with n visible keys of score z_j; a sink is one more key, of value 0.

1. Score. Let t_j = scale <q, k_j>, B_j = abs(scale) <abs(q), abs(k_j)>. d products and d - 1 sums,
   the scale, and the factors of base 2 are at most d + 4 roundings: gamma_{d+4}(U) B_j. Storing what
   the scale was folded into: gamma_2(u_s) B_j; product and scaled score: gamma_2(u_s) abs(t_j).
   Softcap: tanh is 1-Lipschitz and at most its argument; divide, tanh, multiply:
   gamma_3(u_s) abs(t_j) + gamma_8(U) abs(t_j). ALiBi term a_j: gamma_2(u_s) abs(a_j), and its sum
   with the score, u_s (abs(t_j) + abs(a_j)). A sink is rounded once: u_s abs(sink). Underflow of
   these few numbers: 8 SMALLEST[score_dtype]. The sum is eps_j.
2. Exponent. With M = max abs(z_j): subtracting maxima, changing base, subtracting the lse of splits
   (itself a maximum plus a logarithm, at most M + log n) err by a few U times what is subtracted. The
   running maximum only grows, so its increments telescope to at most 2 M. exp itself errs by 8 U, and
   once more in a merge. All of this is less than 8 U (abs(z_j) + M + 2 log n + 2), so the computed
   weight is exp(z_j) times a factor within exp(+-theta_j),
   theta_j = eps_j + 8 U (abs(z_j) + M + 2 log n + 2).
3. Softmax. Let w_j be the exact probabilities. The computed denominator errs by a factor within
   exp(+-Theta), Theta = log sum_j w_j exp(theta_j); the lower side holds because a harmonic mean is
   at most the arithmetic mean. Each probability errs by at most w_j (exp(theta_j + Theta) - 1); with
   one delta for all keys that is the well-known w_j (exp(2 delta) - 1). Hence the output errs by
   E = sum_j w_j (exp(theta_j + Theta) - 1) abs(v_j). Both results are averages of the same values
   with weights of sum at most 1, so E needn't exceed max_j abs(v_j) + A, A = sum_j w_j abs(v_j).
4. Weighted sum. A term passes at most n sums, and n / 16 rescalings of 9 roundings: 2 n with both.
   The denominator the same; division and merge are 16 more. With the rounding of the probabilities:
   ((1 + u) (1 + gamma_{4n+16}(U)) - 1) (A + E). Underflow of a probability costs
   SMALLEST[dtype] sum_j abs(v_j), of a product n 2^-126.
5. Output. Rounding to ``dtype``: u (abs(output) + all of the above) + SMALLEST[dtype].

The lse errs by Theta, gamma_{2n+16}(U) of the sum, and 8 U (1 + M + abs(lse)) of logarithm, adding
the maximum, changing base and storing.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.spec.attention import attend, attention_scores
from tokenlaw.spec.attention_arguments import check_arguments

UNIT_ROUNDOFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
"""u: rounding to nearest changes x by at most u * abs(x)."""

SMALLEST = {torch.float16: 2.0**-25, torch.bfloat16: 2.0**-126, torch.float32: 2.0**-126}
"""Absolute error of underflow: half the smallest subnormal for float16, flush to zero for the others."""

ACCUMULATE = {torch.float16: 2.0**-23, torch.bfloat16: 2.0**-23, torch.float32: 2.0**-24}
"""U of the float32 sums behind each dtype: twice the unit roundoff where tensor cores may truncate them."""

ELEMENTARY = 8
"""Error of exp, tanh and log in units of U; coarser approximations aren't covered."""

UNDERFLOWS = 8
"""So many numbers that make up one score may underflow."""


def gamma(count: int, unit: float) -> float:
    """Relative error of ``count`` roundings in a row: n u / (1 - n u) (Higham 2002, lemma 3.1).

    >>> gamma(1, 2.0**-11) < 2.0**-10
    True

    Raises
    ------
    ValueError
        n u >= 1: so many roundings leave nothing to bound.
    """
    if count * unit >= 1:
        raise ValueError(f"{count} roundings with unit roundoff {unit} leave no correct digit")
    return count * unit / (1 - count * unit)


def error_bound(
    dtype: torch.dtype,
    query: Float[Tensor, "num_queries query_heads head_size"],
    keys: Float[Tensor, "length kv_heads head_size"],
    values: Float[Tensor, "length kv_heads head_size"],
    scale: float,
    *,
    window: int | None = None,
    softcap: float | None = None,
    alibi_slopes: Float[Tensor, " query_heads"] | None = None,
    sinks: Float[Tensor, " query_heads"] | None = None,
    score_dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]:
    """Bounds on abs(output - float64 output) and abs(lse - float64 lse), element by element.

    The model of the implementation and the derivation stand at the head of this module.

    Parameters
    ----------
    dtype
        float16, bfloat16 or float32.
    query, keys, values, scale, window, softcap, alibi_slopes, sinks
        As for `attend`, float64, and exactly representable in ``dtype``.
    score_dtype
        Where the implementation keeps scores.

    Returns
    -------
    output_bound, lse_bound
        float64. Zero where nothing is visible and there is no sink: output and lse are exact there (0, -inf).

    Raises
    ------
    ValueError
        A dtype isn't one of the three, arguments are not those of `attend`, an input isn't representable in
        ``dtype``, or there are so many keys (about two million) that float32 sums guarantee nothing.

    Examples
    --------
    One key has probability 1: the bound is the two roundings, of the probability and of the output.

    >>> one = torch.ones(1, 1, 1).double()
    >>> 2 * 2.0**-8 < error_bound(torch.bfloat16, one, one, one, 1.0)[0].item() < 2.1 * 2.0**-8
    True
    """
    check_arguments(
        query, keys, values, scale, window=window, softcap=softcap, alibi_slopes=alibi_slopes, sinks=sinks
    )
    _check_numbers(dtype, score_dtype, query=query, keys=keys, values=values)
    accumulate, store = ACCUMULATE[dtype], max(ACCUMULATE[dtype], UNIT_ROUNDOFF[score_dtype])
    output, lse = attend(
        query, keys, values, scale, window=window, softcap=softcap, alibi_slopes=alibi_slopes, sinks=sinks
    )
    scores = attention_scores(query, keys, scale, window=window, softcap=softcap, alibi_slopes=alibi_slopes)
    score_error = _score_error(
        query, keys, scale, softcap=softcap, alibi_slopes=alibi_slopes, accumulate=accumulate, store=store
    )
    sinks = query.new_full(query.shape[1:2], -math.inf) if sinks is None else sinks
    scores, score_error = _with_sink(scores, sinks), _with_sink(score_error, store * sinks.abs())
    return _bounds(dtype, values, output, lse, scores, score_error + UNDERFLOWS * SMALLEST[score_dtype])


def _bounds(
    dtype: torch.dtype, values: Tensor, output: Tensor, lse: Tensor, scores: Tensor, score_error: Tensor
) -> tuple[Tensor, Tensor]:
    """Steps 2 to 5: the bounds on output and log-sum-exp from the errors of the scores."""
    theta = _exponent_error(scores, score_error, ACCUMULATE[dtype])
    log_weights, denominator = _weights_and_denominator_error(scores, lse, theta)
    output_bound = _output_bound(dtype, values, output, log_weights, exponent=theta + denominator[..., None])
    return output_bound, denominator + _lse_rest(lse, scores, ACCUMULATE[dtype])


def _score_error(
    query: Tensor,
    keys: Tensor,
    scale: float,
    *,
    softcap: float | None,
    alibi_slopes: Tensor | None,
    accumulate: float,
    store: float,
) -> Float[Tensor, "num_queries query_heads length"]:
    """eps_j, step 1, up to underflow; ``accumulate`` is U, ``store`` is u_s. Meaningful for visible keys."""
    absolute = attention_scores(query.abs(), keys.abs(), abs(scale))
    score = attention_scores(query, keys, scale).abs()
    error = (gamma(query.shape[-1] + 4, accumulate) + gamma(2, store)) * absolute + gamma(2, store) * score
    if softcap is not None:
        error = error + (gamma(3, store) + gamma(ELEMENTARY, accumulate)) * score
    if alibi_slopes is not None:
        term = attention_scores(0 * query, keys, 0.0, alibi_slopes=alibi_slopes).abs()
        error = error + gamma(2, store) * term + store * (score + term)
    return error


def _exponent_error(scores: Tensor, score_error: Tensor, accumulate: float) -> Tensor:
    """theta_j, step 2; zero where nothing is visible."""
    visible = scores > -math.inf
    size = scores.abs().masked_fill(~visible, 0.0)
    largest = size.amax(dim=-1, keepdim=True)
    log_count = visible.sum(dim=-1, keepdim=True).clamp(min=1).double().log()
    theta = score_error + ELEMENTARY * accumulate * (size + largest + 2 * log_count + 2)
    return theta.masked_fill(~visible, 0.0)


def _weights_and_denominator_error(scores: Tensor, lse: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of the exact probabilities, and Theta; step 3. Theta is zero where nothing is visible."""
    log_weights = torch.where(scores > -math.inf, scores - lse[..., None], -math.inf)
    return log_weights, torch.logsumexp(log_weights + theta, dim=-1).masked_fill(lse == -math.inf, 0.0)


def _output_bound(
    dtype: torch.dtype, values: Tensor, output: Tensor, log_weights: Tensor, *, exponent: Tensor
) -> Float[Tensor, "num_queries query_heads head_size"]:
    """Steps 3 to 5; ``exponent`` is theta_j + Theta. The last key is the sink, which has the value 0."""
    values = torch.cat([values, values.new_zeros(1, *values.shape[1:])])
    unit, count, visible = UNIT_ROUNDOFF[dtype], values.shape[0], log_weights > -math.inf
    size = values.abs().repeat_interleave(output.shape[1] // values.shape[1], dim=1)
    average = torch.einsum("qhk,khd->qhd", log_weights.exp(), size)
    # w (e^x - 1) as e^(log w + x) (1 - e^-x), which doesn't lose a tiny w with a large x; exp ends near 709.
    weight_error = (log_weights + exponent).clamp(max=700.0).exp() * -torch.expm1(-exponent)
    error = torch.minimum(torch.einsum("qhk,khd->qhd", weight_error, size), size.amax(dim=0) + average)
    relative = (1 + unit) * (1 + gamma(4 * count + 16, ACCUMULATE[dtype])) - 1
    underflow = SMALLEST[dtype] * torch.einsum("qhk,khd->qhd", visible.double(), size) + count * 2.0**-126
    before_rounding = error + relative * (average + error) + underflow
    bound = before_rounding + unit * (output.abs() + before_rounding) + SMALLEST[dtype]
    return bound.masked_fill(~visible.any(dim=-1)[..., None], 0.0)


def _lse_rest(lse: Tensor, scores: Tensor, accumulate: float) -> Tensor:
    """The last paragraph of the derivation, without Theta."""
    largest = scores.abs().masked_fill(scores == -math.inf, 0.0).amax(dim=-1)
    rest = gamma(2 * scores.shape[-1] + 16, accumulate) + ELEMENTARY * accumulate * (1 + largest + lse.abs())
    return rest.masked_fill(lse == -math.inf, 0.0)


def _with_sink(scores: Tensor, sinks: Tensor) -> Tensor:
    return torch.cat([scores, sinks[None, :, None].expand(scores.shape[0], -1, 1)], dim=-1)


def _check_dtypes(*dtypes: torch.dtype) -> None:
    for dtype in dtypes:
        if dtype not in UNIT_ROUNDOFF:
            raise ValueError(f"{dtype} has no error bound; use float16, bfloat16 or float32")


def _check_numbers(dtype: torch.dtype, score_dtype: torch.dtype, **tensors: Tensor) -> None:
    """Raise `ValueError` unless both dtypes have a bound, and the tensors are exact in ``dtype``."""
    _check_dtypes(dtype, score_dtype)
    for name, tensor in tensors.items():
        if not torch.equal(tensor.to(dtype).double(), tensor):
            raise ValueError(
                f"{name} isn't exactly representable in {dtype}; round it to that dtype first "
                "and give both sides the rounded numbers"
            )
