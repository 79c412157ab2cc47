"""The draft model proposes tokens, one after the other, for all rows of a step."""

import math

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.processors import Processors, row_parameters
from tokenlaw.impl.engine.samples import Row, uniforms_of
from tokenlaw.impl.speculative.draws import draw
from tokenlaw.impl.speculative.random import Use
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.row_laws import row_laws


class Drafter:
    """Draws drafts from the draft model's law, after the masks, penalties and parameters of the request.

    Parameters
    ----------
    model : the draft model; it has no cache.
    processors : masks and penalties.
    """

    def __init__(self, model: LanguageModel[float], processors: Processors) -> None:
        self._model, self._processors = model, processors

    def draft(self, rows: list[Row]) -> None:
        """Fill in the drafts of all rows, and the logits that they were drawn from."""
        lengths = {row: self.length(row) for row in rows}
        for position in range(max(lengths.values(), default=0)):
            active = [row for row in rows if len(row.drafts) == position < lengths[row]]
            logits = {row: self.logits(row) for row in active}
            self._draw([row for row in active if bool((logits[row] > -math.inf).any())], logits, position)

    def length(self, row: Row) -> int:
        """Drafts that the row may have: a further token always comes after them."""
        return min(row.sample.request.draft_length, row.sample.remaining - 1)

    def logits(self, row: Row) -> Float64[Tensor, " vocabulary"]:
        """Logits of the next draft. Nothing is drafted where all are minus infinity."""
        return self._processors(self.raw_logits(row), row, len(row.drafts))

    def raw_logits(self, row: Row) -> Float64[Tensor, " vocabulary"]:
        """What the draft model says about the next draft."""
        law = self._model(self.context(row))
        return torch.tensor([math.log(share) if share else -math.inf for share in law], dtype=torch.float64)

    def context(self, row: Row) -> Tokens:
        """What the draft model sees: all tokens, then the drafts so far."""
        return (*row.sample.tokens, *row.drafts)

    def _draw(self, rows: list[Row], logits: dict[Row, Tensor], position: int) -> None:
        if not rows:
            return
        params = row_parameters([row.sample.request.sampling for row in rows])
        laws = row_laws(torch.stack([logits[row] for row in rows]), params)
        for row, token in zip(rows, self.tokens(laws, rows, position), strict=True):
            row.draft_logits.append(self.declared(row, logits[row]))
            row.drafts.append(token)

    def tokens(self, laws: Float64[Tensor, "batch vocabulary"], rows: list[Row], position: int) -> list[int]:
        """One draft for each row, drawn from its law."""
        tokens: list[int] = draw(laws, uniforms_of(rows, Use.DRAFTING, 1, position)[:, 0]).tolist()
        return tokens

    def declared(self, row: Row, logits: Float64[Tensor, " vocabulary"]) -> Float64[Tensor, " vocabulary"]:
        """What the verification is told about the law that the row's next draft was drawn from."""
        return logits
