"""What counts as simpler for the shrinker of sessions, one step at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import msgspec

from tokenlaw.properties.shrink import Simplifier
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed
from tokenlaw.spec.sessions import Fork, Session, SessionOperation, Step, Submit

_MANY_TOKENS = 6  # a vocabulary of so many and more is folded into one of fewer
_FEW = 12  # operations; beyond that, pairs are too many to try
_CONFIGURATION = ("num_blocks", "block_size", "max_sequences")
_DEFAULTS = SamplingParameters()


def size(session: Session) -> tuple[int, ...]:
    """Order of simplicity: operations, their kinds, features, vocabulary, lengths, numbers, configuration."""
    requests = [operation.request for operation in session.operations if isinstance(operation, Submit)]
    numbers = [
        abs(getattr(operation, name, 0))
        for operation in session.operations
        for name in ("seed", "request_index")
    ]
    return (
        len(session.operations),
        sum(not isinstance(operation, Step) for operation in session.operations),
        sum(map(_features, requests)),
        session.vocabulary_size,
        sum(len(one.prompt) + one.num_tokens + one.draft_length for one in requests),
        sum(sum(one.prompt) for one in requests),
        sum(numbers),
        sum(getattr(session, name) for name in _CONFIGURATION),
        sum(
            model.seed + (model.stray_seed or 0)
            for model in (session.target, session.draft)
            if isinstance(model, Hashed)
        ),
    )


def _features(request: DecodeRequest) -> int:
    """How much a request asks for beyond tokens."""
    changed = [
        name
        for name in _DEFAULTS.__dataclass_fields__
        if getattr(request.sampling, name) != getattr(_DEFAULTS, name)
    ]
    states = 0 if request.grammar is None else len(request.grammar.transitions)
    return 2 * (request.samples - 1) + len(request.stop) + states + len(changed)


def _with_fewer_operations(session: Session) -> Iterator[Session]:
    """Leave out chunks, large ones first and late ones first, down to single operations."""
    length = len(session.operations)
    while length:
        for start in range(len(session.operations) - length, -1, -length):
            kept = (*session.operations[:start], *session.operations[start + length :])
            yield msgspec.structs.replace(session, operations=kept)
        length //= 2


def _with_two_fewer(session: Session) -> Iterator[Session]:
    """Leave out any two operations, which may need each other."""
    count = len(session.operations)
    for pair in combinations(range(count if count <= _FEW else 0), 2):
        kept = tuple(one for place, one in enumerate(session.operations) if place not in pair)
        yield msgspec.structs.replace(session, operations=kept)


def _with_fewer_tokens(session: Session) -> Iterator[Session]:
    """A small vocabulary, into which all tokens are folded, where the session brings the models."""
    models = {name: getattr(session, name) for name in ("target", "draft")}
    for count in range(2, min(session.vocabulary_size, _MANY_TOKENS)):
        if all(isinstance(model, Hashed) for model in models.values()):
            smaller = {
                name: msgspec.structs.replace(one, vocabulary_size=count) for name, one in models.items()
            }
            operations = tuple(
                Submit(_folded(one.request, count), one.seed) if isinstance(one, Submit) else one
                for one in session.operations
            )
            yield msgspec.structs.replace(session, operations=operations, vocabulary_size=count, **smaller)


def _folded(request: DecodeRequest, count: int) -> DecodeRequest:
    """The request over so many tokens."""
    sampling, grammar = request.sampling, request.grammar
    allowed, top_k = sampling.allowed_tokens, sampling.top_k
    return replace(
        request,
        prompt=tuple(token % count for token in request.prompt),
        stop=frozenset(token % count for token in request.stop),
        sampling=replace(
            sampling,
            logit_bias={token % count: bias for token, bias in sampling.logit_bias.items()},
            allowed_tokens=None if allowed is None else frozenset(token % count for token in allowed),
            top_k=None if top_k is None else min(top_k, count),
        ),
        grammar=None
        if grammar is None
        else Grammar(
            tuple({token % count: after for token, after in row.items()} for row in grammar.transitions)
        ),
    )


def _with_simpler_prompts(session: Session) -> Iterator[Session]:
    """Change all prompts at once, so that those which belong together stay together."""
    requests = [operation.request for operation in session.operations if isinstance(operation, Submit)]
    longest = max((len(request.prompt) for request in requests), default=0)
    for length in (1, 2, 4, 8):
        if length < longest:
            yield _mapped(session, partial(_first, length))
    for place in reversed(range(longest)):
        yield _mapped(session, partial(_without, place))
    for token in reversed(range(1, session.vocabulary_size)):
        yield _mapped(session, partial(_zeroed, token))


def _first(length: int, prompt: Tokens) -> Tokens:
    return prompt[:length]


def _without(place: int, prompt: Tokens) -> Tokens:
    return prompt[:place] + prompt[place + 1 :]


def _zeroed(token: int, prompt: Tokens) -> Tokens:
    return tuple(0 if one == token else one for one in prompt)


def _mapped(session: Session, change: Callable[[Tokens], Tokens]) -> Session:
    def changed(operation: SessionOperation) -> SessionOperation:
        if not isinstance(operation, Submit):
            return operation
        prompt = change(operation.request.prompt) or operation.request.prompt
        return Submit(replace(operation.request, prompt=prompt), operation.seed)

    return msgspec.structs.replace(session, operations=tuple(map(changed, session.operations)))


def _with_simpler_operations(session: Session) -> Iterator[Session]:
    """Simplify one operation."""
    for place, operation in enumerate(session.operations):
        for simpler in _simpler(operation):
            operations = (*session.operations[:place], simpler, *session.operations[place + 1 :])
            yield msgspec.structs.replace(session, operations=operations)


def _simpler(operation: SessionOperation) -> Iterator[SessionOperation]:
    if isinstance(operation, Submit):
        for request in _simpler_requests(operation.request):
            yield Submit(request, operation.seed)
    fields: Iterable[tuple[str, Any]] = (("seed", (0, 1)), ("request_index", (0, 1)))
    for name, values in fields:
        for value in values:
            if hasattr(operation, name):
                yield msgspec.structs.replace(operation, **{name: value})
    if isinstance(operation, Fork):
        yield Step()


def _simpler_requests(request: DecodeRequest) -> Iterator[DecodeRequest]:
    """With a feature less, or smaller numbers."""
    yield replace(request, stop=frozenset())
    yield replace(request, grammar=None)
    for samples in {1, 2, request.samples - 1} - {0, request.samples}:
        yield replace(request, samples=samples)
    for name in _DEFAULTS.__dataclass_fields__:
        if getattr(request.sampling, name) != getattr(_DEFAULTS, name):
            yield replace(request, sampling=replace(request.sampling, **{name: getattr(_DEFAULTS, name)}))
    for draft_length in range(request.draft_length):
        yield replace(request, draft_length=draft_length)
    for num_tokens in range(1, request.num_tokens):
        yield replace(request, num_tokens=num_tokens)
    for place in range(len(request.prompt)):
        shorter = request.prompt[:place] + request.prompt[place + 1 :]
        if shorter:
            yield replace(request, prompt=shorter)
        zeroed = (*request.prompt[:place], 0, *request.prompt[place + 1 :])
        yield replace(request, prompt=zeroed)


def _with_simpler_configurations(session: Session) -> Iterator[Session]:
    """Smaller models' seeds, and fewer of everything."""
    for name in ("target", "draft"):
        model = getattr(session, name)
        if isinstance(model, Hashed):
            seeds = [{"seed": seed} for seed in range(min(4, model.seed))]
            seeds += [{"stray_seed": seed} for seed in range(min(4, model.stray_seed or 0))]
            for changed in seeds:
                yield msgspec.structs.replace(session, **{name: msgspec.structs.replace(model, **changed)})
    for name in _CONFIGURATION:
        value = getattr(session, name)
        for fewer in sorted({1, 2, 3, value // 2, value - 1}):
            if 1 <= fewer < value:
                yield msgspec.structs.replace(session, **{name: fewer})


SESSIONS = Simplifier(
    size,
    (
        _with_fewer_operations,
        _with_fewer_tokens,
        _with_simpler_prompts,
        _with_simpler_operations,
        _with_simpler_configurations,
        _with_two_fewer,
    ),
)
"""How sessions are shrunk."""
