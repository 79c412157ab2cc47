"""Runs the controls of one contract, in the process that has just audited the target."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tokenlaw.controls import Control, Kind
from tokenlaw.impl.faults.wrappers import WRAPPERS, BrokenWrapper
from tokenlaw.impl.reference import REFERENCE
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.contracts import Implementation
from tokenlaw.spec.suites import Profile, Progress, Settings, Suite
from tokenlaw.spec.verdicts import Evidence, Verdict, overall
from tokenlaw.text import encodable, shortened

REFERENCE_PART, BROKEN_PART = 8, 4
"""A control gets so many times less than the audit: examples, seconds, and a broken wrapper's requests."""

REFERENCE_REQUESTS = 16
"""The reference gets so many times fewer requests: a scenario has a cost of its own, however few it gets."""

FEWEST_REQUESTS = 20_000
"""Requests that a broken wrapper gets at least, if the audit has so many; it takes them only if it must."""

LEAST_SECONDS = 0.5
"""Of a control, however short the audit was."""


class _RefutedError(BaseException):
    """Ends a run from within: an `Exception` would count as the implementation's."""

    def __init__(self, found: Evidence) -> None:
        super().__init__(found.check.id)
        self.found = found


_BAD = (Verdict.REFUTED, Verdict.UNKNOWN)


@dataclass(frozen=True)
class Audited:
    """What was audited, and how: what the controls have in common with it.

    Attributes
    ----------
    capabilities : of what the implementation builds.
    evidence : what was found.
    seconds : wall-clock time that it took.
    """

    suite: Suite
    implementation: Implementation
    capabilities: frozenset[str]
    profile: Profile
    seed: int
    settings: Settings
    evidence: Sequence[Evidence]
    seconds: float

    @property
    def contract(self) -> str:
        """The contract."""
        return self.suite.contract


def control(audited: Audited, progress: Progress) -> Iterator[Control]:
    """The controls that belong to an audit; none for suites of others, which the wrappers aren't made for."""
    wrapper = WRAPPERS.get(audited.contract)
    if wrapper is None or not type(audited.suite).__module__.startswith("tokenlaw."):
        return

    def listen(what: str, done: int, total: int) -> None:
        progress(f"controls of {audited.contract}: {what}", done, total)

    yield _isolated(Kind.REFERENCE, audited, lambda: _reference(audited, listen))
    yield _isolated(Kind.BROKEN, audited, lambda: _broken(audited, wrapper, listen))


def _isolated(kind: Kind, audited: Audited, work: Callable[[], Control]) -> Control:
    """A control, whatever it raises."""
    started = time.monotonic()
    try:
        found = work()
    except (Exception, SystemExit):
        message = encodable(shortened(f"it raised an exception\n{traceback.format_exc()}"))
        found = Control(audited.contract, kind, Verdict.UNKNOWN, message=message)
    return replace(found, seconds=time.monotonic() - started)


def _reference(audited: Audited, progress: Progress) -> Control:
    """The reference, asked what the target was asked."""

    def without(why: str) -> Control:
        return Control(audited.contract, Kind.REFERENCE, None, message=why)

    contract = audited.contract
    factory = REFERENCE.factories.get(contract)
    if factory is audited.implementation.factories[contract]:
        return without("the target is the reference")
    if factory is None:
        return without("there is none of this contract")
    asked = frozenset(row.check.id for row in audited.evidence if row.verdict is not Verdict.NOT_SUPPORTED)
    reference = replace(REFERENCE, factories={contract: factory}, capabilities=_declared(contract))
    profile, settings = _part(audited, REFERENCE_PART, REFERENCE_REQUESTS, 1)
    # Held to what it claims itself: the target may be held to another rule, such as block verification's.
    found = _run(audited, reference, asked, (profile, replace(settings, claims=None)), progress)
    spoken = [row for row in found if row.verdict in (*_BAD, Verdict.HOLDS)]
    if not spoken:
        return without("none of what was asked could be decided")
    bad = [row for row in spoken if row.verdict in _BAD]
    return Control(
        contract,
        Kind.REFERENCE,
        overall(row.verdict for row in spoken),
        tuple(row.check.id for row in bad),
        bad[0].message if bad else "",
        tried=max(row.operations for row in spoken),
    )


