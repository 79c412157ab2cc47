"""Traces and violations in words: numbered lines, sequences named by their order of creation."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokenlaw.properties.history import History, batch_of, verified
from tokenlaw.properties.running import Violation
from tokenlaw.properties.trace import (
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
    Trace,
    Weights,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER
from tokenlaw.spec.verdicts import Check

_INDENT = "  "

_PLAIN: Mapping[type[Any], str] = {
    Free: "free sequence {}",
    SwapOut: "swap sequence {} out",
    SwapIn: "swap sequence {} in",
    FreeSwapped: "free sequence {}, which is swapped out",
}


def lines(trace: Trace) -> list[str]:
    """One line for each operation, without numbers.

    Sequence numbers take every operation as successful, as the one who reads the trace would.

    >>> lines(Trace((New((1, 2)), Fork(0), Append(1, (0,)))))
    ['new sequence 0: tokens 1 2', 'fork sequence 0 -> sequence 1', 'append to sequence 1: token 0']
    """
    history, told = History(), []
    for operation in trace.operations:
        told.append(_line(operation, history))
        history.apply(operation)
    return told


def tell(trace: Trace) -> str:
    """The trace as a paragraph: its configuration, then its numbered operations."""
    numbered = [f"{_INDENT}{number}. {line}" for number, line in enumerate(lines(trace), start=1)]
    return "\n".join([f"trace ({_configuration(trace)}):", *numbered])


def explain(check: Check, violation: Violation, trace: Trace) -> str:
    """The complete failure message of a check: rule, place, expected, found, and the trace in words."""
    told = lines(trace)
    place = [f"operation {violation.operation + 1}"]
    if violation.operation < len(told):
        place[0] += f" ({told[violation.operation]})"
    if violation.sequence is not None:
        place.append(f"sequence {violation.sequence}")
    if violation.position is not None:
        place.append(f"position {violation.position}")
    if violation.block is not None:
        place.append(f"block {violation.block}")
    return failure(check, violation, place, tell(trace))


def failure(check: Check, violation: Violation, place: Sequence[str], told: str) -> str:
    """The message of a check: rule, severity, place, expected, found, and what was done in words."""
    return "\n".join(
        [
            f"{check.id} ({check.rule}) is refuted: {check.title}",
            f"{_INDENT}severity: {check.severity}",
            f"{_INDENT}at:       {', '.join(place)}",
            f"{_INDENT}expected: {violation.expected}",
            f"{_INDENT}found:    {violation.found}",
            told,
        ]
    )


def _configuration(trace: Trace) -> str:
    config = trace.config
    parts = [f"{_count(config.num_blocks, 'block')} of {_count(config.block_size, 'token')}"]
    if config.window is not None:
        parts.append(f"window {config.window}")
    if trace.contract != BLOCK_MANAGER:
        parts += [_count(config.num_layers, "layer"), _count(config.num_kv_heads, "KV head")]
        parts += [f"head size {config.head_size}", config.dtype]
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tokens(tokens: Sequence[int]) -> str:
    return " ".join(["token" if len(tokens) == 1 else "tokens", *map(str, tokens)]) if tokens else "no tokens"


def _within(namespace: str) -> str:
    return f" in namespace {namespace!r}" if namespace else ""


def _line(operation: Operation, history: History) -> str:
    """One operation in words, before the history takes it in."""
    target = history.target(operation)
    if target is not None:
        return _act(operation, target.number, history.created)
    match operation:
        case New(tokens, namespace):
            line = f"new sequence {history.created}{_within(namespace)}: {_tokens(tokens)}"
        case Abort(tokens, None, namespace):
            line = (
                f"admit sequence {history.created}{_within(namespace)}, abort it unwritten: {_tokens(tokens)}"
            )
        case Chunked(tokens, _, None, namespace):
            line = (
                f"new sequence {history.created}{_within(namespace)}: {_tokens(tokens)}; {_chunks(operation)}"
            )
        case FreeAgain():
            again = f"free sequence {history.freed[-1].number} again" if history.freed else ""
            line = again or "free again: nothing was freed"
        case Evict(count):
            line = f"evict up to {_count(count, 'cached block')}"
        case Reset():
            line = "reset the cache"
        case Weights():
            line = "the weights change"
        case Reorder(parents):
            line = _reorder(parents, history)
        case Attend(indices):
            line = _attend(indices, history)
        case Batch() | SpeculateBatch():
            line = _batch(operation, history)
        case _:
            line = f"{type(operation).__name__}: no sequence to act on"
    return line


def _act(operation: Operation, number: int, created: int) -> str:
    """An operation on one sequence in words."""
    match operation:
        case Append(_, tokens):
            line = f"append to sequence {number}: {_tokens(tokens)}"
        case AppendLayer(_, layer, tokens):
            line = f"append to layer {layer} of sequence {number}: {_tokens(tokens)}"
        case Fork():
            line = f"fork sequence {number} -> sequence {created}"
        case Speculate(_, drafts, accepted):
            line = f"speculate on sequence {number}: draft {_tokens(drafts)}, the first {accepted} accepted"
        case Rollback(_, count):
            line = f"roll sequence {number} back by {count}"
        case Abort(tokens):
            line = f"schedule for sequence {number}, abort it unwritten: {_tokens(tokens)}"
        case Chunked(tokens):
            line = f"append to sequence {number}: {_tokens(tokens)}; {_chunks(operation)}"
        case Free() | SwapOut() | SwapIn() | FreeSwapped():
            line = _PLAIN[type(operation)].format(number)
        case LateWrite(_, tokens, prompt):
            line = (
                f"append to sequence {number}: {_tokens(tokens)}; free it; new sequence {created}: "
                f"{_tokens(prompt)}; only then write what was appended"
            )
        case Overflow(_, count):
            line = f"append {_count(count, 'token')} beyond the room of sequence {number}"
        case _:
            raise TypeError(f"not an operation on a sequence: {operation!r}")
    return line


def _chunks(operation: Chunked) -> str:
    first = min(max(operation.written, 0), len(operation.tokens))
    return f"write and commit the first {first}, then {'abort it' if operation.aborted else 'the others'}"


def _batch(operation: Batch | SpeculateBatch, history: History) -> str:
    if isinstance(operation, SpeculateBatch):
        return _speculate_batch(operation, history)
    appended, released = batch_of(operation, history.live)
    parts = [f"append token {token} to sequence {sequence.number}" for sequence, token in appended]
    if released:
        places = [place for place, (sequence, _) in enumerate(appended) if sequence is released]
        parts.insert(1 + sum(places), f"free sequence {released.number}")
    return f"one step: {'; '.join(parts)}; then copy and write" if parts else "one step: nothing to append to"


def _speculate_batch(operation: SpeculateBatch, history: History) -> str:
    parts, then = [], []
    for sequence, drafts, kept in verified(operation, history.live):
        parts.append(f"draft {_tokens(drafts)} for sequence {sequence.number}")
        then.append(f"free sequence {sequence.number}" if kept < 0 else f"keep {kept} of {sequence.number}")
    return f"one step: {'; '.join(parts + then)}" if parts else "one step: nothing to speculate on"


def _attend(indices: Sequence[int], history: History) -> str:
    live = history.live
    chosen = dict.fromkeys(live[index % len(live)].number for index in indices) if live else {}
    return f"attend with {_count(len(chosen), 'sequence')}: {' '.join(map(str, chosen))}".rstrip(": ")


def _reorder(parents: Sequence[int], history: History) -> str:
    live = history.live
    pairs = [
        f"{sequence.number} continues {live[parent % len(live)].number}"
        for sequence, parent in zip(live, parents, strict=False)
    ]
    return f"reorder: sequence {', '.join(pairs)}" if pairs else "reorder: no sequence to act on"
