"""Writes ``docs/faults.md`` from what ``tokenlaw faults --json`` wrote; of several files the last one counts.

``python docs/generate_faults.py 2026-11-30 matrix.json [more.json ...]``
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenlaw.impl.faults.targets import FAMILIES, SUSPECTS

HEAD = """# Faults that are planted, and what kills them

Written by `docs/generate_faults.py`. Each fault is a small deliberate mistake in a reference
implementation, distilled from a public report; `tokenlaw faults` audits all of them as it audits anybody's
code, and every one must be refuted. The innocents are exact and were reported as bugs nevertheless; no
check may be refuted on them. One alone: `tokenlaw audit tokenlaw.impl.faults.targets:no_copy_on_write`.
Faults of caches and decoders are subclasses of the reference, or hooks in it. Those of verifiers and of
kernels are subclasses of a second implementation, written row by row so that one step of it can be
replaced; it is asked as an innocent itself.

Measured on {date}, tokenlaw {tokenlaw}, torch {torch}, seed {seed}, profile {profile}, on two cores that did
other work too:

```sh unrun="takes an hour"
tokenlaw faults {families} --json matrix.json
```

(family by family, some of it by `--only`; what a starved process hadn't decided in time was asked again).
Seconds are processor time of the whole audit, all checks and shrinking included. One seed says little of a
rare kill: [calibration](calibration.md#faults-of-caches-seed-by-seed) counts seeds.

| family | faults killed | seen by one check alone | innocents left alone | s |
| --- | --: | --: | --: | --: |
"""

BRACKETS = """
Behind a check stands what it took: operations of the shrunk trace (a bare number), samples of a law, paths
of its random numbers (`law/proved`), rows that were asked with given numbers (`law/probed`), or calls
(tried); and the seconds until it had decided, its counterexample shrunk (checks that share samples share
them). \\* marks what one check alone sees.
"""

UNSEEN = """
Not seen by the check that their docstrings call the weakest: {names}.
"""

LONG = """
## Longer counterexamples

The smallest counterexample of every fault of a cache has {most} operations at most. Further checks see the
same fault through a later consequence, and their traces are longer than {limit} here:
{listed}.

{why}
"""

WHY = """The traces of `kv/` need a pool that is full at the right moment, or a release that breaks halfway
and leaves the sequence behind, and their operations are what fills it. Leaving out any four operations of
those that were tried in an earlier run (`hit_stays_free`, `copies_full_blocks`, `leaks_on_refusal`), with
any smaller pool, finds no smaller trace that is still refuted; so it isn't the shrinker that keeps them
long. Others weren't looked into as deeply; shrinking ends after a while, and a busy machine gets less far.
"""

COUNTED = {
    "operations": "",
    "samples": " samples",
    "paths": " paths",
    "evaluations": " rows",
    "tried": " tried",
}
"""What a check may have counted, the most telling first, and what it is called in the table."""

LIMIT = 6
"""Operations that a counterexample of a cache should have at most."""


def rows_of(paths: Iterable[Path]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Rows by name, and the last file without them."""
    rows: dict[str, dict[str, Any]] = {}
    for path in paths:
        data = json.loads(path.read_text())
        rows |= {row["name"]: row for row in (*data["faults"], *data["innocents"])}
    return rows, data


def kills(row: dict[str, Any]) -> str:
    """The checks that refute it, each with what it took."""
    seen = [f"{kill['check']}{taken(kill)}" for kill in row["refuted"]]
    return ", ".join(seen) + (" \\*" if row["one_check_alone"] else "") if seen else f"**{row['verdict']}**"


def taken(kill: dict[str, Any]) -> str:
    """Operations, samples, paths, rows or calls, and seconds, in brackets."""
    counts = ((kill.get(name), what) for name, what in COUNTED.items())
    count, what = next((count, what) for count, what in counts if count is not None)
    return f" ({count:,}{what}; {kill['seconds']:.1f} s)"


def document(rows: dict[str, dict[str, Any]], data: dict[str, Any], date: str) -> str:
    """The whole page."""
    text = HEAD.format(
        date=date,
        tokenlaw=data["versions"]["tokenlaw"],
        torch=data["versions"]["torch"],
        seed=data["seed"],
        profile=data["profile"],
        families=" ".join(dict.fromkeys(f"--family {SUSPECTS[name].family}" for name in rows)),
    )
    text += "".join(_family(family, rows) for family in FAMILIES)
    missing = [words for family in FAMILIES if (words := _missing(family, rows))]
    if missing:
        text += f"\nNot measured yet: {'; '.join(missing)}.\n"
    guilty = [name for name in rows if SUSPECTS[name].guilty]
    unseen = ", ".join(name for name in guilty if not _sees(rows[name]))
    text += BRACKETS + (UNSEEN.format(names=unseen) if unseen else "") + _long(rows)
    innocent = [name for name in rows if not SUSPECTS[name].guilty]
    for contract in dict.fromkeys(rows[name]["contract"] for name in guilty):
        text += f"\n## {contract}\n\n| fault | class | report | effect | refuted by | s |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        text += "".join(_guilty(rows[name]) for name in guilty if rows[name]["contract"] == contract)
    if innocent:
        text += "\n## Innocents\n\n| name | taken for a bug in | why it is exact | verdict | s |\n"
        text += "| --- | --- | --- | --- | --- |\n" + "".join(_innocent(rows[name]) for name in innocent)
    return text


def _sees(row: dict[str, Any]) -> bool:
    """Whether the weakest check is among those that refute the fault."""
    fault: Any = SUSPECTS[row["name"]].planted
    return fault.weakest_check.partition(" ")[0] in {kill["check"] for kill in row["refuted"]}


def _family(family: str, rows: dict[str, dict[str, Any]]) -> str:
    """One line of the summary; nothing for a family without rows."""
    mine = [row for name, row in rows.items() if SUSPECTS[name].family == family]
    guilty = [row for row in mine if SUSPECTS[row["name"]].guilty]
    killed = sum(row["verdict"] == "killed" for row in guilty)
    silent = sum(row["verdict"] == "silent" for row in mine)
    alone = sum(row["one_check_alone"] for row in guilty)
    seconds = sum(row["seconds"] or 0 for row in mine)
    cells = (
        f"{killed} of {len(guilty)}",
        str(alone),
        f"{silent} of {len(mine) - len(guilty)}",
        f"{seconds:,.0f}",
    )
    return f"| {family} | {' | '.join(cells)} |\n" if mine else ""


def _missing(family: str, rows: dict[str, dict[str, Any]]) -> str:
    """Names of what has no row; a family without any is named as a whole."""
    mine = [name for name, one in SUSPECTS.items() if one.family == family]
    names = [name for name in mine if name not in rows]
    return f"the family {family}, {len(mine)} targets" if names == mine else ", ".join(names)


def _long(rows: dict[str, dict[str, Any]]) -> str:
    """Which counterexamples have more than `LIMIT` operations, and why."""
    traces = {name: _operations(row) for name, row in rows.items() if SUSPECTS[name].guilty}
    listed = [
        f"{name} {check} ({count})"
        for name, found in traces.items()
        for check, count in found
        if count > LIMIT
    ]
    most = max((min(count for _, count in found) for found in traces.values() if found), default=0)
    if not listed:
        return ""
    return LONG.format(most=most, limit=LIMIT, listed=", ".join(listed), why=WHY)


def _operations(row: dict[str, Any]) -> Sequence[tuple[str, int]]:
    return [(kill["check"], kill["operations"]) for kill in row["refuted"] if kill["operations"] is not None]


def _guilty(row: dict[str, Any]) -> str:
    fault: Any = SUSPECTS[row["name"]].planted
    cells = [fault.name, ", ".join(fault.classes), fault.report, fault.effect, kills(row), _seconds(row)]
    return f"| {' | '.join(cells)} |\n"


def _innocent(row: dict[str, Any]) -> str:
    one: Any = SUSPECTS[row["name"]].planted
    return f"| {' | '.join([one.name, one.report, one.reason, row['verdict'], _seconds(row)])} |\n"


def _seconds(row: dict[str, Any]) -> str:
    return "-" if row["seconds"] is None else f"{row['seconds']:.1f}"


if __name__ == "__main__":
    found, last = rows_of(map(Path, sys.argv[2:]))
    ordered = {name: found[name] for name in SUSPECTS if name in found}
    Path(__file__).with_name("faults.md").write_text(document(ordered, last, sys.argv[1]))
