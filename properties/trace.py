"""Traces: plain data that says what was done to a cache, and their versioned JSON form.

Operations name a live sequence by its index modulo the number of live sequences, in order of creation, so
every sub-list of a trace is a legal trace: shrinking may drop any operation. An operation that needs a live
sequence does nothing when there is none.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.properties import strict_json
from tokenlaw.properties.trace_operations import (
    Abort,
    Append,
    AppendLayer,
    Attend,
    Batch,
    Chunked,
    Evict,
    Fork,
    Free,
    FreeAgain,
    FreeSwapped,
    LateWrite,
    New,
    Operation,
    Overflow,
    Reorder,
    Reset,
    Rollback,
    Speculate,
    SpeculateBatch,
    SwapIn,
    SwapOut,
    Tokens,
    Weights,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, CacheConfig
from tokenlaw.spec.suites import CounterexampleError

__all__ = [
    "Abort",
    "Append",
    "AppendLayer",
    "Attend",
    "Batch",
    "Chunked",
    "Evict",
    "Fork",
    "Free",
    "FreeAgain",
    "FreeSwapped",
    "LateWrite",
    "New",
    "Operation",
    "Overflow",
    "Reorder",
    "Reset",
    "Rollback",
    "Speculate",
    "SpeculateBatch",
    "SwapIn",
    "SwapOut",
    "Tokens",
    "Trace",
    "TraceError",
    "Weights",
    "decode",
    "load",
    "save",
    "to_data",
]

SCHEMA = "tokenlaw.trace/1"

MAX_OPERATIONS, MAX_TOKENS = 100_000, 10_000_000
"""Operations of a trace that is read from a file, and tokens of all of them together, drafts included."""

LARGEST = {
    "num_blocks": 1_000_000,
    "block_size": 100_000,
    "window": 10_000_000,
    "num_layers": 1_000,
    "num_kv_heads": 1_000,
    "head_size": 10_000,
    "max_sequences": 100_000,
}
"""Largest configuration of a trace that is read from a file; the smallest one is 1 of everything."""

MAX_ELEMENTS = 2**27
"""Keys that a KV store of such a configuration may have room for, counted in single numbers."""


class TraceError(CounterexampleError):
    """A trace that can't be read, or that a target can't run; the message says why and what to do."""


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A configuration and a list of operations on one contract."""

    operations: tuple[Operation, ...]
    config: CacheConfig = CacheConfig()
    contract: str = BLOCK_MANAGER
    schema: str = SCHEMA


def to_data(trace: Trace) -> dict[str, Any]:
    """The trace as plain JSON data (dicts, lists, numbers, strings)."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(trace))
    return data


def save(trace: Trace, path: Path) -> None:
    """Write the trace as indented JSON; the file appears whole or not at all."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(trace), indent=2) + b"\n")
    partial.replace(path)


def load(path: Path) -> Trace:
    """Read a trace.

    Raises
    ------
    TraceError
        The file is missing, damaged, or of another schema version.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path}: can't be read: {error.strerror}") from None
    return decode(raw, str(path))


def decode(raw: bytes, source: str) -> Trace:
    """Decode the JSON form; ``source`` names it in errors."""
    try:
        data = strict_json.decode(raw)
    except msgspec.DecodeError as error:
        raise TraceError(f"{source}: not JSON: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise TraceError(f"{source}: schema {schema!r}; this version of tokenlaw reads {SCHEMA!r}")
    try:
        trace = msgspec.convert(data, Trace)
    except msgspec.ValidationError as error:
        raise TraceError(f"{source}: not a trace: {error}") from None
    if problem := _stray(data) or _problem(trace):
        raise TraceError(f"{source}: {problem}")
    return trace


def _stray(data: dict[str, Any]) -> str:
    """The first key of the configuration that means nothing: a typing error must not become a default."""
    known = {field.name for field in fields(CacheConfig)}
    stray = sorted(data.get("config", {}).keys() - known)
    return f"config has no {stray[0]!r}; it has {', '.join(sorted(known))}" if stray else ""


def _problem(trace: Trace) -> str:
    """What no target could run, in words; empty if there is nothing."""
    config = trace.config
    for name, largest in LARGEST.items():
        value = getattr(config, name)
        if value is not None and not 1 <= value <= largest:
            return f"config.{name} is {value}; it must be 1 to {largest}"
    slots = config.num_blocks * config.block_size
    elements = slots * config.num_layers * config.num_kv_heads * config.head_size
    if trace.contract == KV_STORE and elements > MAX_ELEMENTS:
        return f"config asks for a store of {elements} keys; at most {MAX_ELEMENTS} are tried"
    if len(trace.operations) > MAX_OPERATIONS:
        return f"it has {len(trace.operations)} operations; at most {MAX_OPERATIONS} are run"
    tokens = sum(map(_tokens_of, trace.operations))
    return f"it has {tokens} tokens; at most {MAX_TOKENS} are run" if tokens > MAX_TOKENS else ""


def _tokens_of(operation: Operation) -> int:
    """How many tokens the operation brings."""
    named = sum(len(getattr(operation, name, ())) for name in ("tokens", "drafts", "prompt"))
    return named + (max(0, operation.count) if isinstance(operation, Overflow) else 0)
