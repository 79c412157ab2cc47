"""Every planted fault, and every innocent, as a target of its own: ``tokenlaw.impl.faults.targets:NAME``.

A dot in a name is written as ``_`` there. Which checks see a fault is asked by ``tokenlaw faults``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from tokenlaw.impl.faults import (
    ATTENTION_FAULTS,
    DECODER_FAULTS,
    DECODER_INNOCENTS,
    INNOCENTS,
    KV_INNOCENTS,
    MANAGER_FAULTS,
    STORE_FAULTS,
    VERIFIER_FAULTS,
)
from tokenlaw.impl.faults.innocents import Innocent
from tokenlaw.impl.faults.planted import Fault
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS, MANDATORY_MEMBERS, probe_capabilities
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    CONTRACTS,
    DECODER,
    KV_STORE,
    PAGED_ATTENTION,
    VERIFIER,
    CacheConfig,
    Implementation,
)
from tokenlaw.spec.decoders import default_config

KV, ATTENTION, SPECULATION, DECODING = "kv", "attention", "verifier", "decoder"
FAMILIES = (KV, ATTENTION, SPECULATION, DECODING)
"""What ``tokenlaw faults --family`` can be asked for."""

_FAMILY_OF = {
    BLOCK_MANAGER: KV,
    KV_STORE: KV,
    PAGED_ATTENTION: ATTENTION,
    VERIFIER: SPECULATION,
    DECODER: DECODING,
}
_BITWISE = frozenset({"bitwise"})


@dataclass(frozen=True)
class Suspect:
    """A fault or an innocent, with what an audit needs.

    Attributes
    ----------
    contract : what it is audited as.
    planted : the description.
    """

    contract: str
    planted: Fault | Innocent

    @property
    def name(self) -> str:
        """Its name, which no other has."""
        return self.planted.name

    @property
    def family(self) -> str:
        """One of `FAMILIES`."""
        return _FAMILY_OF[self.contract]

    @property
    def guilty(self) -> bool:
        """Whether a suite must refute it."""
        return isinstance(self.planted, Fault)

    @property
    def address(self) -> str:
        """What ``tokenlaw audit`` calls it."""
        return f"{__name__}:{_attribute(self.name)}"

    def implementation(self) -> Implementation:
        """It, as a target, with all capabilities that it has."""
        return Implementation(
            self.name,
            version("tokenlaw"),
            {self.contract: self.planted.make},
            {self.contract: self._capabilities()},
            summary=("planted fault " if self.guilty else "exact implementation ") + self.name,
        )

    def _capabilities(self) -> frozenset[str]:
        """What is found, and what nothing shows; equal bits are claimed by faults alone."""
        found = probe_capabilities(self.contract, _built(self.contract, self.planted.make))
        shown = {name for name, members in CAPABILITY_MEMBERS[self.contract].items() if not members}
        if self.contract == VERIFIER:
            return found | {"row-seeds"}
        return (found | shown) - (frozenset() if self.guilty else _BITWISE)


def _built(contract: str, make: Any) -> Any:
    if contract == DECODER:
        return make(default_config())
    return make(CacheConfig()) if contract in (BLOCK_MANAGER, KV_STORE) else make()


def _attribute(name: str) -> str:
    return name.replace(".", "_")


def _contract(make: Any) -> str:
    """The contract of an innocent: the first whose mandatory members its class has."""
    kind = make.func if isinstance(make, partial) else make
    return next(
        contract for contract in CONTRACTS if all(hasattr(kind, name) for name in MANDATORY_MEMBERS[contract])
    )


def _all() -> Iterator[Suspect]:
    groups: tuple[tuple[str, Mapping[str, Fault]], ...] = (
        (BLOCK_MANAGER, MANAGER_FAULTS),
        (KV_STORE, STORE_FAULTS),
        (PAGED_ATTENTION, ATTENTION_FAULTS),
        (VERIFIER, VERIFIER_FAULTS),
        (DECODER, DECODER_FAULTS),
    )
    for contract, faults in groups:
        yield from (Suspect(contract, fault) for fault in faults.values())
    yield from (Suspect(_contract(one.make), one) for one in KV_INNOCENTS.values())
    yield from (Suspect(VERIFIER, one) for one in INNOCENTS.values())
    yield from (Suspect(DECODER, one) for one in DECODER_INNOCENTS.values())


SUSPECTS: Mapping[str, Suspect] = {suspect.name: suspect for suspect in _all()}
"""All faults, then all innocents, by name."""

_BY_ATTRIBUTE = {_attribute(name): suspect for name, suspect in SUSPECTS.items()}


def __getattr__(name: str) -> Implementation:
    if name not in _BY_ATTRIBUTE:
        raise AttributeError(name)
    return _BY_ATTRIBUTE[name].implementation()


def __dir__() -> list[str]:
    return sorted(_BY_ATTRIBUTE)
