"""What the suite of laws kills, and whether it ever alarms without reason.

``python benchmarks/verifier_evidence.py`` audits every planted fault with several seeds at the default
budget, and every exact verifier with many seeds at a smaller one. Prints a line for each; ``--json FILE``
keeps them, up to date after every audit.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

import tokenlaw
from tokenlaw.impl.faults import INNOCENTS, VERIFIER_FAULTS
from tokenlaw.spec.capabilities import probe_capabilities
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.verdicts import Verdict

FAULTS, EXACT = "faults", "exact verifiers"


def refuted(group: str, name: str, seed: int, budget: int | None) -> tuple[list[str], float]:
    """Checks that one audit refutes, and its CPU seconds."""
    torch.set_num_threads(1)
    started = time.process_time()
    make = (VERIFIER_FAULTS if group == FAULTS else INNOCENTS)[name].make
    capabilities = {*probe_capabilities(VERIFIER, make()), "row-seeds"}
    report = tokenlaw.check_verifier(make, seed=seed, budget=budget, capabilities=capabilities, raises=False)
    found = [row.check.id for row in report.with_verdict(Verdict.REFUTED)]
    return found, time.process_time() - started


def jobs(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int, int | None]]:
    """Everything to be run: group, name, seed, budget."""
    for seed in range(arguments.fault_seeds):
        for name in arguments.faults or VERIFIER_FAULTS:
            yield FAULTS, name, seed, None
    for seed in range(arguments.exact_seeds):
        for name in INNOCENTS:
            yield EXACT, name, seed, arguments.exact_budget


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="*", choices=list(VERIFIER_FAULTS), help="all of them by default")
    parser.add_argument("--fault-seeds", type=int, default=20)
    parser.add_argument("--exact-seeds", type=int, default=500)
    parser.add_argument("--exact-budget", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[tuple[str, str], list[tuple[list[str], float]]] = {}
    with ProcessPoolExecutor(arguments.processes) as pool:
        pending = {pool.submit(refuted, *job): job for job in jobs(arguments)}
        for done, future in enumerate(as_completed(pending), start=1):
            group, name, *_ = pending[future]
            results.setdefault((group, name), []).append(future.result())
            if done % 100 == 0:
                print(f"... {done} of {len(pending)} audits", flush=True)
            rows = [_row(group, name, found) for (group, name), found in sorted(results.items())]
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        checks = ", ".join(f"{check[4:]} {count}" for check, count in row["checks"].items())
        print(f"{row['group']:16} {row['name']:26} {row['refuted']:4} of {row['runs']:4}  {checks}")


def _row(group: str, name: str, found: list[tuple[list[str], float]]) -> dict[str, Any]:
    counts = Counter(check for checks, _ in found for check in checks)
    return {
        "group": group,
        "name": name,
        "runs": len(found),
        "refuted": sum(bool(checks) for checks, _ in found),
        "checks": dict(counts.most_common()),
        "seconds": sum(seconds for _, seconds in found) / len(found),
    }


if __name__ == "__main__":
    main()
