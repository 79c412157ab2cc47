"""Exact decoders that are taken for faulty: a suite must stay silent on each of them."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import Logits
from tokenlaw.impl.engine.runner import Run, TableRunner
from tokenlaw.impl.engine.samples import Row, Sample
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.impl.engine.verification import Verification
from tokenlaw.impl.faults.decoder_base import decoder_with
from tokenlaw.impl.faults.decoder_grammar import UnmaskedDrafter
from tokenlaw.impl.faults.innocents import Innocent
from tokenlaw.impl.faults.kv_innocents import NoPrefixCache
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.one_hot import OneHotVerifier
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel


class DraftPositionsWrong(Drafter):
    """The drafter doesn't see the first token, as if all others stood one position further down."""

    def context(self, row: Row) -> Tokens:
        """All tokens but the first."""
        return super().context(row)[1:]


class DraftCacheNotFed(Drafter):
    """The drafter's cache is never told of what came after the prompt."""

    def context(self, row: Row) -> Tokens:
        """The prompt, then drafts."""
        return (*row.sample.request.prompt, *row.drafts)


class DraftLengthVaries(Drafter):
    """How many drafts a step has depends on how many tokens there are."""

    def length(self, row: Row) -> int:
        """From none to as many as are allowed."""
        return super().length(row) * (len(row.sample.tokens) % 3) // 2


class DraftsBeyondTheEnd(Drafter):
    """Drafts as many as ever, also where fewer tokens are missing; the surplus is dropped."""

    def length(self, row: Row) -> int:
        """As many as are allowed."""
        return row.sample.request.draft_length


class LogitsByRows(TableRunner):
    """Has logits in single precision, whose last bits depend on how many positions of it a pass gives."""

    def run(self, run: Run, wanted: int) -> Float64[Tensor, "wanted vocabulary"]:
        """Rounded logits."""
        logits = super().run(run, wanted).float()
        return (logits * (1 + wanted % 3 * torch.finfo(logits.dtype).eps)).double()


class DraftIsTarget(ReferenceDecoder):
    """Drafts with the target itself, so that nothing is rejected."""

    def draft_model(self, config: DecoderConfig) -> LanguageModel[float]:
        """The target."""
        return config.target


class DraftsNotProcessed(Drafter):
    """Neither masks nor bias nor penalties for the drafter."""

    def logits(self, row: Row) -> Logits:
        """From the model."""
        return self.raw_logits(row)


class OneHotRule(Verification):
    """Drafts count as certain, however they were drawn."""

    verifier = OneHotVerifier()


class BlockRule(Verification):
    """Drafts are accepted as a block."""

    verifier = BlockVerifier()


class NoBonusToken(Verification):
    """Where all drafts are accepted, no further token comes in that step."""

    def decide(self, batch: VerifyBatch, rows: list[Row]) -> Int64[Tensor, "batch drafts+1"]:
        """Drafts only, if there are some and all stay."""
        emitted = super().decide(batch, rows)
        for place, row in enumerate(rows):
            if row.drafts:
                emitted[place, len(row.drafts)] = NO_TOKEN
        return emitted


class PreemptsInTurn(Scheduler):
    """The youngest of several samples waits after each step, whether there is room or not."""

    def schedule(self) -> list[Sample]:
        """Preempt, then as ever."""
        if len(self.running) > 1:
            self.preempt(self.running[-1])
        return super().schedule()


_INTACT = "what the drafter sees changes how many drafts are accepted, and no law"
_CHAIN = "Leviathan et al. 2023, theorem 1, for any draft law that is declared as it is"
_ROWS: tuple[tuple[str, str, str, type[Any]], ...] = (
    ("draft_positions_wrong", "sgl-project/sglang 25015", _INTACT, DraftPositionsWrong),
    ("draft_cache_not_fed", "vllm-project/vllm 47926; vllm-project/vllm-metal 716", _INTACT,
     DraftCacheNotFed),
    ("draft_length_varies", "NVIDIA/TensorRT-LLM 15775", "the length doesn't depend on the drafts",
     DraftLengthVaries),
    ("drafts_beyond_the_end", "NVIDIA/TensorRT-LLM 15775", "tokens that nobody asked for are dropped",
     DraftsBeyondTheEnd),
    ("draft_is_target", "SafeAILab/EAGLE 93 (all drafts accepted)", _CHAIN, DraftIsTarget),
    ("drafts_not_masked", "dottxt-ai/outlines 845", "the target's mask rejects them", UnmaskedDrafter),
    ("drafts_not_processed", "huggingface/transformers 28166", _CHAIN, DraftsNotProcessed),
    ("no_prefix_cache_in_decoder", "llm-d/llm-d-inference-sim 704", "it costs time only", NoPrefixCache),
    ("one_hot_rule", "vllm-project/vllm 40149; sgl-project/sglang 10308",
     "exact for any draft law that is independent of the verifier's numbers", OneHotRule),
    ("block_rule", "vllm-project/vllm-ascend 7808", "Sun et al. 2024, theorem 1", BlockRule),
    ("no_bonus_token", "vllm-project/vllm 9730", "each token that comes has the target's law", NoBonusToken),
    ("logits_by_rows", "vllm-project/vllm 41758, 54506; huggingface/transformers 39421",
     "the law moves by what single precision explains", LogitsByRows),
    ("preempts_in_turn", "vllm-project/vllm 3492", "KV is computed again from the tokens", PreemptsInTurn),
)  # fmt: skip

DECODER_INNOCENTS: Mapping[str, Innocent] = {
    name: Innocent(name, report, reason, decoder_with(part)) for name, report, reason, part in _ROWS
}
"""Exact decoders by their names."""
