"""Faults of the random numbers: shared, repeated, restarted, lost."""

from dataclasses import replace

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import DRAFTING, ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.philox import derived_key, philox
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters

Numbers = Float64[Tensor, "batch drafts"]

_LARGEST_BLOCK = 2**18
"""How many noise numbers are made at once."""


class AcceptanceNumberReused(ChainVerifier):
    """The number that rejected a draft also draws its replacement.

    Classes: C07.
    Report: flashinfer-ai/flashinfer 424.
    Effect: the number is known to be large, so early tokens are drawn too rarely.
    Weakest check: law/joint (the first token).
    """

    def recovery_numbers(self, step: Step, places: Int64[Tensor, " batch"]) -> Float64[Tensor, " batch"]:
        """The acceptance numbers at the rejected places; called only if there is one."""
        numbers = self.acceptance_numbers(step) if step.uniforms is None else step.uniforms
        return numbers.gather(1, places.clamp(max=numbers.shape[1] - 1)[:, None])[:, 0]


class OneNumberForAllPlaces(ChainVerifier):
    """One number decides about all drafts of a row.

    Classes: C07.
    Report: raullenchai/Rapid-MLX 2140.
    Effect: first token right; TV .08 of pairs, .14 of triples (V = 8, K = 3).
    Weakest check: law/length.
    """

    def acceptance_numbers(self, step: Step) -> Numbers:
        """The first one, everywhere."""
        numbers = super().acceptance_numbers(step)
        return numbers[:, :1].expand(numbers.shape)


class NeighbourNumbers(ChainVerifier):
    """Odd rows use the random numbers of the row before them.

    Classes: C08.
    Report: ml-explore/mlx-lm 1245 (equal requests give equal text).
    Effect: every row has the right law; neighbours aren't independent.
    Weakest check: law/rows (neighbours).
    """

    def numbers(self, params: RowParameters, seed: int, use: str, count: int, position: int = 0) -> Numbers:
        """Those of the even rows, twice; the drafter's are right."""
        numbers = super().numbers(params, seed, use, count, position)
        if use == DRAFTING:
            return numbers
        rows = torch.arange(len(numbers), device=numbers.device)
        return numbers[rows - rows % 2]


