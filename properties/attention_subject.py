"""One implementation of `PagedAttention` under observation, and the answers that it should give."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_findings import check_pair, check_tensor
from tokenlaw.properties.attention_tensors import Call, make_call
from tokenlaw.properties.score_dtype import declares_scores_in_input_dtype, score_dtype
from tokenlaw.spec.attention import attend
from tokenlaw.spec.attention_bound import error_bound


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
    counts: Counter[str] = field(default_factory=Counter)
    largest_ratio: float = 0.0
    worst: float = 0.0

    def __post_init__(self) -> None:
        self.attention = self.build()
        self.scores_in_input_dtype = declares_scores_in_input_dtype(self.attention)

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
        output, sums = check_pair("attend(return_lse=True)", result) if lse else (result, None)
        check_tensor("output", output, tuple(call.query.shape), call.query.dtype)
        if sums is not None:
            check_tensor("lse", sums, tuple(call.query.shape[:-1]), None)
            sums = sums.detach().double().cpu()
        return Answer(output.detach().double().cpu(), sums)

    def score_dtype(self, case: AttentionCase) -> torch.dtype:
        """Where this implementation keeps the scores of the case, by its own word."""
        return score_dtype(self.scores_in_input_dtype, getattr(torch, case.dtype))

    def expect(self, case: AttentionCase, call: Call, score_dtype: torch.dtype | None = None) -> Expected:
        """What the spec answers, with the bounds for scores in that dtype (None: as is declared)."""
        return expect(case, call, score_dtype or self.score_dtype(case))

    def note_ratio(self, ratio: float) -> None:
        """Remember an error as a share of its bound."""
        self.worst = max(self.worst, ratio)
        self.largest_ratio = max(self.largest_ratio, ratio)
