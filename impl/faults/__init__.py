"""Deliberate faults: one small mutation each, named after what it does, and the innocents beside them."""

from collections.abc import Mapping

from tokenlaw.impl.faults.innocents import INNOCENTS, Innocent
from tokenlaw.impl.faults.planted import Fault, by_name
from tokenlaw.impl.faults.verifier_acceptance import ACCEPTANCE_FAULTS
from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_bonus import BONUS_FAULTS
from tokenlaw.impl.faults.verifier_parameters import PARAMETER_FAULTS
from tokenlaw.impl.faults.verifier_precision import PRECISION_FAULTS
from tokenlaw.impl.faults.verifier_residual import RESIDUAL_FAULTS
from tokenlaw.impl.faults.verifier_rows import ROW_FAULTS
from tokenlaw.impl.faults.verifier_stopping import STOPPING_FAULTS
from tokenlaw.impl.faults.verifier_streams import STREAM_FAULTS
from tokenlaw.impl.faults.verifier_tree import TREE_FAULTS, TreeVerifier

VERIFIER_FAULTS: Mapping[str, Fault] = by_name(
    ACCEPTANCE_FAULTS
    + RESIDUAL_FAULTS
    + STOPPING_FAULTS
    + BONUS_FAULTS
    + ROW_FAULTS
    + PARAMETER_FAULTS
    + STREAM_FAULTS
    + PRECISION_FAULTS
    + TREE_FAULTS
)
"""Faults of verifiers by their names."""

__all__ = [
    "INNOCENTS",
    "VERIFIER_FAULTS",
    "ChainVerifier",
    "Fault",
    "Innocent",
    "TreeVerifier",
]
