"""Faults of caches against content-only tests, next to our own audits.

``python benchmarks/bench_kv_peers.py --json kv.json`` runs both content-only criteria on every planted fault
of block managers and KV stores with several seeds, and on every exact cache; then audits all of them, which
takes a quarter of an hour. ``--matrix F`` takes the audits from what ``tokenlaw faults --family kv --json F``
wrote before. Prints one line a criterion.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from peers.common import Criterion
from peers.paged_content import CONTENTS
from rich.console import Console
from rich.table import Table

from tokenlaw.faults import audit_all
from tokenlaw.faults_report import to_data
from tokenlaw.impl.faults.targets import KV, SUSPECTS

OURS, OUR_CONTENT = "tokenlaw", "tokenlaw, content alone"
CONTENT_CHECKS = {"kv/content", "store/content"}
COMMAND = "tokenlaw faults --family kv"


@dataclass
class Column:
    """What one criterion did.

    Attributes
    ----------
    faults : fault -> share of seeds in which the criterion failed it.
    innocents : exact cache -> the same.
    seconds : processor seconds of one run on an exact cache.
    """

    faults: dict[str, float] = field(default_factory=dict)
    innocents: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


def measured(criterion: Criterion, seeds: int) -> Column:
    """One content-only criterion on every fault and every exact cache."""
    column = Column()
    for name, suspect in SUSPECTS.items():
        if suspect.family == KV:
            started = time.process_time()
            share = sum(criterion.kills(suspect.planted.make, seed) for seed in range(seeds)) / seeds
            if suspect.guilty:
                column.faults[name] = share
            else:
                column.innocents[name] = share
                column.seconds += (time.process_time() - started) / seeds
    column.seconds /= max(len(column.innocents), 1)
    return column


def audited(data: dict[str, Any], sees: Callable[[str], bool]) -> Column:
    """The audits of a matrix, as far as some checks are concerned."""
    groups = [[row for row in data[name] if row["family"] == KV] for name in ("faults", "innocents")]
    found = [
        {row["name"]: float(any(sees(kill["check"]) for kill in row["refuted"])) for row in group}
        for group in groups
    ]
    seconds = [row["seconds"] or 0.0 for row in groups[1]]
    return Column(*found, sum(seconds) / max(len(seconds), 1))


def audit() -> dict[str, Any]:
    """What ``tokenlaw faults --family kv`` finds."""
    suspects = [one for one in SUSPECTS.values() if one.family == KV]
    rows = audit_all(suspects, processes=os.cpu_count() or 1, progress=lambda *_: None)
    return to_data(rows, of=len(rows), profile="dev", seed=0, command=COMMAND)


def summary(columns: dict[str, Column]) -> Table:
    """One row a criterion."""
    table = Table(title="faults of caches, failed with every seed")
    for head in ("criterion", "faults", "exact caches failed", "CPU s"):
        table.add_column(head)
    for name, column in columns.items():
        killed = sum(share == 1 for share in column.faults.values())
        alarms = sum(share > 0 for share in column.innocents.values())
        figures = (f"{killed} of {len(column.faults)}", f"{alarms} of {len(column.innocents)}")
        table.add_row(name, *figures, f"{column.seconds:.2f}")
    return table


def main() -> None:
    """Parse the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the content-only criteria")
    parser.add_argument("--matrix", type=Path, help="what tokenlaw faults --family kv --json wrote")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = {criterion.name: measured(criterion, options.seeds) for criterion in CONTENTS}
    data = json.loads(options.matrix.read_text()) if options.matrix else audit()
    columns[OUR_CONTENT] = audited(data, CONTENT_CHECKS.__contains__)
    columns[OURS] = audited(data, lambda check: True)
    Console().print(summary(columns))
    if options.json:
        told = {name: asdict(column) for name, column in columns.items()}
        options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