def _declared(contract: str) -> dict[str, frozenset[str]]:
    return {name: found for name, found in REFERENCE.capabilities.items() if name == contract}


def _broken(audited: Audited, wrapper: BrokenWrapper, progress: Progress) -> Control:
    """The target in its broken wrapper, asked by one check after the other until one refutes it."""
    contract, fault = audited.contract, wrapper.fault
    known = {row.check.id: row for row in audited.evidence}
    if any(row.verdict is Verdict.REFUTED and not row.known for row in audited.evidence):
        why = "the target itself is refuted"
        return Control(contract, Kind.BROKEN, None, message=why, fault=fault)
    able = [id_ for id_ in wrapper.seen_by if id_ in known and known[id_].verdict is Verdict.HOLDS]
    if not able:
        why = "no check that could see it was asked and holds"
        return Control(contract, Kind.BROKEN, None, message=why, fault=fault)
    broken = wrapper.broken(audited.implementation, contract, audited.capabilities)
    part = _part(audited, BROKEN_PART, BROKEN_PART, FEWEST_REQUESTS)
    started, tried, told, decided = time.monotonic(), 0, "", False
    first = _at_first(wrapper.requests, able, part)
    for number, (check, much) in enumerate([*first, *((check, part) for check in able)], -len(first)):
        row = _first_refutation(partial(_run, audited, broken, frozenset({check}), much, progress))
        tried += row.operations
        if row.verdict is Verdict.REFUTED:
            return Control(contract, Kind.BROKEN, row.verdict, (check,), fault=fault, tried=tried)
        if number < 0:
            continue
        told = f"{told}{check}: {row.verdict}\n{row.message}\n"
        decided |= row.verdict is not Verdict.NOT_EXERCISED
        if number + 1 < len(able) and time.monotonic() - started > audited.seconds / BROKEN_PART:
            why = f"{', '.join(able[: number + 1])} didn't refute it, and there was no time for others"
            return Control(contract, Kind.BROKEN, None, message=why, fault=fault, tried=tried)
    if not decided:
        why = f"in its part of the time nothing could be decided by {', '.join(able)}"
        return Control(contract, Kind.BROKEN, None, message=why, fault=fault, tried=tried)
    message = encodable(shortened(f"nothing refuted it, of {', '.join(able)}\n{told}".rstrip()))
    return Control(contract, Kind.BROKEN, Verdict.HOLDS, message=message, fault=fault, tried=tried)


def _first_refutation(run: Callable[[], list[Evidence]]) -> Evidence:
    """The evidence of a run of one check, which ends where it is refuted: nothing is shrunk."""

    def keep(found: Evidence) -> None:
        if found.verdict is Verdict.REFUTED:
            raise _RefutedError(found)

    try:
        with listening(lambda _: None, keep):
            return run()[0]
    except _RefutedError as end:
        return end.found


def _part(audited: Audited, times: int, requests_times: int, fewest: int) -> tuple[Profile, Settings]:
    """Profile and settings with so many times less than those of the audit, but so many requests at least."""
    profile, settings = audited.profile, audited.settings

    def part(requests: int) -> int:
        return min(requests, max(fewest, requests // requests_times))

    smaller = replace(
        profile,
        examples=max(1, profile.examples // times),
        seconds=max(min(profile.seconds, audited.seconds) / times, LEAST_SECONDS),
        requests=part(profile.requests),
    )
    budget = None if settings.budget is None else part(settings.budget)
    return smaller, replace(settings, budget=budget, continued=None)


def _at_first(
    requests: Mapping[str, int], able: Sequence[str], part: tuple[Profile, Settings]
) -> list[tuple[str, tuple[Profile, Settings]]]:
    """The one check that is likely to do with few requests, and settings with so few, if there were more."""
    profile, settings = part
    check = next((check for check in requests if check in able), None)
    if check is None or requests[check] >= (settings.budget or profile.requests):
        return []
    return [(check, (profile, replace(settings, budget=requests[check])))]


def _run(
    audited: Audited,
    implementation: Implementation,
    selected: frozenset[str],
    part: tuple[Profile, Settings],
    progress: Progress,
) -> list[Evidence]:
    profile, settings = part
    return audited.suite.run(
        implementation,
        profile=profile,
        seed=audited.seed,
        selected=selected,
        progress=progress,
        settings=settings,
    )
