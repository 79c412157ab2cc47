"""A decoder that says, token by token, what it was told to say."""

from collections.abc import Callable, Sequence
from math import log

from tokenlaw.spec.contracts import OutOfBlocks
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest

CAPABILITIES = frozenset({"requests", "abort", "fork"})
"""What a `TokenServer` can do without being told more."""

Answer = Callable[[DecodeRequest, int], Sequence[Tokens] | None]
"""What a request with a seed gets, a text for each sample; None is refused."""


class TokenServer:
    """Every request grows by a token a step.

    Parameters
    ----------
    answer : what requests get.
    fork : what a fork gets in place of its origin's text, which it is called with, the steps so far and a
        seed; what was given is always kept.
    free : what is said of free blocks, first and later.
    probability : of each token, at each position, by which log-probabilities are told.
    """

    def __init__(
        self,
        answer: Answer,
        fork: Callable[[Tokens, int, int], Tokens] = lambda text, steps, seed: text,
        free: tuple[int, int] = (4, 4),
        probability: Callable[[int], float] = lambda position: 1.0,
    ) -> None:
        self.answer, self.fork_answer, self.probability = answer, fork, probability
        self.free = list(free)
        self.texts: list[Sequence[Tokens]] = []
        self.lengths: list[int] = []

    def decode(self, request: DecodeRequest, *, seed: int) -> Sequence[Tokens] | None:
        return self.answer(request, seed)

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        texts = self.answer(request, seed)
        if texts is None:
            raise OutOfBlocks("full")
        self.texts.append(texts)
        self.lengths.append(0)
        return len(self.texts) - 1

    def step(self) -> None:
        self.lengths = [length + 1 for length in self.lengths]

    def generated(self, handle: int) -> list[Tokens]:
        return [text[: self.lengths[handle]] for text in self.texts[handle]]

    def is_finished(self, handle: int) -> bool:
        return self.lengths[handle] >= max(map(len, self.texts[handle]))

    def abort(self, handle: int) -> None:
        self.texts[handle] = ()

    def fork(self, handle: int, *, seed: int) -> int:
        (text,) = self.texts[handle]
        length = self.lengths[handle]
        self.texts.append([text[:length] + self.fork_answer(text, length, seed)[length:]])
        self.lengths.append(length)
        return len(self.texts) - 1

    def logprobs(self, handle: int) -> list[list[float]]:
        return [[log(self.probability(place)) for place in range(len(one))] for one in self.texts[handle]]

    def num_free_blocks(self) -> int:
        return self.free.pop(0)
