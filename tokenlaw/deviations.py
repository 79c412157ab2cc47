"""Known deviations of a target: replayed before anything else, and reported as known or as expired."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from tokenlaw.checks import did_you_mean
from tokenlaw.deviation_files import DeviationFile
from tokenlaw.errors import BadUse
from tokenlaw.spec.announcing import Keeper
from tokenlaw.spec.contracts import ContractError, Implementation
from tokenlaw.spec.deviations import KnownDeviation
from tokenlaw.spec.suites import CounterexampleError, Profile, Progress, Settings, Suite
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line

_NOT_FOR_EXPIRED = (Verdict.HOLDS, Verdict.NOT_SUPPORTED)


@dataclass(frozen=True)
class Replayed:
    """What the replays showed, by check id: ``standing`` evidence, and notes about ``expired`` entries.

    A refutation that stands is known, or counts since its entry isn't accepted any more; either way nothing
    else is tried for its check.
    """

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


def with_filed(
    implementation: Implementation, address: str, file: DeviationFile | None, suites: Mapping[str, Suite]
) -> Implementation:
    """The implementation with those entries of a file too that are about it, whatever it is called.

    Raises
    ------
    BadUse
        An entry's check is one of no contract at all.
    """
    if file is None:
        return implementation
    entries = file.about(implementation.name, address)
    own = {check.id for contract in implementation.factories for check in suites[contract].checks}
    for entry in entries:
        if entry.check not in own:
            _require_check(entry, file.source, suites)
    mine = tuple(entry for entry in entries if entry.check in own)
    return replace(implementation, known_deviations=(*implementation.known_deviations, *mine))


def _require_check(entry: KnownDeviation, source: str, suites: Mapping[str, Suite]) -> None:
    ids = {check.id for suite in suites.values() for check in suite.checks}
    if entry.check not in ids:
        hint = did_you_mean(entry.check, ids)
        raise BadUse(f"{source}: known deviation of no check {entry.check!r}; {hint}")


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
    suite: Suite,
    implementation: Implementation,
    selected: frozenset[str],
    *,
    progress: Progress,
    settings: Settings,
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
            rows = suite.replay(implementation, entry.counterexample, progress=progress, settings=settings)
        except (CounterexampleError, ContractError) as error:
            where = f"target {implementation.name!r}: known deviation of {entry.check}"
            raise BadUse(f"{where}: {one_line(str(error))}") from error
        found = next((row for row in rows if row.check.id == entry.check), None)
        if found is not None and found.verdict is Verdict.REFUTED:
            if _is_overdue(entry):
                replayed.standing[entry.check] = _overdue(entry, found)
            else:
                replayed.standing.setdefault(entry.check, _known(entry, found))
        else:
            replayed.expired.setdefault(entry.check, []).append(_expired(entry, found))
    return replayed


def evidence_of(
    suite: Suite,
    implementation: Implementation,
    *,
    profile: Profile,
    seed: int,
    selected: frozenset[str],
    progress: Progress,
    settings: Settings,
    keep: Keeper = lambda _: None,
) -> list[Evidence]:
    """Evidence for each selected check: what known deviations show first, then what a search finds.

    ``keep`` is called with what stands before anything is searched. Raises `BadUse` as `replay_known`.
    """
    known = replay_known(suite, implementation, selected, progress=progress, settings=settings)
    for standing in known.standing.values():
        keep(standing)
    found = dict(known.standing)
    searched = selected - known.standing.keys()
    if searched:
        rows = suite.run(
            implementation,
            profile=profile,
            seed=seed,
            selected=searched,
            progress=progress,
            settings=settings,
        )
        found |= {row.check.id: row for row in rows}
    return [known.with_notes(found[check.id]) for check in suite.checks if check.id in selected]


def _is_overdue(entry: KnownDeviation) -> bool:
    return entry.expires is not None and date.today() > entry.expires


def _known(entry: KnownDeviation, found: Evidence) -> Evidence:
    known = f"{entry.reason} ({entry.link})"
    return replace(found, known=known, message=f"known deviation: {known}\n{found.message}")


def _overdue(entry: KnownDeviation, found: Evidence) -> Evidence:
    """A refutation that isn't accepted any more: it counts."""
    note = f"known deviation, accepted until {entry.expires}: {entry.reason} ({entry.link})"
    return replace(found, message=f"{note}\n{found.message}")


def _expired(entry: KnownDeviation, found: Evidence | None) -> str:
    shown = "doesn't reach this check" if found is None else f"now gives '{found.verdict}'"
    known = f"{entry.reason} ({entry.link})"
    return f"expired known deviation: {known}: its counterexample {shown}; remove the entry"
