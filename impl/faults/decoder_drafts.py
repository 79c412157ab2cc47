"""Faults between drafter and verification: the law that is declared isn't the one that drafts come from."""

from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import Logits
from tokenlaw.impl.engine.samples import Row


class RawDraftLogitsDeclared(Drafter):
    """Drafts are drawn after masks and penalties; the verification is given the logits from before.

    Classes: C01.
    Report: huggingface/transformers 47932.
    Effect: the ratio is inflated by what masks take away.
    Weakest check: decoder/law-grammar.
    """

    def declared(self, row: Row, logits: Logits) -> Logits:
        """From the model."""
        return self.raw_logits(row)


class GreedyDraftsDeclaredDrawn(Drafter):
    """The most likely token is drafted, and declared as drawn from the draft's law.

    Classes: C01.
    Report: huggingface/transformers 32867; jaymody/speculative-sampling 3.
    Effect: TV .15 in the reporter's example.
    Weakest check: decoder/law.
    """

    def tokens(self, laws: Float64[Tensor, "batch vocabulary"], rows: list[Row], position: int) -> list[int]:
        """The argmax of each law."""
        return [int(law.argmax()) for law in laws]


class DraftTokensMapped(Drafter):
    """Tokens of the draft's vocabulary are off by one when they are mapped to the target's.

    Classes: C20.
    Report: vllm-project/vllm-ascend 16166.
    Effect: TV .29.
    Weakest check: decoder/law.
    """

    def tokens(self, laws: Float64[Tensor, "batch vocabulary"], rows: list[Row], position: int) -> list[int]:
        """The next token of the vocabulary."""
        return [(token + 1) % laws.shape[1] for token in super().tokens(laws, rows, position)]


class OnlyLikelyDraftsKept(Drafter):
    """Drafts that the draft model finds unlikely are dropped after they were drawn.

    Classes: C06.
    Report: sgl-project/sglang 8068 (thresholds on drafts).
    Effect: what is dropped comes back from the target's law in place of the residual.
    Weakest check: decoder/law.
    """

    def draft(self, rows: list[Row]) -> None:
        """Up to the first draft with a probability below .3."""
        super().draft(rows)
        for row in rows:
            pairs = zip(row.draft_logits, row.drafts, strict=True)
            unlikely = (
                place for place, (logits, token) in enumerate(pairs) if logits.softmax(0)[token] < 0.3
            )
            kept = next(unlikely, len(row.drafts))
            del row.drafts[kept:], row.draft_logits[kept:]


DECODER_DRAFT_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("raw_draft_logits_declared", RawDraftLogitsDeclared),
    ("greedy_drafts_declared_drawn", GreedyDraftsDeclaredDrawn),
    ("draft_tokens_mapped", DraftTokensMapped),
    ("only_likely_drafts_kept", OnlyLikelyDraftsKept),
)
"""Names and classes."""
