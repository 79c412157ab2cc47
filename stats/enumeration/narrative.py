"""A path of random choices in words, for people: as a speculative step where it is one beyond doubt.

Choices are drawn tokens and comparisons. They are told as drafts, acceptances and replacements only if all
readings of that kind that explain the tokens that came out agree; otherwise each choice is told for itself,
with the line of the program that made it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenlaw.stats.enumeration.choices import Draw, Node
from tokenlaw.stats.enumeration.deciding import Among
from tokenlaw.stats.enumeration.law import Raised

Line = Sequence[tuple[Node, int]]
"""Choices from the first one on, each with what was taken."""

_DRAFT = re.compile(r"draft \d+")
_COMPARISON = re.compile(r"(?P<test>.+ (?P<sign><=|>=|<|>) \S+?)( \(probability \S+\))?")


@dataclass(frozen=True)
class _Event:
    """One choice.

    Attributes
    ----------
    words : for people.
    test : of a comparison of a random number with another number, what came out; else empty.
    below : of a comparison, whether the random number was the smaller one.
    token : of a draw, what was drawn; None where that isn't known, as of a number in an interval.
    is_draft : whether it is named as a draft by whoever drew it.
    """

    words: str
    test: str = ""
    below: bool = False
    token: int | None = None
    is_draft: bool = False


@dataclass(frozen=True)
class _Reading:
    """How many drafts were accepted, and whether a small random number accepts."""

    accepted: int
    below_accepts: bool


def narrate(line: Line, outcome: Any) -> list[str]:
    """What happened on a path, one phrase for each thing.

    Parameters
    ----------
    line : the choices (`tokenlaw.stats.enumeration.choices.Node.line`).
    outcome : what the program returned; a sequence of tokens can be told as a speculative step.

    Examples
    --------
    >>> from tokenlaw.stats.enumeration.choices import Draw
    >>> node = Node(None, 0, [0.25, 0.75], Draw("random.choices"), 1.0, 0, 1.0)
    >>> narrate([(node, 1)], (1,))
    ['random.choices: 1 (probability 0.75)', 'outcome (1,)']
    """
    events = [_event(node, taken) for node, taken in line]
    if events and _is_tokens(outcome):
        told = _step(events, tuple(outcome))
        if told is not None:
            return told
    places = [f" at {node.place}" if node.place else "" for node, _ in line]
    told = [f"{event.words}{place}" for event, place in zip(events, places, strict=True)]
    return [*told, str(outcome) if isinstance(outcome, Raised) else f"outcome {outcome}"]


def _is_tokens(outcome: Any) -> bool:
    return isinstance(outcome, tuple) and bool(outcome) and all(type(token) is int for token in outcome)


def _event(node: Node, taken: int) -> _Event:
    words, question = node.question.words(taken, node.weights[taken]), node.question
    if isinstance(question, Draw | Among):
        value = question.values[taken] if isinstance(question, Among) else taken
        is_draft = _DRAFT.fullmatch(question.source) is not None
        return _Event(words, token=value if isinstance(value, int) else None, is_draft=is_draft)
    found = _COMPARISON.fullmatch(words)
    if found and len(node.weights) == 2:
        return _Event(words, test=found["test"], below=found["sign"] in ("<", "<="))
    return _Event(words)


def _step(events: list[_Event], tokens: tuple[int, ...]) -> list[str] | None:
    """The path as one speculative step; None unless all readings that fit agree."""
    steps = [_parted(events, len(events))]
    if events[-1].test:
        # The last comparison may have drawn one of two tokens.
        steps.append(_parted(events, len(events) - 1))
    readings = [(step, reading) for step in steps if step is not None for reading in step.readings(tokens)]
    if len({reading.accepted for _, reading in readings}) != 1:
        return None
    step, reading = readings[0]
    return step.told(tokens, reading, sure_of_tests=len(readings) == 1)


def _parted(events: list[_Event], tests_end: int) -> "_Step | None":
    """Drafts, comparisons among the first events, and what was drawn behind them."""
    tests = [at for at, event in enumerate(events[:tests_end]) if event.test]
    named = [at for at, event in enumerate(events) if event.is_draft]
    last = max([*named, *tests], default=-1)
    drawn = [at for at in range(last + 1) if not events[at].test]
    drafts = [token for at in named or drawn if (token := events[at].token) is not None]
    if not drafts or drawn != (named or drawn) or len(drafts) < max(len(drawn), len(tests)):
        return None
    added = [event.token for event in events[last + 1 :]]
    return _Step(drafts, [events[at] for at in tests], _owners(events[: last + 1], len(drafts)), added)


def _are_among(some: Sequence[int | None], others: Sequence[int | None]) -> bool:
    """Whether the tokens come in the others, in their order; one that isn't known may be any."""
    rest = iter(others)
    return all(any(token == other or None in (token, other) for other in rest) for token in some)


