"""Sessions: plain data that says what was asked of a decoder, and their versioned JSON form.

Operations name an unfinished request by its index modulo the number of unfinished ones, in order of
submission, so every sub-list of a session is a legal session. An operation that needs an unfinished request
does nothing when there is none.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.session_models import Hashed, Model, Table, uniform_model
from tokenlaw.spec.suites import CounterexampleError

SCHEMA = "tokenlaw.session/1"

MAX_OPERATIONS, MAX_TOKENS, MAX_SAMPLES = 10_000, 1_000_000, 1_000
"""Of a session that is read from a file: operations, tokens brought or asked for, samples of a request."""

LARGEST = {
    "vocabulary_size": 1_000_000,
    "num_blocks": 1_000_000,
    "block_size": 100_000,
    "max_sequences": 100_000,
}
"""Largest configuration of a session that is read from a file; the smallest one is 1 of everything."""

MAX_SEED = 2**63 - 1


class SessionError(CounterexampleError):
    """A session that can't be read, or that a target can't run; the message says why and what to do."""


class Submit(msgspec.Struct, frozen=True, tag_field="op", tag="submit", forbid_unknown_fields=True):
    """Hand a request in; it becomes the last unfinished one."""

    request: DecodeRequest
    seed: int = 0


class Step(msgspec.Struct, frozen=True, tag_field="op", tag="step", forbid_unknown_fields=True):
    """One step of everything that runs."""


class Fork(msgspec.Struct, frozen=True, tag_field="op", tag="fork", forbid_unknown_fields=True):
    """An unfinished request goes on twice; the index counts those of one sample only."""

    request_index: int
    seed: int = 0


class Abort(msgspec.Struct, frozen=True, tag_field="op", tag="abort", forbid_unknown_fields=True):
    """End an unfinished request."""

    request_index: int


SessionOperation = Submit | Step | Fork | Abort


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of a decoder and a list of operations on it.

    Attributes
    ----------
    operations : what is done, in order; everything that is unfinished afterwards is run to its end.
    vocabulary_size : tokens of all models.
    target, draft : language models; None for a decoder that has models of its own.
    num_blocks, block_size, max_sequences : as in `DecoderConfig`.
    """

    operations: tuple[SessionOperation, ...]
    vocabulary_size: int
    target: Model | None = None
    draft: Model | None = None
    num_blocks: int = 32
    block_size: int = 2
    max_sequences: int = 8
    contract: str = DECODER
    schema: str = SCHEMA

    @property
    def config(self) -> DecoderConfig:
        """What a decoder for this session is built from; models that aren't named are uniform.

        >>> Session((), vocabulary_size=2).config.target((0,))
        (0.5, 0.5)
        """
        uniform = uniform_model(self.vocabulary_size)
        return DecoderConfig(
            target=uniform if self.target is None else self.target.model(),
            draft=uniform if self.draft is None else self.draft.model(),
            vocabulary_size=self.vocabulary_size,
            num_blocks=self.num_blocks,
            block_size=self.block_size,
            max_sequences=self.max_sequences,
        )


def to_data(session: Session) -> dict[str, Any]:
    """The session as plain JSON data (dicts, lists, numbers, strings); a bias of minus infinity is null."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(session))
    return data


def session_of(data: Any, source: str = "counterexample") -> Session:
    """The session that plain JSON data stands for; ``source`` names it in errors.

    Raises
    ------
    SessionError
        It is no session of this version, has keys that mean nothing, numbers out of range, or is too large.

    Examples
    --------
    >>> request = {"prompt": [0], "num_tokens": 1, "samples": 2, "temperature": 0}
    >>> operations = [{"op": "submit", "request": request}]
    >>> session_of({"schema": SCHEMA, "vocabulary_size": 2, "operations": operations})
    Traceback (most recent call last):
    tokenlaw.spec.sessions.SessionError: counterexample: operations[0].request has no 'temperature'
    """
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema != SCHEMA:
        raise SessionError(f"{source}: schema {schema!r}; this version of tokenlaw reads {SCHEMA!r}")
    try:
        session = msgspec.convert(_with_bans(data), Session, str_keys=True)
    except msgspec.ValidationError as error:
        raise SessionError(f"{source}: not a session: {error}") from None
    problem = next(_stray(data, to_data(session), ""), "") or next(_problems(session), "")
    if problem:
        raise SessionError(f"{source}: {problem}")
    return session


def _with_bans(data: Any, key: str = "") -> Any:
    """The data with minus infinity, which JSON hasn't, where a bias is null."""
    if isinstance(data, Mapping):
        if key == "logit_bias":
            return {token: -math.inf if bias is None else bias for token, bias in data.items()}
        return {name: _with_bans(value, name) for name, value in data.items()}
    return [_with_bans(value) for value in data] if isinstance(data, list | tuple) else data