class SharedGumbelNoise(ChainVerifier):
    """Recovery reuses the Gumbel noise that chose the rejected draft: same seed, same position.

    Classes: C07.
    Report: vllm-project/vllm 47386.
    Effect: TV .03 in the reporter's case, .02 [.002, .032] at V = 32; none for two tokens.
    Weakest check: law/completed (the first token, own drafter, a searched pair of laws).
    """

    def draft(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters, *, position: int, seed: int
    ) -> Int64[Tensor, " batch"]:
        """Gumbel-max sampling."""
        law = self.drafting_law(logits, params)
        rows = torch.arange(len(law), device=law.device)
        shared = law.stride(0) == 0
        places = torch.full_like(rows, position)
        return self._gumbel_max(
            law[:1] if shared else law, rows * 0 if shared else rows, rows, places, params, seed
        )

    def recover(
        self,
        step: Step,
        rows: Int64[Tensor, " rejected"],
        places: Int64[Tensor, " rejected"],
        numbers: Float64[Tensor, " rejected"],
    ) -> Int64[Tensor, " rejected"]:
        """Gumbel-max sampling from the residual, with the noise of the draft at that place."""
        law, index = self.residual_at(step, rows, places)
        return self._gumbel_max(law, index, rows, places, step.batch.params, step.seed)

    def _gumbel_max(
        self,
        law: Float64[Tensor, "laws vocabulary"],
        index: Int64[Tensor, " drawn"],
        rows: Int64[Tensor, " drawn"],
        places: Int64[Tensor, " drawn"],
        params: RowParameters,
        seed: int,
    ) -> Int64[Tensor, " drawn"]:
        """Tokens from the laws; the noise depends on seed, row, place and token only."""
        live = torch.nn.functional.pad(law > 0, (0, -law.shape[-1] % 4)).any(0)
        groups = live.reshape(-1, 4).any(-1).nonzero()[:, 0]
        columns = (4 * groups[:, None] + torch.arange(4, device=law.device)).flatten()
        scores = torch.nn.functional.pad(law, (0, 3))[:, columns].log()
        tokens, block = torch.empty_like(index), max(1, _LARGEST_BLOCK // len(columns))
        for start in range(0, len(index), block):
            part = slice(start, start + block)
            noise = self._noise(rows[part], places[part], groups, params, seed)
            tokens[part] = columns[(scores[index[part]] + noise).argmax(-1)]
        return tokens

    def _noise(
        self,
        rows: Int64[Tensor, " drawn"],
        places: Int64[Tensor, " drawn"],
        groups: Int64[Tensor, " groups"],
        params: RowParameters,
        seed: int,
    ) -> Float64[Tensor, "drawn columns"]:
        """Gumbel noise, four tokens a group."""
        key = torch.full_like(rows, derived_key(seed, "noise"))
        counters = rows
        if params.seeds is not None:
            own = params.seeds[rows]
            key = torch.where(own == UNSEEDED, key, own)
            counters = torch.where(own == UNSEEDED, rows, 0)
        halves = ((key & 0xFFFFFFFF)[:, None], ((key >> 32) & 0xFFFFFFFF)[:, None])
        zero = torch.zeros_like(groups)[None]
        words = philox((counters[:, None], groups[None], places[:, None], zero), halves)
        uniform = (torch.stack(words, dim=-1).flatten(1).to(torch.float64) + 0.5) * 2.0**-32
        return -(-uniform.log()).log()


class DraftNumberAccepts(ChainVerifier):
    """The number that drew a draft also decides about its acceptance.

    Classes: C07.
    Report: vllm-project/vllm 54282.
    Effect: low tokens are accepted too often, high ones too rarely.
    Weakest check: law/completed (the first token, own drafter).
    """

    def acceptance_numbers(self, step: Step) -> Numbers:
        """Those of the drafter."""
        drafts = step.batch.draft_tokens.shape[1]
        if not drafts:
            return super().acceptance_numbers(step)
        return torch.cat(
            [self.numbers(step.batch.params, step.seed, DRAFTING, 1, place) for place in range(drafts)], dim=1
        )


class StreamRestarted(ChainVerifier):
    """Every call of verify starts the same random stream.

    Classes: C08.
    Report: warpfront/hipfire 627 (constant seed).
    Effect: one call has the right law; calls repeat each other.
    Weakest check: law/completed (over many calls, which repeat each other).
    """

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Whatever the seed."""
        return super().verify(batch, seed=0, uniforms=uniforms, noise=noise)


class DraftStreamRestarted(ChainVerifier):
    """The drafter starts the same random stream in every round.

    Classes: C08.
    Report: ggml-org/llama.cpp 27694.
    Effect: first token right; TV .03 of pairs, .14 of triples over rounds (V = 8, K = 3).
    Weakest check: law/drafts (pairs of calls).
    """

    def draft(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters, *, position: int, seed: int
    ) -> Int64[Tensor, " batch"]:
        """Whatever the seed."""
        return super().draft(logits, params, position=position, seed=0)


class SeedsDroppedInMixedBatch(ChainVerifier):
    """Rows lose their own seeds as soon as one row of the batch has none.

    Classes: C08.
    Report: vllm-project/vllm 51226.
    Effect: the law is right; a seeded row isn't reproducible.
    Weakest check: law/row-seeds (a mixed batch).
    """

    def numbers(self, params: RowParameters, seed: int, use: str, count: int, position: int = 0) -> Numbers:
        """Own seeds only where all rows have one."""
        if params.seeds is not None and bool((params.seeds == UNSEEDED).any()):
            params = replace(params, seeds=None)
        return super().numbers(params, seed, use, count, position)


STREAM_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("reuse_u", AcceptanceNumberReused),
    ("pos_shared_u", OneNumberForAllPlaces),
    ("dup_rows", NeighbourNumbers),
    ("seed_corr_gumbel", SharedGumbelNoise),
    ("draft_accept_u", DraftNumberAccepts),
    ("restarted_stream", StreamRestarted),
    ("draft_restarted", DraftStreamRestarted),
    ("seeds_dropped", SeedsDroppedInMixedBatch),
)
"""Names and classes."""
