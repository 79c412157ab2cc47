"""Writes ``docs/faults.md`` from what ``tokenlaw faults --json`` wrote; of several files the last one counts.

``python docs/generate_faults.py 2026-11-30 matrix.json [more.json ...]``
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenlaw.impl.faults.targets import SUSPECTS

HEAD = """# Faults that are planted, and what kills them

Written by `docs/generate_faults.py`. Each fault is a small deliberate mistake in a reference
implementation, distilled from a public report; `tokenlaw faults` audits all of them as it audits anybody's
code, and every one must be refuted. The innocents are exact and were reported as bugs nevertheless; no
check may be refuted on them. One alone: `tokenlaw audit tokenlaw.impl.faults.targets:no_copy_on_write`.

Measured on {date}, torch {torch}, seed {seed}, profile {profile}, on two cores that did other work too:

```sh
tokenlaw faults {families} --json matrix.json
```

(in parts, by `--only`).

**{killed} of {faults} faults killed, silent on {silent} of {innocents} innocents**, {seconds:,.0f} s of
processor time in all. {alone} faults are seen by one check alone (marked \\*). Numbers in brackets are
operations of the shrunk trace; seconds are processor time of the whole audit, all checks and shrinking
included.
"""


def rows_of(paths: Iterable[Path]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Rows by name, and the last file without them."""
    rows: dict[str, dict[str, Any]] = {}
    for path in paths:
        data = json.loads(path.read_text())
        rows |= {row["name"]: row for row in (*data["faults"], *data["innocents"])}
    return rows, data


def kills(row: dict[str, Any]) -> str:
    """The checks that refute it, with operations where there are any."""
    seen = [
        kill["check"] + (f" ({kill['operations']})" if kill["operations"] else "") for kill in row["refuted"]
    ]
    return ", ".join(seen) + (" \\*" if row["one_check_alone"] else "") if seen else f"**{row['verdict']}**"


def document(rows: dict[str, dict[str, Any]], data: dict[str, Any], date: str) -> str:
    """The whole page."""
    guilty = [name for name in rows if SUSPECTS[name].guilty]
    innocent = [name for name in rows if not SUSPECTS[name].guilty]
    verdicts = Counter(row["verdict"] for row in rows.values())
    families = dict.fromkeys(f"--family {SUSPECTS[name].family}" for name in rows)
    text = HEAD.format(
        date=date,
        torch=data["versions"]["torch"],
        seed=data["seed"],
        profile=data["profile"],
        families=" ".join(families),
        killed=verdicts["killed"],
        faults=len(guilty),
        silent=verdicts["silent"],
        innocents=len(innocent),
        seconds=sum(row["seconds"] or 0 for row in rows.values()),
        alone=sum(row["one_check_alone"] for row in rows.values()),
    )
    known = {SUSPECTS[name].family for name in rows}
    missing = [name for name, one in SUSPECTS.items() if one.family in known and name not in rows]
    if missing:
        text += f"\nNot measured yet: {', '.join(missing)}.\n"
    for contract in dict.fromkeys(rows[name]["contract"] for name in guilty):
        text += f"\n## {contract}\n\n| fault | class | report | effect | refuted by | s |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        text += "".join(_guilty(rows[name]) for name in guilty if rows[name]["contract"] == contract)
    if innocent:
        text += "\n## Innocents\n\n| name | taken for a bug in | why it is exact | verdict | s |\n"
        text += "| --- | --- | --- | --- | --- |\n" + "".join(_innocent(rows[name]) for name in innocent)
    return text


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