def _stray(data: Any, known: Any, place: str) -> Iterator[str]:
    """Keys of the data that mean nothing (a typing error must not become a default), and infinite numbers."""
    if isinstance(data, Mapping) and isinstance(known, Mapping):
        for key, value in data.items():
            if key not in known:
                yield f"{place or 'a session'} has no {key!r}"
            else:
                yield from _stray(value, known[key], f"{place}.{key}".lstrip("."))
    elif isinstance(data, list | tuple) and isinstance(known, list):
        for number, (one, other) in enumerate(zip(data, known, strict=False)):
            yield from _stray(one, other, f"{place}[{number}]")
    elif isinstance(data, float) and not math.isfinite(data):
        yield f"{place} is {data}; it must be finite"


def _problems(session: Session) -> Iterator[str]:
    """What no target could run, in words."""
    if session.contract != DECODER:
        yield f"it is of contract {session.contract!r}, not {DECODER!r}"
    for name, largest in LARGEST.items():
        value = getattr(session, name)
        if not 1 <= value <= largest:
            yield f"{name} is {value}; it must be 1 to {largest}"
    for name, model in (("target", session.target), ("draft", session.draft)):
        if model is not None:
            yield from (f"{name}: {problem}" for problem in model.problems(session.vocabulary_size))
    if len(session.operations) > MAX_OPERATIONS:
        yield f"it has {len(session.operations)} operations; at most {MAX_OPERATIONS} are run"
    tokens = 0
    for number, operation in enumerate(session.operations):
        seed = getattr(operation, "seed", 0)
        if not 0 <= seed <= MAX_SEED:
            yield f"operations[{number}].seed is {seed}; it must be 0 to {MAX_SEED}"
        if isinstance(operation, Submit):
            request = operation.request
            tokens += len(request.prompt) + request.samples * request.num_tokens
            for problem in _problems_of(request, session.vocabulary_size):
                yield f"operations[{number}].request: {problem}"
    if tokens > MAX_TOKENS:
        yield f"it brings and asks for {tokens} tokens; at most {MAX_TOKENS} are run"


def _problems_of(request: DecodeRequest, vocabulary_size: int) -> Iterator[str]:
    """What is wrong with a request for this vocabulary."""
    sampling = request.sampling
    named: dict[str, set[int]] = {
        "prompt": set(request.prompt),
        "stop": set(request.stop),
        "logit_bias": set(sampling.logit_bias),
        "allowed_tokens": set(sampling.allowed_tokens or ()),
    }
    if request.grammar is not None:
        named["grammar"] = {token for row in request.grammar.transitions for token in row}
    for name, tokens in named.items():
        strangers = sorted(token for token in tokens if not 0 <= token < vocabulary_size)
        if strangers:
            yield f"{name} has token {strangers[0]}; the vocabulary is 0..{vocabulary_size - 1}"
    ranges = {"top_k": (1, vocabulary_size), "top_p": (0, 1), "min_p": (0, 1), "samples": (1, MAX_SAMPLES)}
    for name, (least, most) in ranges.items():
        value = getattr(request if name == "samples" else sampling, name)
        if value is not None and not least <= value <= most:
            yield f"{name} is {value}; it must be {least} to {most}"


def surely_fits(request: DecodeRequest, session: Session) -> bool:
    """Whether any decoder has room for this request when nothing else runs, however it shares blocks.

    >>> session = Session((), vocabulary_size=2, num_blocks=3, block_size=4)
    >>> surely_fits(DecodeRequest(prompt=(0,), num_tokens=7), session)
    True
    >>> surely_fits(DecodeRequest(prompt=(0,), num_tokens=7, samples=2), session)
    False
    """
    longest = len(request.prompt) + request.num_tokens + request.draft_length
    blocks = -(-longest // session.block_size) + 1
    return request.samples <= session.max_sequences and request.samples * blocks <= session.num_blocks


__all__ = [
    "SCHEMA",
    "Abort",
    "Fork",
    "Hashed",
    "Model",
    "Session",
    "SessionError",
    "SessionOperation",
    "Step",
    "Submit",
    "Table",
    "session_of",
    "surely_fits",
    "to_data",
]
