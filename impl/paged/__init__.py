"""The reference implementation: plain, complete, and audited through the same door as everybody else's."""

from functools import partial
from importlib.metadata import version

from tokenlaw.impl.paged.attention import GatherAttention
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.sequence import UnknownSequence
from tokenlaw.impl.paged.store import PagedKVStore
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION, Implementation

LOOKAHEAD = 4
"""Slots that the reference keeps for the next drafts, in tokens."""

REFERENCE = Implementation(
    name="reference",
    version=version("tokenlaw"),
    factories={
        BLOCK_MANAGER: partial(PagedBlockManager, lookahead=LOOKAHEAD),
        KV_STORE: PagedKVStore,
        PAGED_ATTENTION: GatherAttention,
    },
    capabilities={
        contract: frozenset(CAPABILITY_MEMBERS[contract])
        for contract in (BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION)
    },
    summary="copy-on-write paged KV cache with prefix sharing, and attention by gathering, in plain torch",
)
"""All three contracts of caches and attention with every optional capability."""

__all__ = ["REFERENCE", "GatherAttention", "PagedBlockManager", "PagedKVStore", "UnknownSequence"]
