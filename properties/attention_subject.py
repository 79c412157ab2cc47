"""One implementation of `PagedAttention` under observation, and the answers that it should give."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_tensors import Call, make_call
from tokenlaw.spec.attention import attend
from tokenlaw.spec.attention_bound import error_bound


class RuleBrokenError(Exception):
    """An implementation broke the rule of a check; the text says what was expected and found."""


@dataclass(frozen=True)
class Answer:
    """Float64 outputs ``[batch, num_queries, query_heads, head_size]`` and log-sum-exps without the last."""

    output: Float[Tensor, "batch num_queries query_heads head_size"]
    lse: Float[Tensor, "batch num_queries query_heads"] | None = None


@dataclass(frozen=True)
class Expected:
    """The answer of the spec, and how far each element may be from it."""

    output: Float[Tensor, "batch num_queries query_heads head_size"]
    lse: Float[Tensor, "batch num_queries query_heads"]
    output_bound: Float[Tensor, "batch num_queries query_heads head_size"]
    lse_bound: Float[Tensor, "batch num_queries query_heads"]


def expect(case: AttentionCase, call: Call, score_dtype: torch.dtype = torch.float32) -> Expected:
    """Contiguous float64 attention of every row, with the bounds of `error_bound`."""
    options = {name: _double(value) for name, value in call.options.items()}
    rows = []
    for row in range(len(case.lengths)):
        tensors = (_double(call.query[row]), call.keys[row].double(), call.values[row].double())
        bounds = error_bound(
            getattr(torch, case.dtype), *tensors, call.scale, **options, score_dtype=score_dtype
        )
        rows.append((*attend(*tensors, call.scale, **options), *bounds))
    return Expected(*(torch.stack(parts) for parts in zip(*rows, strict=True)))


def _double(value: Any) -> Any:
    return value.double().cpu() if isinstance(value, Tensor) else value


@dataclass
class Subject:
    """A built attention object, how to build another, and what was seen while asking it.

    ``bitwise``: outputs are claimed not to depend on placement in any bit. ``largest_ratio`` is the largest
    error so far as a share of its bound, ``worst`` the same for the case that is being run.
    """

    build: Callable[[], Any]
    capabilities: frozenset[str]
    device: str = "cpu"
    score_dtype: torch.dtype = torch.float32
    counts: Counter[str] = field(default_factory=Counter)
    largest_ratio: float = 0.0
    worst: float = 0.0

    def __post_init__(self) -> None:
        self.attention = self.build()

    @property
    def bitwise(self) -> bool:
        """Whether the implementation claims that outputs don't depend on placement in any bit."""
        return "bitwise" in self.capabilities

    def make(self, case: AttentionCase) -> Call:
        """The tensors of the case, where this implementation wants them."""
        return make_call(case, self.device)

    def ask(self, call: Call, *, attention: Any = None, lse: bool = False, **changes: Any) -> Answer:
        """Call ``attend``; a wrong type, shape or dtype of the result breaks the rule at hand."""
        call = replace(call, **changes)
        options = {**call.options, "return_lse": True} if lse else call.options
        target = self.attention if attention is None else attention
        result = target.attend(
            call.query,
            call.key_cache,
            call.value_cache,
            call.block_tables,
            call.lengths,
            call.scale,
            **options,
        )
        self.counts["calls"] += 1
        output, sums = _pair(result) if lse else (result, None)
        check_tensor("output", output, tuple(call.query.shape), call.query.dtype)
        if sums is not None:
            check_tensor("lse", sums, tuple(call.query.shape[:-1]), None)
            sums = sums.detach().double().cpu()
        return Answer(output.detach().double().cpu(), sums)

    def expect(self, case: AttentionCase, call: Call) -> Expected:
        """What the spec answers, with the bounds for this implementation."""
        return expect(case, call, self.score_dtype)

    def note_ratio(self, ratio: float) -> None:
        """Remember an error as a share of its bound."""
        self.worst = max(self.worst, ratio)
        self.largest_ratio = max(self.largest_ratio, ratio)


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise RuleBrokenError(
            f"expected a pair (output, lse) from return_lse=True, found {type(result).__name__}"
        )
    return result[0], result[1]


def check_tensor(name: str, tensor: Any, shape: tuple[int, ...], dtype: torch.dtype | None) -> None:
    """Break the rule unless this is a tensor of that shape and dtype (None: any floating dtype)."""
    if not isinstance(tensor, Tensor):
        raise RuleBrokenError(f"expected a tensor as {name}, found {type(tensor).__name__}")
    if tuple(tensor.shape) != shape:
        raise RuleBrokenError(f"expected {name} of shape {list(shape)}, found shape {list(tensor.shape)}")
    if (dtype is not None and tensor.dtype != dtype) or not tensor.is_floating_point():
        wanted = dtype or "a floating-point dtype"
        raise RuleBrokenError(f"expected {name} of dtype {wanted}, found {tensor.dtype}")


def compare(name: str, found: Tensor, wanted: Tensor, bound: Tensor) -> tuple[float, str]:
    """Largest error as a share of its bound (infinite when not finite where it should be), and where it is.

    ``bound`` 0 demands equality. Minus infinity equals itself, NaN equals nothing. Dimensions are
    row, query, head and, for outputs, channel.
    """
    error = (found - wanted).abs()
    error = torch.where(found == wanted, 0.0, torch.nan_to_num(error, nan=torch.inf, posinf=torch.inf))
    ratio = torch.where(error == 0, 0.0, error / bound)
    if ratio.numel() == 0:
        return 0.0, ""
    at = torch.unravel_index(ratio.argmax(), ratio.shape)
    axes = ("row", "query", "head", "channel")
    place = ", ".join(f"{axis} {int(index)}" for axis, index in zip(axes, at, strict=False))
    text = (
        f"{name} at {place}: expected {wanted[at].item():.9g}, found {found[at].item():.9g}; "
        f"error {error[at].item():.3g}, bound {bound[at].item():.3g}"
    )
    return float(ratio[at]), text
