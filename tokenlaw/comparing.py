"""What changed between two reports, whatever they are reports of."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tokenlaw.html_data import KNOWN
from tokenlaw.spec.verdicts import PROBED, PROVED, SAMPLED, Verdict

ABSENT = "not there"
"""Said in place of a verdict where a report doesn't have the check."""

_BADNESS = {
    Verdict.REFUTED: 4,
    "missed": 4,
    "alarmed": 4,
    Verdict.VOID: 3,
    Verdict.UNKNOWN: 2,
    Verdict.NOT_EXERCISED: 1,
}
_GOOD = (Verdict.HOLDS, "killed", "silent")
_STRENGTH = (SAMPLED, PROBED, PROVED)

_SAME_POWER, _SAME_SIZE = 1.1, 2.0
"""Factors within which the smallest deviation seen, and how much was tried, count as unchanged."""

_NO_PROMISE = 2.0
"""A total variation that no two laws have."""


class Change(StrEnum):
    """What a change means, the most important first; the words are those that are shown."""

    WORSE = "worse"
    WEAKER = "weaker"
    CHANGED = "changed"
    GONE = "gone"
    NEW = "new"
    BETTER = "better"
    STRONGER = "stronger"
    SAME = "same"


@dataclass(frozen=True)
class State:
    """A check in one report.

    Attributes
    ----------
    verdict : a `Verdict`, `KNOWN`, or what became of a planted fault.
    evidence : how a law was found: proved, probed or sampled; empty where nobody said.
    power : the smallest deviation (TV) that would have been refuted; None where none is promised.
    tried, unit : how much is behind the verdict.
    told : first line of the message.
    needed : whether it is a loss if the other report doesn't have the check.
    """

    verdict: str
    evidence: str = ""
    power: float | None = None
    tried: int = 0
    unit: str = ""
    told: str = ""
    needed: bool = True

    @property
    def badness(self) -> int:
        """How much it keeps a run from passing; 0 for not at all."""
        return _BADNESS.get(self.verdict, 0)

    @property
    def good(self) -> bool:
        """Whether it is what one hopes for."""
        return self.verdict in _GOOD


@dataclass(frozen=True)
class Side:
    """One of two reports: the file, its verdict in a line, facts about the run, and its checks."""

    source: str
    title: str
    facts: Mapping[str, str]
    states: Mapping[tuple[str, str], State]


@dataclass(frozen=True)
class Row:
    """A check in both reports: its contract, or family of faults, what it was and is, and what that means."""

    group: str
    check: str
    change: Change
    old: State | None
    new: State | None
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> str:
        """Both verdicts in words."""
        old, new = (ABSENT if state is None else state.verdict for state in (self.old, self.new))
        return old if old == new else f"{old} -> {new}"


@dataclass(frozen=True)
class Difference:
    """Something else in which two runs differ; empty where one of them doesn't have it."""

    what: str
    old: str
    new: str


@dataclass(frozen=True)
class Comparison:
    """Two reports, in what their runs differ, and every check of either."""

    old: Side
    new: Side
    differences: tuple[Difference, ...]
    rows: tuple[Row, ...]

    def changed(self) -> list[Row]:
        """The checks that aren't the same, what is worse first."""
        order = list(Change)
        return sorted(
            (row for row in self.rows if row.change is not Change.SAME),
            key=lambda row: order.index(row.change),
        )

    @property
    def status(self) -> int:
        """Exit status: 1 if something is worse, else 0."""
        return int(any(row.change is Change.WORSE for row in self.rows))

    def summary(self) -> str:
        """How many checks are worse, weaker, better and so on, in a line."""
        words = [row.change for row in self.rows]
        counts = [f"{words.count(change)} {change}" for change in Change if change in words]
        return ", ".join(counts) or "no checks"


def compare(old: Side, new: Side) -> Comparison:
    """What changed from one report to the other."""
    names = dict.fromkeys([*old.states, *new.states])
    facts = dict.fromkeys([*old.facts, *new.facts])
    differences = (Difference(what, old.facts.get(what, ""), new.facts.get(what, "")) for what in facts)
    return Comparison(
        old,
        new,
        tuple(one for one in differences if one.old != one.new),
        tuple(_row(*name, old.states.get(name), new.states.get(name)) for name in names),
    )


def _row(group: str, check: str, old: State | None, new: State | None) -> Row:
    change = meaning(old, new)
    notes: list[str] = []
    if old is not None and new is not None and change is Change.SAME:
        change, notes = _evidence_change(old, new)
    if new is not None and new.told and change in (Change.WORSE, Change.CHANGED):
        notes.append(new.told)
    return Row(group, check, change, old, new, tuple(notes))


def meaning(old: State | None, new: State | None) -> Change:
    """What the verdicts alone say: what held has to hold, and nothing that is bad may come or grow.

    >>> str(meaning(State("holds"), State("not supported"))), str(meaning(State("unknown"), State("holds")))
    ('worse', 'better')
    >>> str(meaning(State("refuted"), State("unknown"))), str(meaning(None, State("refuted")))
    ('changed', 'worse')
    """
    if new is None:
        return Change.WORSE if old is not None and old.good and old.needed else Change.GONE
    if new.badness > (old.badness if old is not None else 0):
        return Change.WORSE
    if old is None:
        return Change.NEW
    if old.verdict == new.verdict:
        return Change.SAME
    if old.good and new.verdict != KNOWN:
        return Change.WORSE
    return Change.BETTER if new.good else Change.CHANGED


def _evidence_change(old: State, new: State) -> tuple[Change, list[str]]:
    """What became of the evidence behind the same verdict, and that in words."""
    if not old.good:
        return Change.SAME, []
    if old.evidence != new.evidence:
        weaker = _strength(new.evidence) < _strength(old.evidence)
        told = f"{old.evidence or 'tried'} -> {new.evidence or 'tried'}"
    elif not _close(_least(old), _least(new), _SAME_POWER):
        weaker = _least(new) > _least(old)
        told = f"smallest deviation seen: TV {_power(old)} -> {_power(new)}"
    elif old.power is None and old.unit == new.unit and not _close(old.tried, new.tried, _SAME_SIZE):
        weaker = new.tried < old.tried
        told = f"{old.tried:,} -> {new.tried:,} {new.unit}"
    else:
        return Change.SAME, []
    return (Change.WEAKER if weaker else Change.STRONGER), [told]


def _strength(evidence: str) -> int:
    return _STRENGTH.index(evidence) if evidence in _STRENGTH else -1


def _least(state: State) -> float:
    """The smallest deviation seen; no promise counts as one of more than the largest deviation there is."""
    return _NO_PROMISE if state.power is None else state.power


def _power(state: State) -> str:
    return "none" if state.power is None else f"{state.power:.2g}"


def _close(old: float, new: float, factor: float) -> bool:
    return max(old, new) <= factor * min(old, new)
