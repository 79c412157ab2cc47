"""Random numbers of the reference verifiers: which number decides about what, and what it depends on.

A row without a seed of its own takes its numbers from a generator on the batch's device, seeded by the call:
fast, and different for another batch. A row with a seed takes them from Philox, keyed by that seed: they are
the same in every batch, at every place in it. In both cases each use has its own numbers: a drafter that
shares noise with the recovery (report: vLLM #47386) is not exact.

All numbers are float64 multiples of 2^-53. With 24 bits, as a float32 has them, tokens less probable than
2^-24 are lost or drawn too often.
"""

from enum import IntEnum

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.spec.number_kinds import is_whole_number
from tokenlaw.spec.philox import derived_key, uniforms
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters
from tokenlaw.spec.tensor_checks import kind_of


class Use(IntEnum):
    """What random numbers are for; the numbers of two uses are independent."""

    ACCEPTANCE = 0
    """Is a draft, or a candidate of a tree, accepted?"""
    EXTRA_TOKEN = 1
    """Which token replaces a rejected draft, or follows the last one?"""
    SAMPLING = 2
    """Tokens of the target that are drawn before drafts are looked at."""
    DRAFTING = 3
    """Which token is drafted?"""


class RowNumbers:
    """Uniform numbers in [0, 1) for the rows of one call.

    Parameters
    ----------
    seed : the call's seed, any integer; rows without a seed of their own depend on it.
    params : of the batch; its ``seeds`` and its device count here.
    position : position of the drafts, for a drafter, which is called once for each of them.

    Examples
    --------
    The third row has the seed 5, and has the same numbers in a batch of its own:

    >>> from dataclasses import replace
    >>> seeds = torch.tensor([UNSEEDED, UNSEEDED, 5])
    >>> three = RowNumbers(1, replace(RowParameters.default(3), seeds=seeds)).uniforms(Use.ACCEPTANCE, 4)
    >>> one = RowNumbers(2, replace(RowParameters.default(1), seeds=seeds[2:])).uniforms(Use.ACCEPTANCE, 4)
    >>> torch.equal(three[2:], one)
    True
    """

    def __init__(self, seed: int, params: RowParameters, *, position: int = 0) -> None:
        if not is_whole_number(seed):
            raise TypeError(f"seed must be a whole number, but is {kind_of(seed)}")
        self._rows, self._device = len(params.temperature), params.temperature.device
        self._seeds, self._seed, self._position = params.seeds, seed, position

    def uniforms(self, use: Use, count: int) -> Float64[Tensor, "batch count"]:
        """``count`` numbers for each row; the same ones each time that this use is asked for."""
        generator = torch.Generator(self._device)
        generator.manual_seed(derived_key(self._seed, use.name, self._position))
        shape = (self._rows, count)
        shared = torch.rand(shape, generator=generator, dtype=torch.float64, device=self._device)
        if self._seeds is None:
            return shared
        stream = len(Use) * self._position + use
        own = uniforms(self._seeds, torch.zeros_like(self._seeds), count, stream=stream)
        return torch.where((self._seeds == UNSEEDED)[:, None], shared, own)
