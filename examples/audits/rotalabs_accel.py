"""rotalabs-accel: its rejection sampling of one draft, and its whole verification step.

``rejection_sample`` judges one draft. `IMPLEMENTATION` calls it in a loop that stops at the first rejection,
as its documentation says, and draws the token after the last draft with the package's ``sample_from_logits``.
``verify_tokens`` is the package's own loop around a target model; `VERIFY_TOKENS` gives it a model that
returns the logits of the batch. Both take probabilities only of the drafted tokens, so the draft's law is not
asked for.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from examples.audits.packages import installed_version, package_module
from tokenlaw.impl.adapters.verify_rows import RowByRow, VerifyRow
from tokenlaw.spec.contracts import VERIFIER, Implementation

PACKAGE = "rotalabs-accel"


def rejection_sample_verifier() -> RowByRow:
    """One call of ``rejection_sample`` for every draft, up to the first rejection."""
    sampling = package_module("rotalabs_accel.speculative.sampling", PACKAGE)

    def step(row: VerifyRow) -> Sequence[int]:
        target, draft, emitted = row.target.float(), row.draft.float(), list[int]()
        for position, drafted in enumerate(row.drafts):
            accepted, token = sampling.rejection_sample(
                target[position, drafted], draft[position, drafted], drafted, target[position].log()
            )
            emitted.append(int(token))
            if not accepted:
                return emitted
        bonus, _ = sampling.sample_from_logits(target[-1:].log())
        return [*emitted, int(bonus)]

    return RowByRow(step)


def verify_tokens_verifier() -> RowByRow:
    """``verify_tokens`` with temperature 1 and top-p 1, which its configuration calls disabled."""
    core = package_module("rotalabs_accel.speculative.core", PACKAGE)

    def step(row: VerifyRow) -> Sequence[int]:
        logits = row.target.float().log()[None]

        def model(tokens: Tensor, **_options: Any) -> SimpleNamespace:
            return SimpleNamespace(logits=logits, past_key_values=None)

        probabilities = row.draft.float().gather(-1, row.drafts[:, None])[:, 0]
        last = torch.zeros(1, 1, dtype=torch.int64)
        emitted, _, _ = core.verify_tokens(
            model, last, row.drafts, probabilities, None, temperature=1.0, top_p=1.0
        )
        return [int(token) for token in emitted]

    return RowByRow(step)


def _implementation(name: str, factory: Any, summary: str) -> Implementation:
    return Implementation(
        name, installed_version(PACKAGE), {VERIFIER: factory}, {VERIFIER: frozenset()}, summary
    )


IMPLEMENTATION = _implementation(
    "rotalabs-accel-rejection-sample",
    rejection_sample_verifier,
    "rotalabs_accel.speculative.rejection_sample: one draft a call",
)
VERIFY_TOKENS = _implementation(
    "rotalabs-accel-verify-tokens",
    verify_tokens_verifier,
    "rotalabs_accel.speculative.core.verify_tokens: one row a call, with a model that returns given logits",
)
