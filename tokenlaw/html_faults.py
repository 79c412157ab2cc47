"""The matrix of planted faults, as the HTML page shows it: which checks see which fault, and how soon."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tokenlaw.errors import BadUse

SCHEMA = "tokenlaw.faults/1"

_MANY_OPERATIONS, _MANY = 16, 1e6
"""Operations of a shrunk trace, and samples or anything else, that have the faintest colour."""


class Kill(msgspec.Struct, frozen=True):
    """A check that refuted a target, see `tokenlaw.faults.Kill`."""

    check: str
    operations: int | None = None
    samples: int | None = None
    tried: int = 0
    paths: int | None = None
    evaluations: int | None = None
    seconds: float | None = None


class Row(msgspec.Struct, frozen=True):
    """A fault, or an innocent."""

    name: str
    verdict: str
    family: str = ""
    effect: str = ""
    reason: str = ""
    report: str = ""
    refuted: tuple[Kill, ...] = ()
    one_check_alone: bool = False
    unknown: str = ""
    seconds: float | None = None

    @property
    def wrong(self) -> bool:
        """Whether it is a fault that nobody saw, or an innocent that was refuted."""
        return self.verdict in ("missed", "alarmed")


class Matrix(msgspec.Struct, frozen=True):
    """All of them."""

    faults: tuple[Row, ...]
    innocents: tuple[Row, ...] = ()
    command: str = ""
    profile: str = ""
    seed: int = 0
    complete: bool = True
    versions: dict[str, str] = {}


@dataclass(frozen=True)
class Cell:
    """How much a check took to see a fault: in words, short, and as a depth of colour from 0 to 100."""

    told: str = ""
    short: str = ""
    depth: int = 0


@dataclass(frozen=True)
class Family:
    """The faults of one family, with a column for each check that sees any of them."""

    name: str
    checks: tuple[str, ...]
    rows: tuple[tuple[Row, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class FaultsPage:
    """Everything on the page."""

    matrix: Matrix
    verdict: str
    killed: int
    silent: int
    families: tuple[Family, ...]


def is_matrix(data: object) -> bool:
    """Whether plain data say that they are a matrix of faults."""
    return isinstance(data, Mapping) and data.get("schema") == SCHEMA


def matrix(data: Mapping[str, Any], source: str) -> Matrix:
    """The matrix that plain data are; raises `BadUse`, which names ``source``, for what is damaged."""
    try:
        return msgspec.convert(data, Matrix)
    except msgspec.ValidationError as error:
        raise BadUse(f"{source}: a damaged matrix of faults: {error}") from None


def faults_page(found: Matrix) -> FaultsPage:
    """The page of a matrix: faults that nobody saw come first."""
    killed = sum(row.verdict == "killed" for row in found.faults)
    silent = sum(row.verdict == "silent" for row in found.innocents)
    right = killed == len(found.faults) and silent == len(found.innocents)
    names = dict.fromkeys(row.family for row in (*found.faults, *found.innocents))
    families = tuple(_family(name, found) for name in names)
    return FaultsPage(found, "holds" if right else "refuted", killed, silent, families)


def _family(name: str, found: Matrix) -> Family:
    faults = sorted(
        (row for row in found.faults if row.family == name), key=lambda row: row.verdict == "killed"
    )
    rows = [*faults, *(row for row in found.innocents if row.family == name)]
    checks = tuple(dict.fromkeys(kill.check for row in rows for kill in row.refuted))
    return Family(name, checks, tuple((row, _cells(row, checks)) for row in rows))


def _cells(row: Row, checks: Sequence[str]) -> tuple[Cell, ...]:
    kills = {kill.check: kill for kill in row.refuted}
    return tuple(_cell(kills[check]) if check in kills else Cell() for check in checks)


def _cell(kill: Kill) -> Cell:
    """Few operations, or samples, are a deep colour.

    >>> _cell(Kill("kv/content", operations=3))
    Cell(told='3 operations', short='3', depth=81)
    >>> _cell(Kill("law/joint", samples=12_000, seconds=0.5))
    Cell(told='12,000 samples in 0.5 s', short='12k', depth=32)
    """
    counted = {
        "operations": kill.operations,
        "samples": kill.samples,
        "paths": kill.paths,
        "evaluations": kill.evaluations,
        "tried": kill.tried,
    }
    unit, size = next((unit, size) for unit, size in counted.items() if size is not None)
    share = size / _MANY_OPERATIONS if unit == "operations" else math.log1p(max(size, 0)) / math.log1p(_MANY)
    depth = max(10, round(100 * (1 - min(max(share, 0.0), 1.0))))
    soon = "" if kill.seconds is None else f" in {kill.seconds:.1f} s"
    return Cell(f"{size:,} {unit}{soon}", _short(size), depth)


def _short(size: int) -> str:
    """A number in few characters.

    >>> _short(7), _short(12_000), _short(3_400_000)
    ('7', '12k', '3M')
    """
    if size < 1_000:
        return str(size)
    return f"{size / 1_000:.0f}k" if size < 1_000_000 else f"{size / 1_000_000:.0f}M"
