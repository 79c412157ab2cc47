"""What suites of traces have in common: the factory to ask, and which saved traces a target can run."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tokenlaw.properties.trace import Trace, TraceError, decode
from tokenlaw.spec.contracts import CacheConfig, ContractError, Implementation


def factory_of(implementation: Implementation, contract: str) -> Callable[[CacheConfig], Any]:
    """The factory for a contract; raises `ContractError` if the implementation has none."""
    factory = implementation.factories.get(contract)
    if factory is None:
        offered = ", ".join(sorted(implementation.factories)) or "nothing"
        raise ContractError(f"{implementation.name}: offers no {contract} (it offers {offered})")
    return factory


def trace_of(counterexample: Mapping[str, Any], contract: str) -> Trace:
    """The saved trace; raises `TraceError` if it is none, of another contract, or empty."""
    trace = decode(msgspec.json.encode(counterexample), "counterexample")
    if trace.contract != contract:
        raise TraceError(f"counterexample: it is a trace of a {trace.contract}, not of a {contract}")
    if not trace.operations:
        raise TraceError("counterexample: it has no operations")
    return trace


def require(needed: frozenset[str], capabilities: frozenset[str], implementation: Implementation) -> None:
    """Raise `TraceError` if the trace needs capabilities that the implementation lacks."""
    missing = needed - capabilities
    if missing:
        raise TraceError(
            f"counterexample: it needs {', '.join(sorted(missing))}, which {implementation.name} doesn't "
            "offer; replay it on a target that does"
        )
