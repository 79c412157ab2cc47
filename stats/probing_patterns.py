"""Is a step really the one function that its thresholds say? Whole rows of numbers, predicted and compared.

Thresholds are found one by one, with all other numbers at their ends. Here every pattern of passing and
failing drafts is asked for, with random noise for all tokens, and some of the rows once more alone.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tokenlaw.spec.generation_contracts import NO_TOKEN
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.probing_law import Found
from tokenlaw.stats.probing_questions import Asker, accepted_of

CLEAR = 1e-3
"""A race whose two best are closer than this, relatively, isn't predicted: rounding might decide it."""

SURE = 1 - 2.0**-16
"""A draft with a larger threshold isn't asked to fail: rounding might let it pass."""

ALONE = 8
"""Rows that are asked once more in calls of their own."""


@dataclass(frozen=True)
class Patterns:
    """Rows with an outcome that can be told.

    Attributes
    ----------
    index : int64 ``[R]``, context of each row.
    passes : bool ``[R, K]``, which drafts pass.
    uniforms, noise : of the rows.
    """

    index: Int64[np.ndarray, " rows"]
    passes: Bool[np.ndarray, "rows drafts"]
    uniforms: Float64[np.ndarray, "rows drafts"]
    noise: Float64[np.ndarray, "rows drafts+1 vocabulary"]

    @staticmethod
    def of(
        asker: Asker, found: Found, chosen: Bool[np.ndarray, " contexts"], top: float, seed: int
    ) -> "Patterns":
        """All patterns of the chosen contexts."""
        contexts = asker.contexts
        drafts = contexts.draft.shape[1]
        patterns = np.array(list(product([False, True], repeat=drafts)), dtype=bool).reshape(-1, drafts)
        index = np.repeat(np.flatnonzero(chosen), len(patterns))
        passes = np.tile(patterns, (int(chosen.sum()), 1))
        accepts = np.nan_to_num(found.accepts[index])  # what isn't reached fails, and doesn't matter
        passes = (passes & (accepts > 0)) | (accepts >= SURE)
        uniforms = np.where(passes, accepts / 2, np.minimum((1 + accepts) / 2, top))
        generator = np.random.Generator(
            np.random.Philox(derived_key(seed, contexts.scenario.name, "patterns"))
        )
        noise = generator.exponential(size=(len(index), drafts + 1, contexts.target.shape[-1])) + 1e-3
        return Patterns(index, passes, uniforms, noise)

    def predicted(self, asker: Asker, found: Found) -> tuple[np.ndarray, np.ndarray]:
        """Accepted drafts of each row, and the token behind them, `NO_TOKEN` where that can't be told."""
        lengths = asker.contexts.lengths[self.index]
        there = np.arange(self.passes.shape[1])[None] < lengths[:, None]
        passed = self.passes & there
        numbered = passed * np.arange(1, passed.shape[1] + 1)
        longest = numbered.max(1, initial=0)
        accepted = longest if found.jointly else np.cumprod(passed, 1).sum(1)
        rows = np.arange(len(accepted))
        scores = found.added[self.index, accepted] / self.noise[rows, accepted]
        ordered = np.sort(scores, 1)
        clear = ordered[:, -2] < ordered[:, -1] * (1 - CLEAR)  # never where something is NaN
        return accepted, np.where(clear & asker.has_noise, np.nan_to_num(scores).argmax(1), NO_TOKEN)

    def unlike(self, asker: Asker, found: Found) -> str:
        """What was emitted otherwise than predicted, or otherwise alone; empty if nothing was."""
        emitted = asker.emitted(self.index, self.uniforms, self.noise)
        accepted, token = self.predicted(asker, found)
        last = emitted[np.arange(len(emitted)), accepted_of(emitted)]
        wrong = (accepted_of(emitted) != accepted) | ((token != NO_TOKEN) & (last != token))
        if wrong.any():
            return self._words(asker, int(np.flatnonzero(wrong)[0]), emitted, accepted, token)
        chosen = np.linspace(0, len(emitted) - 1, min(ALONE, len(emitted))).astype(np.int64)
        for row in chosen:
            one = slice(row, row + 1)
            alone = asker.emitted(self.index[one], self.uniforms[one], self.noise[one])
            same = (
                (alone == emitted[one]).all()
                if asker.has_noise
                else accepted_of(alone) == accepted_of(emitted[one])
            )
            if not same:
                text = f"emitted {_tokens(emitted[row])} among others and {_tokens(alone[0])} alone"
                return f"{asker.contexts.named(int(self.index[row]))}: {text}, with the same numbers"
        return ""

    def _words(
        self, asker: Asker, row: int, emitted: np.ndarray, accepted: np.ndarray, token: np.ndarray
    ) -> str:
        context = int(self.index[row])
        numbers = ", ".join(
            f"{number:.6g}" for number in self.uniforms[row, : len(asker.contexts.drafts[context])]
        )
        right = [
            *asker.contexts.drafts[context][: accepted[row]],
            *([int(token[row])] if token[row] >= 0 else ["?"]),
        ]
        return (
            f"{asker.contexts.named(context)}: with the numbers [{numbers}] it emitted "
            f"{_tokens(emitted[row])}; its own thresholds give [{', '.join(map(str, right))}]"
        )


def _tokens(row: np.ndarray) -> list[int]:
    return [int(token) for token in row if token != NO_TOKEN]
