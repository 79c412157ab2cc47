"""The verifier that the faults are planted in: chain rejection sampling, every step of it one method.

Slower and plainer than the reference verifier, and independent of it. Greedy rows have a branch of their own,
as in most engines. Rules: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.

Where all rows of a batch share their laws (stride 0), so do the tables here: ``[1, positions, V]``.
"""

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_step import Laws, Step
from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK, VerifyBatch
from tokenlaw.spec.philox import derived_key, uniforms
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters, row_laws

ACCEPTANCE, RECOVERY, BONUS, DRAFTING = "acceptance", "recovery", "bonus", "drafting"
"""What random numbers are for; those of different uses are independent."""

Numbers = Float64[Tensor, " drawn"] | Float64[Tensor, "drawn vocabulary"]
"""What draws a token in each of some rows: a uniform number in [0, 1), or exponential noise of each token."""

_STREAMS = {ACCEPTANCE: 0, RECOVERY: 1, BONUS: 2, DRAFTING: 3}


class ChainVerifier:
    """Chain rejection sampling, batched; capabilities ``draft``, ``uniforms``, ``noise`` and ``row-seeds``.

    A fault overrides the one method that it gets wrong.
    """

    claims = TEXTBOOK
    precision = torch.float64

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens, see `tokenlaw.spec.generation_contracts.Verifier`."""
        step = Step(batch, seed, self.laws(batch), uniforms, noise)
        accepted = self.accepted_length(step, self.decisions(step))
        return self.assemble(step, accepted, self.added_token(step, accepted))

    def decisions(self, step: Step) -> Bool[Tensor, "batch drafts"]:
        """Which drafts pass their own tests."""
        numbers = self.acceptance_numbers(step) if step.uniforms is None else step.uniforms
        return torch.where(self.greedy(step)[:, None], self.matches(step), self.passes(step, numbers))

    def draft(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters, *, position: int, seed: int
    ) -> Int64[Tensor, " batch"]:
        """The verifier's own drafter: one token a row from the law of ``logits`` and ``params``."""
        law = self.drafting_law(logits, params)
        numbers = self.numbers(params, seed, DRAFTING, 1, position)[:, 0]
        shared = len(law) > 1 and law.stride(0) == 0
        rows = torch.arange(len(law), device=law.device)
        return self.draw(law[:1] if shared else law, rows * 0 if shared else rows, numbers)

    def drafting_law(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters
    ) -> Float64[Tensor, "batch vocabulary"]:
        """The law that drafts are drawn from."""
        return row_laws(logits, params)

    def laws(self, batch: VerifyBatch) -> Laws:
        """Target and draft laws after the sampling parameters; drafts that weren't drawn are certain."""
        target, draft = self.target_laws(batch), self.draft_laws(batch)
        if target.stride(0) == 0 and draft.stride(0) == 0:
            return Laws(target[:1], draft[:1])
        return Laws(target, draft)

    def target_laws(self, batch: VerifyBatch) -> Float64[Tensor, "batch drafts+1 vocabulary"]:
        """Laws of the target."""
        return batch.target_probs

    def draft_laws(self, batch: VerifyBatch) -> Float64[Tensor, "batch drafts vocabulary"]:
        """Laws of the drafts."""
        if batch.draft_probs is not None:
            return batch.draft_probs
        vocabulary = batch.target_logits.shape[-1]
        certain = torch.zeros(*batch.draft_tokens.shape, vocabulary, dtype=torch.float64)
        tokens = batch.draft_tokens.clamp(0, vocabulary - 1)
        return certain.to(tokens.device).scatter_(-1, tokens[..., None], 1.0)

    def numbers(
        self, params: RowParameters, seed: int, use: str, count: int, position: int = 0
    ) -> Float64[Tensor, "batch count"]:
        """Uniform numbers in [0, 1): of the call's seed, or of the row's own where it has one."""
        rows, device = len(params.temperature), params.temperature.device
        generator = torch.Generator(device).manual_seed(derived_key(seed, use, position))
        shared = torch.rand((count, rows), generator=generator, dtype=torch.float64, device=device).T
        if params.seeds is None:
            return shared
        stream = _STREAMS[use] + len(_STREAMS) * position
        own = uniforms(params.seeds, torch.zeros_like(params.seeds), count, stream=stream)
        return torch.where((params.seeds == UNSEEDED)[:, None], shared, own)

    def acceptance_numbers(self, step: Step) -> Float64[Tensor, "batch drafts"]:
        """The numbers that decide about acceptance, one for each draft."""
        return self.numbers(step.batch.params, step.seed, ACCEPTANCE, step.batch.draft_tokens.shape[1])

    def recovery_numbers(self, step: Step, places: Int64[Tensor, " batch"]) -> Numbers:
        """What draws the tokens in place of the drafts rejected at ``places``."""
        if step.noise is not None:
            return step.noise[step.rows, places]
        return self.numbers(step.batch.params, step.seed, RECOVERY, 1)[:, 0]

    def bonus_numbers(self, step: Step) -> Numbers:
        """What draws the tokens behind fully accepted drafts."""
        if step.noise is not None:
            return step.noise[step.rows, step.batch.num_draft_tokens]
        return self.numbers(step.batch.params, step.seed, BONUS, 1)[:, 0]

    def greedy(self, step: Step) -> Bool[Tensor, " batch"]:
        """Which rows are decided by the target's most probable token."""
        return step.batch.params.temperature == 0

    def matches(self, step: Step) -> Bool[Tensor, "batch drafts"]:
        """Greedy rows: is the draft the target's most probable token?"""
        best: Tensor = step.laws.target[:, :-1].argmax(-1)
        return best == step.batch.draft_tokens

    def passes(self, step: Step, numbers: Float64[Tensor, "batch drafts"]) -> Bool[Tensor, "batch drafts"]:
        """Random rows: does the draft pass its own test?"""
        return numbers < self.ratio(step)

    def ratio(self, step: Step) -> Float64[Tensor, "batch drafts"]:
        """Target over draft probability of each draft; above 1 it's accepted for certain."""
        return self.chosen(step, step.laws.target[:, :-1]) / self.chosen(step, step.laws.draft)

    def chosen(
        self, step: Step, table: Float64[Tensor, "tables drafts vocabulary"]
    ) -> Float64[Tensor, "batch drafts"]:
        """Probabilities of the drafts in a table of laws."""
        tokens = step.batch.draft_tokens.clamp(0, table.shape[-1] - 1)[..., None]
        return table.expand(len(tokens), *table.shape[1:]).gather(-1, tokens)[..., 0]

    def accepted_length(self, step: Step, passes: Bool[Tensor, "batch drafts"]) -> Int64[Tensor, " batch"]:
        """How many drafts stay: those before the first one that fails."""
        return (passes & step.valid).long().cumprod(1).sum(1)

    def added_token(self, step: Step, accepted: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """The token behind the accepted drafts: recovery after a rejection, else bonus."""
        added = self.bonus(step, self.bonus_numbers(step))
        rejected = (accepted < step.batch.num_draft_tokens).nonzero()[:, 0]
        if len(rejected):
            numbers = self.recovery_numbers(step, accepted)[rejected]
            added[rejected] = self.recover(step, rejected, accepted[rejected], numbers)
        rows = self.greedy(step).nonzero()[:, 0]
        added[rows] = self.most_probable(step, rows, accepted[rows])
        return added

    def bonus(self, step: Step, numbers: Numbers) -> Int64[Tensor, " batch"]:
        """A token from the target law behind the last draft."""
        law, index = self.at(step.laws.target, step.rows, step.batch.num_draft_tokens)
        return self.draw(law, index, numbers)

    def recover(
        self,
        step: Step,
        rows: Int64[Tensor, " rejected"],
        places: Int64[Tensor, " rejected"],
        numbers: Numbers,
    ) -> Int64[Tensor, " rejected"]:
        """A token from the residual law at the rejected place of each of the rows."""
        law, index = self.residual_at(step, rows, places)
        return self.draw(law, index, numbers)

    def residual_at(
        self, step: Step, rows: Int64[Tensor, " rejected"], places: Int64[Tensor, " rejected"]
    ) -> tuple[Float64[Tensor, "laws vocabulary"], Int64[Tensor, " rejected"]]:
        """Residual laws at the rejected places, and which of them belongs to each row."""
        target, index = self.at(step.laws.target[:, :-1], rows, places)
        draft, _ = self.at(step.laws.draft, rows, places)
        return self.residual(target, draft), index

    def most_probable(
        self, step: Step, rows: Int64[Tensor, " chosen"], places: Int64[Tensor, " chosen"]
    ) -> Int64[Tensor, " chosen"]:
        """The target's most probable token at a place of each of the rows."""
        law, index = self.at(step.laws.target, rows, places)
        return law.argmax(-1)[index]

    def residual(
        self, target: Float64[Tensor, "laws vocabulary"], draft: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """``(target - draft)+``, normalised; the target law where that is zero."""
        return self.normalised(self.excess(target, draft), target)

    def excess(
        self, target: Float64[Tensor, "laws vocabulary"], draft: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """``(target - draft)+``."""
        return (target - draft).clamp(min=0)

    def normalised(
        self, weights: Float64[Tensor, "laws vocabulary"], otherwise: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """Weights over their sum; the other law where the sum is zero."""
        mass = weights.sum(-1, keepdim=True)
        return torch.where(mass > 0, weights / mass, otherwise)

    def at(
        self,
        table: Float64[Tensor, "tables places vocabulary"],
        rows: Int64[Tensor, " chosen"],
        places: Int64[Tensor, " chosen"],
    ) -> tuple[Float64[Tensor, "laws vocabulary"], Int64[Tensor, " chosen"]]:
        """Laws at one place of each of the rows, and which of the laws belongs to which row."""
        if len(table) == 1:
            return table[0], places
        return table[rows, places], torch.arange(len(rows), device=rows.device)

    def draw(
        self, law: Float64[Tensor, "laws vocabulary"], index: Int64[Tensor, " drawn"], numbers: Numbers
    ) -> Int64[Tensor, " drawn"]:
        """Tokens from the laws: by the inverse of the cumulated law, or by a race where there is noise."""
        if numbers.dim() > 1:
            return (law[index] / numbers).argmax(-1)
        sums = self.cumulated(law)
        numbers = numbers.to(sums.dtype)
        last = torch.searchsorted(sums, sums[:, -1:].contiguous())[:, 0]
        if len(law) < len(index):
            tokens = torch.empty_like(index)
            for which in range(len(law)):
                mine = index == which
                tokens[mine] = torch.searchsorted(sums[which], numbers[mine], right=True)
        else:
            tokens = torch.searchsorted(sums[index], numbers[:, None].contiguous(), right=True)[:, 0]
        # The sum may end a little below 1, and no token of probability zero may be drawn.
        return torch.minimum(tokens, last[index])

    def cumulated(self, law: Float64[Tensor, "laws vocabulary"]) -> Float[Tensor, "laws vocabulary"]:
        """Sums of the probabilities up to and including each token."""
        return law.cumsum(-1)

    def assemble(
        self, step: Step, accepted: Int64[Tensor, " batch"], added: Int64[Tensor, " batch"]
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Accepted drafts, the added token, `NO_TOKEN` behind it."""
        tokens = torch.nn.functional.pad(step.batch.draft_tokens, (0, 1))
        places = torch.arange(tokens.shape[1], device=tokens.device)
        tokens = torch.where(places < accepted[:, None], tokens, NO_TOKEN)
        return tokens.scatter_(1, accepted[:, None], added[:, None])
