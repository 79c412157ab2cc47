"""Faults of publishing: what can be hit too early, too long, or after the weights changed."""

from collections.abc import Hashable, Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.sequence import SequenceRecord


class PublishesAtScheduling(FaultyManager):
    """Blocks can be hit before anything is written.

    Classes: C10.
    Report: vllm-project/vllm 37152, 41838; sgl-project/sglang 28374.
    Effect: uninitialised KV is hit.
    Weakest check: kv/publish.
    """

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Admit and commit at once."""
        handle = super().allocate(tokens, namespace)
        self.commit(handle, len(tokens))
        return handle


class PublishesPartialBlocks(FaultyManager):
    """A block can be hit before it is full.

    Classes: C10.
    Report: vllm-project/vllm 34587.
    Effect: slots that aren't written are hit.
    Weakest check: kv/publish.
    """

    def _publish(self, record: SequenceRecord) -> None:
        for index in range(len(record.keys), self._blocks_for(record.committed)):
            key = self._blocks.cache.publish(record.last_key, record.tokens, index, record.table[index])
            record.keys.append(key)


class CommitIgnoresLength(FaultyManager):
    """A commit of the first chunk of a prompt commits all that is scheduled.

    Classes: C10.
    Report: sgl-project/sglang 38319, 38355.
    Effect: chunks that aren't written yet are hit.
    Weakest check: kv/publish.
    """

    def commit(self, sequence: int, length: int) -> None:
        """Everything but drafts."""
        super().commit(sequence, self._usable(sequence).settled)


class CommitSurvivesRollback(FaultyManager):
    """What was committed before a rollback counts as committed when other tokens take its place.

    Classes: C10, C12.
    Report: none known of this form; nearest is sgl-project/sglang 28374 (an abort publishes what it wrote).
    Effect: chunks that aren't written yet are hit.
    Weakest check: kv/publish.
    """

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        committed = record.committed
        super()._truncate(record, length, blocks)
        record.committed = committed

    def commit(self, sequence: int, length: int) -> None:
        """All that ever was committed, as far as there are tokens."""
        record = self._usable(sequence)
        record.committed = min(record.committed, record.settled)
        super().commit(sequence, length)


class PublishesDrafts(FaultyManager):
    """Blocks of drafts can be hit before they are accepted.

    Classes: C10, C12.
    Report: vllm-project/vllm 43559, 57128.
    Effect: KV of rejected tokens is hit.
    Weakest check: kv/publish.
    """

    def speculate(self, sequence: int, drafts: Sequence[int]) -> None:
        """Publish with the drafts."""
        super().append(sequence, drafts)
        record = self._record(sequence)
        record.committed = len(record.tokens)
        self._publish(record)
        record.drafts = len(drafts)


class _KeepsKey(PhysicalBlocks):
    def extend(self, table: list[int], wanted: int, *, tail: int | None, purpose: str) -> None:
        super().extend(table, wanted, tail=tail if self._copies(table, tail) else None, purpose=purpose)

    def _copies(self, table: list[int], tail: int | None) -> bool:
        return tail is not None and self.is_shared(table[tail])


class OverwritesPublishedBlocks(FaultyManager):
    """After a rollback into a published block, it is overwritten and can still be hit.

    Classes: C10, C12.
    Report: waybarrios/vllm-mlx 385.
    Effect: a later prompt hits KV of other tokens.
    Weakest check: kv/cached-immutable.
    """

    physical = _KeepsKey


class RejectedDraftsKeepTheirKey(PublishesDrafts):
    """A block that drafts fill can be hit at once, also after other tokens took the place of rejected ones.

    Classes: C10, C12.
    Report: vllm-project/vllm 43559, 57128 (states written over rejected drafts are found).
    Effect: a later prompt with the rejected tokens hits KV of others.
    Weakest check: kv/cached-immutable.
    """

    physical = _KeepsKey

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        keys = record.keys.copy()
        super()._truncate(record, length, blocks)
        record.keys = keys


class KeepsCacheOverWeights(FaultyManager):
    """The cache survives a change of the weights.

    Classes: C25.
    Report: InternLM/lmdeploy 4917; vllm-project/vllm 9744.
    Effect: old KV under new weights.
    Weakest check: kv/epoch.
    """

    def new_epoch(self) -> None:
        """Nothing."""


class PublishesOldEpochs(FaultyManager):
    """A sequence that lived across a change of the weights publishes what it wrote before.

    Classes: C25.
    Report: NVIDIA-NeMo/RL 4018.
    Effect: old KV under new weights.
    Weakest check: kv/epoch.
    """

    def new_epoch(self) -> None:
        """Every live sequence belongs to the new weights."""
        super().new_epoch()
        for record in self._sequences.values():
            record.epoch = self._epoch


class ResetDoesNothing(FaultyManager):
    """A reset of the cache leaves it as it is.

    Classes: C25, C7.
    Report: vllm-project/vllm 46125.
    Effect: what must be forgotten is hit.
    Weakest check: kv/hit.
    """

    def reset_cache(self) -> None:
        """Nothing."""


PUBLISHING_FAULTS = (
    ("publishes_at_scheduling", PublishesAtScheduling),
    ("publishes_partial_blocks", PublishesPartialBlocks),
    ("commit_ignores_length", CommitIgnoresLength),
    ("commit_survives_rollback", CommitSurvivesRollback),
    ("publishes_drafts", PublishesDrafts),
    ("overwrites_published_blocks", OverwritesPublishedBlocks),
    ("rejected_drafts_keep_their_key", RejectedDraftsKeepTheirKey),
    ("keeps_cache_over_weights", KeepsCacheOverWeights),
    ("publishes_old_epochs", PublishesOldEpochs),
    ("reset_does_nothing", ResetDoesNothing),
)
