"""What a decoder may show as generated tokens, whatever it generates."""

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest


class IllegalAnswer(Exception):
    """A decoder broke the protocol of its contract; the message says how.

    Attributes
    ----------
    rule : ``protocol`` (tokens, their number, what was shown and changed), ``samples`` (their number),
        ``progress`` (nothing grows, or a request that fits is refused), ``logprobs`` (their number).
    operation : place in the session of the operation that showed it; the number of operations if it showed
        only when everything was run to its end.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.operation = 0


def has_ended(request: DecodeRequest, sample: Tokens) -> bool:
    """Whether a sample has come to an end, at its last token or before it.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=3, stop=frozenset({2}))
    >>> has_ended(request, (1, 1)), has_ended(request, (2, 1)), has_ended(request, (1, 1, 1))
    (False, True, True)
    """
    return len(sample) >= request.num_tokens or not request.stop.isdisjoint(sample)


def shown_tokens(
    request: DecodeRequest, given: Sequence[Sequence[Any]], before: tuple[Tokens, ...], vocabulary_size: int
) -> tuple[Tokens, ...]:
    """What a decoder gave, in plain Python.

    Parameters
    ----------
    given : one sequence of token ids for each sample.
    before : what it gave before.

    Raises
    ------
    IllegalAnswer
        Something isn't a token id, the number of samples is wrong, a sample is too long, or what was given
        before has changed.

    Examples
    --------
    >>> request = DecodeRequest(prompt=(0,), num_tokens=3)
    >>> shown_tokens(request, [[1, 0]], ((1,),), vocabulary_size=2)
    ((1, 0),)
    >>> shown_tokens(request, [[1, 2]], ((1,),), vocabulary_size=2)
    Traceback (most recent call last):
    tokenlaw.spec.shown_tokens.IllegalAnswer: token 2 of sample 0 is outside the vocabulary 0..1
    """
    try:
        tokens = tuple(tuple(operator.index(token) for token in sample) for sample in given)
    except TypeError as error:
        raise IllegalAnswer(
            "protocol", f"expected token ids for each sample, not {given!r}: {error}"
        ) from None
    if len(tokens) != request.samples:
        raise IllegalAnswer("samples", f"{len(tokens)} samples were given, {request.samples} asked for")
    for number, (sample, old) in enumerate(zip(tokens, before, strict=True)):
        strangers = [token for token in sample if not 0 <= token < vocabulary_size]
        if strangers:
            text = (
                f"token {strangers[0]} of sample {number} is outside the vocabulary 0..{vocabulary_size - 1}"
            )
            raise IllegalAnswer("protocol", text)
        if len(sample) > request.num_tokens:
            text = f"sample {number} has {len(sample)} tokens, {request.num_tokens} were asked for"
            raise IllegalAnswer("protocol", text)
        if sample[: len(old)] != old:
            raise IllegalAnswer("protocol", f"sample {number} was {old} before and is {sample} now")
    return tokens


def shown_logprobs(given: Any, tokens: tuple[Tokens, ...]) -> tuple[tuple[float, ...], ...]:
    """Log-probabilities in plain Python; raises `IllegalAnswer` unless there is one for each token.

    >>> shown_logprobs([[-0.5, -1]], ((1, 0),))
    ((-0.5, -1.0),)
    """
    try:
        numbers = tuple(tuple(float(number) for number in sample) for sample in given)
    except (TypeError, ValueError) as error:
        expected = "expected numbers for each sample"
        raise IllegalAnswer("logprobs", f"{expected}, not {given!r}: {error}") from None
    lengths, wanted = [len(sample) for sample in numbers], [len(sample) for sample in tokens]
    if lengths != wanted:
        raise IllegalAnswer("logprobs", f"logprobs gives {lengths} numbers for {wanted} tokens")
    return numbers


def fates_of_drafts(
    request: DecodeRequest, before: tuple[Tokens, ...], after: tuple[Tokens, ...]
) -> Iterator[str]:
    """What became of the drafts of one step, for each sample that had some.

    ``rejected at N`` or ``all accepted``, where all drafts had room and no stop token came; not in the step
    with a sample's first token, which need not have had drafts. ``stop behind a draft``, where a stop token
    came together with others.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=9, draft_length=2)
    >>> list(fates_of_drafts(request, ((1,), (1,)), ((1, 0), (1, 0, 0, 0))))
    ['rejected at 0', 'all accepted']
    """
    drafts = request.draft_length
    for old, new in zip(before, after, strict=True):
        accepted = len(new) - len(old) - 1
        room = len(old) + drafts < request.num_tokens
        if accepted > 0 and not request.stop.isdisjoint(new[len(old) :]):
            yield "stop behind a draft"
        elif old and drafts and accepted >= 0 and room and request.stop.isdisjoint(new):
            yield "all accepted" if accepted >= drafts else f"rejected at {accepted}"
