"""speculative-decoding: one round of ``speculative_decoding(net, small_net, prompt, ...)``.

The function is a whole loop that drafts for itself. Here both networks return the logits of the batch, the
drafts of the batch take the place of its own (its drawing function is exchanged for the time of the call),
and the loop is left when its second round asks the small network: what it holds then is what the first round
emitted. Everything between, with acceptance, recovery, bonus and the alignment of ragged rows, is the
package's own code.

All rows of a call have one draft length, so rows are grouped by theirs. The loop can't run without drafts; a
row without any is one step without speculation, and goes to the package's ``base_decoding``. What the loop
does with its networks and caches (masks of padding, positions) is outside this contract: the networks here
don't look at them.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from jaxtyping import Int64
from torch import Tensor

from examples.audits.packages import installed_version, package_module
from tokenlaw.impl.adapters.verify_rows import draft_laws, rows_by_length, seeded
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch

PACKAGE = "speculative-decoding"


class RoundIsOver(Exception):
    """Leaves the loop at the beginning of its second round."""


class OneRound:
    """The networks of one round, and what the loop holds when it is over.

    Parameters
    ----------
    drafts : int64 ``[B, K]``.
    target, draft : logarithms of laws, float32 ``[B, K + 1, V]`` and ``[B, K, V]``.
    """

    def __init__(self, drafts: Tensor, target: Tensor, draft: Tensor) -> None:
        self._drafts, self._target, self._draft = drafts, target, draft
        self._asked = self._given = 0
        self.outcome = SimpleNamespace()

    def small_net(self, out: Tensor, *, seq_start_pos: Tensor, **_options: Any) -> tuple[Tensor, Any]:
        """Logits of the next draft; leaves the loop when all were asked for."""
        position, self._asked = self._asked, self._asked + 1
        if position == self._drafts.shape[1]:
            self.outcome = SimpleNamespace(tokens=out, padding=seq_start_pos)
            raise RoundIsOver
        return self._draft[:, position : position + 1], _cache(out)

    def net(self, out: Tensor, **_options: Any) -> tuple[Tensor, Any]:
        """Logits of all positions."""
        return self._target, _cache(out)

    def gumbel_sample(self, _logits: Tensor, **_options: Any) -> Tensor:
        """The next drafts, in place of drawn ones."""
        position, self._given = self._given, self._given + 1
        return self._drafts[:, position]


class LoopVerifier:
    """A `Verifier` around one round of the loop; torch's global random numbers, seeded by the call's seed."""

    def __init__(self) -> None:
        self._module: Any = package_module("speculative_decoding.speculative_decoding", PACKAGE)

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; see `Verifier.verify`."""
        emitted = torch.full(batch.target_logits.shape[:2], NO_TOKEN, device=batch.draft_tokens.device)
        target, draft = batch.target_probs.float().log(), draft_laws(batch).float().log()
        with seeded(seed, batch.draft_tokens.device):
            for length, rows in rows_by_length(batch):
                one_round = OneRound(
                    batch.draft_tokens[rows, :length], target[rows, : length + 1], draft[rows, :length]
                )
                run = self._round if length else self._plain
                emitted[rows, : length + 1] = run(one_round, len(rows), length)
        return emitted

    def _plain(self, one_round: OneRound, rows: int, _length: int) -> Tensor:
        """One token of every row, ``[rows, 1]``, without speculation."""
        prompt = torch.zeros(rows, 1, dtype=torch.int64)
        tokens: Tensor = self._module.base_decoding(
            one_round.net, prompt, 2, temperature=1.0, filter_thres=0.0
        )
        return tokens

    def _round(self, one_round: OneRound, rows: int, length: int) -> Tensor:
        """Emitted tokens ``[rows, length + 1]`` of one round after a prompt of one token."""
        prompt = torch.zeros(rows, 1, dtype=torch.int64)
        with patch.object(self._module, "gumbel_sample", one_round.gumbel_sample):
            try:
                self._module.speculative_decoding(
                    one_round.net,
                    one_round.small_net,
                    prompt,
                    seq_len=3 * (length + 1),  # never reached in one round
                    gamma=length,
                    temperature=1.0,
                    filter_thres=0.0,  # keeps every token
                )
            except RoundIsOver:
                return _left_aligned(one_round.outcome.tokens, one_round.outcome.padding, length + 1)
        raise RuntimeError("speculative-decoding: the loop ended in its first round")


def _cache(out: Tensor) -> tuple[Tensor, None]:
    """Keys and values of every token so far, of the shape that the loop slices."""
    return torch.zeros(out.shape[0], 1, out.shape[1], 1), None


def _left_aligned(tokens: Tensor, padding: Tensor, width: int) -> Tensor:
    """Rows without the padding on their left and the prompt of one token, `NO_TOKEN` behind them."""
    start = padding + 1
    position = start[:, None] + torch.arange(width)
    inside = position < tokens.shape[1]
    return torch.where(inside, tokens.gather(1, position.clamp(max=tokens.shape[1] - 1)), NO_TOKEN)


IMPLEMENTATION = Implementation(
    name=PACKAGE,
    version=installed_version(PACKAGE),
    factories={VERIFIER: LoopVerifier},
    capabilities={VERIFIER: frozenset()},
    summary="speculative_decoding.speculative_decoding: one round, with networks that return given logits",
)
