"""Controls of an audit: what the suite says about something exact, and about something broken.

The suite that has judged a target is asked twice more, in the same process. Our reference must hold, and the
target inside a broken wrapper must be refuted; where one of them fails, the audit of this contract is void.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import encodable, one_line


class Kind(StrEnum):
    """What is put in place of the target."""

    REFERENCE = "reference"
    BROKEN = "broken wrapper"


EXPECTED = {Kind.REFERENCE: Verdict.HOLDS, Kind.BROKEN: Verdict.REFUTED}
"""What the suite must say about it."""


@dataclass(frozen=True)
class Control:
    """One control of one contract.

    Attributes
    ----------
    contract, kind : what was asked, and about what.
    verdict : what the suite said; None if the control was left out.
    checks : ids of the checks that refuted it, or that couldn't decide.
    message : why it was left out or failed; else empty.
    fault : what the broken wrapper does.
    tried : operations, calls or rows of the checks, at most.
    seconds : that it took.
    """

    contract: str
    kind: Kind
    verdict: Verdict | None
    checks: tuple[str, ...] = ()
    message: str = ""
    fault: str = ""
    tried: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether it shows that the audit of the contract is worth nothing."""
        return self.verdict is not None and self.verdict is not EXPECTED[self.kind]

    def in_words(self) -> str:
        """What it showed, in one line.

        >>> print(Control("kv-store", Kind.BROKEN, Verdict.REFUTED, ("store/content",), fault="stale row"))
        broken wrapper (stale row): refuted by store/content
        """
        what = f"{self.kind} ({self.fault})" if self.fault else str(self.kind)
        if self.verdict is None:
            return f"{what}: not run, {self.message}"
        by = f" by {', '.join(self.checks)}" if self.verdict is Verdict.REFUTED else ""
        told = f": {self.message}" if self.failed and self.message else ""
        return one_line(f"{what}: {self.verdict}{by}{told.partition(chr(10))[0]}")

    def __str__(self) -> str:
        return self.in_words()

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "verdict": None if self.verdict is None else str(self.verdict),
            "failed": self.failed,
            "checks": list(self.checks),
            "message": encodable(self.message),
            "fault": self.fault,
            "tried": self.tried,
            "seconds": round(self.seconds, 3),
        }


def void_contracts(controls: Iterable[Control]) -> frozenset[str]:
    """The contracts whose audit says nothing, for one of its controls failed."""
    return frozenset(control.contract for control in controls if control.failed)


def failures(controls: Iterable[Control]) -> list[str]:
    """All about the controls that failed."""
    return [
        f"void: the audit of {control.contract} says nothing, since a control failed\n"
        f"{control.in_words()}\n{control.message.rstrip()}".rstrip()
        for control in controls
        if control.failed
    ]


def as_data(controls: Iterable[Control]) -> Mapping[str, Any]:
    """Contract to kind to what the control showed."""
    found: dict[str, dict[str, Any]] = {}
    for control in controls:
        found.setdefault(control.contract, {})[str(control.kind)] = control.to_data()
    return found


def broken_off(contract: str, told: Iterable[Control], message: str) -> list[Control]:
    """Controls that are missing because the process ended: the first is unknown, a later one wasn't run."""
    missing = [kind for kind in Kind if kind not in {control.kind for control in told}]
    rows: list[Control] = []
    for kind in missing:
        verdict, why = (None, "the process had ended") if rows else (Verdict.UNKNOWN, message)
        rows.append(Control(contract, kind, verdict, message=why))
    return rows
