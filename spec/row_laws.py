"""The laws of many rows at once: the sampling parameters of `tokenlaw.spec.processors`, batched.

Same rules, same order (temperature, top-k, top-p, min-p), float64, on any device; a test compares the two.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.spec.number_kinds import is_whole_number
from tokenlaw.spec.tensor_checks import kind_of, require_device

OFF_TOP_K, OFF_TOP_P, OFF_MIN_P = 0, 1.0, 0.0
"""Values that leave a truncation out."""

UNSEEDED = -1
"""In ``seeds``: this row has no seed of its own."""


@dataclass(frozen=True)
class RowParameters:
    """What each row of a batch asks of the sampler; tensors of shape ``[batch]`` on one device.

    Attributes
    ----------
    temperature : float64, at least 0; 0 is greedy: the largest logit, of several the lowest token id.
    top_k : int64; `OFF_TOP_K` keeps every token. Ties at the k-th largest probability stay.
    top_p : float64 in (0, 1]; 1 keeps every token. The token that crosses the sum stays.
    min_p : float64 in [0, 1]; 0 keeps every token.
    seeds : int64, or None where no row has a seed of its own; `UNSEEDED` in single rows.
    """

    temperature: Float64[Tensor, " batch"]
    top_k: Int64[Tensor, " batch"]
    top_p: Float64[Tensor, " batch"]
    min_p: Float64[Tensor, " batch"]
    seeds: Int64[Tensor, " batch"] | None = None

    @staticmethod
    def default(rows: int, device: torch.device | str = "cpu") -> "RowParameters":
        """Parameters that leave every law alone; all rows share their memory.

        Raises
        ------
        TypeError, ValueError
            ``rows`` isn't a whole number from 0 on, or there is no such device.

        Examples
        --------
        >>> RowParameters.default(3).temperature
        tensor([1., 1., 1.], dtype=torch.float64)
        """
        if not is_whole_number(rows):
            raise TypeError(f"rows must be a whole number, but is {kind_of(rows)}")
        if rows < 0:
            raise ValueError(f"rows must be 0 or more, but is {rows}")
        require_device(device)
        values = (1.0, OFF_TOP_K, OFF_TOP_P, OFF_MIN_P)
        kinds = (torch.float64, torch.int64, torch.float64, torch.float64)
        pairs = zip(values, kinds, strict=True)
        made = [torch.tensor([value], dtype=kind, device=device).expand(rows) for value, kind in pairs]
        return RowParameters(*made)

    def rows(self, index: slice | Int64[Tensor, " chosen"]) -> "RowParameters":
        """The parameters of some of the rows."""
        return RowParameters(
            temperature=self.temperature[index],
            top_k=self.top_k[index],
            top_p=self.top_p[index],
            min_p=self.min_p[index],
            seeds=None if self.seeds is None else self.seeds[index],
        )

    @cached_property
    def shared(self) -> bool:
        """Whether all rows share one entry in memory (stride 0), seeds apart."""
        return all(
            part.stride(0) == 0 or len(part) == 1
            for part in (self.temperature, self.top_k, self.top_p, self.min_p)
        )

    @cached_property
    def used(self) -> frozenset[str]:
        """Which of ``greedy``, ``temperature``, ``top_k``, ``top_p``, ``min_p`` some row uses."""
        uses = {
            "greedy": self.temperature == 0,
            "temperature": self.temperature != 1,
            "top_k": self.top_k != OFF_TOP_K,
            "top_p": self.top_p < OFF_TOP_P,
            "min_p": self.min_p > OFF_MIN_P,
        }
        return frozenset(name for name, rows in uses.items() if bool(rows.any()))


def row_laws(
    logits: Float[Tensor, "batch *positions vocabulary"], params: RowParameters
) -> Float64[Tensor, "batch *positions vocabulary"]:
    """Law of the next token at every position of every row.

    Where all rows share one entry in memory (stride 0) it is computed once, and the result is shared again.

    >>> params = RowParameters.default(1)
    >>> row_laws(torch.tensor([[0.5, 0.25, 0.25]]).log(), params)
    tensor([[0.5000, 0.2500, 0.2500]], dtype=torch.float64)
    """
    if len(logits) > 1 and logits.stride(0) == 0 and params.shared:
        return row_laws(logits[:1], params.rows(slice(0, 1))).expand(logits.shape)

    laws = torch.empty(logits.shape, dtype=torch.float64, device=logits.device)
    size = max(1, _piece(logits.device) // max(1, logits.shape[1:].numel()))
    for start in range(0, len(logits), size):
        rows = slice(start, start + size)
        _fill(laws[rows], logits[rows], params.rows(rows), params.used)
    return laws


def _piece(device: torch.device) -> int:
    """How many logits are worked on together: on a CPU as many as the cache of one core holds."""
    return 2**16 if device.type == "cpu" else 2**26


def _fill(laws: Tensor, logits: Tensor, params: RowParameters, used: frozenset[str]) -> None:
    """Write the laws of some rows."""

    def column(values: Tensor) -> Tensor:
        return values.reshape(-1, *(1,) * (logits.dim() - 1))

    laws.copy_(logits.detach())  # of a model, which may keep gradients
    if "temperature" in used:
        laws /= column(params.temperature.masked_fill(params.temperature == 0, 1.0))
    _softmax_(laws)
    if "greedy" in used:
        certain = torch.zeros_like(laws).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
        torch.where(column(params.temperature == 0), certain, laws, out=laws)
    if "top_k" in used:
        _keep_(laws, _in_top_k(laws, column(params.top_k)))
    if "top_p" in used:
        _keep_(laws, _in_top_p(laws, column(params.top_p)))
    if "min_p" in used:
        _keep_(laws, laws >= column(params.min_p) * laws.amax(-1, keepdim=True))


def _softmax_(scores: Tensor) -> None:
    """Softmax in place; in float64 several times faster than ``torch.softmax``, above all for small V."""
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    scores *= 1 / scores.sum(-1, keepdim=True)  # a division costs four times as much


def _in_top_k(law: Tensor, k: Tensor) -> Tensor:
    """Where the probability is at least the k-th largest one of its row."""
    size = law.shape[-1]
    place = k.clamp(1, size) - 1
    largest = law.topk(int(place.max()) + 1, sorted=True).values
    smallest = largest.gather(-1, place.expand(*law.shape[:-1], 1))
    return (law >= smallest) | (k == OFF_TOP_K)


def _in_top_p(law: Tensor, threshold: Tensor) -> Tensor:
    """The fewest most probable tokens whose sum reaches the threshold, of equals the lowest ids first."""
    ordered, tokens = torch.sort(law, dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1).roll(1, -1)
    before[..., 0] = 0.0
    kept = (before < threshold) | (threshold >= OFF_TOP_P)
    return torch.zeros_like(kept).scatter_(-1, tokens, kept)


def _keep_(law: Tensor, kept: Tensor) -> None:
    law *= kept
    law /= law.sum(-1, keepdim=True)
