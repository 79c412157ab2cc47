"""Which check a wrong answer breaks: the request is asked again, alone, and with less."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tokenlaw.properties.decoder_checks import BYSTANDERS, FORK, check_of, with_one_feature
from tokenlaw.properties.decoder_expected import certain_tokens
from tokenlaw.spec.decoder_contract import Decoder
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.serving import Answer, Served, carry_out
from tokenlaw.spec.sessions import Fork, Session, SessionOperation, Step, Submit
from tokenlaw.spec.shown_tokens import IllegalAnswer
from tokenlaw.spec.verdicts import Check

_SEEDS = 4
"""How often a request is asked alone, each time with another seed: drafts may be drawn."""


@dataclass(frozen=True)
class Inquiry:
    """Asks fresh decoders about a request of one session that was answered wrongly.

    Attributes
    ----------
    build : a decoder for a session.
    capabilities : of the decoders.
    session : where the answer was wrong.
    model : the target.
    """

    build: Callable[[Session], Decoder]
    capabilities: frozenset[str]
    session: Session
    model: LanguageModel[float]

    def blamed(self, answer: Answer, expected: Tokens, check: Check, muted: frozenset[str]) -> Check:
        """The check to be blamed.

        It is ``check``, that of the request itself, if the request is answered wrongly alone as well; of
        several features the first that does it without the others. Else it is ``decoder/fork``, if a fork
        alone does it, or ``decoder/bystanders``. Nothing is asked where all that may come of it is muted.
        """
        in_company = FORK if answer.origin is not None or answer.forked else BYSTANDERS
        single = {check_of(one).id for one in with_one_feature(answer.request)}
        if muted >= {check.id, in_company.id, BYSTANDERS.id} | single:
            return check
        if self._is_wrong_alone(answer.request, expected):
            return self._feature_to_blame(answer.request) or check
        return (
            in_company
            if in_company is BYSTANDERS or self._is_wrong_in_family(answer, expected)
            else BYSTANDERS
        )

    def _feature_to_blame(self, request: DecodeRequest) -> Check | None:
        for single in with_one_feature(request):
            try:
                expected = certain_tokens(self.model, single)
            except ValueError:
                continue
            if expected is not None and self._is_wrong_alone(single, expected):
                return check_of(single)
        return None

    def _is_wrong_alone(self, request: DecodeRequest, expected: Tokens) -> bool:
        """Whether a request that has a decoder for itself is answered wrongly."""
        return any(self._is_wrong((Submit(request, seed),), expected) for seed in range(_SEEDS))

    def _is_wrong_in_family(self, answer: Answer, expected: Tokens) -> bool:
        """Whether a fork, or what was forked, is answered wrongly where nobody else is there."""
        given = max((answer.given, *answer.forked), key=len)
        for seed in range(_SEEDS):
            first, fork = Submit(answer.request, seed), Fork(0, seed + _SEEDS)
            for steps in range(len(given) + 2):
                if self._is_wrong((first, *(Step() for _ in range(steps)), fork), expected):
                    return True
        return False

    def _is_wrong(self, operations: tuple[SessionOperation, ...], expected: Tokens) -> bool:
        served = self._served(msgspec.structs.replace(self.session, operations=operations))
        return served is None or any(set(answer.tokens) != {expected} for answer in served.answers)

    def _served(self, session: Session) -> Served | None:
        """What the session gives; None if the decoder breaks the protocol."""
        try:
            return carry_out(self.build(session), session, self.capabilities)
        except IllegalAnswer:
            return None
