"""What ``tokenlaw list`` says: the installed adapters, whether their engines are there, what they can do."""

from collections.abc import Iterator, Sequence
from typing import Any

from tokenlaw.errors import BadUse
from tokenlaw.targets import adapters, build_once, resolve
from tokenlaw.text import one_line


def describe_all() -> list[dict[str, Any]]:
    """Each adapter as plain data: name, whether it is installed, version, summary, contracts, reason.

    ``contracts`` maps a contract to its capabilities; ``reason`` says why an adapter can't be used.
    """
    return [_describe(name) for name in adapters()]


def _describe(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "installed": False, "version": "", "summary": "", "contracts": {}}
    found["reason"] = ""
    try:
        implementation = resolve(name)
        found |= {"version": str(implementation.version), "summary": implementation.summary}
        declared = {
            contract: sorted(implementation.capabilities.get(contract, ()))
            for contract in implementation.factories
        }
        found["contracts"] = declared
        for contract in implementation.factories:
            declared[contract] = sorted(build_once(implementation, contract)[1])
    except BadUse as error:
        return found | {"reason": str(error)}
    return found | {"installed": True}


def as_lines(described: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The same for people."""
    for target in described:
        state = target["version"] if target["installed"] else "not installed"
        yield one_line(f"{target['name']} ({state}) {target['summary']}")
        if target["reason"]:
            yield f"    {one_line(target['reason'])}"
        for contract, capabilities in target["contracts"].items():
            yield f"    {one_line(contract)}: {', '.join(capabilities) or 'no optional capabilities'}"
