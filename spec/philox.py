"""Philox 4x32-10: random numbers as a function of a key and a counter, nothing else.

Number j of sample i depends only on (key, i, j), so that results don't depend on how samples are split over
calls, processes or devices. Source: Salmon, Moraes, Dror and Shaw 2011, *Parallel random numbers: as easy as
1, 2, 3*; the tests hold the known answers of its reference library Random123.
"""

import hashlib

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

Words = Int64[Tensor, "*shape"]
"""Words of 32 bits, each in an int64."""

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def philox(
    counter: tuple[Words, Words, Words, Words], key: tuple[Words | int, Words | int]
) -> tuple[Words, Words, Words, Words]:
    """Four random words of 32 bits for each counter of four words, under a key of two words.

    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> [f"{word.item():08x}" for word in philox((zero, zero, zero, zero), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    first, second, third, fourth = counter
    for round_ in range(_ROUNDS):
        keys = [(part + round_ * step) & _MASK for part, step in zip(key, _KEY_STEPS, strict=True)]
        left, right = first * _MULTIPLIERS[0], third * _MULTIPLIERS[1]
        # The products wrap in int64, but their low 64 bits are right. What stands above a word is masked
        # before the next product, and at the end.
        first, third = ((right >> 32) ^ second ^ keys[0]) & _MASK, ((left >> 32) ^ fourth ^ keys[1]) & _MASK
        second, fourth = right, left
    return first, second & _MASK, third, fourth & _MASK


def uniforms(
    key: int | Int64[Tensor, " samples"],
    samples: Int64[Tensor, " samples"],
    count: int,
    *,
    stream: int = 0,
) -> Float64[Tensor, "samples count"]:
    """Uniform numbers in [0, 1), multiples of 2^-53, float64 on the device of ``samples``.

    Parameters
    ----------
    key : a number of 64 bits, or one for each sample (int64, any sign).
    samples : counters of the samples, at least 0.
    count : numbers for each sample.
    stream : numbers of different streams (0 .. 2^32 - 1) are independent under one key.

    Examples
    --------
    >>> uniforms(1, torch.tensor([0, 1]), 2)[1] == uniforms(1, torch.tensor([1]), 2)[0]
    tensor([True, True])
    """
    low, high = samples & _MASK, (samples >> 32) & _MASK
    halves = (key & _MASK, (key >> 32) & _MASK)
    numbers = []
    for block in range((count + 1) // 2):
        constant = torch.zeros_like(samples)
        words = philox((low, high, constant + block, constant + stream), halves)
        numbers += [_double(words[0], words[1]), _double(words[2], words[3])]
    return torch.stack(numbers[:count], dim=-1) if count else low.new_empty((len(low), 0)).double()


def _double(high: Words, low: Words) -> Float64[Tensor, "*shape"]:
    """The number in [0, 1) with 27 bits of the first word and 26 of the second."""
    return ((high >> 5) * 2**26 + (low >> 6)).to(torch.float64) * 2.0**-53


def derived_key(*parts: int | str) -> int:
    """A key of 63 bits from a seed and whatever names a part of a run; other parts, another key.

    >>> derived_key(7, "law/joint") == derived_key(7, "law/joint"), derived_key(7, "a") == derived_key(8, "a")
    (True, False)
    """
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
