"""What counts as simpler for the shrinker: arguments, tokens and configurations, one step at a time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from tokenlaw.properties.trace import (
    Abort,
    Append,
    AppendLayer,
    Batch,
    Chunked,
    Free,
    LateWrite,
    New,
    Operation,
    Speculate,
    SpeculateBatch,
    Tokens,
    Trace,
)

# These never become empty: an empty prompt is no simpler one, and many engines refuse it.
_TOKENS = ("tokens", "prompt", "drafts")
_TUPLES = (*_TOKENS, "parents", "sequences", "lengths", "kept")
_COUNTS = ("accepted", "written", "count", "sequence", "layer")
_COMPOUND = Speculate | SpeculateBatch | LateWrite | Batch | AppendLayer | Chunked
"""Operations for which a plainer kind may do."""

_SHORT_NAMESPACES = ("a", "b")

_CONFIGURATION = ("num_blocks", "block_size", "num_layers", "num_kv_heads", "head_size", "max_sequences")


def size(trace: Trace) -> tuple[int, ...]:
    """Order of simplicity: operations first, then their kinds, tokens, arguments, configuration."""
    tuples = [getattr(operation, name, ()) for operation in trace.operations for name in _TUPLES]
    counts = [getattr(operation, name, None) or 0 for operation in trace.operations for name in _COUNTS]
    config = trace.config
    return (
        len(trace.operations),
        sum(isinstance(operation, _COMPOUND) for operation in trace.operations),
        sum(map(len, tuples)),
        sum(abs(count) * 2 + (count < 0) for count in counts),
        sum(map(sum, tuples)),
        sum(len(getattr(operation, "namespace", "")) for operation in trace.operations),
        0 if config.window is None else 1 + config.window,
        sum(getattr(config, name) for name in _CONFIGURATION),
    )


def simpler_vocabularies(trace: Trace) -> Iterator[Trace]:
    """Change all token tuples at once, so that prompts which belong together stay together."""
    longest = max((len(tokens) for operation in trace.operations for tokens in _tuples(operation)), default=0)
    for length in (1, 2, 4, 8, 16, 32):
        if length < longest:
            yield with_tokens(trace, partial(_cut, length))
    for place in reversed(range(longest)):
        yield with_tokens(trace, partial(_without, place))
    used = sorted({token for operation in trace.operations for t in _tuples(operation) for token in t})
    for old in reversed(used):
        for new in (*range(min(old, 3)), *([old // 2] if old // 2 > 2 else ())):
            yield with_tokens(trace, partial(_renamed, old, new))
    yield from _with_shorter_namespaces(trace)
    groups = dict.fromkeys(t for operation in trace.operations for t in _tuples(operation) if t)
    for group in groups:
        for shorter in _shorter(group):
            yield with_tokens(trace, partial(_exchanged, group, shorter))


def _with_shorter_namespaces(trace: Trace) -> Iterator[Trace]:
    """Rename a namespace wherever it occurs: what it takes may be that two differ, and not how they do."""
    used = dict.fromkeys(getattr(operation, "namespace", "") for operation in trace.operations)
    for old in filter(None, used):
        for new in ("", *(one for one in _SHORT_NAMESPACES if len(one) < len(old) and one not in used)):
            operations = (
                msgspec.structs.replace(one, namespace=new) if getattr(one, "namespace", "") == old else one
                for one in trace.operations
            )
            yield msgspec.structs.replace(trace, operations=tuple(operations))


def simpler_arguments(trace: Trace) -> Iterator[Trace]:
    """Simplify one operation, or merge it with the next one."""
    for place, operation in enumerate(trace.operations):
        for simpler in _simpler(operation):
            yield _with(trace, place, 1, simpler)
        following = trace.operations[place + 1 : place + 2]
        if following and isinstance(operation, New | Append) and isinstance(following[0], Append):
            merged = msgspec.structs.replace(operation, tokens=operation.tokens + following[0].tokens)
            yield _with(trace, place, 2, merged)


def simpler_configurations(trace: Trace) -> Iterator[Trace]:
    """No window or a smaller one, smaller blocks, fewer of everything."""
    window = trace.config.window
    if window is not None:
        for smaller in (None, 1, window // 2, window - 1):
            if smaller is None or 1 <= smaller < window:
                yield msgspec.structs.replace(trace, config=replace(trace.config, window=smaller))
    for name in _CONFIGURATION:
        value = getattr(trace.config, name)
        for fewer in dict.fromkeys((1, 2, 3, value // 2, value - 1)):
            if 1 <= fewer < value:
                config = replace(trace.config, **{name: fewer})
                yield msgspec.structs.replace(trace, config=config)


def _tuples(operation: Operation) -> Iterator[Tokens]:
    """The token tuples of an operation (its lists of sequences are none)."""
    for name in _TOKENS:
        if hasattr(operation, name):
            yield getattr(operation, name)


def with_tokens(trace: Trace, change: Callable[[Tokens], Tokens]) -> Trace:
    """The trace with every token tuple changed, but none made empty."""
    operations = []
    for operation in trace.operations:
        changed: dict[str, Any] = {}
        for name in filter(partial(hasattr, operation), _TOKENS):
            tokens = getattr(operation, name)
            changed[name] = change(tokens) or tokens
        operations.append(msgspec.structs.replace(operation, **changed))
    return msgspec.structs.replace(trace, operations=tuple(operations))


def _cut(length: int, tokens: Tokens) -> Tokens:
    return tokens[:length]


def _without(place: int, tokens: Tokens) -> Tokens:
    return tokens[:place] + tokens[place + 1 :]


def _renamed(old: int, new: int, tokens: Tokens) -> Tokens:
    return tuple(new if token == old else token for token in tokens)


def _exchanged(old: Tokens, new: Tokens, tokens: Tokens) -> Tokens:
    return new if tokens == old else tokens


def _with(trace: Trace, place: int, length: int, operation: Operation) -> Trace:
    operations = (*trace.operations[:place], operation, *trace.operations[place + length :])
    return msgspec.structs.replace(trace, operations=operations)


def _simpler(operation: Operation) -> Iterator[Operation]:
    """Simpler forms of one operation: a plainer kind, shorter and smaller arguments."""
    match operation:
        case Speculate(sequence, drafts, accepted) if drafts[: max(accepted, 0)]:
            yield Append(sequence, drafts[:accepted])
        case SpeculateBatch(sequences, drafts, lengths, kept) if sequences and drafts and lengths and kept:
            yield Speculate(sequences[0], drafts[: max(1, lengths[0])], max(0, kept[0]))
        case AppendLayer(sequence, _, tokens):
            yield Append(sequence, tokens)
        case LateWrite(sequence):
            yield Free(sequence)
        case Chunked(tokens, _, sequence, namespace, aborted=True):
            yield Abort(tokens, sequence, namespace)
        case Chunked(tokens, _, None, namespace):
            yield New(tokens, namespace)
        case Chunked(tokens, _, int(sequence)):
            yield Append(sequence, tokens)
        case Batch(sequences, tokens, released) if sequences and tokens:
            yield Append(sequences[0], tokens[:1])
            if released is not None:
                yield msgspec.structs.replace(operation, released=None)
    for name in filter(partial(hasattr, operation), (*_TUPLES, *_COUNTS)):
        value = getattr(operation, name)
        simpler = _smaller(value or 0) if name in _COUNTS else (*_shorter(value), *_smaller_tokens(value))
        for argument in filter(None, simpler) if name in _TOKENS else simpler:
            yield msgspec.structs.replace(operation, **{name: argument})
    if getattr(operation, "namespace", ""):
        yield msgspec.structs.replace(operation, namespace="")


def _shorter(tokens: Tokens) -> Iterator[Tokens]:
    yield from dict.fromkeys((tokens[:0], tokens[:1], tokens[: len(tokens) // 2], tokens[:-1], tokens[1:]))


def _smaller_tokens(tokens: Tokens) -> Iterator[Tokens]:
    """All zero, or one token smaller."""
    yield (0,) * len(tokens)
    for place, token in enumerate(tokens):
        for smaller in range(min(token, 2)):
            yield (*tokens[:place], smaller, *tokens[place + 1 :])


def _smaller(count: int) -> Iterator[int]:
    """Numbers nearer to zero; a negative number may also become positive."""
    near = (0, 1, 2, abs(count) // 2, abs(count) - 1) if count > 0 else (0, -1)
    yield from (n for n in dict.fromkeys(near) if abs(n) < abs(count))
