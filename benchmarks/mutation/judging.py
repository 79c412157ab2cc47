"""A pytest plugin: tests are collected once, then every mutant meets those that reach its function."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from mutation.children import Say, in_child, limit_processor_time
from mutation.making import Mutant
from mutation.planting import load, place_of, plant

KILLED, SURVIVED, LEFT = "killed", "survived", "left out"
"""Outcomes: a test failed; all passed; a change that only a fresh import could show."""

SLOWEST, PATIENCE = 1.0, 5.0
"""Under a mutant a test may take so many processor seconds and so many times its usual time."""

SURE = 5.0
"""So many times as much, before a test that took too long counts as failed."""

QUICK = 0.2
"""Tests of so many seconds are run once for what they import."""


@dataclass(frozen=True)
class Judged:
    """What became of a mutant; ``test`` is the one that killed it or the last one that ran."""

    key: str
    module: str
    operator: str
    place: str
    outcome: str
    test: str = ""


@dataclass
class Usual:
    """What a test does without a mutant: its processor seconds and the places that it calls."""

    seconds: float
    places: list[tuple[str, str]]


@dataclass
class Judge:
    """Runs the mutants in place of the tests.

    Attributes
    ----------
    mutants : in the order to judge.
    modules : whose calls are noted when tests are measured.
    tell : called with each one that is judged.
    remember : called with what tests do, when some were measured.
    seconds : processor seconds of tests that one mutant may cost.
    usual : test -> what it does; measured where empty.
    """

    mutants: Iterable[Mutant]
    modules: frozenset[str]
    tell: Callable[[Judged], None]
    remember: Callable[[dict[str, Usual]], None]
    seconds: float
    usual: dict[str, Usual] = field(default_factory=dict)
    kills: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests, then judge."""
        if session.testsfailed:
            raise session.Failed("tests could not be collected")
        items = {item.nodeid: item for item in session.items}
        missing = [item for item in session.items if item.nodeid not in self.usual]
        if missing:
            self.usual |= measured(missing, self.modules)
            self.remember(self.usual)
        quick = [item for name, item in items.items() if self.usual[name].seconds < QUICK]
        import_like(quick)
        for mutant in self.mutants:
            self.tell(self._judge(mutant, items))
        return True

    def _judge(self, mutant: Mutant, items: dict[str, pytest.Item]) -> Judged:
        place = place_of(mutant)
        chosen = self._chosen(mutant.module, place, items)
        said, killer = in_child(lambda say: _try(mutant, place, chosen, self.usual, say))
        if killer == signal.SIGPROF:
            said, killer = in_child(lambda say: _try(mutant, place, chosen, self.usual, say, SURE))
        last = said[-1] if said else ["start", ""]
        if killer:
            last = ["died", last[1]]
        outcome = {"died": KILLED, "passed": SURVIVED, "left": LEFT}[last[0]]
        if outcome == KILLED:
            self.kills.setdefault((mutant.module, place), Counter())[last[1]] += 1
        return Judged(mutant.key, mutant.module, mutant.operator, place, outcome, last[1])

    def _chosen(self, module: str, place: str, items: dict[str, pytest.Item]) -> list[pytest.Item]:
        """Tests that reach the place, frequent killers first, then the quick ones, while time lasts.

        Where none is known to (the place is a constant or a class), all of them.
        """
        kills = self.kills.get((module, place), Counter())
        reaching = [name for name in items if (module, place) in self.usual[name].places]
        order = sorted(reaching or items, key=lambda name: (-kills[name], self.usual[name].seconds))
        chosen: list[pytest.Item] = []
        left = self.seconds
        for name in order:
            left -= self.usual[name].seconds
            if left < 0 and chosen:
                break
            chosen.append(items[name])
        return chosen


def _try(
    mutant: Mutant,
    place: str,
    items: list[pytest.Item],
    usual: dict[str, Usual],
    say: Say,
    patience: float = 1.0,
) -> None:
    limit_processor_time(patience * SLOWEST)
    say(["died", "import"])
    try:
        changed = load(mutant)
    except Exception:
        return
    try:
        plant(changed, place)
    except Exception:
        say(["left", ""])
        return
    for item, following in _pairs(items):
        limit_processor_time(patience * (SLOWEST + PATIENCE * usual[item.nodeid].seconds))
        say(["died", item.nodeid])
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return
    say(["passed", ""])


def import_like(items: list[pytest.Item]) -> None:
    """Import here what these tests import while they run, so that no fork takes its time for that."""

    def run(say: Say) -> None:
        before = set(sys.modules)
        for item, following in _pairs(items):
            runtestprotocol(item, log=False, nextitem=following)
        say(sorted(set(sys.modules) - before))

    said, _ = in_child(run)
    for name in said[-1]:
        with suppress(Exception):
            import_module(name)


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def measured(items: list[pytest.Item], modules: frozenset[str]) -> dict[str, Usual]:
    """Run the tests once, in a child, and note what each one calls.

    Raises
    ------
    RuntimeError
        A test fails without any mutant.
    """
    said, _ = in_child(lambda say: _measure(items, modules, say))
    found = {name: Usual(seconds, [(one, other) for one, other in places]) for name, seconds, places in said}
    if len(found) < len(items):
        raise RuntimeError(f"a test fails without any mutant, after {said[-1][0] if said else 'none'}")
    return found


def _measure(items: list[pytest.Item], modules: frozenset[str], say: Say) -> None:
    files = {str(sys.modules[name].__file__): name for name in modules if name in sys.modules}
    for item, following in _pairs(items):
        places: set[tuple[str, str]] = set()

        def note(frame: Any, event: str, _: Any, places: set[tuple[str, str]] = places) -> None:
            if event == "call" and frame.f_code.co_filename in files:
                name = frame.f_code.co_qualname.split(".<locals>")[0]
                places.add((files[frame.f_code.co_filename], name))

        start = time.process_time()
        sys.setprofile(note)
        reports = runtestprotocol(item, log=False, nextitem=following)
        sys.setprofile(None)
        if any(report.failed for report in reports):
            return
        say([item.nodeid, round(time.process_time() - start, 4), sorted(places)])
