"""Which contract an object fulfils, and what it lacks of those that it nearly does."""

from typing import Any

from tokenlaw.spec.capabilities import MANDATORY_MEMBERS, missing_members
from tokenlaw.spec.contracts import CONTRACTS, DECODER, VERIFIER
from tokenlaw.spec.decoders import is_decode_function
from tokenlaw.spec.verifiers import is_verify_function


def guess_contract(built: Any) -> str | None:
    """The first contract of which the object has all mandatory members, or None.

    A plain function ``verify(batch, *, seed)`` is a verifier, ``decode(request, *, seed)`` a decoder.
    """
    if is_verify_function(built):
        return VERIFIER
    if is_decode_function(built):
        return DECODER
    for contract in CONTRACTS:
        if not missing_members(MANDATORY_MEMBERS[contract], built):
            return contract
    return None


def shortcoming(built: Any) -> str:
    """What it lacks of the contracts that it nearly fulfils, closest first, or all that it might have."""
    missing = {name: missing_members(MANDATORY_MEMBERS[name], built) for name in CONTRACTS}
    close = [name for name in CONTRACTS if 2 * len(missing[name]) <= len(MANDATORY_MEMBERS[name])]
    if close:
        close.sort(key=lambda name: len(missing[name]))
        return "it lacks " + "; or ".join(f"{', '.join(missing[name])} of {name}" for name in close)
    return "; ".join(f"{name}: {', '.join(MANDATORY_MEMBERS[name])}" for name in CONTRACTS)
