"""What a run of laws wrote down: one outcome for each check, and the ledger that they share."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.e_values import average_log_e
from tokenlaw.stats.law_outcome import Finding, LawOutcome, Shown
from tokenlaw.stats.ledger import Kind, Ledger, Stake
from tokenlaw.stats.measures import BONUS, COMPLETED, DRAFTS, JOINT, LENGTH, REJECTED
from tokenlaw.stats.places import Place
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.together import EVENT, Together
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.verifier_checks import BY_ID, GATES, PREFIXES, SEARCHED, TOGETHER, TREES, WEIGHTS, WIDE

TRIAL_GATES = (COMPLETED, JOINT, LENGTH, REJECTED, BONUS, DRAFTS)

SEARCH_NAME, WHOLE_RUN = "searched laws", "the whole run"
"""What stands for a scenario in the search, and for all of them."""


class LawBook:
    """Outcomes and ledger of one run.

    Parameters
    ----------
    asked : ids of the checks that are claimed, supported and selected.
    watched : ids of checks of laws that aren't claimed; they get no part of alpha, and no verdict.
    scenarios : of the run; their shares weigh the e-values of a check.
    settings : alpha, and what an earlier run brings along.

    Attributes
    ----------
    tables, trials : kinds of rows whose outcomes are counted one by one, and how many scenarios they are of.
    whole : where all scenarios can be seen again; None while it isn't known.
    """

    def __init__(
        self,
        asked: frozenset[str],
        scenarios: list[Scenario],
        settings: Settings,
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self.outcomes = {check: LawOutcome(BY_ID[check]) for check in BY_ID if check in asked}
        self._watched: dict[str, dict[str, float]] = {check: {} for check in watched & set(TRIAL_GATES)}
        self._earlier = settings.continued or {}
        self._alpha = settings.alpha
        stakes = [
            Stake(check, Kind.GATE if check in GATES else Kind.P_VALUE, weight)
            for check, weight in WEIGHTS.items()
            if check in asked
        ]
        self._ledger = Ledger.allot(settings.alpha, stakes) if stakes else None
        self.whole: Place | None = None
        for check in GATES & asked & self._earlier.keys():  # what isn't looked at keeps what it has
            self._look(check, self._before(check))
        self.tables = sum(len(scenario.kinds) for scenario in scenarios if not scenario.wide)
        self.trials = sum(not scenario.wide for scenario in scenarios)
        self._shares = {check: _shares(check, scenarios) for check in (asked | set(self._watched)) & GATES}

    def asks(self, check: str) -> bool:
        """Whether the check is part of the run."""
        return check in self.outcomes

    def share(self, check: str, scenario: str) -> float:
        """Weight of a scenario in a check; 0 where it isn't asked there."""
        return self._shares[check].get(scenario, 0.0)

    def alpha(self, check: str) -> float:
        """The check's part of alpha; all of it for a check that is decided without chance."""
        if self._ledger is None or check not in {*WEIGHTS, TOGETHER}:
            return self._alpha
        return self._ledger.gates_alpha if check == TOGETHER else self._ledger.alpha_of(check)

    def needed(self, check: str) -> float:
        """Log e-value from which on the check is refuted."""
        return -math.log(self.alpha(check))

    def record(self, check: str, scenario: str, log_e: float) -> None:
        """Write down a scenario's log e-value of a check; scenarios without one count as e = 1."""
        if check in self._watched:
            self._watched[check][scenario] = log_e
        if not self.asks(check):
            return
        log_es = self.outcomes[check].log_es
        log_es[scenario] = log_e
        self._look(check, self._average(check, log_es) + self._before(check))

    def _look(self, check: str, observed: float) -> None:
        assert self._ledger is not None
        self._ledger = self._ledger.record(check, observed)

    def _average(self, check: str, log_es: Mapping[str, float]) -> float:
        shares = self._shares[check]
        return average_log_e([log_es.get(name, 0.0) for name in shares], list(shares.values()))

    def watched(self, check: str) -> float | None:
        """Log e-value of a check that isn't claimed; None where it wasn't watched."""
        log_es = self._watched.get(check)
        return self._average(check, log_es) if log_es else None

    def missing(self, check: str) -> float:
        """Log e-value of this run from which on the check is refuted, what earlier runs showed counted in."""
        return self.needed(check) - self._before(check)

    def _before(self, check: str) -> float:
        """Log e-value of earlier runs; 0 for a check that is decided otherwise."""
        if check not in GATES:
            return 0.0
        return float(self._earlier.get(check, {}).get("log_e") or 0.0)

    def decided(self, scenario: str) -> bool:
        """Whether this scenario alone refutes some check."""
        return any(
            scenario in outcome.log_es
            and outcome.log_es[scenario] + math.log(self.share(check, scenario)) >= self.missing(check)
            for check, outcome in self.outcomes.items()
        )

    def exercise(self, events: Mapping[str, int]) -> None:
        """Count events at every check that asks for them."""
        for outcome in self.outcomes.values():
            for event in outcome.check.exercised_by:
                outcome.exercised[event] += events.get(event, 0)

    def found(self, check: str, weight: float, text: str, place: Place, shown: Shown = None) -> None:
        """Note what speaks against a check, if it is asked at all; ``shown`` is to be drawn."""
        if self.asks(check):
            self.outcomes[check].findings.append(Finding(weight, text, self._seen_at(place, check), shown))

    def _seen_at(self, place: Place, check: str) -> Place:
        """The place, with everything that decides about the check there."""
        asked, alpha = ([*self.outcomes], self._alpha) if check == TOGETHER else ([check], self.alpha(check))
        return replace(place, check=check, alpha=alpha, asked={one: self._before(one) for one in asked})

    def _gates(self) -> list[str]:
        return [] if self._ledger is None else [entry.name for entry in self._ledger.gates()]

    def tested(
        self,
        check: str,
        p_value: float,
        text: Callable[[], str],
        place: Place,
        shown: Callable[[], Shown] = lambda: None,
    ) -> None:
        """Note one of the p-values of a check, and what it is about if it is small."""
        self.outcomes[check].p_values.append(p_value)
        weight = -math.log(p_value) if p_value else math.inf
        if weight >= self.needed(check) / 2:
            self.found(check, weight, text(), place, shown())

    def crash(self, message: str, checks: Iterable[str]) -> None:
        """The implementation failed where these checks were asked: those that aren't refuted are unknown."""
        for check in checks:
            if self.asks(check):
                self.outcomes[check].crashes.append(message)

    def took(self, seconds: float) -> None:
        """Spread the time over all checks."""
        for outcome in self.outcomes.values():
            outcome.seconds += seconds / len(self.outcomes)

    def refuted(self) -> list[Evidence]:
        """Rows that are refuted whatever comes: by a gate, or without chance."""
        rows = [
            self._row(check, outcome)
            for check, outcome in self.outcomes.items()
            if check in GATES or check not in WEIGHTS
        ]
        return [row for row in rows if row.verdict is Verdict.REFUTED]

    def evidence(self) -> list[Evidence]:
        """The rows of the report; p-values are recorded now, once."""
        for check, outcome in self.outcomes.items():
            if check in WEIGHTS and check not in GATES and outcome.p_values:
                least = min(1.0, min(outcome.p_values) * len(outcome.p_values))
                self._look(check, math.log(least) if least else -math.inf)
        return [self._row(check, outcome) for check, outcome in self.outcomes.items()]

    def _row(self, check: str, outcome: LawOutcome) -> Evidence:
        if check == TOGETHER:
            return self._together(outcome)
        if self._ledger is None or check not in WEIGHTS:
            return outcome.evidence(None, bool(outcome.findings), self.alpha(check))
        return outcome.evidence(self._ledger.entry(check), self._ledger.refutes(check), self.alpha(check))

    def _together(self, outcome: LawOutcome) -> Evidence:
        rows = {gate: self._row(gate, self.outcomes[gate]) for gate in self._gates()}
        gates = {gate: row.verdict for gate, row in rows.items()}
        if self._ledger is None or not gates:
            return Evidence(
                outcome.check, Verdict.NOT_EXERCISED, {EVENT: 0}, message=f"never happened: {EVENT}"
            )
        visible = {gate: told for gate in gates if (told := self.outcomes[gate].told())}
        found = Together(self._ledger, gates, visible)
        place = self.whole if found.verdict() is Verdict.REFUTED else None
        broken = [row.message for row in rows.values() if row.verdict is Verdict.UNKNOWN]
        trace = broken[0].partition("\n")[2] if broken and found.verdict() is Verdict.UNKNOWN else ""
        return Evidence(
            outcome.check,
            found.verdict(),
            {EVENT: found.evidential},
            outcome.samples,
            outcome.seconds,
            f"{found.message()}\n{trace}".rstrip(),
            None if place is None else self._seen_at(place, TOGETHER).to_data(),
            {"samples": outcome.samples, **found.statistics()},
        )


