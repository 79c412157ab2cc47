"""In how many seeds a planted fault of a cache is refuted, and after how many operations.

    python benchmarks/cache_kills.py [--seeds 10] [--profile dev] [name ...]

A default run of all checks ends where the first of them is refuted, before anything is shrunk. One line for
each fault that some seed missed, or that took more than ``--slow`` operations; then what took longest.
"""

import argparse
import statistics

import torch

from tokenlaw.impl.faults.targets import KV, SUSPECTS, Suspect
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.suites import PROFILES, ignore
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.suites import suites


class _Refuted(BaseException):
    """Ends a run from within."""


def operations_to_kill(suspect: Suspect, seed: int, profile: str) -> int | None:
    """Operations until the first refutation; None if there is none."""
    suite, tried = suites()[suspect.contract], list[int]()

    def keep(found: Evidence) -> None:
        if found.verdict is Verdict.REFUTED:
            tried.append(found.operations)
            raise _Refuted

    try:
        with listening(lambda _: None, keep):
            suite.run(
                suspect.implementation(),
                profile=PROFILES[profile],
                seed=seed,
                selected=frozenset(check.id for check in suite.checks),
                progress=ignore,
            )
    except _Refuted:
        return tried[0]
    return None


def main() -> None:
    """Ask all faults of caches, or some."""
    known = [name for name, one in SUSPECTS.items() if one.family == KV and one.guilty]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=known, metavar="name")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--profile", default="dev")
    parser.add_argument("--slow", type=int, default=1_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    missed, longest = 0, list[tuple[int, str]]()
    for name in asked.names:
        found = [operations_to_kill(SUSPECTS[name], seed, asked.profile) for seed in range(asked.seeds)]
        killed = sorted(one for one in found if one is not None)
        missed += len(found) - len(killed)
        longest.append((max(killed, default=0), name))
        if len(killed) < len(found) or killed[-1] > asked.slow:
            middle = statistics.median(killed) if killed else float("nan")
            print(f"{name}: {len(killed)} of {len(found)} seeds, {middle:.0f} operations, {killed[-1:]}")
    print(f"{len(asked.names)} faults, {asked.seeds} seeds each: {missed} audits missed one")
    print("longest:", ", ".join(f"{name} {count:,}" for count, name in sorted(longest)[:-6:-1]))


if __name__ == "__main__":
    main()
