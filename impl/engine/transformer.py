"""A tiny transformer in float64, random and fixed: a target whose cache holds real keys and values.

A decoder with pre-normalisation and sinusoidal positions (Vaswani et al. 2017, arXiv:1706.03762; RMS
normalisation: Zhang and Sennrich 2019, arXiv:1910.07467). Attention is left to the caller, who has a cache or
hasn't.
"""

from collections.abc import Callable
from functools import cache
from math import prod

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.spec import attention
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.philox import derived_key, uniforms

Heads = Float64[Tensor, "tokens heads head_size"]

Attend = Callable[[int, Heads, Heads, Heads], Heads]
"""Attention of a layer: takes its number, then queries, keys and values of the new tokens."""

_SHARPNESS = 2.0
"""Factor on the logits: without it all laws of such a small model are nearly uniform."""


class TinyTransformer:
    """A language model whose weights depend on a seed and on nothing else.

    Parameters
    ----------
    vocabulary_size : number of tokens.
    seed : of the weights.
    layers, heads, head_size : its shape.
    """

    def __init__(
        self, vocabulary_size: int, seed: int, *, layers: int = 2, heads: int = 2, head_size: int = 4
    ) -> None:
        self.layers, self.heads, self.head_size = layers, heads, head_size
        width = heads * head_size
        self._embedding = _weights(seed, "embedding", vocabulary_size, width)
        self._projections = _weights(seed, "projections", layers, 4, width, width)
        self._inner = _weights(seed, "inner", layers, width, 2 * width)
        self._outer = _weights(seed, "outer", layers, 2 * width, width)
        self._unembedding = _weights(seed, "unembedding", width, vocabulary_size)

    def logits(self, tokens: Tokens, start: int, attend: Attend) -> Float64[Tensor, "tokens vocabulary"]:
        """Logits behind each of some tokens, of which the first stands at position ``start``."""
        hidden = self._embedding[list(tokens)] + _positions(start, len(tokens), self._embedding.shape[1])
        for layer in range(self.layers):
            to_query, to_key, to_value, to_output = self._projections[layer]
            seen = _normalised(hidden)
            parts = [
                (seen @ part).view(-1, self.heads, self.head_size) for part in (to_query, to_key, to_value)
            ]
            hidden = hidden + attend(layer, *parts).flatten(1) @ to_output
            hidden = hidden + torch.relu(_normalised(hidden) @ self._inner[layer]) @ self._outer[layer]
        # Normalised, because the repetition penalty asks for the sign of a logit.
        return torch.log_softmax(_SHARPNESS * _normalised(hidden) @ self._unembedding, dim=-1)

    def law(self, tokens: Tokens) -> list[float]:
        """Law of the next token, from all tokens at once, without a cache."""
        last = self.logits(tokens, 0, self._contiguous)[-1]
        return [float(share) for share in last.exp().tolist()]

    def _contiguous(self, layer: int, query: Heads, keys: Heads, values: Heads) -> Heads:
        return attention.attend(query, keys, values, self.head_size**-0.5)[0]


@cache
def tiny_transformer(vocabulary_size: int, seed: int, layers: int, heads: int) -> TinyTransformer:
    """The same transformer for the same arguments."""
    return TinyTransformer(vocabulary_size, seed, layers=layers, heads=heads)


def _weights(seed: int, name: str, *shape: int) -> Float64[Tensor, "*shape"]:
    """Uniform weights of standard deviation one over the square root of the last dimension but one."""
    sample = torch.zeros(1, dtype=torch.int64)
    numbers = uniforms(derived_key(seed, name), sample, prod(shape)).view(shape)
    width: float = (3 / shape[-2]) ** 0.5
    return (2 * numbers - 1) * width


def _normalised(hidden: Float64[Tensor, "tokens width"]) -> Float64[Tensor, "tokens width"]:
    size: Tensor = (hidden.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return hidden / size


def _positions(start: int, count: int, width: int) -> Float64[Tensor, "count width"]:
    """Sines and cosines of the positions, with wavelengths from 2 pi to 200 pi."""
    places = torch.arange(start, start + count, dtype=torch.float64)[:, None]
    frequencies = 100.0 ** -(torch.arange(width // 2, dtype=torch.float64) * 2 / width)
    return torch.cat([(places * frequencies).sin(), (places * frequencies).cos()], dim=-1)
