"""Faults of grammar masks at draft and bonus positions."""

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import Logits, Processors, allowed_after
from tokenlaw.impl.engine.samples import Row
from tokenlaw.impl.engine.verification import Verification
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.laws import Tokens

RawLogits = Float64[Tensor, "drafts+1 vocabulary"]


class BonusUnmasked(Verification):
    """The token behind the last draft isn't masked.

    Classes: C15, C04.
    Report: vllm-project/vllm 44006; ardanlabs/kronk 788.
    Effect: an impossible token where all drafts are accepted.
    Weakest check: decoder/grammar.
    """

    def target_logits(self, row: Row, raw: RawLogits) -> RawLogits:
        """The last row gets penalties only."""
        logits = super().target_logits(row, raw)
        if row.drafts:
            logits[-1] = self.processors.penalised(raw[-1], row, len(row.drafts))
        return logits


class MaskNotAdvanced(Processors):
    """The grammar's state stands still through a run of drafts.

    Classes: C15.
    Report: vllm-project/vllm 9423.
    Effect: all positions of a step are masked as the first one is.
    Weakest check: decoder/grammar.
    """

    def seen_by_grammar(self, row: Row, position: int) -> Tokens:
        """Without drafts."""
        return row.sample.generated


class MaskAtFirstPosition(Processors):
    """Only the first position of a step is masked.

    Classes: C15.
    Report: dottxt-ai/outlines 845; vllm-project/vllm 9423.
    Effect: impossible tokens among the drafts and behind them.
    Weakest check: decoder/grammar.
    """

    def allowed(self, row: Row, position: int) -> frozenset[int] | None:
        """Before the first draft."""
        return super().allowed(row, position) if position == 0 else None


class UnmaskedDrafter(Drafter):
    """Draws drafts that the grammar may refuse."""

    def logits(self, row: Row) -> Logits:
        """Bias and penalties only."""
        position = len(row.drafts)
        biased = self._processors.biased(self.raw_logits(row), row, position)
        return self._processors.penalised(biased, row, position)


def valid_drafts(row: Row) -> int:
    """How many drafts come before the first one that the grammar refuses."""
    grammar, generated = row.sample.request.grammar, row.sample.generated
    if grammar is None:
        return len(row.drafts)
    passed = (
        allowed_after(grammar, (*generated, *row.drafts[:count])) for count in range(1, len(row.drafts) + 1)
    )
    return next((count for count, allowed in enumerate(passed) if allowed is None), len(row.drafts))


class _OffWhereRefused(Processors):
    def masked(self, logits: Logits, row: Row, position: int) -> Logits:
        return (
            logits
            if valid_drafts(row) <= position < len(row.drafts)
            else super().masked(logits, row, position)
        )


class MaskOffAfterRefusedDraft(ReferenceDecoder):
    """A draft that the grammar refuses switches the mask off, at its own position already.

    Classes: C15.
    Report: vllm-project/vllm 44006, 44292 (padded invalid drafts).
    Effect: the refused draft can be accepted.
    Weakest check: decoder/grammar.
    """

    processors_class = _OffWhereRefused
    drafter_class = UnmaskedDrafter


class RefusedDraftsAreCut(UnmaskedDrafter):
    """Drafts are drawn without the mask, then cut before the first one that the grammar refuses.

    Classes: C15, C06.
    Report: vllm-project/vllm 44006 (invalid drafts are taken out before the verification).
    Effect: no impossible token; a cut draft isn't replaced from the residual but from the target's law.
    Weakest check: decoder/law-grammar.
    """

    def draft(self, rows: list[Row]) -> None:
        """Draw all, look at them, keep some."""
        super().draft(rows)
        for row in rows:
            kept = valid_drafts(row)
            del row.drafts[kept:], row.draft_logits[kept:]


class MasksWithoutGaps(Verification):
    """The masks of requests with a grammar are stacked without gaps, and applied from the first row on.

    Classes: C11, C15.
    Report: vllm-project/vllm 35398 (a row map of another granularity).
    Effect: a request gets the mask of another one.
    Weakest check: decoder/bystanders.
    """

    def batch(self, rows: list[Row], raw: list[RawLogits]) -> VerifyBatch:
        """Grammars move to the rows before."""
        self._of_row = dict(zip(rows, [row for row in rows if row.sample.request.grammar], strict=False))
        return super().batch(rows, raw)

    def target_logits(self, row: Row, raw: RawLogits) -> RawLogits:
        """Masked by whoever stands there."""
        owner = self._of_row.get(row)
        logits = [
            self.processors.penalised(self.processors.biased(one, row, place), row, place)
            for place, one in enumerate(raw)
        ]
        if owner is not None:
            places = [min(place, len(owner.drafts)) for place in range(len(raw))]
            pairs = zip(logits, places, strict=True)
            logits = [self.processors.masked(one, owner, place) for one, place in pairs]
        found = torch.stack(logits)
        return torch.where((found > -torch.inf).any(-1, keepdim=True), found, 0.0)


DECODER_GRAMMAR_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("bonus_unmasked", BonusUnmasked),
    ("mask_not_advanced", MaskNotAdvanced),
    ("mask_at_first_position", MaskAtFirstPosition),
    ("mask_off_after_refused_draft", MaskOffAfterRefusedDraft),
    ("refused_drafts_are_cut", RefusedDraftsAreCut),
    ("masks_without_gaps", MasksWithoutGaps),
)
"""Names and classes."""
