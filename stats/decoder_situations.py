"""The small situations in which the law of a decoder is asked for: few tokens, few choices, many faults."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.sessions import Abort, Fork, Step, Submit
from tokenlaw.stats.decoder_cases import (
    PAIR_PROMPT,
    PROMPT,
    Case,
    decoded,
    in_blocks_of_four,
    sampled,
    served,
)
from tokenlaw.stats.decoder_checks import (
    FORK,
    GRAMMAR,
    LAW,
    LOGPROBS,
    PENALTIES,
    REQUESTS,
    SAMPLES,
    SAMPLING,
    STOP,
)
from tokenlaw.stats.decoder_models import hashed_models, table_models

THREE, TWO = DecodeRequest(PROMPT, 3, draft_length=2), DecodeRequest(PAIR_PROMPT, 2, draft_length=1)

CHANGING = Grammar(({0: 1, 1: 2}, {1: 0, 2: 1}, {0: 1, 2: 0}))
"""Allows two of three tokens, which ones depends on what came last."""

MODELS = {2: 2, 3: 24}
"""Seeds of the models of every run, by their number of tokens; of the first 300 they leave most sequences
possible in all situations."""

HASHED = 3
"""Seed of models that look at every token: what they draft first behind `PAIR_PROMPT` is often rejected."""

LARGER_ROUNDS = 4
"""So many times all cases are tried again with other models, where there is time."""


def law_cases(seed: int, own_sizes: Mapping[int, int] | None = None) -> list[Case]:
    """All cases; those of every run first, with the same models whatever the seed.

    Parameters
    ----------
    seed : of the run; the models of further rounds depend on it.
    own_sizes : for a decoder that has models of its own, how many tokens these have where there should be
        2 or 3; None for tables.
    """
    rounds = range(LARGER_ROUNDS + 1) if own_sizes is None else range(1)
    return [case for number in rounds for case in _round(seed, number, own_sizes)]


def _round(seed: int, number: int, own_sizes: Mapping[int, int] | None) -> Iterator[Case]:
    """All cases with the models of one round; cases that are for larger runs only are in the later ones."""
    of_round = derived_key(seed, number)
    again = f", models {number}" if number else ""
    for case in [*_ROUND_CASES, *(_LONGER_CASES if number else ())]:
        size = case.session.vocabulary_size
        if own_sizes is None:
            first = MODELS[size] if case.models is table_models else HASHED
            target, draft = case.models(size, of_round if number else first)
            session = msgspec.structs.replace(case.session, target=target, draft=draft)
        else:
            session = msgspec.structs.replace(case.session, vocabulary_size=own_sizes[size])
        yield replace(case, title=f"{case.title}{again}", session=session, larger=number)


def _greedy(num_tokens: int, prompt: tuple[int, ...] = PAIR_PROMPT) -> DecodeRequest:
    return DecodeRequest(prompt, num_tokens, draft_length=1, sampling=SamplingParameters(temperature=0.0))


_AMONG_GREEDY = (
    Submit(_greedy(3)),
    Step(),
    Submit(replace(TWO, num_tokens=3)),
    Submit(_greedy(4, (0, 1, 1))),
    Step(),
    Submit(_greedy(1, (0, 1))),
)
"""One leaves while the random one runs, one comes, one stays for longer."""

_AFTER_ABORT = (Submit(_greedy(4)), Submit(replace(TWO, num_tokens=3)), Step(), Abort(0), Submit(_greedy(2)))
"""The blocks of what was ended early are taken by another one."""

_WARM = SamplingParameters(temperature=0.7, top_k=2)

_ALL_PENALTIES = SamplingParameters(repetition_penalty=1.8, presence_penalty=0.6, frequency_penalty=0.9)

_OF_EACH = DecodeRequest(
    PAIR_PROMPT,
    2,
    samples=2,
    draft_length=1,
    sampling=SamplingParameters(temperature=0.7, logit_bias={0: 0.8}, repetition_penalty=1.5),
)

_LONG_PROMPT = (*PAIR_PROMPT, 1, 0, 1)
"""That of another request, with what it may have drafted: blocks of it may be found in the cache."""

_SHARING = replace(TWO, num_tokens=3, samples=2)

_BUSY = DecodeRequest((0,), 3, sampling=SamplingParameters(temperature=0.0))
"""It has a place in the batch, and room, for three steps."""

_PREEMPTED = (Submit(_BUSY), Submit(DecodeRequest((1,), 3)))
"""In a pool of three blocks of two: behind its second token the random one has to make room."""

_ONE_WAITS = (Submit(_BUSY), Submit(DecodeRequest(PAIR_PROMPT, 2, samples=2)))
"""In a batch of two: one sample starts with the other request, the other sample when there is room."""

_LATE_FORK = (Submit(DecodeRequest((1,), 3)), Submit(replace(_BUSY, num_tokens=2)), Step(), Fork(0))
"""In a batch of two: when there is room for the fork its origin has another token."""

_TWO_FORKS = (Submit(DecodeRequest((1,), 2)), Step(), Fork(0), Fork(0))

_FIRST_AND_FOURTH = DecodeRequest(
    PAIR_PROMPT, 5, draft_length=4, grammar=Grammar(({0: 1, 1: 1}, {0: 2}, {0: 3}, {0: 4, 1: 4}, {1: 4}))
)
"""Four drafts a step have many paths; not so where most of them are all that is allowed."""

_ONE_TOKEN = DecodeRequest(PAIR_PROMPT, 1)

_ROUND_CASES = (
    decoded(LAW, "no drafts, 2 tokens", DecodeRequest(PROMPT, 2)),
    decoded(LAW, "1 draft a step, 3 tokens", DecodeRequest(PROMPT, 3, draft_length=1)),
    decoded(LAW, "2 drafts a step, 3 tokens", THREE),
    sampled(SAMPLING, "temperature and top-p", 3, 2, SamplingParameters(temperature=0.7, top_p=0.8)),
    sampled(SAMPLING, "temperature and top-k", 3, 2, SamplingParameters(temperature=1.6, top_k=2)),
    sampled(SAMPLING, "min-p and bias", 3, 1, SamplingParameters(min_p=0.3, logit_bias={0: 0.6, 2: -0.4})),
    sampled(SAMPLING, "allowed tokens", 3, 2, SamplingParameters(allowed_tokens=frozenset({0, 2}))),
    sampled(SAMPLING, "greedy", 4, 2, SamplingParameters(temperature=0.0)),
    decoded(STOP, "2 drafts a step, 3 tokens", replace(THREE, stop=frozenset({1}))),
    sampled(PENALTIES, "all three penalties", 3, 2, _ALL_PENALTIES),
    decoded(GRAMMAR, "a mask that changes after each token, 3 tokens", replace(THREE, grammar=CHANGING)),
    decoded(GRAMMAR, "4 drafts a step, of which the first and the last are free", _FIRST_AND_FOURTH, 2),
    replace(
        decoded(SAMPLES, "2 samples with parameters and penalties", _OF_EACH, 2),
        needs=frozenset({"sampling", "penalties"}),
    ),
    decoded(SAMPLES, "2 samples of 2 tokens", replace(TWO, samples=2), 2),
    replace(
        served(SAMPLES, "2 samples, of which one has to wait", _ONE_WAITS, max_sequences=2),
        needs=frozenset({"requests", "sampling"}),
    ),
    decoded(SAMPLES, "5 samples of 1 token", replace(_ONE_TOKEN, samples=5), 2),
    in_blocks_of_four(decoded(SAMPLES, "2 samples of 3 tokens", _SHARING, 2)),
    served(REQUESTS, "a random request among greedy ones", _AMONG_GREEDY),
    replace(
        served(
            REQUESTS,
            "a prompt that begins as another request went on",
            [Submit(TWO), Step(), Submit(DecodeRequest(_LONG_PROMPT, 2))],
        ),
        models=hashed_models,
    ),
    served(REQUESTS, "a random request that makes room", _PREEMPTED, "sampling", num_blocks=3),
    served(REQUESTS, "three random requests at once", [Submit(_ONE_TOKEN)] * 3),
    served(
        REQUESTS,
        "a request of 2 samples and one of 1",
        [Submit(replace(_ONE_TOKEN, samples=2)), Submit(_ONE_TOKEN)],
        "samples",
    ),
    served(REQUESTS, "a request is aborted, another takes its place", _AFTER_ABORT, "abort"),
    served(REQUESTS, "two random requests", [Submit(TWO), Step(), Submit(TWO)]),
    served(FORK, "a fork after one step", [Submit(replace(TWO, num_tokens=3)), Step(), Fork(0)]),
    served(FORK, "a fork that has to wait", _LATE_FORK, "sampling", max_sequences=2),
    served(FORK, "two forks of one state", _TWO_FORKS),
    served(FORK, "a fork before the first step", [Submit(TWO), Fork(0)]),
    served(LOGPROBS, "2 drafts a step, 2 tokens", [Submit(replace(THREE, num_tokens=2))], size=3),
    served(LOGPROBS, "temperature and top-k", [Submit(replace(THREE, sampling=_WARM))], "sampling", size=3),
)

_LONGER_CASES = (
    decoded(LAW, "1 draft a step, 5 tokens", DecodeRequest(PROMPT, 5, draft_length=1)),
    sampled(PENALTIES, "repetition penalty", 3, 2, SamplingParameters(repetition_penalty=1.8)),
    sampled(PENALTIES, "frequency penalty", 3, 2, SamplingParameters(frequency_penalty=0.9)),
    served(REQUESTS, "two random requests at once", [Submit(TWO), Submit(TWO)]),
    served(LOGPROBS, "2 drafts a step, 3 tokens", [Submit(THREE)], size=3),
    decoded(LAW, "3 drafts a step, 4 tokens", DecodeRequest(PROMPT, 4, draft_length=3)),
    decoded(SAMPLES, "3 samples of 1 token", DecodeRequest(PROMPT, 1, draft_length=2, samples=3)),
    decoded(SAMPLES, "2 samples of 2 tokens of three", DecodeRequest(PROMPT, 2, draft_length=1, samples=2)),
)