def shown_once(rows: list[Evidence]) -> list[Evidence]:
    """The rows, each traceback in the first that has it; later ones have their first line, and say which."""
    first: dict[str, str] = {}
    shown = []
    for row in rows:
        line, _, rest = row.message.rstrip().partition("\n")
        told = row.verdict is Verdict.UNKNOWN and bool(rest)
        where = first.setdefault(rest, row.check.id) if told else row.check.id
        shown.append(row if where == row.check.id else replace(row, message=f"{line} (see {where})"))
    return shown


def wide_checks(scenario: Scenario) -> tuple[str, ...]:
    """Checks of a scenario with too many sequences to count; with several contexts tokens have no one law."""
    return (WIDE, PREFIXES) if scenario.contexts == 1 else (PREFIXES,)


def _shares(check: str, scenarios: list[Scenario]) -> dict[str, float]:
    """Weights of the scenarios that a check is asked in; they sum to one."""
    if check == SEARCHED:
        return {SEARCH_NAME: 1.0}
    if check == TREES:
        return {name: 1 / len(TREE_NAMES) for name in TREE_NAMES}
    chosen = [
        scenario
        for scenario in scenarios
        if (check in wide_checks(scenario) if scenario.wide else check not in (WIDE, PREFIXES))
        and (scenario.own_drafter or check != DRAFTS)
    ]
    total = sum(scenario.share for scenario in chosen)
    return {scenario.name: scenario.share / total for scenario in chosen}
