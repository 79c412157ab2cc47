"""Judging a store's attention against contiguous float64 attention over what the harness knows it holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.kv_store_payload import dtype_of, scattered
from tokenlaw.properties.score_dtype import declares_scores_in_input_dtype, score_dtype
from tokenlaw.spec.attention import attend
from tokenlaw.spec.attention_bound import error_bound
from tokenlaw.spec.contracts import CacheConfig

QUERY_HEADS_PER_KV_HEAD = 2
_QUERY_SIZE = 4.0
"""Factor on queries: scores differ by several units, so that a single wrong key matters."""


@dataclass(frozen=True)
class _Expected:
    """One query of one sequence in one layer and its exact answer, each ``[query_heads, head_size]``.

    ``bound_of`` gives the bound by the dtype in which scores are kept; ``bound`` is that of the store.
    """

    query: Tensor
    output: Tensor
    bound: Tensor
    bound_of: Callable[[torch.dtype], Tensor]


@dataclass
class AttentionJudge:
    """Asks a store to attend, and compares. Answers are kept while a sequence doesn't change."""

    store: Any
    config: CacheConfig
    _scores: torch.dtype = torch.float32
    _expected: dict[int, tuple[tuple[Tensor, ...], list[_Expected]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declared = declares_scores_in_input_dtype(self.store)
        self._scores = score_dtype(declared, dtype_of(self.config))

    def wrong_rows(
        self, batch: list[tuple[int, Any, tuple[Float[Tensor, "2 kv_heads length head_size"], ...]]]
    ) -> dict[int, tuple[str, str]]:
        """Attend once in every layer with a batch of (number, handle, shadow of each layer); none is empty.

        Returns
        -------
        sequence number -> (expected, found) in words, for the rows beyond the bound in some layer.
        """
        wrong: dict[int, tuple[str, str]] = {}
        handles = [handle for _, handle, _ in batch]
        for layer in range(self.config.num_layers):
            rows = [self._answers(number, shadow)[layer] for number, _, shadow in batch]
            queries = torch.stack([row.query for row in rows])
            scale = self.config.head_size**-0.5
            outputs = self.store.attend(handles, queries.to(self.config.device), layer, scale).cpu()
            if outputs.shape != queries.shape or outputs.dtype != queries.dtype:
                expected = f"outputs of shape {tuple(queries.shape)} in {queries.dtype}"
                return {
                    number: (expected, f"{tuple(outputs.shape)} in {outputs.dtype}") for number, _, _ in batch
                }
            for (number, _, _), row, output in zip(batch, rows, outputs, strict=True):
                difference = _describe(row, output, layer)
                if difference is not None:
                    wrong.setdefault(number, difference)
        return wrong

    def _answers(self, number: int, shadow: tuple[Tensor, ...]) -> list[_Expected]:
        known = self._expected.get(number)
        if known is None or known[0] is not shadow:
            answers = [self._answer(number, held, layer) for layer, held in enumerate(shadow)]
            self._expected[number] = known = (shadow, answers)
        return known[1]

    def _answer(self, number: int, held: Tensor, layer: int) -> _Expected:
        """The query, which depends on sequence, layer and length only, and what it must give."""
        config, dtype = self.config, dtype_of(self.config)
        shape = (config.num_kv_heads * QUERY_HEADS_PER_KV_HEAD, config.head_size)
        count = shape[0] * shape[1]
        first = ((held.shape[2] * 64 + number) * config.num_layers + layer) * count
        query = scattered(first, count, dtype).view(shape) * _QUERY_SIZE
        keys, values = held.double().transpose(1, 2)
        asked = query.double()[None]
        scale = config.head_size**-0.5
        output, _ = attend(asked, keys, values, scale, window=config.window)

        def bound_of(scores: torch.dtype) -> Tensor:
            bound, _ = error_bound(
                dtype, asked, keys, values, scale, window=config.window, score_dtype=scores
            )
            return bound[0]

        return _Expected(query, output[0], bound_of(self._scores), bound_of)


def _describe(row: _Expected, output: Tensor, layer: int) -> tuple[str, str] | None:
    """The worst element beyond the bound in words, or None when all are within."""
    error = (output.double() - row.output).abs().nan_to_num(nan=torch.inf)
    excess = error - row.bound
    if not bool((excess > 0).any()):
        return None
    head, dim = divmod(int(excess.argmax()), output.shape[-1])
    within_wider = bool((error <= row.bound_of(output.dtype)).all())
    excuse = ", as it may be with scores in its dtype (declare scores_in_input_dtype)" if within_wider else ""
    exact, bound = row.output[head, dim].item(), row.bound[head, dim].item()
    return (
        f"{exact:.6g} within {bound:.1e} (layer {layer}, query head {head}, dim {dim})",
        f"{output[head, dim].item():.6g}, off by {error[head, dim].item():.2g}{excuse}",
    )
