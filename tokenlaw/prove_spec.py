"""Target-only decoding by a law of the next token: what emitted tokens are completed by, and compared with.

A speculative step emits one token or several. It is exact if, and only if, its tokens, continued by
target-only decoding to one length, have the law of target-only decoding (`tokenlaw.spec.steps`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tokenlaw.errors import BadUse, described
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.law import Law, Raised, sum_of

MOST_SEQUENCES = 300_000
"""Sequences of tokens that a completed law may have."""

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

    def continued(self, tokens: Sequences, longest: int) -> Iterator[tuple[Sequences, Weight]]:
        """All texts of ``longest`` tokens that begin so, or that end earlier, with their probabilities."""
        self._alive()
        law = self(tokens) if len(tokens) < longest else {}
        if not law:
            yield tokens, 1
        for token, weight in law.items():
            for whole, rest in self.continued((*tokens, token), longest):
                yield whole, weight * rest

    def _law(self, tokens: Sequences, found: Any) -> Mapping[Hashable, Weight]:
        """What the function returned, checked and without zeros; floats divided by their sum."""
        where = f"{self._name}({tokens})"
        weights = {token: _weight(where, token, weight) for token, weight in _pairs(where, found)}
        total = sum_of(weights.values())
        exact = isinstance(total, Fraction | int)
        if weights and not (total == 1 if exact else abs(float(total) - 1) <= _ROUNDING):
            raise BadUse(f"{where}: the probabilities sum to {float(total):.9g} instead of 1")
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


def _weight(where: str, token: Hashable, weight: Any) -> Weight:
    """A probability as a number of Python's own; rational numbers stay what they are."""
    if not isinstance(weight, Fraction | int):
        try:
            weight = float(weight)
        except (TypeError, ValueError):
            message = f"{where}: token {token!r} has the probability {weight!r}, which is no number"
            raise BadUse(message) from None
    if not weight >= 0:  # written so that NaN is refused as well
        raise BadUse(f"{where}: token {token!r} has the probability {weight}")
    return weight  # type: ignore[no-any-return]


def tokens_of(outcome: Hashable) -> Sequences:
    """The tokens of an outcome: a single one, a sequence, or a batch of one sequence.

    >>> tokens_of(3), tokens_of((3, 1)), tokens_of(((3, 1),))
    ((3,), (3, 1), (3, 1))
    """
    if not isinstance(outcome, tuple):
        return (outcome,)
    return outcome[0] if len(outcome) == 1 and isinstance(outcome[0], tuple) else outcome


def completed(law: Law, next_token: NextToken) -> tuple[Law, Law, int]:
    """A law of emitted tokens completed to the longest length that occurs, the target-only law, that length.

    What the target can't emit at all is left as it is.

    Raises
    ------
    BadUse
        There are too many sequences of this length.
    """
    longest = max((len(tokens_of(found)) for found in law.probabilities if not _failed(found)), default=0)
    whole = completed_weights(law.probabilities.items(), next_token, longest)
    target: dict[Hashable, Weight] = {}
    for tokens, weight in next_token.continued((), longest):
        target[tokens] = weight
        _limit(len(target), longest)
    return Law(whole, law.unexplored, law.paths, law.seconds), Law(target), longest


def completed_weights(
    outcomes: Iterable[tuple[Hashable, Weight]], next_token: NextToken, longest: int
) -> dict[Hashable, Weight]:
    """What outcomes with these probabilities become when all are completed to one length.

    >>> completed_weights([((1,), 0.5), ((0, 1), 0.5)], NextToken(lambda tokens: [0.5, 0.5], "spec"), 2)
    {(1, 0): 0.25, (1, 1): 0.25, (0, 1): 0.5}
    """
    parts: dict[Hashable, list[Weight]] = {}
    for outcome, weight in outcomes:
        for whole, share in _wholes(outcome, next_token, longest):
            parts.setdefault(whole, []).append(weight * share)
            _limit(len(parts), longest)
    return {whole: sum_of(weights) for whole, weights in parts.items()}


def _wholes(outcome: Hashable, next_token: NextToken, longest: int) -> Iterator[tuple[Hashable, Weight]]:
    if _failed(outcome) or not next_token.can_emit(tokens := tokens_of(outcome)):
        yield outcome, 1
    else:
        yield from next_token.continued(tokens, longest)


def _failed(outcome: Hashable) -> bool:
    return isinstance(outcome, Raised)


def _limit(sequences: int, length: int) -> None:
    if sequences > MOST_SEQUENCES:
        raise BadUse(
            f"there are more than {MOST_SEQUENCES:,} sequences of {length} tokens, the longest that the "
            "program returned; let it emit fewer tokens, or over a smaller vocabulary"
        )
