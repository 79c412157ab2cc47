"""One target audited with many seeds: how often each check refutes it, and how its p-values are spread.

For a target that is known to be exact this is the suite's rate of false alarms; for a faulty one it is the
rate at which the fault is found.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tokenlaw.conversation import Conversation, nothing
from tokenlaw.protocol import Request
from tokenlaw.settings import plain_settings
from tokenlaw.spec.suites import Progress, ignore
from tokenlaw.spec.verdicts import Evidence, Verdict, exit_status, overall


@dataclass
class Tally:
    """One check over the seeds so far.

    Attributes
    ----------
    check, contract : its id, and of what it is asked.
    refuted, undecided : seeds in which it was refuted, and those in which it was unknown or not exercised.
    held : how many seeds it held in.
    p_values : that it reported, one a seed; of a gate, the inverse of the e-value, or 1.
    """

    check: str
    contract: str
    refuted: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)
    held: int = 0
    p_values: list[float] = field(default_factory=list)

    @property
    def decided(self) -> int:
        """Seeds in which it was refuted or held."""
        return self.held + len(self.refuted)

    def take(self, seed: int, row: Evidence) -> None:
        """Count one seed in."""
        if row.verdict is Verdict.REFUTED:
            self.refuted.append(seed)
        elif row.verdict is Verdict.HOLDS:
            self.held += 1
        elif row.verdict is not Verdict.NOT_SUPPORTED:
            self.undecided.append(seed)
        for entry in (row.statistics or {}).get("ledger", ()):
            if entry["observed"] is not None and row.verdict in (Verdict.REFUTED, Verdict.HOLDS):
                self.p_values.append(p_value_of(entry))


def p_value_of(entry: dict[str, Any]) -> float:
    """What an entry of a ledger says as a p-value: logarithms are of p-values, or of e-values.

    >>> p_value_of({"kind": "gate", "observed": math.log(20)}), p_value_of({"kind": "gate", "observed": -3.0})
    (0.05, 1.0)
    """
    log_p = -entry["observed"] if entry["kind"] == "gate" else entry["observed"]
    return round(math.exp(min(log_p, 0.0)), 15)


@dataclass
class SeedRun:
    """What the audits with many seeds found so far.

    Attributes
    ----------
    target, version : what was audited.
    verdicts : seed to the verdict of its whole audit, all contracts together.
    tallies : contract and check id to what the check said.
    """

    target: str
    version: str = "unknown"
    _seen: dict[int, set[Verdict]] = field(default_factory=dict)
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)

    def take(self, seed: int, rows: Sequence[Evidence]) -> None:
        """Count what one contract showed with one seed; known deviations don't count."""
        counted = [row for row in rows if not row.known]
        self._seen.setdefault(seed, set()).update(row.verdict for row in counted)
        for row in counted:
            key = (row.check.contract, row.check.id)
            self.tallies.setdefault(key, Tally(row.check.id, row.check.contract)).take(seed, row)

    @property
    def verdicts(self) -> dict[int, Verdict]:
        """What each seed's audit said, all contracts together."""
        return {seed: overall(seen) for seed, seen in self._seen.items()}

    def with_verdict(self, *verdicts: Verdict) -> list[int]:
        """Seeds whose audit ended so."""
        return [seed for seed, found in sorted(self.verdicts.items()) if found in verdicts]

    @property
    def status(self) -> int:
        """Exit status: 0 if every seed holds, 1 if one is refuted, else 2."""
        return exit_status(overall(self.verdicts.values()))


def vary_seed(
    request: Request,
    seeds: int,
    *,
    progress: Progress = ignore,
    resolved: Callable[[], Any] = nothing,
    run: SeedRun | None = None,
) -> SeedRun:
    """Audit the target of a request with so many seeds, from the request's on; no controls are run.

    A child process takes one seed of a contract after the other; where it dies, the seed counts as unknown,
    and the next one gets a new process.

    Parameters
    ----------
    progress : called as ``progress(what, done, total)``, in seeds of all contracts.
    resolved : called once the target is loaded and built.
    run : takes what is found; whoever holds it has it even if this is interrupted.

    Raises
    ------
    BadUse, ToolFault
        As `tokenlaw.runner.audit`.
    """
    request = msgspec.structs.replace(request, settings=plain_settings(request.settings))
    variation = _Variation(request, seeds, progress, run or SeedRun(request.target))
    to_run = variation.audit(request.contract, resolved)
    for contract in to_run[1:]:
        variation.audit(contract, nothing)
    return variation.run


class _Variation:
    """Contract after contract, seed after seed."""

    def __init__(self, request: Request, seeds: int, progress: Progress, run: SeedRun) -> None:
        self._request, self._seeds, self._progress, self.run = request, seeds, progress, run
        self._next = request.seed
        self._done = self._total = 0

    def audit(self, contract: str | None, resolved: Callable[[], Any]) -> tuple[str, ...]:
        """All seeds of a contract, of the first one if it is None; the contracts that a whole audit runs."""
        last = self._request.seed + self._seeds
        self._next, to_run = self._request.seed, tuple[str, ...]()
        while self._next < last:
            asked = msgspec.structs.replace(
                self._request, contract=contract, seed=self._next, seeds=last - self._next, controls=False
            )
            spoken = self._held(asked, resolved)
            resolved = nothing
            if spoken.described is not None:
                to_run = spoken.described.to_run
                contract = contract or to_run[0]
            if self._next < last:  # the process died in this one
                self._ended(self._next, spoken.evidence)
        return to_run

    def _held(self, asked: Request, resolved: Callable[[], Any]) -> Conversation:
        """The conversation with one child process."""

        def described() -> None:
            assert spoken.described is not None
            self.run.target, self.run.version = spoken.described.name, spoken.described.version
            self._total = self._total or self._seeds * len(spoken.described.to_run)
            resolved()

        spoken = Conversation(ignore, described, self._ended)
        return spoken.hold(asked)

    def _ended(self, seed: int, rows: list[Evidence]) -> None:
        self.run.take(seed, rows)
        self._done, self._next = self._done + 1, seed + 1
        self._progress(f"seed {seed}", self._done, max(self._total, self._seeds))
