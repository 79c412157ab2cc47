"""Sessions and violations in words: numbered lines, requests named by their order."""

from collections.abc import Iterator

from tokenlaw.properties.running import Violation
from tokenlaw.properties.words import failure
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed, Model
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionOperation, Submit
from tokenlaw.spec.verdicts import Check

_INDENT = "  "
_DEFAULTS = SamplingParameters()


def lines(session: Session) -> list[str]:
    """One line for each operation, without numbers.

    >>> lines(Session((Submit(DecodeRequest((0, 1), 3, draft_length=2)), Fork(0)), vocabulary_size=2))
    ['submit: prompt 0 1, 3 tokens, 2 drafts a step', 'fork: unfinished request 0 of one sample']
    """
    return [_line(operation) for operation in session.operations]


def tell(session: Session) -> str:
    """The session as a paragraph: its configuration, then its numbered operations."""
    numbered = [f"{_INDENT}{number}. {line}" for number, line in enumerate(lines(session), start=1)]
    return "\n".join([f"session ({_configuration(session)}):", *numbered, f"{_INDENT}then steps to the end"])


def explain(check: Check, violation: Violation, session: Session) -> str:
    """The complete failure message of a check: rule, place, expected, found, and the session in words."""
    told = lines(session)
    place = ["the end of the session"]
    if violation.operation < len(told):
        place = [f"operation {violation.operation + 1} ({told[violation.operation]})"]
    if violation.sequence is not None:
        place.append(f"request or fork {violation.sequence + 1}")
    if violation.position is not None:
        place.append(f"generated token {violation.position + 1}")
    return failure(check, violation, place, tell(session))


def _configuration(session: Session) -> str:
    return (
        f"vocabulary of {session.vocabulary_size}, {session.num_blocks} blocks of {session.block_size}, "
        f"{session.max_sequences} sequences at most, target: {_model(session.target)}, "
        f"draft: {_model(session.draft)}"
    )


def _model(model: Model | None) -> str:
    if model is None:
        return "its own"
    if isinstance(model, Hashed):
        strays = "" if model.stray_seed is None else f" straying to {model.stray_seed}"
        return f"{'certain tokens' if model.certain else 'hashed'} {model.seed}{strays}"
    return f"table of order {model.order}"


def _line(operation: SessionOperation) -> str:
    match operation:
        case Submit(request):
            return f"submit: {', '.join(_parts(request))}"
        case Fork(index):
            return f"fork: unfinished request {index} of one sample"
        case Abort(index):
            return f"abort: unfinished request {index}"
        case _:
            return "step"


def _parts(request: DecodeRequest) -> Iterator[str]:
    """What a request asks for, without what it leaves alone."""
    sampling = request.sampling
    yield f"prompt {_listed(request.prompt)}"
    yield _count(request.num_tokens, "token")
    if request.draft_length:
        yield f"{_count(request.draft_length, 'draft')} a step"
    if request.samples > 1:
        yield _count(request.samples, "sample")
    if sampling.temperature == 0:
        yield "greedy"
    for name in ("temperature", "top_k", "top_p", "min_p"):
        value = getattr(sampling, name)
        if value != getattr(_DEFAULTS, name) and (name, value) != ("temperature", 0):
            yield f"{name.replace('_', '-')} {value}"
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        value = getattr(sampling, name)
        if value != getattr(_DEFAULTS, name):
            yield f"{name.replace('_', ' ')} {value}"
    for token, bias in sorted(sampling.logit_bias.items()):
        yield f"bias {bias} on token {token}"
    if sampling.allowed_tokens is not None:
        yield f"only tokens {_listed(sorted(sampling.allowed_tokens))}"
    if request.stop:
        yield f"stop at {_listed(sorted(request.stop))}"
    if request.grammar is not None:
        rows = (
            " ".join(f"{token}->{state}" for token, state in sorted(row.items()))
            for row in request.grammar.transitions
        )
        yield f"grammar {' | '.join(rows)}"


def _listed(tokens: "tuple[int, ...] | list[int]") -> str:
    return " ".join(map(str, tokens))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
