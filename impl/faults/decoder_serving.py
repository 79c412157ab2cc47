"""Faults of a batch whose requests join, leave, are aborted and preempted."""

from collections.abc import Sequence

import torch

from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.processors import row_parameters
from tokenlaw.impl.engine.samples import Row, Sample
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.impl.engine.verification import RowLogits, Verification
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import SamplingParameters


class ParametersStayBehind(Verification):
    """When a request leaves the batch the rows behind it move up, and their parameters don't.

    Classes: C11, C12.
    Report: vllm-project/vllm 35398 (a row map of another step).
    Effect: a request is sampled with another one's temperature.
    Weakest check: decoder/law-requests.
    """

    _held: Sequence[SamplingParameters] = ()
    _samples: Sequence[Sample] = ()

    def parameters(self, rows: list[Row]) -> RowParameters:
        """What is held for as many rows as are left, then those of new rows."""
        samples = [row.sample for row in rows]
        left = sum(sample in samples for sample in self._samples)
        self._held = [*self._held[:left], *(one.request.sampling for one in samples[left:])]
        self._samples = samples
        return row_parameters(self._held)


class BonusFromPadding(Verification):
    """Rows with fewer drafts than others take their bonus token from the last row of the padded block.

    Classes: C11.
    Report: mlc-ai/mlc-llm 2949 (wrong indices of draft tokens).
    Effect: a uniform token behind the last draft.
    Weakest check: decoder/bystanders.
    """

    def batch(self, rows: list[Row], raw: RowLogits) -> VerifyBatch:
        """The padding is zero everywhere."""
        batch = super().batch(rows, raw)
        places = torch.arange(len(rows))
        batch.target_logits[places, batch.num_draft_tokens] = batch.target_logits[:, -1].clone()
        return batch


class _ForgettingManager(PagedBlockManager):
    def forget_tail(self, sequence: int) -> None:
        """Take the last block out of the table, and keep its reference."""
        del self._record(sequence).table[-1:]


class _ForgettingCache(SequenceCache):
    manager_class = _ForgettingManager
    _manager: _ForgettingManager

    def forget_tail(self, sample: Sample) -> None:
        """Lose the last block."""
        self._manager.forget_tail(sample.handle)


class AbortLeaksTail(ReferenceDecoder):
    """An aborted request keeps the block that its last step wrote.

    Classes: C17.
    Report: vllm-project/vllm 46283; RBLN-SW/vllm-rbln 903.
    Effect: a block is lost with each abort.
    Weakest check: decoder/blocks.
    """

    cache_class = _ForgettingCache
    cache: _ForgettingCache

    def abort(self, handle: int) -> None:
        """After the last block was lost."""
        for sample in self._of(handle):
            if sample.blocks is not None:
                self.cache.forget_tail(sample)
        super().abort(handle)


class AbortEndsAnother(Scheduler):
    """Aborting a request that waits takes the last one out of the queue, whichever that is.

    Classes: C12.
    Report: ml-explore/mlx-lm 1528 (an abort uses what another round left).
    Effect: a request never ends, the aborted one runs.
    Weakest check: decoder/progress.
    """

    def remove(self, sample: Sample) -> None:
        """The last one goes."""
        super().remove(self.waiting[-1] if sample in self.waiting else sample)


class TableOfTheRowBefore(SequenceCache):
    """A sample that joins uses the block table of the one that left last, for its first forward pass.

    Classes: C12.
    Report: tenstorrent/vllm-tt-plugin 104; vllm-project/vllm 43434.
    Effect: the KV of its prompt lands in blocks of others.
    Weakest check: decoder/bystanders.
    """

    _left: Sequence[int] = ()
    _latest = -1

    def table(self, sample: Sample) -> Sequence[int]:
        """Its own from the second time on."""
        table = super().table(sample)
        if sample.handle <= self._latest:
            return table
        self._latest = sample.handle
        stale = self._left[: len(table)]
        return [*stale, *table[len(stale) :]]

    def release(self, sample: Sample) -> None:
        """Remember the table."""
        self._left = super().table(sample)
        super().release(sample)


class ResumedFromThePrompt(SequenceCache):
    """The KV of a preempted sample is computed from its prompt, and not from what it generated.

    Classes: C12.
    Report: vllm-project/vllm 20247 (scheduler and runner disagree on output tokens).
    Effect: the sample goes on as if most of its text had never come.
    Weakest check: decoder/bystanders.
    """

    def tokens_to_admit(self, sample: Sample) -> list[int]:
        """The prompt, if there is more."""
        return super().tokens_to_admit(sample)[: len(sample.request.prompt)]


DECODER_SERVING_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("parameters_stay_behind", ParametersStayBehind),
    ("bonus_from_padding", BonusFromPadding),
    ("abort_leaks_tail", AbortLeaksTail),
    ("abort_ends_another", AbortEndsAnother),
    ("table_of_the_row_before", TableOfTheRowBefore),
    ("resumed_from_the_prompt", ResumedFromThePrompt),
)
"""Names and classes."""
