"""Faults of the target's KV cache under speculation: what a rejection, a fork or a hit leaves behind."""

from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.runner import Run, TableRunner
from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.faults.kv_prefixes import KeyWithoutParent
from tokenlaw.impl.faults.kv_publishing import RejectedDraftsKeepTheirKey
from tokenlaw.impl.faults.kv_rewinding import AcceptForgetsOneMore, AcceptsOneMore, RollbackLeaks
from tokenlaw.impl.faults.kv_sharing import NoCopyOnWrite


class RejectedDraftsStay(FaultyManager):
    """Rejected drafts stay in the cache: trimming does nothing.

    Classes: C17.
    Report: ml-explore/mlx-lm 1109, 846; vllm-project/tpu-inference 3178.
    Effect: later tokens attend to text that never came.
    Weakest check: decoder/speculation.
    """

    def accept(self, sequence: int, count: int) -> None:
        """All of them."""
        super().accept(sequence, self._record(sequence).drafts)


class OneRejectedDraftStays(AcceptsOneMore):
    """A rollback leaves one rejected draft in the cache.

    Classes: C17.
    Report: kekzl/imp 667.
    Effect: later tokens attend to a rejected one, and stand one position too far.
    Weakest check: decoder/speculation.
    """


class AcceptedDraftLost(AcceptForgetsOneMore):
    """A rollback takes the last accepted draft with it.

    Classes: C17.
    Report: kekzl/imp 667; ml-explore/mlx-examples 149.
    Effect: later tokens don't attend to an accepted one.
    Weakest check: decoder/speculation.
    """


class LastTokenNotWritten(TableRunner):
    """The KV of the token behind a run of drafts isn't written; its slot keeps that of the rejected draft.

    Classes: C17.
    Report: vllm-project/vllm 40831; kekzl/imp 667.
    Effect: the replaced draft is attended to in place of its replacement.
    Weakest check: decoder/speculation.
    """

    _speculative = False

    def run(self, run: Run, wanted: int) -> Float64[Tensor, "wanted vocabulary"]:
        """Remember whether there are drafts."""
        self._speculative = wanted > 1
        return super().run(run, wanted)

    def write(self, run: Run) -> None:
        """Without the first token of a speculative step, where a draft was written to its slot."""
        first = int(self._speculative and self._is_taken(run))
        super().write(Run(run.table, run.start + first, run.tokens[first:]))

    def _is_taken(self, run: Run) -> bool:
        block, place = run.table[run.start // self._block_size], run.start % self._block_size
        return int(self._cache[block, place, 1]) == run.start


class DraftsInSharedBlocks(NoCopyOnWrite):
    """Drafts and tokens are written into blocks that another sample shares.

    Classes: C17.
    Report: Avarok-Cybersecurity/atlas 692, 1193.
    Effect: forks and samples read each other's tokens; invisible while both write equal ones, as in a tail
    with room for one token.
    Weakest check: decoder/logprobs.
    """


class CopiesForgotten(SequenceCache):
    """A block that is shared gets a copy for the writer, which nobody fills.

    Classes: C17.
    Report: vllm-project/vllm 55112.
    Effect: a fork loses the tokens of its last partly filled block.
    Weakest check: decoder/fork.
    """

    def _apply_copies(self) -> None:
        self._manager.pending_copies()


class RejectedBlocksLeak(RollbackLeaks):
    """The blocks of rejected drafts never come back.

    Classes: C17.
    Report: NVIDIA/TensorRT-LLM 16455.
    Effect: the pool runs dry.
    Weakest check: decoder/blocks.
    """


class PrefixesByLastBlock(KeyWithoutParent):
    """A block of a prompt is found by its own tokens, whatever stands before them.

    Classes: C17.
    Report: vllm-project/vllm 8229.
    Effect: a request that joins takes cached blocks of another one.
    Weakest check: decoder/bystanders.
    """


class RejectedDraftsAreFound(RejectedDraftsKeepTheirKey):
    """Blocks of drafts reach the prefix cache, and stay there when other tokens replace rejected ones.

    Classes: C17.
    Report: vllm-project/vllm 43559, 57128.
    Effect: a later request whose prompt has the rejected tokens attends to KV of others.
    Weakest check: decoder/law-requests.
    """


DECODER_CACHE_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("rejected_drafts_stay", RejectedDraftsStay),
    ("one_rejected_draft_stays", OneRejectedDraftStays),
    ("accepted_draft_lost", AcceptedDraftLost),
    ("last_token_not_written", LastTokenNotWritten),
    ("drafts_in_shared_blocks", DraftsInSharedBlocks),
    ("copies_forgotten", CopiesForgotten),
    ("rejected_blocks_leak", RejectedBlocksLeak),
    ("prefixes_by_last_block", PrefixesByLastBlock),
    ("rejected_drafts_are_found", RejectedDraftsAreFound),
)
"""Names and classes."""