@dataclass(frozen=True)
class _Step:
    """Drafts, comparisons, for each comparison the draft that it is about, where that is plain, and draws."""

    drafts: list[int]
    tests: list[_Event]
    owners: list[int] | None
    added: list[int | None]

    def readings(self, tokens: tuple[int, ...]) -> list[_Reading]:
        """All that explain the tokens."""
        found = [one for one in self._deciding(tokens) if _are_among(tokens[one.accepted :], self.added)]
        # A token that is certain needn't have been drawn; then only the usual way of comparing is believed.
        return found or [
            one
            for one in self._deciding(tokens)
            if _are_among(self.added, tokens[one.accepted :])
            and one.below_accepts
            and tokens[one.accepted :][:1] != tuple(self.drafts[one.accepted :][:1])
        ]

    def _deciding(self, tokens: tuple[int, ...]) -> list[_Reading]:
        """All numbers of accepted drafts that the tokens begin with and the comparisons allow."""
        return [
            _Reading(accepted, below)
            for accepted in range(min(len(self.drafts), len(tokens) - 1) + 1)
            for below in (True, False)
            if list(tokens[:accepted]) == self.drafts[:accepted]
            and self._decide(accepted, below_accepts=below)
        ]

    def _decide(self, accepted: int, *, below_accepts: bool) -> bool:
        """Whether these comparisons can have accepted so many drafts, and no more."""
        passed = [test.below == below_accepts for test in self.tests]
        rejects = accepted < len(self.drafts)
        if self.owners is not None:
            answers = dict(zip(self.owners, passed, strict=True))
            return all(answers.get(at, True) for at in range(accepted)) and not (
                rejects and answers.get(accepted, False)
            )
        if False in passed:
            return rejects and passed.index(False) <= accepted
        return len(passed) <= accepted

    def _tested(self, reading: _Reading) -> dict[int, str]:
        """The comparison that decided about each draft, where it is known."""
        if self.owners is not None:
            return {owner: test.test for owner, test in zip(self.owners, self.tests, strict=True)}
        passed = [test.below == reading.below_accepts for test in self.tests]
        return {reading.accepted: self.tests[passed.index(False)].test} if False in passed else {}

    def told(self, tokens: tuple[int, ...], reading: _Reading, *, sure_of_tests: bool) -> list[str]:
        """The step in words, with what decided about each draft if that is sure."""
        accepted, phrases = reading.accepted, list[str]()
        tested = self._tested(reading) if sure_of_tests else {}
        for at, draft in enumerate(self.drafts[: accepted + 1]):
            how = f" ({tested[at]})" if at in tested else ""
            phrases.append(f"draft {draft}, {'accepted' if at < accepted else 'rejected'}{how}")
        added, *further = tokens[accepted:]
        replaces = accepted < len(self.drafts)
        phrases.append(f"token {added} replaces it" if replaces else f"token {added} follows the drafts")
        return phrases + [f"then one more token {token} was emitted" for token in further]


def _owners(events: list[_Event], drafts: int) -> list[int] | None:
    """Which draft each comparison is about, where that is plain: one follows each draft, or all drafts."""
    owners, drawn = list[int](), 0
    for event in events:
        if event.test:
            owners.append(drawn - 1)
        else:
            drawn += 1
    if len(set(owners)) == len(owners) and (len(owners) > 1 or drafts == 1):
        return owners
    return list(range(drafts)) if len(owners) == drafts else None
