"""A report as the HTML page reads it: the JSON envelope, checked part by part.

A saved report may come from anybody, so nothing of it is taken on trust; unknown keys are left alone, since a
later version may have more of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tokenlaw.errors import BadUse
from tokenlaw.reading import json_of
from tokenlaw.report import SCHEMA
from tokenlaw.spec.frames import Frame


class Outcome(msgspec.Struct, frozen=True):
    """An outcome of a law, see `tokenlaw.stats.shown_laws.ShownLaw`."""

    outcome: str
    exact: float
    found: float
    count: int | None = None
    low: float | None = None
    high: float | None = None


class Others(msgspec.Struct, frozen=True):
    """All outcomes that aren't shown."""

    outcomes: int | None = None
    exact: float | None = None
    found: float | None = None


class ShownLaw(msgspec.Struct, frozen=True):
    """A law, see `tokenlaw.stats.shown_laws.ShownLaw`."""

    what: str
    outcomes: tuple[Outcome, ...]
    where: str = ""
    counted: int | None = None
    confidence: float | None = None
    others: Others = Others()
    path: tuple[str, ...] = ()
    how: str = ""


class _ProgramOutcome(msgspec.Struct, frozen=True):
    outcome: str
    program: float
    spec: float | None = None


class Power(msgspec.Struct, frozen=True):
    """What a test of a law promises."""

    tv: float
    probability: float
    laws: int = 1


class Statistics(msgspec.Struct, frozen=True):
    """The parts of ``statistics`` that are shown."""

    evidence: str = ""
    samples: int | None = None
    paths: int | None = None
    evaluations: int | None = None
    power: Power | None = None
    tv_at_most: float | None = None
    laws_shown: tuple[ShownLaw, ...] = ()
    lengths: tuple[ShownLaw, ...] = ()
    outcomes: tuple[_ProgramOutcome, ...] = ()
    path: tuple[str, ...] = ()
    ledger: Any = None
    log_e: Any = None

    def present(self) -> set[str]:
        """Names of the parts that there are."""
        return {name for name in self.__struct_fields__ if getattr(self, name) is not None}

    def counts(self) -> dict[str, int]:
        """How much is behind a law, by what was counted."""
        counted = {"samples": self.samples, "paths": self.paths, "evaluations": self.evaluations}
        return {what: count for what, count in counted.items() if count}

    def laws(self) -> list[ShownLaw]:
        """What can be drawn; of a proved program its law beside that of the spec."""
        pairs = [Outcome(one.outcome, one.spec, one.program) for one in self.outcomes if one.spec is not None]
        if not pairs:
            return list(self.laws_shown)
        return [ShownLaw("law of the program", tuple(pairs), "where it differs most", path=self.path)]


KNOWN = "known deviation"
"""Said in place of `refuted` of what is known and doesn't count."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""How often something happened."""


class Row(msgspec.Struct, frozen=True):
    """A check with its verdict."""

    id: str
    verdict: str
    title: str = ""
    rule: str = ""
    contract: str = ""
    severity: str = ""
    exercised: dict[str, Count] = {}
    operations: Count = 0
    seconds: float = 0.0
    message: str = ""
    counterexample: dict[str, Any] | None = None
    statistics: Statistics | None = None
    known: str = ""
    frames: tuple[Frame, ...] = ()

    @property
    def judged(self) -> str:
        """The verdict, or `KNOWN` in place of a refutation that doesn't count."""
        return KNOWN if self.known else self.verdict


class Entry(msgspec.Struct, frozen=True):
    """What a test of a law was allotted, and what it showed: natural logarithms of e- or p-values."""

    check: str
    kind: str
    share: float
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    observed: float | None = None


class ControlRow(msgspec.Struct, frozen=True):
    """What a control showed, see `tokenlaw.controls.Control`."""

    verdict: str | None = None
    failed: bool = False
    checks: tuple[str, ...] = ()
    message: str = ""
    fault: str = ""


class _Target(msgspec.Struct, frozen=True):
    name: str
    version: str = ""
    address: str = ""
    contracts: tuple[str, ...] = ()
    capabilities: dict[str, tuple[str, ...]] = {}


class Stored(msgspec.Struct, frozen=True):
    """A report."""

    target: _Target
    verdict: str
    checks: tuple[Row, ...]
    command: str = ""
    profile: str = ""
    seed: int = 0
    spec_version: str = ""
    settings: dict[str, Any] = {}
    versions: dict[str, str] = {}
    ledger: tuple[Entry, ...] = ()
    controls: dict[str, dict[str, ControlRow]] = {}
    strongest_claim: str | None = None


def read(path: Path) -> dict[str, Any]:
    """The plain data of a saved report.

    Raises
    ------
    BadUse
        It can't be read, or isn't JSON; what else it must be is up to who reads it.
    """
    data = json_of(path)
    return data if isinstance(data, dict) else {}


def stored(data: Mapping[str, Any], source: str = "report") -> Stored:
    """The report that plain data are; ``source`` names it in errors.

    Raises
    ------
    BadUse
        They are no report of this version, or a damaged one.
    """
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema != SCHEMA:
        raise BadUse(f"{source}: not a report: schema {schema!r}, expected {SCHEMA!r}")
    try:
        return msgspec.convert(data, Stored)
    except msgspec.ValidationError as error:
        raise BadUse(f"{source}: a damaged report: {error}") from None
