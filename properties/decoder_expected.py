"""What a request must be answered with: its tokens where every one is certain, else which are possible."""

import math
from collections.abc import Iterator
from dataclasses import replace

from tokenlaw.properties.decoder_checks import has_bias, has_penalties
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest, is_finished, law_of_next
from tokenlaw.spec.sampling import SamplingParameters

CLEAR = 1.05
"""A greedy token is certain if it is so many times as probable as the next one: no rounding turns it."""

LOGPROB_TOLERANCE = 1e-3
"""How far a log-probability may be off, absolutely and relatively: far beyond single precision, far below
what a law of another position, of another model or without the parameters makes of it."""

_DEFAULTS = SamplingParameters()
_MAX_TRIED = 200  # laws that are looked at to see that a random request can't get stuck


def certain_tokens(model: LanguageModel[float], request: DecodeRequest) -> Tokens | None:
    """The tokens of every sample of a request, or None if one of them isn't certain.

    >>> from tokenlaw.spec.sampling import SamplingParameters
    >>> greedy = SamplingParameters(temperature=0.0)
    >>> certain_tokens(lambda tokens: (0.25, 0.75), DecodeRequest((0,), 2, sampling=greedy))
    (1, 1)
    >>> certain_tokens(lambda tokens: (0.25, 0.75), DecodeRequest((0,), 2)) is None
    True

    Raises
    ------
    ValueError
        No token is possible somewhere.
    """
    warm = request
    if request.sampling.temperature == 0:
        sampling = replace(request.sampling, temperature=1.0, top_k=None, top_p=None, min_p=None)
        warm = replace(request, sampling=sampling)
    clear = CLEAR if request.sampling.temperature == 0 else math.inf
    is_plain = warm.grammar is None and warm.sampling == _DEFAULTS
    generated: Tokens = ()
    while not is_finished(request, generated):
        law = model(request.prompt + generated) if is_plain else law_of_next(model, warm, generated)
        second, first = sorted((0.0, *law))[-2:]
        if second and first < clear * second:
            return None
        generated += (law.index(first),)
    return generated


def can_be_asked(model: LanguageModel[float], request: DecodeRequest) -> bool:
    """Whether a random request surely has an answer: nowhere on its ways does it forbid every possible token.

    At most `_MAX_TRIED` beginnings are looked at.
    """
    sampling = request.sampling
    bans = -math.inf in sampling.logit_bias.values()
    if request.grammar is None and sampling.allowed_tokens is None and not bans:
        return True
    try:
        waiting: list[Tokens] = [()]
        for _ in range(_MAX_TRIED):
            if not waiting:
                break
            generated = waiting.pop()
            law = law_of_next(model, request, generated)
            longer = ((*generated, token) for token, probability in enumerate(law) if probability)
            waiting += [tokens for tokens in longer if not is_finished(request, tokens)]
    except ValueError:
        return False
    return not waiting


def what_matters(model: LanguageModel[float], request: DecodeRequest, expected: Tokens) -> Iterator[str]:
    """Which parts of a request of certain tokens make a difference to them."""
    sampling = request.sampling
    if has_penalties(request):
        free = replace(sampling, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0)
        yield from _event("penalties that matter", model, replace(request, sampling=free), expected)
    if has_bias(request):
        free = replace(sampling, logit_bias={}, allowed_tokens=None)
        yield from _event("bias that matters", model, replace(request, sampling=free), expected)
    if request.grammar is not None:
        yield from _event("grammar that matters", model, replace(request, grammar=None), expected)


def _event(name: str, model: LanguageModel[float], without: DecodeRequest, expected: Tokens) -> Iterator[str]:
    if certain_tokens(model, without) != expected:
        yield name


def impossible_at(model: LanguageModel[float], request: DecodeRequest, sample: Tokens) -> int | None:
    """The first position whose token is impossible, or that comes after the end; None if there is none."""
    for position, token in enumerate(sample):
        generated = sample[:position]
        if is_finished(request, generated) or not law_of_next(model, request, generated)[token]:
            return position
    return None


def is_close(found: float, expected: float) -> bool:
    """Whether a log-probability is right.

    >>> is_close(-1.0001, -1.0), is_close(-1.1, -1.0), is_close(float("nan"), -1.0)
    (True, False, False)
    """
    return math.isclose(found, expected, rel_tol=LOGPROB_TOLERANCE, abs_tol=LOGPROB_TOLERANCE)


GREEDILY = SamplingParameters(temperature=0.0)
"""Greedy decoding, and nothing else."""
