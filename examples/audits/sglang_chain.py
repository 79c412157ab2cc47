"""SGLang: ``chain_speculative_sampling_triton``, with the textbook rule and with block verification.

The kernel takes probabilities of drafts and target and all the uniform numbers that it needs: those that
decide about acceptance, and one for the token that follows. Without a GPU it runs in Triton's interpreter:
some tens of rows a second, so drafts and numbers are better given than sampled (capability ``uniforms``). Its
file needs nothing of SGLang but itself; it is loaded alone, since the package around it wants a server's
worth of others.

All rows of a launch have one number of drafts, so rows are grouped by theirs. The probability that drafts
which weren't drawn had is one.
"""

import os
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from examples.audits.packages import installed_version, package_file, package_module
from tokenlaw.impl.adapters.verify_rows import draft_laws, rows_by_length
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import BLOCK, NO_TOKEN, TEXTBOOK, VerifyBatch

PACKAGE = "sglang"
INTERPRETED_ROWS = 20
"""Rows of a call in Triton's interpreter at most: less than a second, and some checks make 32 calls in a row
without a sign of life, for which `tokenlaw` waits 30 s."""
FILE = "sglang/kernels/ops/speculative/reject_sampling.py"


class ChainVerifier:
    """A `Verifier` around the kernel. Capability ``uniforms``.

    Numbers are rounded to float32, as SGLang draws them.

    Parameters
    ----------
    block_verification : the kernel's option of this name; with it the claim is ``block``.
    """

    def __init__(self, block_verification: bool = False) -> None:
        self.claims = BLOCK if block_verification else TEXTBOOK
        self.most_rows = None if torch.cuda.is_available() else INTERPRETED_ROWS
        self._block_verification = block_verification
        self._kernel = _kernel()

    def verify(
        self, batch: VerifyBatch, *, seed: int, uniforms: Float[Tensor, "batch drafts"] | None = None
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; see `Verifier.verify`."""
        device, (rows, longest, _) = batch.draft_tokens.device, batch.shape
        generator = torch.Generator(device).manual_seed(seed % 2**63)
        final = torch.rand(rows, generator=generator, device=device)
        coins = torch.rand(rows, longest, generator=generator, device=device)
        if uniforms is not None:
            coins = uniforms.float()
        emitted = torch.full((rows, longest + 1), NO_TOKEN, device=device)
        target, draft = batch.target_probs.float(), draft_laws(batch).float()
        for length, chosen in rows_by_length(batch):
            emitted[chosen, : length + 1] = self._launch(
                batch.draft_tokens[chosen, :length],
                coins[chosen, :length],
                final[chosen],
                target[chosen, : length + 1],
                draft[chosen, :length],
            )
        return emitted

    def _launch(self, drafts: Tensor, coins: Tensor, final: Tensor, target: Tensor, draft: Tensor) -> Tensor:
        """Emitted tokens ``[rows, length + 1]`` of rows with equally many drafts."""
        rows, slots = drafts.shape[0], drafts.shape[1] + 1
        # Slot 0 of a row stands for the last token that is already there, as in SGLang's verification input.
        candidates = torch.nn.functional.pad(drafts, (1, 0))
        indices = torch.arange(rows * slots, device=drafts.device).reshape(rows, slots)
        predicts = torch.full((rows * slots,), NO_TOKEN, dtype=torch.int32, device=drafts.device)
        accept_index = torch.full((rows, slots), NO_TOKEN, dtype=torch.int32, device=drafts.device)
        accepted = torch.zeros(rows, dtype=torch.int32, device=drafts.device)
        self._kernel(
            predicts,
            accept_index,
            accepted,
            candidates,
            indices,
            None,
            None,
            coins.contiguous(),
            final.contiguous(),
            target.contiguous(),
            draft.contiguous(),
            1.0,
            1.0,
            True,
            block_verification=self._block_verification,
        )
        tokens = predicts.reshape(rows, slots).long()
        position = torch.arange(slots, device=drafts.device)
        return torch.where(position <= accepted[:, None], tokens, NO_TOKEN)


def _kernel() -> Any:
    """The launching function, from its file; in Triton's interpreter where there is no GPU."""
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernel is decorated
    package_module("triton", PACKAGE)
    return package_file(FILE, PACKAGE).chain_speculative_sampling_triton


def _block() -> ChainVerifier:
    return ChainVerifier(block_verification=True)


IMPLEMENTATION = Implementation(
    name="sglang-chain",
    version=installed_version(PACKAGE),
    factories={VERIFIER: ChainVerifier},
    capabilities={VERIFIER: frozenset({"uniforms"})},
    summary="sglang chain_speculative_sampling_triton, the textbook rule",
)
BLOCK_VERIFICATION = Implementation(
    name="sglang-block",
    version=installed_version(PACKAGE),
    factories={VERIFIER: _block},
    capabilities={VERIFIER: frozenset({"uniforms"})},
    summary="sglang chain_speculative_sampling_triton, block verification",
)
