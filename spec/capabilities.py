"""Which optional capabilities exist, and how they are declared and probed."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    DECODER,
    KV_STORE,
    PAGED_ATTENTION,
    VERIFIER,
    ContractError,
    Implementation,
)

CAPABILITY_MEMBERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    BLOCK_MANAGER: {
        "fork": ("fork",),
        "rollback": ("rollback",),
        "speculate": ("speculate", "accept"),
        "commit": ("commit",),
        "copies": ("pending_copies",),
        "ref-counts": ("ref_count",),
        "lengths": ("num_tokens",),
        "prefix-cache": ("num_cached_tokens",),
        "cached-keys": ("cached_key",),
        "namespaces": (),
        "evict": ("evict",),
        "reset": ("reset_cache",),
        "epochs": ("new_epoch",),
        "window": ("window",),
        "swap": ("swap_out", "swap_in"),
        "in-flight": ("begin_step", "end_step"),
        "lookahead": ("lookahead",),
    },
    KV_STORE: {
        "fork": ("fork",),
        "rollback": ("rollback",),
        "reorder": ("reorder",),
        "reserve": ("reserve",),
        "attend": ("attend",),
        "any-batch": (),
        "layers": ("append_layer",),
    },
    PAGED_ATTENTION: {
        "gqa": (),
        "chunked-prefill": (),
        "window": (),
        "softcap": (),
        "sinks": (),
        "alibi": (),
        "lse": (),
        "poison": (),
        "empty": (),
        "strided": (),
        "bitwise": (),
        "merge": ("merge",),
    },
    VERIFIER: {
        "draft": ("draft",),
        "uniforms": (),
        "noise": (),
        "row-seeds": (),
        "trees": ("verify_tree",),
    },
    DECODER: {
        "sampling": (),
        "penalties": (),
        "stop": (),
        "grammar": (),
        "samples": (),
        "own-models": ("target_law",),
        "requests": ("submit", "step", "generated", "is_finished"),
        "abort": ("abort",),
        "fork": ("fork",),
        "logprobs": ("logprobs",),
        "free-blocks": ("num_free_blocks",),
    },
}
"""Contract -> capability -> members that the built object must have; empty: can only be declared."""

MANDATORY_MEMBERS: Mapping[str, tuple[str, ...]] = {
    BLOCK_MANAGER: ("allocate", "append", "free", "block_table", "num_free_blocks"),
    KV_STORE: ("allocate", "append", "read", "free"),
    PAGED_ATTENTION: ("attend",),
    VERIFIER: ("verify",),
    DECODER: ("decode",),
}

ATTRIBUTES = frozenset({"window", "lookahead"})
"""Members that are read, not called, and absent if they are 0; every other one must be callable."""

PROBED_KEYWORDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    BLOCK_MANAGER: (("namespaces", "allocate", "namespace"),),
    KV_STORE: (),
    PAGED_ATTENTION: (
        ("window", "attend", "window"),
        ("softcap", "attend", "softcap"),
        ("sinks", "attend", "sinks"),
        ("alibi", "attend", "alibi_slopes"),
        ("lse", "attend", "return_lse"),
    ),
    VERIFIER: (("uniforms", "verify", "uniforms"), ("noise", "verify", "noise")),
    DECODER: (),
}
"""Contract -> (capability, method, keyword): a keyword in the method's signature shows the capability."""


def check_mandatory(contract: str, built: Any, source: str) -> None:
    """Raise `ContractError` unless the object has every mandatory member of the contract."""
    missing = missing_members(MANDATORY_MEMBERS[contract], built)
    if missing:
        raise ContractError(
            f"{source}: the {contract} factory returned {type(built).__name__}, which lacks "
            f"{', '.join(missing)}; see tokenlaw.spec.contracts for the contract"
        )


def missing_members(members: Iterable[str], built: Any) -> list[str]:
    """Those of the members that the object lacks; a method that is None, or can't be called, is lacking."""
    return [name for name in members if not _has(built, name)]


def _has(built: Any, name: str) -> bool:
    value = getattr(built, name, 0)
    return value is None or bool(value != 0) if name in ATTRIBUTES else callable(value)


def needed(contract: str, missing: Iterable[str]) -> str:
    """What a check lacks and how it could be given, for the message of one that isn't supported.

    >>> needed(PAGED_ATTENTION, {"merge", "gqa"})
    'needs gqa (declare it in Implementation.capabilities), merge (method merge)'
    """
    return f"needs {', '.join(f'{one} ({_source(contract, one)})' for one in sorted(missing))}"


def _source(contract: str, capability: str) -> str:
    """Where a capability is looked for."""
    members = CAPABILITY_MEMBERS[contract].get(capability)
    keywords = [f"{word} of {where}" for name, where, word in PROBED_KEYWORDS[contract] if name == capability]
    if keywords:
        return f"keyword {keywords[0]}"
    if not members:
        return "declare it in Implementation.capabilities"
    kind = "attribute" if ATTRIBUTES.issuperset(members) else "method"
    return f"{kind} {members[0]}" if len(members) == 1 else f"{kind}s {' and '.join(members)}"


def probe_capabilities(contract: str, built: Any) -> frozenset[str]:
    """Capabilities that the object shows by its members and by the keywords of its methods."""
    by_member = {
        capability
        for capability, members in CAPABILITY_MEMBERS[contract].items()
        if members and not missing_members(members, built)
    }
    by_keyword = {
        capability
        for capability, method, keyword in PROBED_KEYWORDS[contract]
        if keyword in inspect.signature(getattr(built, method)).parameters
    }
    return frozenset(by_member | by_keyword)


def effective_capabilities(implementation: Implementation, contract: str, built: Any) -> frozenset[str]:
    """Declared capabilities, or the probed ones where nothing is declared.

    Raises
    ------
    ContractError
        A mandatory member is missing, a declared capability is unknown, its members are absent, or
        capabilities are declared for a contract that has no factory.
    """
    _refuse_stray(implementation)
    check_mandatory(contract, built, implementation.name)
    declared = implementation.capabilities.get(contract)
    if declared is None:
        return probe_capabilities(contract, built)
    for capability in sorted(declared):
        members = CAPABILITY_MEMBERS[contract].get(capability)
        if members is None:
            known = ", ".join(CAPABILITY_MEMBERS[contract])
            raise ContractError(
                f"{implementation.name}: unknown {contract} capability {capability!r}; known: {known}"
            )
        missing = missing_members(members, built)
        if missing:
            raise ContractError(
                f"{implementation.name}: declares {contract} capability {capability!r} but "
                f"{type(built).__name__} lacks {', '.join(missing)}"
            )
    return declared


def _refuse_stray(implementation: Implementation) -> None:
    stray = [name for name in implementation.capabilities if name not in implementation.factories]
    if stray:
        offered = ", ".join(map(repr, implementation.factories)) or "nothing"
        raise ContractError(
            f"{implementation.name}: declares capabilities for {', '.join(map(repr, stray))}, "
            f"for which it has no factory; it has factories for {offered}"
        )
