"""Adapter to the verification step of Hugging Face transformers 5: ``_speculative_sampling``.

The function is private and is what ``generate(assistant_model=..., do_sample=True)`` calls in every round. It
takes logits of one row; sampling parameters are applied by its caller. Importing this module needs no
transformers; building a verifier does.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from tokenlaw.impl.adapters.verify_rows import RowByRow, VerifyRow
from tokenlaw.spec.contracts import VERIFIER, ContractError, Implementation

NOT_INSTALLED = "not installed"


def speculative_sampling_verifier() -> RowByRow:
    """A `Verifier` around ``_speculative_sampling``, one row a call.

    The function gets float32 logits, as from ``generate``: logarithms of the probabilities that the sampling
    parameters leave. Drafts that weren't drawn get the logits of one-hot laws; ``generate`` itself
    leaves the function out for those and matches samples. No capability, and seeds of rows aren't honoured.

    Raises
    ------
    ContractError
        transformers isn't installed, or has no such function.
    """
    function = _function()

    def step(row: VerifyRow) -> list[int]:
        drafts, target, draft = row.drafts[None], row.target.float().log(), row.draft.float().log()
        tokens, _ = function(drafts, draft[None], len(row.drafts), target[None])
        emitted: list[int] = tokens[0].tolist()
        return emitted

    return RowByRow(step)


def _function() -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    try:
        found: Any = import_module("transformers.generation.utils")._speculative_sampling
    except ModuleNotFoundError as error:
        raise ContractError(
            f"transformers-speculative-sampling: {error}; "
            "install it with: pip install 'tokenlaw[transformers]'"
        ) from error
    except AttributeError as error:
        raise ContractError(
            f"transformers-speculative-sampling: {error}; this adapter was written for transformers 5.24"
        ) from error
    checked: Callable[..., tuple[torch.Tensor, torch.Tensor]] = found
    return checked


def _version() -> str:
    try:
        return version("transformers")
    except PackageNotFoundError:
        return NOT_INSTALLED


IMPLEMENTATION = Implementation(
    name="transformers-speculative-sampling",
    version=_version(),
    factories={VERIFIER: speculative_sampling_verifier},
    capabilities={VERIFIER: frozenset()},
    summary="transformers.generation.utils._speculative_sampling: one row a call, torch's global numbers",
)
"""Contract ``verifier``; needs the extra ``transformers``."""
