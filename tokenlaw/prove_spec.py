"""Target-only decoding by a law of the next token: what emitted tokens are completed by, and compared with.

A speculative step emits one token or several. It is exact if, and only if, its tokens, continued by
target-only decoding to one length, have the law of target-only decoding (`tokenlaw.spec.steps`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tokenlaw.errors import BadUse, described
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.law import Law, Raised, sum_of

MOST_TEXTS = 300_000
"""Texts that are compared; with more of them only their beginnings are."""

_ROUNDING = 1e-5
"""How far from one the sum of a law of the next token may be: float32 softmax rounds."""

Sequences = tuple[Hashable, ...]
"""Tokens of one outcome."""


class NextToken:
    """The law of the next token, asked once for each text.

    Parameters
    ----------
    function : takes the tuple of tokens so far and returns probabilities: a list, an array or a tensor over
        tokens 0 .. V - 1, or a dictionary by token; None where the text has ended.
    name : how messages call it.
    alive : called now and then while laws are completed, which can take long.
    """

    def __init__(
        self, function: Callable[[Sequences], Any], name: str, alive: Callable[[], None] = lambda: None
    ) -> None:
        self._function, self._name, self._alive = function, name, alive
        self._known: dict[Sequences, Mapping[Hashable, Weight]] = {}

    def __call__(self, tokens: Sequences) -> Mapping[Hashable, Weight]:
        """Probabilities of the next token, without those that are zero; empty where the text has ended.

        Raises
        ------
        BadUse
            The function raises, or what it returns isn't a law.
        """
        if tokens not in self._known:
            self._alive()
            try:
                found = self._function(tokens)
            except Exception as error:
                raise BadUse(f"{self._name}({tokens}) raised {described(error)}") from error
            self._known[tokens] = self._law(tokens, found)
        return self._known[tokens]

    def can_emit(self, tokens: Sequences) -> bool:
        """Whether a text can begin with these tokens."""
        return all(token in self(tokens[:position]) for position, token in enumerate(tokens))

    def continued(
        self, tokens: Sequences, longest: int, opened: Set[Sequences]
    ) -> Iterator[tuple[Sequences, Weight]]:
        """All texts of ``longest`` tokens that begin so, or that end earlier, with their probabilities.

        Those that begin with tokens that aren't ``opened`` are one: these tokens, and ``...`` behind them.
        """
        self._alive()
        law = self(tokens) if len(tokens) < longest else {}
        if not law:
            yield tokens, 1
        elif tokens not in opened:
            yield (*tokens, ...), 1
        else:
            for token, weight in law.items():
                for whole, rest in self.continued((*tokens, token), longest, opened):
                    yield whole, weight * rest

    def _law(self, tokens: Sequences, found: Any) -> Mapping[Hashable, Weight]:
        """What the function returned, checked and without zeros; floats divided by their sum."""
        where = f"{self._name}({tokens})"
        weights = {token: _weight(where, token, weight) for token, weight in _pairs(where, found)}
        total = sum_of(weights.values())
        exact = isinstance(total, Fraction | int)
        if weights and not (total == 1 if exact else abs(float(total) - 1) <= _ROUNDING):
            off = f"instead of 1, a difference of {float(total - 1):.3g}"
            raise BadUse(f"{where}: the probabilities sum to {float(total):.9g} {off}")
        return {token: weight if exact else weight / total for token, weight in weights.items() if weight > 0}


def _pairs(where: str, found: Any) -> Iterator[tuple[Hashable, Any]]:
    """Tokens and their probabilities."""
    if hasattr(found, "tolist"):
        found = found.tolist()
    if found is None:
        return
    if isinstance(found, Mapping):
        yield from found.items()
    elif isinstance(found, Sequence) and not isinstance(found, str):
        yield from enumerate(found)
    else:
        raise BadUse(
            f"{where}: returned a {type(found).__name__}; expected the probabilities of the next token: a "
            "list, an array, a tensor or a dictionary"
        )


def _weight(where: str, token: Hashable, number: Any) -> Weight:
    """A probability as a number of Python's own; rational numbers stay what they are."""
    weight: Weight
    try:
        weight = number if isinstance(number, Fraction | int) else float(number)
    except (TypeError, ValueError):
        message = f"{where}: token {token!r} has the probability {number!r}, which is no number"
        raise BadUse(message) from None
    if not weight >= 0:  # written so that NaN is refused as well
        raise BadUse(f"{where}: token {token!r} has the probability {weight}")
    return weight


def tokens_of(outcome: Hashable) -> Sequences:
    """The tokens of an outcome: a single one, a sequence, or a batch of one sequence.

    >>> tokens_of(3), tokens_of((3, 1)), tokens_of(((3, 1),))
    ((3,), (3, 1), (3, 1))
    """
    if not isinstance(outcome, tuple):
        return (outcome,)
    return outcome[0] if len(outcome) == 1 and isinstance(outcome[0], tuple) else outcome


@dataclass(frozen=True)
class Completion:
    """What a program emits, continued by target-only decoding to one length.

    Where no outcome goes on, all are continued alike: texts that differ only there needn't be told apart.

    Attributes
    ----------
    next_token : the law of the next token.
    longest : length of the completed texts, in tokens.
    length : up to which they are told apart; less than ``longest`` where there are too many.
    opened : tokens from which some outcome goes on, as far as this length.
    """

    next_token: NextToken
    longest: int
    length: int
    opened: Set[Sequences]

    def __call__(self, outcomes: Iterable[tuple[Hashable, Weight]]) -> dict[Hashable, Weight]:
        """What outcomes with these probabilities become; what the target can't emit is left as it is.

        >>> next_token = NextToken(lambda tokens: [0.5, 0.5], "spec")
        >>> law = Law({(1,): 0.5, (0, 1): 0.5})
        >>> completion_of(law, next_token)(law.probabilities.items())
        {(1, Ellipsis): 0.5, (0, 1): 0.5}
        """
        parts: dict[Hashable, list[Weight]] = {}
        for outcome, weight in outcomes:
            for whole, share in self._wholes(outcome):
                parts.setdefault(whole, []).append(weight * share)
        return {whole: sum_of(weights) for whole, weights in parts.items()}

    def target(self) -> Law:
        """The law of target-only decoding."""
        return Law(self([((), 1)]))

    def _wholes(self, outcome: Hashable) -> Iterator[tuple[Hashable, Weight]]:
        if isinstance(outcome, Raised) or not self.next_token.can_emit(tokens := tokens_of(outcome)):
            yield outcome, 1
        else:
            yield from self.next_token.continued(tokens[: self.length], self.longest, self.opened)


def completion_of(law: Law, next_token: NextToken) -> Completion:
    """The completion of a law's outcomes to the longest of them.

    >>> law = Law({(1,): 0.5, (0, 1): 0.5})
    >>> completion_of(law, NextToken(lambda tokens: [0.5, 0.5], "spec")).target().probabilities
    {(0, 0): 0.25, (0, 1): 0.25, (1, Ellipsis): 0.5}
    """
    emitted = [tokens_of(outcome) for outcome in law.probabilities if not isinstance(outcome, Raised)]
    longest = max(map(len, emitted), default=0)
    possible = [tokens for tokens in emitted if next_token.can_emit(tokens)]
    opened: set[Sequences] = set()
    texts = 1
    for length in range(longest):
        further = {tokens[:length] for tokens in possible if len(tokens) > length}
        texts += sum(len(next_token(tokens)) - 1 for tokens in further)
        if texts > MOST_TEXTS:
            return Completion(next_token, longest, length, opened)
        opened |= further
    return Completion(next_token, longest, longest, opened)
