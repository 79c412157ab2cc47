"""What the harness stores: numbers that are all different, so that a wrong one tells where it came from."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.trace import TraceError
from tokenlaw.spec.contracts import CacheConfig

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
"""Dtypes of stores that can be judged: those for which attention has an error bound."""

GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
KEY_OR_VALUE = ("key", "value")
_EXPONENTS = 8


def dtype_of(config: CacheConfig) -> torch.dtype:
    """The dtype that the configuration names.

    Raises
    ------
    TraceError
        It isn't one of `DTYPES`.
    """
    if config.dtype not in DTYPES:
        raise TraceError(f"dtype {config.dtype!r} can't be judged; use one of {', '.join(DTYPES)}")
    return DTYPES[config.dtype]


def scattered(first: int, count: int, dtype: torch.dtype) -> Float[Tensor, " count"]:
    """Numbers ``first`` .. ``first + count - 1`` of a fixed sequence of distinct non-zero numbers in (-2, 2).

    All are exact in ``dtype`` and their magnitudes are spread evenly over 2**-7 .. 2 in the logarithm, which
    makes attention uneven. The sequence repeats after 16 / eps numbers: 2**27 in float32, 2**14 in float16,
    2**11 in bfloat16.

    >>> scattered(0, 3, torch.float32).tolist()[0], scattered(0, 2048, torch.bfloat16).unique().numel()
    (1.0, 2048)
    """
    bits = -int(math.log2(torch.finfo(dtype).eps))
    period = 2 * _EXPONENTS << bits
    stride = int(GOLDEN_RATIO * period) | 1
    index = torch.arange(first, first + count, dtype=torch.int64) % period * stride % period
    mantissa, high = index % (1 << bits), index >> bits
    magnitude = torch.ldexp(1 + mantissa.double() / (1 << bits), -(high % _EXPONENTS))
    return torch.where(high >= _EXPONENTS, -magnitude, magnitude).to(dtype)


@dataclass(frozen=True)
class _Chunk:
    """What one append wrote: ``numbers [2, layers, kv_heads, tokens, head_size]``; ``ends`` as in `draw`."""

    sequence: int
    ends: tuple[tuple[int, int], ...]
    numbers: Tensor


@dataclass
class Payload:
    """Draws keys and values for appended positions and remembers whose they are."""

    config: CacheConfig
    _drawn: int = 0
    _chunks: list[_Chunk] = field(default_factory=list)

    def draw(
        self, sequence: int, ends: Mapping[int, int], tokens: int
    ) -> Float[Tensor, "2 layers kv_heads tokens head_size"]:
        """New numbers for ``tokens`` positions of a sequence, keys first, on the CPU.

        ``ends`` maps each layer that is extended, in their order, to the position at which that begins.
        """
        config = self.config
        shape = (2, len(ends), config.num_kv_heads, tokens, config.head_size)
        count = math.prod(shape)
        numbers = scattered(self._drawn, count, dtype_of(config)).view(shape)
        self._drawn += count
        self._chunks.append(_Chunk(sequence, tuple(ends.items()), numbers))
        return numbers

    @property
    def draws(self) -> int:
        """How often numbers were drawn."""
        return len(self._chunks)

    def rows(self, since: int = 0) -> Iterator[tuple[int, int, int, Float[Tensor, "2 kv_heads head_size"]]]:
        """Sequence, position, layer and numbers of each position, from draw number ``since`` on."""
        for chunk in self._chunks[since:]:
            for (layer, end), numbers in zip(chunk.ends, chunk.numbers.unbind(1), strict=True):
                for offset, row in enumerate(numbers.unbind(2)):
                    yield chunk.sequence, end + offset, layer, row

    def origin(self, number: float) -> str:
        """Where a number was written first, in words."""
        for chunk in self._chunks:
            places = (chunk.numbers == number).nonzero().tolist()
            if places:
                what, index, head, offset, _ = places[0]
                layer, end = chunk.ends[index]
                place = f"position {end + offset}, layer {layer}, {KEY_OR_VALUE[what]}, head {head}"
                return f"which was written for sequence {chunk.sequence}, {place}"
        return "which was never written"
