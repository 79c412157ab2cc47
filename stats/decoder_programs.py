"""One situation carried out on a fresh decoder, and what came of it as the outcome of a program."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Protocol

from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest, logprobs
from tokenlaw.spec.serving import Served, carry_out
from tokenlaw.spec.sessions import Abort, Fork, Submit
from tokenlaw.spec.shown_tokens import IllegalAnswer
from tokenlaw.stats.decoder_cases import Case, reseeded
from tokenlaw.stats.decoder_checks import LOGPROBS

LOGPROB_ROUNDING = 1e-4
"""Log-probabilities may differ by this much: they are those of single precision, after a softmax."""

Make = Callable[[DecoderConfig], Any]
"""Builds a decoder."""


class Watch(Protocol):
    """Sees what a decoder does."""

    def over(self, decoder: Any) -> Any:
        """The decoder, watched."""
        ...


class OtherWayError(Exception):
    """The session went another way than planned: a request had ended before its fork, or was refused."""


@dataclass(frozen=True)
class Outcome:
    """What one run gave.

    Attributes
    ----------
    tokens : of every sample of every request that wasn't aborted, forks included, in order.
    given : for each fork the tokens that it had from its origin.
    remark : what was wrong about it, whatever its law; empty if nothing was.
    """

    tokens: tuple[Tokens, ...] = ()
    given: tuple[Tokens, ...] = ()
    remark: str = ""

    def __str__(self) -> str:
        return self.remark or " and ".join(str(list(sample)) for sample in self.tokens)


@dataclass(frozen=True)
class Part:
    """A request, or a fork, as the session plans it.

    Attributes
    ----------
    origin : number of the part that it is forked from; None if it is submitted.
    aborted : whether it is ended early.
    """

    request: DecodeRequest
    origin: int | None = None
    aborted: bool = False


def planned(case: Case) -> list[Part]:
    """The parts of a case, if no request ends before it is forked or aborted."""
    parts: list[Part] = []
    for operation in case.session.operations:
        running = [number for number, part in enumerate(parts) if not part.aborted]
        if isinstance(operation, Submit):
            parts.append(Part(operation.request))
        elif isinstance(operation, Fork):
            single = [number for number in running if parts[number].request.samples == 1]
            origin = single[operation.request_index % len(single)]
            parts.append(Part(parts[origin].request, origin))
        elif isinstance(operation, Abort):
            ended = running[operation.request_index % len(running)]
            parts[ended] = Part(parts[ended].request, parts[ended].origin, aborted=True)
    return parts


class DecoderProgram:
    """Carries a case out: called without arguments, for one path or one sample.

    Every run has other seeds. For who draws random numbers where they can be decided that changes nothing.

    Parameters
    ----------
    make : builds the decoder.
    case : what is asked.
    model : the target's law, as the spec sees it.
    capabilities : of the decoder.
    seed : of the run.
    first : number of the first run; a run's seeds depend on its number.
    afresh : whether every run has a decoder of its own; else one serves all, one after the other.

    Attributes
    ----------
    events : what happened in all runs, see `tokenlaw.spec.serving.carry_out`.
    """

    def __init__(
        self,
        make: Make,
        case: Case,
        model: LanguageModel[float],
        capabilities: frozenset[str],
        *,
        seed: int,
        first: int = 0,
        afresh: bool = True,
    ) -> None:
        self.case, self.model, self.plan = case, model, planned(case)
        self._make, self._config = make, case.session.config
        self._declared = capabilities
        self._capabilities = capabilities if case.served else frozenset[str]()
        self._seed, self._runs, self._afresh = seed, count(first), afresh
        self._right: dict[tuple[int, Tokens], tuple[float, ...]] = {}
        self.events: Counter[str] = Counter()

    def watched(self, watch: Watch) -> "DecoderProgram":
        """The same program, whose decoders are watched."""
        make, model = self._make, self.model

        def watched(config: DecoderConfig) -> Any:
            return watch.over(make(config))

        return DecoderProgram(watched, self.case, model, self._declared, seed=self._seed)

    def __call__(self) -> Outcome:
        """The outcome of the next run; what the decoder raises is raised."""
        session = reseeded(self.case, self._seed, next(self._runs))
        decoder = self._make(self._config) if self._afresh else self._kept
        try:
            served = carry_out(decoder, session, self._capabilities)
        except IllegalAnswer as error:
            return Outcome(remark=f"no legal answer: {error}")
        self._require_plan(served)
        self.events.update(served.events)
        kept = [answer for answer in served.answers if not answer.aborted]
        return Outcome(
            tuple(sample for answer in kept for sample in answer.tokens),
            tuple(answer.given for answer in served.answers if answer.origin is not None),
            self._wrong_logprob(served) if self.case.check == LOGPROBS else "",
        )

    @cached_property
    def _kept(self) -> Any:
        return self._make(self._config)

    def _require_plan(self, served: Served) -> None:
        found = [Part(one.request, one.origin, one.aborted) for one in served.answers if not one.refused]
        if found != self.plan:
            raise OtherWayError(
                "a request was refused, or had ended before it could be forked or aborted: the law of that "
                "isn't known"
            )

    def _wrong_logprob(self, served: Served) -> str:
        """The first log-probability that isn't the right one, in words; without the number, which varies."""
        for number, answer in enumerate(served.answers):
            for tokens, shown in zip(answer.tokens, answer.logprobs or (), strict=False):
                right = self._logprobs(number, answer.request, tokens)
                for position, (one, other) in enumerate(zip(shown, right, strict=True)):
                    if not (one == other or abs(one - other) <= LOGPROB_ROUNDING):
                        return _unlike(position, tokens, one, other)
        return ""

    def _logprobs(self, number: int, request: DecodeRequest, tokens: Tokens) -> tuple[float, ...]:
        """Those of the spec, kept: many paths lead to the same tokens."""
        known = self._right.get((number, tokens))
        if known is None:
            known = self._right[number, tokens] = logprobs(self.model, request, tokens)
        return known


def _unlike(position: int, tokens: Tokens, shown: float, right: float) -> str:
    exact = f"{right:.4f}, of probability {math.exp(right):.4g}" if right > -math.inf else "minus infinity"
    return (
        f"token {tokens[position]} after {list(tokens[:position])} has the log-probability {shown:.4f} "
        f"instead of {exact}"
    )
