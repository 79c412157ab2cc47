"""Small situations in which the law of a decoder is asked for: few tokens, few choices, many faults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionOperation, Step, Submit
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

PROMPT = (2, 0, 1)
"""An odd number of tokens, so that it ends inside a block of two."""

PAIR_PROMPT = (1, 0, 1)
"""The same over two tokens, for requests side by side, whose paths multiply."""

THREE, TWO = DecodeRequest(PROMPT, 3, draft_length=2), DecodeRequest(PAIR_PROMPT, 2, draft_length=1)

CHANGING = Grammar(({0: 1, 1: 2}, {1: 0, 2: 1}, {0: 1, 2: 0}))
"""Allows two of three tokens, which ones depends on what came last."""

MODELS = {2: 2, 3: 24}
"""Seeds of the models of every run, by their number of tokens; of the first 300 they leave most sequences
possible in all situations."""

HASHED = 3
"""Seed of models that look at every token: what they draft first behind `PAIR_PROMPT` is often rejected."""

SEEDS = 2**31 - 1
"""Seeds of requests stay below this."""

LARGER_ROUNDS = 4
"""So many times all cases are tried again with other models, where there is time."""


@dataclass(frozen=True)
class Case:
    """One situation.

    Attributes
    ----------
    check : id of the check that it is for.
    title : for people; with the check it is its name.
    session : what is done; its seeds are replaced for every run.
    served : whether it is driven by submitting and stepping; if not, by ``decode``.
    larger : which round of larger runs it belongs to; 0 for those of every run.
    needs : capabilities beyond those of its check.
    far_sighted : whether its models look at every token, for caches that may hold a wrong one far back.
    """

    check: str
    title: str
    session: Session
    served: bool = False
    larger: int = 0
    needs: frozenset[str] = frozenset()
    far_sighted: bool = False

    @property
    def name(self) -> str:
        """Check and title."""
        return f"{self.check}: {self.title}"


def reseeded(session: Session, *names: int | str) -> Session:
    """The session with other seeds, which depend on the names."""
    operations = tuple(
        operation
        if isinstance(operation, Step | Abort)
        else msgspec.structs.replace(operation, seed=derived_key(*names, number) % SEEDS)
        for number, operation in enumerate(session.operations)
    )
    return msgspec.structs.replace(session, operations=operations)


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
            make, first = (hashed_models, HASHED) if case.far_sighted else (table_models, MODELS[size])
            target, draft = make(size, of_round if number else first)
            session = msgspec.structs.replace(case.session, target=target, draft=draft)
        else:
            session = msgspec.structs.replace(case.session, vocabulary_size=own_sizes[size])
        yield replace(case, title=f"{case.title}{again}", session=session, larger=number)


def _session(operations: Sequence[SessionOperation], vocabulary_size: int = 3) -> Session:
    return Session(tuple(operations), vocabulary_size)


def _decoded(check: str, title: str, request: DecodeRequest, vocabulary_size: int = 3) -> Case:
    return Case(check, title, _session([Submit(request)], vocabulary_size))


def _sampled(
    check: str, title: str, num_tokens: int, draft_length: int, sampling: SamplingParameters
) -> Case:
    request = DecodeRequest(PROMPT, num_tokens, draft_length=draft_length, sampling=sampling)
    return _decoded(check, title, request)


def _served(check: str, title: str, operations: Sequence[SessionOperation], size: int, *needs: str) -> Case:
    return Case(check, title, _session(operations, size), served=True, needs=frozenset(needs))


def _in_blocks_of_four(case: Case) -> Case:
    """Sequences that share the block at the end of their prompt have room in it for drafts of both."""
    session = msgspec.structs.replace(case.session, block_size=4)
    return replace(case, title=f"{case.title} in blocks of 4", session=session)


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

_ROUND_CASES = (
    _decoded(LAW, "no drafts, 2 tokens", DecodeRequest(PROMPT, 2)),
    _decoded(LAW, "1 draft a step, 3 tokens", DecodeRequest(PROMPT, 3, draft_length=1)),
    _decoded(LAW, "2 drafts a step, 3 tokens", THREE),
    _sampled(SAMPLING, "temperature and top-p", 3, 2, SamplingParameters(temperature=0.7, top_p=0.8)),
    _sampled(SAMPLING, "temperature and top-k", 3, 2, SamplingParameters(temperature=1.6, top_k=2)),
    _sampled(SAMPLING, "min-p and bias", 3, 1, SamplingParameters(min_p=0.3, logit_bias={0: 0.6, 2: -0.4})),
    _sampled(SAMPLING, "allowed tokens", 3, 2, SamplingParameters(allowed_tokens=frozenset({0, 2}))),
    _sampled(SAMPLING, "greedy", 4, 2, SamplingParameters(temperature=0.0)),
    _decoded(STOP, "2 drafts a step, 3 tokens", replace(THREE, stop=frozenset({1}))),
    _sampled(PENALTIES, "all three penalties", 3, 2, _ALL_PENALTIES),
    _decoded(GRAMMAR, "a mask that changes after each token, 3 tokens", replace(THREE, grammar=CHANGING)),
    replace(
        _decoded(SAMPLES, "2 samples with parameters and penalties", _OF_EACH, 2),
        needs=frozenset({"sampling", "penalties"}),
    ),
    _decoded(SAMPLES, "2 samples of 2 tokens", replace(TWO, samples=2), 2),
    _in_blocks_of_four(_decoded(SAMPLES, "2 samples of 3 tokens", _SHARING, 2)),
    _served(REQUESTS, "a random request among greedy ones", _AMONG_GREEDY, 2),
    _served(REQUESTS, "a request is aborted, another takes its place", _AFTER_ABORT, 2, "abort"),
    _served(REQUESTS, "two random requests", [Submit(TWO), Step(), Submit(TWO)], 2),
    replace(
        _served(
            REQUESTS,
            "a prompt that begins as another request went on",
            [Submit(TWO), Step(), Submit(DecodeRequest(_LONG_PROMPT, 2))],
            2,
        ),
        far_sighted=True,
    ),
    _served(FORK, "a fork after one step", [Submit(replace(TWO, num_tokens=3)), Step(), Fork(0)], 2),
    _served(FORK, "a fork before the first step", [Submit(TWO), Fork(0)], 2),
    _served(LOGPROBS, "2 drafts a step, 2 tokens", [Submit(replace(THREE, num_tokens=2))], 3),
    _served(LOGPROBS, "temperature and top-k", [Submit(replace(THREE, sampling=_WARM))], 3, "sampling"),
)

_LONGER_CASES = (
    _decoded(LAW, "1 draft a step, 5 tokens", DecodeRequest(PROMPT, 5, draft_length=1)),
    _sampled(PENALTIES, "repetition penalty", 3, 2, SamplingParameters(repetition_penalty=1.8)),
    _sampled(PENALTIES, "frequency penalty", 3, 2, SamplingParameters(frequency_penalty=0.9)),
    _served(REQUESTS, "two random requests at once", [Submit(TWO), Submit(TWO)], 2),
    _served(LOGPROBS, "2 drafts a step, 3 tokens", [Submit(THREE)], 3),
    _decoded(LAW, "3 drafts a step, 4 tokens", DecodeRequest(PROMPT, 4, draft_length=3)),
    _decoded(SAMPLES, "3 samples of 1 token", DecodeRequest(PROMPT, 1, draft_length=2, samples=3)),
    _decoded(SAMPLES, "2 samples of 2 tokens of three", DecodeRequest(PROMPT, 2, draft_length=1, samples=2)),
)
