"""An earlier report whose evidence counts along: `tokenlaw audit --continue REPORT.json`.

A test martingale may be continued with fresh random numbers: the evidence of both runs is multiplied. That
holds for the same target, the same claims and another seed only, so everything else is refused.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.errors import BadUse
from tokenlaw.reading import json_of
from tokenlaw.report import SCHEMA, SPEC_VERSION
from tokenlaw.spec.suites import Settings


class Earlier(msgspec.Struct, frozen=True):
    """What an earlier report brings along.

    ``source`` is the file, ``seeds`` are those of all runs whose evidence is in it, ``statistics`` maps a
    check id to what that check wrote down.
    """

    source: str
    name: str
    version: str
    seeds: tuple[int, ...]
    claims: str | None
    tolerance: float
    contracts: tuple[str, ...]
    statistics: dict[str, dict[str, Any]]


class _Target(msgspec.Struct):
    name: str
    version: str


class _Settings(msgspec.Struct):
    claims: str | None = None
    tolerance: float = 0.0
    continued: tuple[int, ...] = ()


class _Row(msgspec.Struct):
    id: str
    contract: str
    statistics: dict[str, Any] | None = None


class _Stored(msgspec.Struct):
    """The parts of a report that a continuation needs."""

    spec_version: str
    target: _Target
    seed: int
    checks: list[_Row]
    settings: _Settings = msgspec.field(default_factory=_Settings)


def read_earlier(path: Path) -> Earlier:
    """Read a report.

    Raises
    ------
    BadUse
        It can't be read, is no report of this version, or has no evidence that can be continued.
    """
    return earlier_of(json_of(path), str(path))


def earlier_of(data: Any, source: str) -> Earlier:
    """As `read_earlier`, for the plain data of a report that came from ``source``."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise BadUse(f"{source}: not a report: schema {schema!r}, expected {SCHEMA!r}")
    try:
        stored = msgspec.convert(data, _Stored)
    except msgspec.ValidationError as error:
        raise BadUse(f"{source}: a damaged report: {error}") from None
    if stored.spec_version != SPEC_VERSION:
        raise BadUse(f"{source}: its rules are those of spec {stored.spec_version}, not of {SPEC_VERSION}")
    if problem := next(_problems(stored), ""):
        raise BadUse(f"{source}: a damaged report: {problem}")
    rows = [row for row in stored.checks if row.statistics]
    if not rows:
        raise BadUse(f"{source}: has no evidence that can be continued: only laws have")
    return Earlier(
        source,
        stored.target.name,
        stored.target.version,
        (*stored.settings.continued, stored.seed),
        stored.settings.claims,
        stored.settings.tolerance,
        tuple(dict.fromkeys(row.contract for row in rows)),
        {row.id: row.statistics or {} for row in rows},
    )


def _problems(stored: _Stored) -> Iterator[str]:
    """What no run has written, in words."""
    if min((stored.seed, *stored.settings.continued)) < 0:
        yield "a seed is negative"
    ids = [(row.contract, row.id) for row in stored.checks]
    for contract, check in ids:
        if ids.count((contract, check)) > 1:
            yield f"{check} is there twice"
    for row in stored.checks:
        evidence = (row.statistics or {}).get("log_e")
        if evidence is None:
            continue
        if isinstance(evidence, bool) or not isinstance(evidence, int | float) or not math.isfinite(evidence):
            yield f"log_e of {row.id} is {evidence!r}; it must be a finite number"


def require_continuable(
    earlier: Earlier, *, name: str, version: str, contracts: Iterable[str], seed: int, settings: Settings
) -> None:
    """Raise `BadUse` unless a run on this target with this seed and these settings may go on from it."""
    source = earlier.source
    if (earlier.name, earlier.version) != (name, version):
        raise BadUse(f"{source} is about {earlier.name} {earlier.version}, this run about {name} {version}")
    if not set(earlier.contracts) & set(contracts):
        raise BadUse(f"{source} has evidence about {', '.join(earlier.contracts)}, which isn't run now")
    if seed in earlier.seeds:
        raise BadUse(f"{source} has the random numbers of seed {seed} already: take another seed")
    for option in ("claims", "tolerance"):
        before, now = getattr(earlier, option), getattr(settings, option)
        if before != now:
            raise BadUse(f"{source} was made with {option} {before}, this run has {option} {now}")
