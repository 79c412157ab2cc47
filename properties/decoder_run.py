"""Running a session on a decoder: every answer is compared with what target-only decoding gives."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tokenlaw.properties.decoder_blame import Inquiry
from tokenlaw.properties.decoder_checks import (
    BLOCKS,
    BY_RULE,
    GREEDY,
    LOGPROBS,
    SAMPLES,
    SPECULATION,
    SUPPORT,
    check_of,
)
from tokenlaw.properties.decoder_expected import (
    can_be_asked,
    certain_tokens,
    impossible_at,
    is_close,
    what_matters,
)
from tokenlaw.properties.running import Outcome, Violation
from tokenlaw.properties.settled import settled
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.decoders import built_decoder, target_of
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest, logprobs
from tokenlaw.spec.serving import Answer, Served, carry_out
from tokenlaw.spec.sessions import Session, SessionError, Submit
from tokenlaw.spec.shown_tokens import IllegalAnswer
from tokenlaw.spec.verdicts import Check

_ASKED = {
    GREEDY: "request without drafts",
    SPECULATION: "request with drafts",
    SAMPLES: "request with samples",
}


@settled
def run_session(
    factory: Callable[[Any], Any],
    session: Session,
    capabilities: frozenset[str],
    muted: frozenset[str] = frozenset(),
) -> Outcome:
    """Carry a session out on a fresh decoder and judge every answer; what a muted check asks isn't judged.

    A request without an answer (somewhere no token is possible) isn't submitted. A request of certain tokens
    that is answered wrongly is asked again alone: if that goes wrong as well, the request breaks the check of
    its own kind; else ``decoder/fork`` if it was forked, or ``decoder/bystanders``.

    Raises
    ------
    ContractError, SessionError
        The factory refuses, or ``target_law`` gives no law. Whatever else the decoder raises against its
        contract is `Outcome.crash`.
    """
    outcome = Outcome()
    try:
        _Judge(factory, capabilities, muted, outcome).judge(session)
    except (ContractError, SessionError):
        raise
    except Exception:
        outcome.crash = traceback.format_exc()
    return outcome


@dataclass(frozen=True)
class _Judge:
    factory: Callable[[Any], Any]
    capabilities: frozenset[str]
    muted: frozenset[str]
    outcome: Outcome
    expected: dict[int, Tokens | None] = field(default_factory=dict)

    def judge(self, session: Session) -> None:
        decoder = self._built(session)
        model = target_of(decoder, session.config, self.capabilities)
        places = [
            place
            for place, operation in enumerate(session.operations)
            if not isinstance(operation, Submit) or self._expect(model, operation.request)
        ]
        asked = msgspec.structs.replace(
            session, operations=tuple(session.operations[place] for place in places)
        )
        places.append(len(session.operations))
        try:
            served = carry_out(decoder, asked, self.capabilities)
        except IllegalAnswer as error:
            self.outcome.operations = error.operation
            expected = BY_RULE[error.rule].title
            self._report(BY_RULE[error.rule], places[error.operation], expected, str(error))
            return
        self.outcome.operations = len(asked.operations)
        self.outcome.exercised.update(served.events)
        for number, answer in enumerate(served.answers):
            if not answer.refused:
                self._answer(asked, model, served, number, places[answer.operation])
        if served.free_before != served.free_after:
            expected = f"{served.free_before} free blocks, as before the first operation"
            self._report(BLOCKS, places[-1], expected, f"{served.free_after} free blocks")
        self._count_sharing(asked, served)

    def _built(self, session: Session) -> Any:
        return built_decoder(self.factory, "the decoder", session.config)

    def _expect(self, model: LanguageModel[float], request: DecodeRequest) -> bool:
        """Remember the tokens of a request, None where they aren't certain; false if it can't be judged.

        Where greedy decoding nearly has a tie, rounding decides.
        """
        try:
            expected = self.expected[id(request)] = certain_tokens(model, request)
        except ValueError:
            return False
        greedy = request.sampling.temperature == 0
        return expected is not None or (not greedy and can_be_asked(model, request))

    def _answer(
        self, session: Session, model: LanguageModel[float], served: Served, number: int, place: int
    ) -> None:
        answer = served.answers[number]
        expected = self.expected[id(answer.request)]
        if expected is None:
            self._random(model, answer, number, place)
            return
        check = check_of(answer.request)
        self._count(model, answer.request, check, expected)
        for tokens in answer.tokens:
            if tokens != (expected[: len(tokens)] if answer.aborted else expected):
                inquiry = Inquiry(self._built, self.capabilities, session, model)
                blamed = inquiry.blamed(answer, expected, check, self.muted)
                position = _first_difference(tokens, expected)
                wanted = f"{told(expected)}, as target-only decoding gives"
                self._report(blamed, place, wanted, told(tokens), number, position)
                return
        self._logprobs(answer, [(0.0,) * len(tokens) for tokens in answer.tokens], number, place)

    def _count(
        self, model: LanguageModel[float], request: DecodeRequest, check: Check, expected: Tokens
    ) -> None:
        counted = self.outcome.exercised
        if check in _ASKED:
            counted[_ASKED[check]] += 1
        counted["stop token reached"] += expected[-1] in request.stop
        counted.update(what_matters(model, request, expected))

    def _random(self, model: LanguageModel[float], answer: Answer, number: int, place: int) -> None:
        """A request whose tokens aren't certain: each must be possible."""
        self.outcome.exercised["random request"] += 1
        for tokens in answer.tokens:
            position = impossible_at(model, answer.request, tokens)
            if position is not None:
                expected = f"after {told(tokens[:position])} a token that is possible there, or the end"
                self._report(SUPPORT, place, expected, told(tokens), number, position)
                return
        if answer.logprobs is not None:
            right = [logprobs(model, answer.request, tokens) for tokens in answer.tokens]
            self._logprobs(answer, right, number, place)

    def _logprobs(self, answer: Answer, right: Sequence[tuple[float, ...]], number: int, place: int) -> None:
        for tokens, found, expected in zip(answer.tokens, answer.logprobs or (), right, strict=False):
            self.outcome.exercised["log-probability"] += len(found)
            for position, (one, other) in enumerate(zip(found, expected, strict=True)):
                if not is_close(one, other):
                    wanted = f"{other:.6f} for token {tokens[position]}"
                    self._report(LOGPROBS, place, wanted, f"{one:.6f}", number, position)
                    return

    def _count_sharing(self, session: Session, served: Served) -> None:
        """How many requests have a block of their prompt in common with an earlier one."""
        seen: set[Tokens] = set()
        for answer in served.answers:
            head = answer.request.prompt[: session.block_size]
            self.outcome.exercised["shared prompt"] += head in seen and answer.origin is None
            seen.add(head)

    def _report(
        self,
        check: Check,
        place: int,
        expected: str,
        found: str,
        number: int | None = None,
        position: int | None = None,
    ) -> None:
        if check.id not in self.muted:
            self.outcome.violations.append(Violation(check.id, place, expected, found, number, position))


def told(tokens: Tokens) -> str:
    """Tokens in words.

    >>> told((1, 2)), told(())
    ('tokens 1 2', 'no token')
    """
    return f"tokens {' '.join(map(str, tokens))}" if tokens else "no token"


def _first_difference(found: Tokens, expected: Tokens) -> int:
    pairs = enumerate(zip(found, expected, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(found), len(expected)))
