"""The checks of decoders whose answers are certain, and which of them a request is asked by."""

from collections.abc import Iterator
from dataclasses import replace

from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.verdicts import Check, Severity

_REQUESTS = frozenset({"requests"})
_SERVER = frozenset({"requests", "free-blocks"})


def _check(
    name: str,
    rule: str,
    title: str,
    severity: Severity,
    needs: tuple[str, ...],
    *events: str,
    **further: tuple[tuple[frozenset[str], str], ...],
) -> Check:
    return Check(f"decoder/{name}", rule, title, DECODER, severity, frozenset(needs), events, **further)


_FATES = tuple((_REQUESTS, f"rejected at {place}") for place in range(4))

GREEDY = _check(
    "greedy",
    "D1",
    "A request without drafts, of which every token is certain, gets the tokens of target-only decoding.",
    Severity.WRONG_CONTENT,
    (),
    "request without drafts",
)
SPECULATION = _check(
    "speculation",
    "D2",
    "Drafts change no token, whatever the draft model says and however many of them are accepted.",
    Severity.WRONG_CONTENT,
    (),
    "request with drafts",
    exercised_with=_FATES,
)
STOP = _check(
    "stop",
    "D3",
    "A sample ends with the first stop token, also where that is a draft with accepted drafts behind it.",
    Severity.WRONG_CONTENT,
    ("stop",),
    "stop token reached",
    exercised_with=((_REQUESTS, "stop behind a draft"),),
)
PENALTIES = _check(
    "penalties",
    "D4",
    "Penalties count the prompt and everything generated, drafts before the position included.",
    Severity.WRONG_CONTENT,
    ("sampling", "penalties"),
    "penalties that matter",
)
GRAMMAR = _check(
    "grammar",
    "D5",
    "At each position, draft positions included, the grammar allows what it allows after the tokens before.",
    Severity.WRONG_CONTENT,
    ("sampling", "grammar"),
    "grammar that matters",
)
BIAS = _check(
    "bias",
    "D6",
    "Bias and allowed tokens count at each position, draft positions included.",
    Severity.WRONG_CONTENT,
    ("sampling",),
    "bias that matters",
)
SAMPLES = _check(
    "samples",
    "D7",
    "A request gets as many samples as it asks for, each with the tokens of target-only decoding.",
    Severity.WRONG_CONTENT,
    ("samples",),
    "request with samples",
)
FORK = _check(
    "fork",
    "D8",
    "A fork and its origin both go on as target-only decoding does.",
    Severity.WRONG_CONTENT,
    ("requests", "fork"),
    "fork with tokens",
)
BYSTANDERS = _check(
    "bystanders",
    "D9",
    "The tokens of a request don't depend on the requests before it and beside it.",
    Severity.CROSS_SEQUENCE,
    (),
    "shared prompt",
    exercised_with=((_REQUESTS, "join"), (_REQUESTS, "leave")),
)
SUPPORT = _check(
    "support",
    "D10",
    "No token comes that is impossible where it stands.",
    Severity.WRONG_LAW,
    (),
    "random request",
)
LOGPROBS = _check(
    "logprobs",
    "D11",
    "Log-probabilities are those of the tokens given, under the law that each was drawn from.",
    Severity.WRONG_CONTENT,
    ("requests", "logprobs"),
    "log-probability",
)
BLOCKS = _check(
    "blocks",
    "D12",
    "When every request has ended all blocks are free again.",
    Severity.LEAK,
    ("free-blocks",),
    "submit",
    exercised_with=((_SERVER | {"abort"}, "abort"), (_SERVER | {"fork"}, "fork"), (_SERVER, "wait")),
)
PROGRESS = _check(
    "progress",
    "D13",
    "Something grows until every request has ended, and only what can't fit is refused.",
    Severity.CRASH,
    (),
    "submit",
    exercised_with=((_SERVER, "wait"),),
)
PROTOCOL = _check(
    "protocol",
    "D14",
    "Tokens are of the vocabulary and not too many, what was shown stays, and what ended has ended.",
    Severity.WRONG_CONTENT,
    (),
    "submit",
)

DECODER_CHECKS = (
    GREEDY,
    SPECULATION,
    STOP,
    PENALTIES,
    GRAMMAR,
    BIAS,
    SAMPLES,
    FORK,
    BYSTANDERS,
    SUPPORT,
    LOGPROBS,
    BLOCKS,
    PROGRESS,
    PROTOCOL,
)

BY_RULE = {"protocol": PROTOCOL, "progress": PROGRESS, "samples": SAMPLES, "logprobs": LOGPROBS}
"""The check that an `IllegalAnswer` breaks."""


def has_penalties(request: DecodeRequest) -> bool:
    """Whether the request asks for a penalty."""
    sampling = request.sampling
    return (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) != (1, 0, 0)


def has_bias(request: DecodeRequest) -> bool:
    """Whether the request asks for a bias or for some tokens only."""
    return bool(request.sampling.logit_bias) or request.sampling.allowed_tokens is not None


def check_of(request: DecodeRequest) -> Check:
    """The check that asks a request of which every token is certain: that of the first feature that it has.

    >>> check_of(DecodeRequest(prompt=(0,), num_tokens=1, draft_length=2)).id
    'decoder/speculation'
    """
    features = (
        (request.samples > 1, SAMPLES),
        (request.grammar is not None, GRAMMAR),
        (has_penalties(request), PENALTIES),
        (has_bias(request), BIAS),
        (bool(request.stop), STOP),
        (request.draft_length > 0, SPECULATION),
    )
    return next((check for has, check in features if has), GREEDY)


def with_one_feature(request: DecodeRequest) -> Iterator[DecodeRequest]:
    """For a request with several features, the request with each of them alone; else nothing.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=1, stop=frozenset({1}), samples=2)
    >>> [check_of(one).id for one in with_one_feature(request)]
    ['decoder/stop', 'decoder/samples']
    """
    sampling = request.sampling
    unbiased = replace(sampling, logit_bias={}, allowed_tokens=None)
    free = replace(sampling, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0)
    plain = replace(
        request,
        samples=1,
        stop=frozenset(),
        grammar=None,
        sampling=replace(free, logit_bias={}, allowed_tokens=None),
    )
    alone = (
        replace(plain, stop=request.stop),
        replace(plain, sampling=free),
        replace(plain, sampling=unbiased),
        replace(plain, grammar=request.grammar),
        replace(plain, samples=request.samples),
    )
    features = [one for one in alone if one != plain]
    yield from features if len(features) > 1 else ()


def needed_capabilities(request: DecodeRequest) -> frozenset[str]:
    """What a decoder must be able to do to honour a request."""
    sampling = request.sampling
    plain = (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (1, None, None, None)
    features = {
        "sampling": not plain or has_bias(request),
        "penalties": has_penalties(request),
        "stop": bool(request.stop),
        "grammar": request.grammar is not None,
        "samples": request.samples > 1,
    }
    return frozenset(name for name, has in features.items() if has)
