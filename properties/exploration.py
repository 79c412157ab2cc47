"""Exploring a target with generated traces, until every fault that shows has its own small counterexample.

hypothesis and plain dice make the traces in turns, and nothing more. A refuted check is muted from then on,
so that the faults behind it can show, and its trace is shrunk by `tokenlaw.properties.shrink`, for that check
alone.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

from tokenlaw.properties import words
from tokenlaw.properties.judging import Crash, Describe, Finding, Judgement, judge, refutation
from tokenlaw.properties.narrowing import shrink_crash, shrink_finding
from tokenlaw.properties.pacing import Clock, Reporter
from tokenlaw.properties.running import Example, Outcome
from tokenlaw.properties.shrink import Simplifier
from tokenlaw.spec.announcing import announce_evidence
from tokenlaw.spec.suites import Profile, Progress
from tokenlaw.spec.verdicts import Check, Evidence

Run = Callable[[Example, frozenset[str]], Outcome]
"""``run(trace, muted)``: run a trace on a fresh target; violations of muted checks aren't looked at."""

TARGETS: Mapping[str, tuple[str, ...]] = {
    "sharing depth": ("fork", "hit"),
    "divergence": ("divergence", "copy"),
    "eviction pressure": ("eviction", "out of blocks"),
}
"""What hypothesis climbs: sums of these events in one trace."""

# hypothesis remembers every example of a run, so short runs keep memory flat. They climb in their second
# half, which varies one trace; in the rolled runs between them pressure on the pool can't crowd out the rest.
_BATCH = 100

Roll = Callable[[int, random.Random], Any]
"""``roll(number, dice)``: a trace made without hypothesis; the number says what it begins with."""

# So many crashes end the search when most examples crash: nothing else will show.
_CRASHES = 10


def explore(
    checks: Sequence[Check],
    strategy: SearchStrategy[Any],
    roll: Roll,
    run: Run,
    *,
    profile: Profile,
    seed: int,
    selected: frozenset[str],
    capabilities: frozenset[str],
    progress: Progress,
    before_run: Callable[[Example], None] | None = None,
    describe: Describe = words.explain,
    tell: Callable[[Example], str] = words.tell,
    simplifier: Simplifier | None = None,
) -> list[Evidence]:
    """Evidence for each selected check, in the order of ``checks``.

    What a check says depends on no selection: those that aren't selected are looked at all the same, or what
    they ask wouldn't be asked and their faults would be blamed on others; they are not told about.

    Parameters
    ----------
    checks : all checks of the suite.
    strategy : traces that the target can run.
    roll : makes every other batch of traces, evenly; those of the strategy climb.
    run : runs one trace; must not raise for what the target does (`Outcome.crash` is for that).
    profile : examples, and seconds after the first one in which further ones are tried (shrinking comes on
        top).
    seed : the same seed gives the same traces.
    capabilities : of the target; checks that need others are ``not supported``.
    before_run : called with every trace before it runs, so that it isn't lost if the process hangs or dies.
        Findings are announced for the same reason, when they are made and when they are shrunk.
    describe, tell : a violation, and a trace, in words.
    simplifier : how what fails is shrunk; as a trace if None.
    """
    silent = frozenset(check.id for check in checks if not check.needs <= capabilities)
    wanted = {check.id: check for check in checks if check.id in selected - silent}

    def keep(finding: Finding) -> None:
        check = wanted.get(finding.violation.check)
        if check is None:
            return
        exercised = {event: search.exercised[event] for event in check.events(capabilities)}
        announce_evidence(refutation(check, finding, exercised, describe))

    search = _Search(
        run, profile, silent, frozenset(wanted), Reporter(progress), before_run, keep, simplifier
    )
    if wanted:
        search.run_all(strategy, roll, seed)
    findings = {id_: search.narrowed(finding) for id_, finding in search.findings.items() if id_ in wanted}
    crash = search.narrowed_crash()
    search.reporter.say("done", profile.examples, profile.examples, always=True)
    judgement = Judgement(
        findings,
        crash,
        search.exercised,
        search.operations,
        search.seconds,
        search.shortfall(),
        describe,
        tell,
    )
    return judge([check for check in checks if check.id in selected], capabilities, judgement)


class _BudgetEnds(BaseException):
    """Ends a hypothesis run from within; an `Exception` would count as a failing example."""


