"""What ``tokenlaw faults`` says, for people and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenlaw.faults import Kill, Row
from tokenlaw.impl.faults.innocents import Innocent
from tokenlaw.runner import versions

SCHEMA = "tokenlaw.faults/1"
_WORDS = {(True, True): "killed", (True, False): "missed", (False, True): "silent", (False, False): "ALARMED"}
LONELY = "seen by one check alone"


def word(row: Row) -> str:
    """What became of it: killed or missed, silent or alarmed."""
    return _WORDS[row.suspect.guilty, row.right]


def size(kill: Kill) -> str:
    """How much a check took: operations of the shrunk trace, what a law was found by, or calls of a kernel.

    >>> size(Kill("kv/content", 3, None, 900)), size(Kill("law/joint", None, 12_000, 0))
    ('3 operations', '12,000 samples')
    >>> size(Kill("law/proved", None, None, 1_915, paths=246))
    '246 paths'
    """
    counts = (
        (kill.operations, "operation"),
        (kill.samples, "sample"),
        (kill.paths, "path"),
        (kill.evaluations, "evaluation"),
    )
    for count, what in counts:
        if count is not None:
            return f"{count:,} {what}{'s' if count != 1 else ''}"
    return f"{kill.tried:,} tried"


def lines(rows: Sequence[Row]) -> list[str]:
    """A line for each row, what else there is to say, and a summary."""
    told = [_line(row) for row in rows]
    told += [f"{row.suspect.name}: {row.unknown}" for row in rows if row.unknown and not row.right]
    return [*told, "", summary(rows)]


def _line(row: Row) -> str:
    seconds = "ended early" if row.seconds is None else f"{row.seconds:.1f} s"
    seen = ", ".join(f"{kill.check} ({size(kill)}, {kill.seconds:.1f} s)" for kill in row.kills) or "no check"
    note = f"; {LONELY}" if row.lonely else ""
    return f"{word(row):7}  {row.suspect.name:28}  {_classes(row):9}  {seconds:>8}  {seen}{note}"


def _classes(row: Row) -> str:
    planted = row.suspect.planted
    return "innocent" if isinstance(planted, Innocent) else ", ".join(planted.classes)


def summary(rows: Sequence[Row]) -> str:
    """How many faults are killed, how many innocents are left alone, and what it took."""
    guilty = [row for row in rows if row.suspect.guilty]
    innocent = [row for row in rows if not row.suspect.guilty]
    parts = []
    if guilty:
        killed, alone = sum(row.right for row in guilty), sum(row.lonely for row in guilty)
        parts.append(f"{killed} of {len(guilty)} faults killed ({alone} {LONELY})")
    if innocent:
        parts.append(f"silent on {sum(row.right for row in innocent)} of {len(innocent)} innocents")
    taken = sum(row.seconds or 0.0 for row in rows)
    return f"{', '.join(parts)}; {taken:,.0f} s of processor time"


def to_data(rows: Sequence[Row], *, of: int, profile: str, seed: int, command: str) -> dict[str, Any]:
    """The matrix as plain data; ``of`` is how many rows it has when it is complete."""
    return {
        "schema": SCHEMA,
        "command": command,
        "profile": profile,
        "seed": seed,
        "versions": versions(),
        "complete": len(rows) == of,
        "killed": sum(row.suspect.guilty and row.right for row in rows),
        "faults": [_data(row) for row in rows if row.suspect.guilty],
        "innocents": [_data(row) for row in rows if not row.suspect.guilty],
    }


def _data(row: Row) -> dict[str, Any]:
    planted = row.suspect.planted
    described = (
        {"report": planted.report, "reason": planted.reason}
        if isinstance(planted, Innocent)
        else {
            "classes": list(planted.classes),
            "report": planted.report,
            "effect": planted.effect,
            "weakest_check": planted.weakest_check,
        }
    )
    return {
        "name": row.suspect.name,
        "family": row.suspect.family,
        "contract": row.suspect.contract,
        "target": row.suspect.address,
        "verdict": word(row).lower(),
        **described,
        "refuted": [asdict(kill) for kill in row.kills],
        "one_check_alone": row.lonely,
        "unknown": row.unknown,
        "seconds": None if row.seconds is None else round(row.seconds, 2),
    }
