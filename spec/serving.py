"""Carrying a session out on a decoder, and watching that it keeps to the protocol of its contract."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.capabilities import probe_capabilities
from tokenlaw.spec.contracts import DECODER, OutOfBlocks
from tokenlaw.spec.decoder_contract import Decoder
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, is_finished
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionOperation, Step, Submit, surely_fits
from tokenlaw.spec.shown_tokens import IllegalAnswer, fates_of_drafts, has_ended, shown_logprobs, shown_tokens

PATIENCE = 16
"""So many steps in a row in which nothing grows are too many, while there is something unfinished."""


@dataclass
class Answer:
    """What became of one request, or of one fork.

    Attributes
    ----------
    request : what was asked for; for a fork, what its origin was asked for.
    tokens : generated tokens of each sample, without the prompt.
    operation : place in the session of the operation that brought it.
    origin : number of the answer that it was forked from; None if it was submitted.
    given : tokens that it had when it was forked.
    forked : tokens that it had each time when another one was forked from it.
    refused : whether the decoder said that it can never fit.
    aborted : whether it was ended before its end; it has the tokens that were shown last.
    logprobs : for each token of each sample; None without the capability, and for what was aborted.
    joined : whether others were generating when it came.
    """

    request: DecodeRequest
    operation: int
    tokens: tuple[Tokens, ...] = ()
    origin: int | None = None
    given: Tokens = ()
    forked: list[Tokens] = field(default_factory=list)
    refused: bool = False
    aborted: bool = False
    logprobs: tuple[tuple[float, ...], ...] | None = None
    joined: bool = False


@dataclass(frozen=True)
class Served:
    """What carrying out a session showed.

    Attributes
    ----------
    answers : one for each request and each fork, in the order in which they came.
    events : how often what happened; names are those of `carry_out`.
    free_before, free_after : free blocks before the first operation and at the end; None without the
        capability.
    """

    answers: tuple[Answer, ...]
    events: Counter[str]
    free_before: int | None
    free_after: int | None


def carry_out(decoder: Decoder, session: Session, capabilities: frozenset[str] | None = None) -> Served:
    """Do what the session says, then steps until every request has ended.

    Operations that the decoder hasn't the capabilities for do nothing; without ``requests`` only submitted
    requests are decoded, one after the other.

    Parameters
    ----------
    decoder : a fresh one, built from ``session.config``.
    capabilities : of the decoder; those that its members show if None.

    Returns
    -------
    Served
        Events are ``submit``, ``fork``, ``abort``, ``step``; ``join`` (submitted while others generate),
        ``leave`` (ended while others generate), ``wait`` (without tokens after a step in which others grew),
        ``refused``, ``fork refused``; ``several samples``; ``stop`` (a sample ended with a stop token); where
        steps are seen, what `fates_of_drafts` says of each.

    Raises
    ------
    IllegalAnswer
        The decoder broke the protocol.

    Examples
    --------
    >>> class Zeros:
    ...     def decode(self, request, *, seed):
    ...         return [[0] * request.num_tokens] * request.samples
    >>> session = Session((Submit(DecodeRequest(prompt=(1,), num_tokens=2)),), vocabulary_size=2)
    >>> carry_out(Zeros(), session).answers[0].tokens
    ((0, 0),)
    """
    found = probe_capabilities(DECODER, decoder) if capabilities is None else capabilities
    serving = _Serving(decoder, session, found)
    before = serving.free_blocks()
    try:
        for operation in session.operations:
            serving.do(operation)
            serving.at += 1
        serving.run_to_the_end()
    except IllegalAnswer as error:
        error.operation = serving.at
        raise
    return Served(tuple(serving.answers), serving.events, before, serving.free_blocks())


class _Serving:
    """A session under way; ``live`` holds the unfinished answers, in order of submission, with handles."""

    def __init__(self, decoder: Any, session: Session, capabilities: frozenset[str]) -> None:
        self.decoder = decoder
        self.session = session
        self.can = capabilities
        self.answers: list[Answer] = []
        self.live: list[tuple[Answer, Any]] = []
        self.ended: list[tuple[Answer, Any]] = []
        self.events: Counter[str] = Counter()
        self.idle = 0
        self.at = 0

    def free_blocks(self) -> int | None:
        return int(self.decoder.num_free_blocks()) if "free-blocks" in self.can else None

    def do(self, operation: SessionOperation) -> None:
        """One operation, if it means something here."""
        match operation:
            case Submit(request, seed):
                take = self._submit if "requests" in self.can else self._decode
                take(Answer(request, self.at, ((),) * request.samples), seed)
            case Step() if self.live:
                self._step()
            case Fork(index, seed) if "fork" in self.can:
                single = [(answer, handle) for answer, handle in self.live if answer.request.samples == 1]
                if single:
                    self._fork(*single[index % len(single)], seed)
            case Abort(index) if "abort" in self.can and self.live:
                self._abort(index % len(self.live))

    def run_to_the_end(self) -> None:
        """Steps until all has ended, and a last look at it."""
        while self.live:
            self._step()
        for answer, handle in self.ended:
            given = self.decoder.generated(handle)
            tokens = shown_tokens(answer.request, given, answer.tokens, self.session.vocabulary_size)
            if tokens != answer.tokens or not self.decoder.is_finished(handle):
                text = f"had ended with {answer.tokens} and is {tokens} at the end of the session"
                raise IllegalAnswer("protocol", f"the request of operation {answer.operation + 1} {text}")

    def _decode(self, answer: Answer, seed: int) -> None:
        self._take(answer)
        given = self.decoder.decode(answer.request, seed=seed)
        answer.tokens = shown_tokens(answer.request, given, answer.tokens, self.session.vocabulary_size)
        self._require_ended(answer)
        self._count_end(answer)

    def _submit(self, answer: Answer, seed: int) -> None:
        answer.joined = any(any(other.tokens) for other, _ in self.live)
        self._take(answer)
        self.events["join"] += answer.joined
        try:
            handle = self.decoder.submit(answer.request, seed=seed)
        except OutOfBlocks as error:
            answer.refused = True
            self.events["refused"] += 1
            if surely_fits(answer.request, self.session):
                raise IllegalAnswer("progress", f"OutOfBlocks for a request that fits: {error}") from error
            return
        self.live.append((answer, handle))
        self.idle = 0
        self._look(answer, handle)

    def _take(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.events["submit"] += 1
        self.events["several samples"] += answer.request.samples > 1

    def _fork(self, origin: Answer, handle: Any, seed: int) -> None:
        (given,) = origin.tokens
        try:
            child = self.decoder.fork(handle, seed=seed)
        except OutOfBlocks:
            self.events["fork refused"] += 1
            return
        origin.forked.append(given)
        answer = Answer(origin.request, self.at, (given,), self.answers.index(origin), given, joined=True)
        self.answers.append(answer)
        self.live.append((answer, child))
        self.events["fork"] += 1
        self.events["fork with tokens"] += bool(given)
        self.idle = 0
        for one, its_handle in (self.live[-1], (origin, handle)):
            self._look(one, its_handle)

    def _abort(self, place: int) -> None:
        answer, handle = self.live.pop(place)
        self.decoder.abort(handle)
        answer.aborted = True
        self.events["abort"] += 1
        self.idle = 0

    def _step(self) -> None:
        """One step, and a look at everything that isn't finished."""
        self.decoder.step()
        self.events["step"] += 1
        grown = []
        for answer, handle in tuple(self.live):
            before = answer.tokens
            if self._look(answer, handle):
                grown.append(answer)
            self.events.update(fates_of_drafts(answer.request, before, answer.tokens))
        self.events["wait"] += bool(grown) and any(not any(answer.tokens) for answer, _ in self.live)
        self.idle = 0 if grown else self.idle + 1
        if self.live and self.idle >= PATIENCE:
            waiting = ", ".join(f"operation {answer.operation + 1}" for answer, _ in self.live)
            raise IllegalAnswer("progress", f"nothing grew in {self.idle} steps; unfinished: {waiting}")

    def _look(self, answer: Answer, handle: Any) -> bool:
        """Take in the tokens of an unfinished answer and whether it ended; true if it grew."""
        given = self.decoder.generated(handle)
        tokens = shown_tokens(answer.request, given, answer.tokens, self.session.vocabulary_size)
        grew, answer.tokens = tokens != answer.tokens, tokens
        finished = bool(self.decoder.is_finished(handle))
        if finished:
            self._require_ended(answer)
            if "logprobs" in self.can:
                answer.logprobs = shown_logprobs(self.decoder.logprobs(handle), tokens)
            self.live = [(other, its) for other, its in self.live if other is not answer]
            self.ended.append((answer, handle))
            self._count_end(answer)
        elif all(is_finished(answer.request, sample) for sample in tokens):
            raise IllegalAnswer("protocol", f"is_finished says no, but every sample has ended: {tokens}")
        return grew or finished

    def _require_ended(self, answer: Answer) -> None:
        for number, sample in enumerate(answer.tokens):
            if not has_ended(answer.request, sample):
                wanted = f"{answer.request.num_tokens} tokens or a stop token"
                raise IllegalAnswer("protocol", f"sample {number} ended with {sample}, before {wanted}")

    def _count_end(self, answer: Answer) -> None:
        self.events["leave"] += any(any(other.tokens) for other, _ in self.live)
        self.events["stop"] += any(sample[-1] in answer.request.stop for sample in answer.tokens if sample)