@dataclass
class _Search:
    """State of an exploration. ``silent`` checks aren't supported; it ends when all ``wanted`` ones broke."""

    run: Run
    profile: Profile
    silent: frozenset[str]
    wanted: frozenset[str]
    reporter: Reporter
    before_run: Callable[[Example], None] | None
    keep: Callable[[Finding], None]
    simplifier: Simplifier | None
    findings: dict[str, Finding] = field(default_factory=dict)
    crash: Crash | None = None
    crashes: int = 0
    examples: int = 0
    operations: int = 0
    exercised: Counter[str] = field(default_factory=Counter)
    started: Clock = field(default_factory=Clock)
    seconds: float = 0.0

    @property
    def muted(self) -> frozenset[str]:
        """Checks that are not looked at now."""
        return self.silent | self.findings.keys()

    def run_all(self, strategy: SearchStrategy[Any], roll: Roll, seed: int) -> None:
        """Run batches of examples until the budget ends or nothing is left to find."""
        batch = 0
        try:
            while self.examples < self.profile.examples:
                self._roll_batch(roll, random.Random(f"{seed}/{batch}"))
                self._climb(strategy, f"{seed}/{batch + 1}")
                batch += 2
        except _BudgetEnds:
            pass
        self.seconds = self.started.wall()

    def once(self, trace: Example, muted: frozenset[str]) -> Outcome:
        """Run a trace, having told the hook about it."""
        if self.before_run is not None:
            self.before_run(trace)
        return self.run(trace, muted)

    def narrowed(self, finding: Finding) -> Finding:
        """The finding with its trace shrunk."""
        self.reporter.say(f"shrinking {finding.violation.check}", 0, 1, always=True)
        small = shrink_finding(self.once, self.silent, finding, self.simplifier)
        self.keep(small)
        return small

    def narrowed_crash(self) -> Crash | None:
        """The crash, if there was one, with its trace shrunk."""
        if self.crash is None:
            return None
        self.reporter.say("shrinking a crash", 0, 1, always=True)
        return shrink_crash(self.once, self.silent, self.crash, self.simplifier)

    def shortfall(self) -> str:
        """Why fewer examples ran than the profile asks for; empty if they all ran."""
        missing = self.profile.examples - self.examples
        if missing <= 0 or not self.examples:
            return ""
        return f"{self.examples} of {self.profile.examples} examples ran in {self.seconds:.1f} s"

    def _roll_batch(self, roll: Roll, dice: random.Random) -> None:
        first = dice.randrange(_BATCH)  # what comes last must not be left out of every small run
        for number in range(first, first + min(_BATCH, self.profile.examples - self.examples)):
            self._example(roll(number, dice))

    def _climb(self, strategy: SearchStrategy[Any], seed: str) -> None:
        if self.examples >= self.profile.examples:
            return

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=min(_BATCH, self.profile.examples - self.examples),
            phases=(Phase.generate, Phase.target),
            suppress_health_check=tuple(HealthCheck),
            database=None,
            deadline=None,
            derandomize=False,
        )
        @hypothesis.given(strategy)
        def example(trace: Example) -> None:
            outcome = self._example(trace)
            for label, events in TARGETS.items():
                hypothesis.target(float(sum(outcome.exercised[event] for event in events)), label=label)

        example()

    def _example(self, trace: Example) -> Outcome:
        self._stop_if_finished()
        outcome = self.once(trace, self.muted)
        if not self.examples:  # what a target imports and compiles at first isn't time to search
            self.started = Clock()
        self.examples += 1
        self.operations += outcome.operations
        self.exercised.update(outcome.exercised)
        self._record(trace, outcome)
        self.reporter.say("traces", min(self.examples, self.profile.examples), self.profile.examples)
        return outcome

    def _stop_if_finished(self) -> None:
        late = self.started.spent() > self.profile.seconds
        full = self.examples >= self.profile.examples
        hopeless = self.crashes >= _CRASHES and 2 * self.crashes > self.examples
        if late or full or hopeless or self.wanted <= self.findings.keys():
            raise _BudgetEnds

    def _record(self, trace: Example, outcome: Outcome) -> None:
        """Keep the first trace of each check that broke, and the first crash."""
        muted, elapsed = self.muted, self.started.wall()
        for violation in outcome.violations:
            if violation.check not in muted:
                finding = Finding(trace, violation, muted, self.operations, elapsed)
                if violation.check not in self.findings:
                    self.findings[violation.check] = finding
                    self.keep(finding)
        if outcome.crash is not None:
            self.crashes += 1
            self.crash = self.crash or Crash(trace, outcome.crash, muted)
