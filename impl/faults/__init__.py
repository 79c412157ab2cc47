"""Deliberate faults: one small mutation each, named after what it does, and the innocents beside them."""

from collections.abc import Mapping

from tokenlaw.impl.faults.attention_base import SteppedAttention
from tokenlaw.impl.faults.attention_formula import FORMULA_FAULTS
from tokenlaw.impl.faults.attention_memory import MEMORY_FAULTS
from tokenlaw.impl.faults.attention_merging import MERGE_FAULTS
from tokenlaw.impl.faults.attention_sizes import SIZE_FAULTS
from tokenlaw.impl.faults.decoder_base import decoder_with
from tokenlaw.impl.faults.decoder_cache import DECODER_CACHE_FAULTS
from tokenlaw.impl.faults.decoder_drafts import DECODER_DRAFT_FAULTS
from tokenlaw.impl.faults.decoder_grammar import DECODER_GRAMMAR_FAULTS
from tokenlaw.impl.faults.decoder_innocents import DECODER_INNOCENTS
from tokenlaw.impl.faults.decoder_logprobs import DECODER_LOGPROB_FAULTS
from tokenlaw.impl.faults.decoder_numbers import DECODER_NUMBER_FAULTS
from tokenlaw.impl.faults.decoder_penalties import DECODER_PENALTY_FAULTS
from tokenlaw.impl.faults.decoder_serving import DECODER_SERVING_FAULTS
from tokenlaw.impl.faults.decoder_stopping import DECODER_STOPPING_FAULTS
from tokenlaw.impl.faults.innocents import INNOCENTS, Innocent
from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.faults.kv_capacity import CAPACITY_FAULTS
from tokenlaw.impl.faults.kv_copies import BLOCK_COPY_FAULTS
from tokenlaw.impl.faults.kv_innocents import KV_INNOCENTS
from tokenlaw.impl.faults.kv_pool import POOL_FAULTS
from tokenlaw.impl.faults.kv_prefixes import PREFIX_FAULTS
from tokenlaw.impl.faults.kv_publishing import PUBLISHING_FAULTS
from tokenlaw.impl.faults.kv_rewinding import REWINDING_FAULTS
from tokenlaw.impl.faults.kv_sharing import SHARING_FAULTS
from tokenlaw.impl.faults.planted import Fault, by_name
from tokenlaw.impl.faults.store_base import FaultyStore
from tokenlaw.impl.faults.store_copies import COPY_FAULTS
from tokenlaw.impl.faults.store_moves import MOVE_FAULTS
from tokenlaw.impl.faults.store_rewinding import REWIND_FAULTS
from tokenlaw.impl.faults.store_sequences import SEQUENCE_FAULTS
from tokenlaw.impl.faults.store_writes import WRITE_FAULTS
from tokenlaw.impl.faults.verifier_acceptance import ACCEPTANCE_FAULTS
from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_bonus import BONUS_FAULTS
from tokenlaw.impl.faults.verifier_parameters import PARAMETER_FAULTS
from tokenlaw.impl.faults.verifier_precision import PRECISION_FAULTS
from tokenlaw.impl.faults.verifier_ranges import RANGE_FAULTS
from tokenlaw.impl.faults.verifier_residual import RESIDUAL_FAULTS
from tokenlaw.impl.faults.verifier_rows import ROW_FAULTS
from tokenlaw.impl.faults.verifier_stopping import STOPPING_FAULTS
from tokenlaw.impl.faults.verifier_streams import STREAM_FAULTS
from tokenlaw.impl.faults.verifier_tree import TREE_FAULTS, TreeVerifier

MANAGER_FAULTS: Mapping[str, Fault] = by_name(
    SHARING_FAULTS
    + BLOCK_COPY_FAULTS
    + POOL_FAULTS
    + CAPACITY_FAULTS
    + PREFIX_FAULTS
    + PUBLISHING_FAULTS
    + REWINDING_FAULTS
)
"""Faults of block managers by their names."""

STORE_FAULTS: Mapping[str, Fault] = by_name(
    COPY_FAULTS + SEQUENCE_FAULTS + MOVE_FAULTS + WRITE_FAULTS + REWIND_FAULTS
)
"""Faults of KV stores by their names."""

ATTENTION_FAULTS: Mapping[str, Fault] = by_name(FORMULA_FAULTS + MERGE_FAULTS + MEMORY_FAULTS + SIZE_FAULTS)
"""Faults of attention kernels by their names."""

VERIFIER_FAULTS: Mapping[str, Fault] = by_name(
    ACCEPTANCE_FAULTS
    + RESIDUAL_FAULTS
    + STOPPING_FAULTS
    + BONUS_FAULTS
    + ROW_FAULTS
    + PARAMETER_FAULTS
    + STREAM_FAULTS
    + PRECISION_FAULTS
    + RANGE_FAULTS
    + TREE_FAULTS
)
"""Faults of verifiers by their names."""

DECODER_FAULTS: Mapping[str, Fault] = by_name(
    (name, decoder_with(part))
    for name, part in (
        *DECODER_PENALTY_FAULTS,
        *DECODER_GRAMMAR_FAULTS,
        *DECODER_STOPPING_FAULTS,
        *DECODER_CACHE_FAULTS,
        *DECODER_SERVING_FAULTS,
        *DECODER_NUMBER_FAULTS,
        *DECODER_DRAFT_FAULTS,
        *DECODER_LOGPROB_FAULTS,
    )
)
"""Faults of decoders by their names."""

__all__ = [
    "ATTENTION_FAULTS",
    "DECODER_FAULTS",
    "DECODER_INNOCENTS",
    "INNOCENTS",
    "KV_INNOCENTS",
    "MANAGER_FAULTS",
    "STORE_FAULTS",
    "VERIFIER_FAULTS",
    "ChainVerifier",
    "Fault",
    "FaultyManager",
    "FaultyStore",
    "Innocent",
    "SteppedAttention",
    "TreeVerifier",
]
