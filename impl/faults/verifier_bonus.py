"""Faults of the bonus token, which follows drafts that were all accepted."""

from jaxtyping import Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier, Numbers
from tokenlaw.impl.faults.verifier_step import Step

Added = Int64[Tensor, " batch"]


class BonusFromDraft(ChainVerifier):
    """The bonus token is drawn from the law of the last draft.

    Classes: C04.
    Report: ardanlabs/kronk 788 (a bonus that bypasses the sampler).
    Effect: TV .03 of the token behind K = 3 drafts; all others are right.
    Weakest check: law/bonus.
    """

    def bonus(self, step: Step, numbers: Numbers) -> Added:
        """Draft law; the target's in rows without drafts."""
        if not step.valid.shape[1]:
            return super().bonus(step, numbers)
        law, index = self.at(step.laws.draft, step.rows, (step.batch.num_draft_tokens - 1).clamp(min=0))
        drawn = self.draw(law, index, numbers)
        bare = (step.batch.num_draft_tokens == 0).nonzero()[:, 0]
        drawn[bare] = super().bonus(step, numbers)[bare]
        return drawn


class BonusByArgmax(ChainVerifier):
    """The bonus token is the target's most probable one, whatever the temperature.

    Classes: C03, C04.
    Report: ardanlabs/kronk 788.
    Effect: TV .11 of the token behind K = 3 drafts; all others are right.
    Weakest check: law/bonus.
    """

    def bonus(self, step: Step, numbers: Numbers) -> Added:
        """No random number."""
        return self.most_probable(step, step.rows, step.batch.num_draft_tokens)


class BonusFromLastDraftRow(ChainVerifier):
    """The bonus token is drawn from the target row of the last draft, one too early.

    Classes: C04, C09.
    Report: NVIDIA/TensorRT-LLM 15098 (wrong logits slice).
    Effect: none where all places have one law; else that of another row, TV .8 on random laws.
    Weakest check: law/bonus (with laws that depend on the place).
    """

    def bonus(self, step: Step, numbers: Numbers) -> Added:
        """Row K - 1."""
        law, index = self.at(step.laws.target, step.rows, (step.batch.num_draft_tokens - 1).clamp(min=0))
        return self.draw(law, index, numbers)


BONUS_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("bonus_draft", BonusFromDraft),
    ("bonus_argmax", BonusByArgmax),
    ("bonus_row_off", BonusFromLastDraftRow),
)
"""Names and classes."""
