"""Known deviations of a target: replayed before anything else, and reported as known or as expired."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tokenlaw.checks import did_you_mean
from tokenlaw.errors import BadUse
from tokenlaw.spec.contracts import ContractError, Implementation
from tokenlaw.spec.deviations import KnownDeviation
from tokenlaw.spec.suites import CounterexampleError, Settings, Suite
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line

_NOT_FOR_EXPIRED = (Verdict.HOLDS, Verdict.NOT_SUPPORTED)


@dataclass(frozen=True)
class Replayed:
    """What the replays showed, by check id: ``standing`` evidence, and notes about ``expired`` entries."""

    standing: dict[str, Evidence] = field(default_factory=dict)
    expired: dict[str, list[str]] = field(default_factory=dict)

    def with_notes(self, found: Evidence) -> Evidence:
        """Evidence of a check as it is reported: an expired entry keeps it from passing."""
        notes = self.expired.get(found.check.id, [])
        if not notes:
            return found
        passes = found.known or found.verdict in _NOT_FOR_EXPIRED
        verdict = Verdict.UNKNOWN if passes else found.verdict
        return replace(found, verdict=verdict, known="", message="\n".join([*notes, found.message]).rstrip())


def require_known_checks(implementation: Implementation, suites: Mapping[str, Suite]) -> None:
    """Raise `BadUse` for an entry that isn't one, or whose check no suite of the implementation has."""
    if not implementation.known_deviations:
        return
    whose = f"target {implementation.name!r}"
    ids = {check.id for contract in implementation.factories for check in suites[contract].checks}
    entries: tuple[object, ...] = implementation.known_deviations
    for entry in entries:
        if not isinstance(entry, KnownDeviation):
            kind = type(entry).__name__
            raise BadUse(f"{whose}: a known deviation is a KnownDeviation, not a {kind}")
        if entry.check not in ids:
            hint = did_you_mean(entry.check, ids)
            raise BadUse(f"{whose}: known deviation of no check {entry.check!r}; {hint}")


def replay_known(
    suite: Suite, implementation: Implementation, selected: frozenset[str], settings: Settings
) -> Replayed:
    """Run the counterexample of every known deviation of the selected checks.

    Raises
    ------
    BadUse
        A counterexample is damaged, or can't be run on this target.
    """
    replayed = Replayed()
    for entry in implementation.known_deviations:
        if entry.check not in selected:
            continue
        try:
            rows = suite.replay(implementation, entry.counterexample, settings=settings)
        except (CounterexampleError, ContractError) as error:
            where = f"target {implementation.name!r}: known deviation of {entry.check}"
            raise BadUse(f"{where}: {one_line(str(error))}") from error
        found = next((row for row in rows if row.check.id == entry.check), None)
        if found is not None and found.verdict is Verdict.REFUTED:
            replayed.standing.setdefault(entry.check, _known(entry, found))
        else:
            replayed.expired.setdefault(entry.check, []).append(_expired(entry, found))
    return replayed


def _known(entry: KnownDeviation, found: Evidence) -> Evidence:
    known = f"{entry.reason} ({entry.link})"
    return replace(found, known=known, message=f"known deviation: {known}\n{found.message}")


def _expired(entry: KnownDeviation, found: Evidence | None) -> str:
    shown = "doesn't reach this check" if found is None else f"now gives '{found.verdict}'"
    known = f"{entry.reason} ({entry.link})"
    return f"expired known deviation: {known}: its counterexample {shown}; remove the entry"
