"""Planted faults against what other projects test today, in the same run as our own suite.

``python benchmarks/bench_peers.py --quick`` (one seed a fault, three of the exact base; a few minutes), or
``--seeds 10 --base-seeds 500``, the default, for rates worth quoting (an hour; 0 of 10 still allows a rate of
26 %). Our own suite takes more seconds than all others together: ``--our-seeds`` and ``--our-base-seeds``
give it seeds of its own, and ``--matrix F`` takes its kills from what ``tokenlaw faults --family verifier
--json F`` wrote before. Prints the matrix fault x criterion as shares of seeds in which the criterion fails
the fault, then for each criterion the faults that it kills, its false alarms on the exact base, its requests
and the processor seconds on that base. ``--json F`` stores all of it, criterion by criterion.

The 35 kinds that were measured before stand first; further ones of the catalogue follow.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from peers import CRITERIA, SUITES, Criterion
from peers.measured import MEASURED
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tokenlaw
from tokenlaw.impl.faults import VERIFIER_FAULTS, ChainVerifier
from tokenlaw.impl.faults.verifier_step import Laws
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.verdicts import Verdict

OURS, KILLED = "tokenlaw", 0.9
"""A fault counts as killed at this share of seeds."""

CAPABILITIES = ("draft", "uniforms", "row-seeds")
"""What the base of the faults claims."""


@dataclass
class Column:
    """What one criterion did.

    Attributes
    ----------
    requests : steps of one row in one run that doesn't fail.
    seeds : runs on each fault.
    shares : fault -> share of seeds in which the criterion failed it.
    false_alarms : runs on the exact base that failed.
    base_runs : runs on the exact base.
    seconds : processor seconds of one run on the base.
    """

    requests: int
    seeds: int
    shares: dict[str, float] = field(default_factory=dict)
    false_alarms: int = 0
    base_runs: int = 0
    seconds: float = 0.0

    def killed(self, faults: Iterable[str]) -> int:
        """How many of these faults it kills."""
        return sum(self.shares[fault] >= KILLED for fault in faults)


class Counting(ChainVerifier):
    """The exact base, counting the rows that it is given."""

    def __init__(self) -> None:
        self.rows = 0

    def laws(self, batch: VerifyBatch) -> Laws:
        """Once a step."""
        self.rows += len(batch.draft_tokens)
        return super().laws(batch)


def check_ourselves(verifier: Any, seed: int) -> bool:
    """Our default check, as a criterion."""
    report = tokenlaw.check_verifier(verifier, capabilities=CAPABILITIES, seed=seed, raises=False)
    return bool(report.verdict is Verdict.REFUTED)


def our_criterion() -> Criterion:
    """What `tokenlaw.check_verifier` does by default, and how many requests that takes.

    Raises
    ------
    SystemExit
        It refutes the exact base.
    """
    base = Counting()
    if check_ourselves(base, seed=0):
        raise SystemExit("our own check refutes the exact base; look into it with tokenlaw audit")
    return Criterion(OURS, "tokenlaw.check_verifier, default", base.rows, check_ourselves)


def measure(criterion: Criterion, faults: Sequence[str], seeds: int, base_seeds: int) -> Column:
    """One criterion on all faults, and on the exact base."""
    column = Column(criterion.requests, seeds, base_runs=base_seeds)
    started = time.process_time()
    alarms = [criterion.kills(ChainVerifier(), 1_000 + seed) for seed in range(base_seeds)]
    column.seconds = (time.process_time() - started) / max(base_seeds, 1)
    column.false_alarms = sum(alarms)
    for fault in track(faults, description=criterion.name):
        kills = [criterion.kills(VERIFIER_FAULTS[fault].make(), seed) for seed in range(seeds)]
        column.shares[fault] = sum(kills) / seeds
    return column


def measure_all(options: argparse.Namespace, faults: Sequence[str]) -> dict[str, Column]:
    """All columns, suites included; what is known so far is stored after each of them."""
    columns: dict[str, Column] = {}
    for criterion in CRITERIA:
        columns[criterion.name] = measure(criterion, faults, options.seeds, options.base_seeds)
        store(columns, options.json)
    for name, members in SUITES.items():
        columns[name] = suite([columns[member] for member in members], faults)
    if options.matrix:
        columns[OURS] = audited(json.loads(options.matrix.read_text()), faults)
    elif options.our_seeds:
        columns[OURS] = measure(our_criterion(), faults, options.our_seeds, options.our_base_seeds)
    store(columns, options.json)
    return columns


def audited(data: dict[str, Any], faults: Sequence[str]) -> Column:
    """Our own column from a matrix of audits: one seed, and the innocents as the exact base."""
    verdicts = {row["name"]: row["verdict"] for row in data["faults"]}
    innocents = data["innocents"]
    return Column(
        our_criterion().requests,
        1,
        {fault: float(verdicts[fault] == "killed") for fault in faults},
        sum(row["verdict"] != "silent" for row in innocents),
        len(innocents),
        sum(row["seconds"] or 0.0 for row in innocents) / max(len(innocents), 1),
    )


def store(columns: dict[str, Column], path: Path | None) -> None:
    """Write the figures, if a file is given."""
    if path is not None:
        told = {name: asdict(column) for name, column in columns.items()}
        path.write_text(json.dumps(told, indent=1) + "\n")


def suite(members: Sequence[Column], faults: Sequence[str]) -> Column:
    """The members together; as if their kills were nested, so a lower bound of the shares."""
    return Column(
        sum(member.requests for member in members),
        members[0].seeds,
        {fault: max(member.shares[fault] for member in members) for fault in faults},
        max(member.false_alarms for member in members),
        members[0].base_runs,
        sum(member.seconds for member in members),
    )


def matrix(columns: dict[str, Column], faults: Sequence[str]) -> Table:
    """Fault x criterion."""
    table = Table(title="share of seeds in which the criterion fails the fault (. = never)")
    table.add_column("fault")
    for name in columns:
        table.add_column(name, justify="right")
    for fault in faults:
        shares = [column.shares[fault] for column in columns.values()]
        table.add_row(fault, *(f"{share:.2g}" if share else "." for share in shares))
    return table


def summary(columns: dict[str, Column], faults: Sequence[str]) -> Table:
    """One row a criterion."""
    kinds = [fault for fault in faults if fault in MEASURED]
    others = [fault for fault in faults if fault not in MEASURED]
    table = Table(title=f"killed: at least {KILLED:.0%} of the seeds")
    heads = (f"of {len(kinds)} kinds", f"of {len(others)} more", "false alarms", "requests", "CPU s")
    table.add_column("criterion")
    for head in heads:
        table.add_column(head, justify="right")
    for name, column in columns.items():
        alarms = f"{column.false_alarms}/{column.base_runs}"
        figures = (f"{column.requests:,}" if column.requests else "-", f"{column.seconds:.2f}")
        table.add_row(name, str(column.killed(kinds)), str(column.killed(others)), alarms, *figures)
    peers = [column for name, column in columns.items() if name != OURS]
    union = {fault: max(column.shares[fault] for column in peers) for fault in faults}
    together = Column(0, peers[0].seeds, union)
    table.add_row("all peers together", str(together.killed(kinds)), str(together.killed(others)), "", "", "")
    return table


def differences(columns: dict[str, Column], faults: Sequence[str]) -> list[str]:
    """Where the first measurement saw a fault always and this one never, or the reverse."""
    found = []
    for fault in faults:
        for name, before in MEASURED.get(fault, {}).items():
            now = columns[name].shares[fault]
            if abs(now - before) > 0.75:
                found.append(f"{fault} x {name}: {before:g} before, {now:g} now")
    return found


def main() -> None:
    """Parse the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 seed a fault, 3 of the base")
    parser.add_argument("--seeds", type=int, default=10, help="seeds for each fault")
    parser.add_argument("--base-seeds", type=int, default=500, help="seeds of the exact base")
    parser.add_argument("--our-seeds", type=int, help="seeds of our own suite; 0 leaves it out")
    parser.add_argument("--our-base-seeds", type=int, help="its seeds of the exact base")
    parser.add_argument("--matrix", type=Path, help="what tokenlaw faults --family verifier --json wrote")
    parser.add_argument("--faults", nargs="*", help="only these (default: all that act on verify or draft)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.base_seeds = 1, 3
    if options.our_seeds is None:
        options.our_seeds = options.seeds
    if options.our_base_seeds is None:
        options.our_base_seeds = options.base_seeds
    torch.set_num_threads(1)
    others = [fault for fault in VERIFIER_FAULTS if fault not in MEASURED and not fault.startswith("tree_")]
    faults = options.faults or [*MEASURED, *others]
    columns = measure_all(options, faults)
    console = Console(width=max(Console().width, 260))
    console.print(matrix(columns, faults), summary(columns, faults))
    console.print("compared with the first measurement:", *differences(columns, faults), sep="\n")


if __name__ == "__main__":
    main()
