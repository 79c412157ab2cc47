"""Where an engine keeps attention scores, by its own word: the error bound follows from it."""

from typing import Any

import torch

from tokenlaw.spec.contracts import ContractError


def declares_scores_in_input_dtype(built: Any) -> bool:
    """Attribute ``scores_in_input_dtype`` of an attention object or a store; False where it has none.

    >>> declares_scores_in_input_dtype(object())
    False

    Raises
    ------
    ContractError
        It is neither True nor False.
    """
    declared = getattr(built, "scores_in_input_dtype", False)
    if not isinstance(declared, bool):
        raise ContractError(f"scores_in_input_dtype must be True or False; it is {declared!r}")
    return declared


def score_dtype(declared: bool, dtype: torch.dtype) -> torch.dtype:
    """The dtype of the scores of inputs of ``dtype``: float32, or that dtype where that is declared."""
    return dtype if declared else torch.float32
