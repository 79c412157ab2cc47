"""Faults of penalties and bias at draft positions: which tokens they see, and where they count."""

from weakref import WeakKeyDictionary

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.processors import Logits, Processors
from tokenlaw.impl.engine.samples import Row, Sample
from tokenlaw.impl.engine.verification import Emitted, RowLogits, Verification
from tokenlaw.spec.laws import Tokens


class PenaltiesIgnoredWithDrafts(Processors):
    """Penalties do nothing as soon as a request has drafts.

    Classes: C14.
    Report: vllm-project/vllm 18902; NVIDIA/TensorRT-LLM 17701.
    Effect: TV .24 [.13, .44] for frequency and presence .5.
    Weakest check: decoder/penalties.
    """

    def penalised(self, logits: Logits, row: Row, position: int) -> Logits:
        """Only without drafts."""
        return logits if row.sample.request.draft_length else super().penalised(logits, row, position)


class PenaltiesSeeCommittedTokens(Processors):
    """At draft positions penalties don't see the drafts before.

    Classes: C14.
    Report: ml-explore/mlx-examples 1291 (wrong history).
    Effect: first token of a step right, a repeated draft counts once less.
    Weakest check: decoder/penalties.
    """

    def history(self, row: Row, position: int) -> Tokens:
        """Without drafts."""
        return row.sample.generated


class PenaltiesAtFirstPosition(Processors):
    """Penalties count at the first position of a step only.

    Classes: C14.
    Report: mlx-node/mlx-node 11 (review).
    Effect: accepted drafts and the bonus token come from the law without penalties.
    Weakest check: decoder/penalties.
    """

    def penalised(self, logits: Logits, row: Row, position: int) -> Logits:
        """Before the first draft."""
        return logits if position else super().penalised(logits, row, position)


class PenaltiesCountThePrompt(Processors):
    """Presence and frequency penalties count the prompt as well.

    Classes: C14.
    Report: ml-explore/mlx-examples 1291 (wrong history).
    Effect: tokens of the prompt are penalised.
    Weakest check: decoder/penalties.
    """

    def history(self, row: Row, position: int) -> Tokens:
        """From the first token on."""
        return row.sample.request.prompt + super().history(row, position)


class _RememberedTokens(Processors):
    """Penalties see what they were told of, and no more."""

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[Sample, list[int]] = WeakKeyDictionary()

    def tell(self, row: Row, emitted: list[Emitted]) -> None:
        """What a step gave."""
        self.told(row.sample).extend(self.counted(row, [one.token for one in emitted]))

    def counted(self, row: Row, tokens: list[int]) -> list[int]:
        """Which tokens the penalties are told of."""
        return tokens

    def told(self, sample: Sample) -> list[int]:
        """Of which tokens they know; of a fork, those of its origin."""
        return self._told.setdefault(sample, list(sample.generated))

    def history(self, row: Row, position: int) -> Tokens:
        """Those tokens, then the drafts."""
        return (*self.told(row.sample), *row.drafts[:position])


class _Telling(Verification):
    processors: _RememberedTokens

    def __call__(self, rows: list[Row], raw: RowLogits) -> list[list[Emitted]]:
        found = super().__call__(rows, raw)
        for row, emitted in zip(rows, found, strict=True):
            self.processors.tell(row, emitted)
        return found


class _LastOnly(_RememberedTokens):
    def counted(self, row: Row, tokens: list[int]) -> list[int]:
        return tokens[-1:]


class AcceptedDraftsNotCounted(ReferenceDecoder):
    """The penaliser is told of the last token of each step, and not of the accepted drafts before it.

    Classes: C14.
    Report: sgl-project/sglang 28242, 28200.
    Effect: endless loops: a token that is always drafted is never penalised.
    Weakest check: decoder/penalties.
    """

    processors_class = _LastOnly
    verification_class = _Telling


class _RejectedToo(_RememberedTokens):
    def counted(self, row: Row, tokens: list[int]) -> list[int]:
        return tokens + row.drafts[len(tokens) - 1 :]


class RejectedDraftsCounted(ReferenceDecoder):
    """Rejected drafts stay in the counts of the penaliser.

    Classes: C12, C14.
    Report: vllm-project/vllm 20247 (processors see another history).
    Effect: tokens are penalised that never came.
    Weakest check: decoder/penalties.
    """

    processors_class = _RejectedToo
    verification_class = _Telling


class BiasSkippedAtDrafts(Processors):
    """Logit bias counts for the bonus token only.

    Classes: C02.
    Report: vllm-project/vllm 42744.
    Effect: bias is honoured on a part of the tokens.
    Weakest check: decoder/bias.
    """

    def biased(self, logits: Logits, row: Row, position: int) -> Logits:
        """Behind the last draft."""
        return super().biased(logits, row, position) if position == len(row.drafts) else logits


DECODER_PENALTY_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("penalties_ignored_with_drafts", PenaltiesIgnoredWithDrafts),
    ("penalties_see_committed_tokens", PenaltiesSeeCommittedTokens),
    ("penalties_at_first_position", PenaltiesAtFirstPosition),
    ("penalties_count_the_prompt", PenaltiesCountThePrompt),
    ("accepted_drafts_not_counted", AcceptedDraftsNotCounted),
    ("rejected_drafts_counted", RejectedDraftsCounted),
    ("bias_skipped_at_drafts", BiasSkippedAtDrafts),
)
"""Names and classes."""
