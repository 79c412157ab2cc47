"""What the controls of an audit cost, as a share of the audit, in processor time.

    python benchmarks/controls_cost.py [--profile dev] [--budget 30000] [name ...]

Exact implementations, which are not the reference itself, are audited as by default, without controls and
with them, in turns. An audit that takes a second or two has dearer controls: they can't ask less than once.
"""

import argparse
import statistics
import time
from typing import Any

import torch

import tokenlaw
from tokenlaw.impl.faults.targets import SUSPECTS
from tokenlaw.spec.contracts import BLOCK_MANAGER, DECODER, KV_STORE, PAGED_ATTENTION, VERIFIER
from tokenlaw.spec.verdicts import Verdict

CHECKS: dict[str, Any] = {
    BLOCK_MANAGER: tokenlaw.check_block_manager,
    KV_STORE: tokenlaw.check_kv_store,
    PAGED_ATTENTION: tokenlaw.check_paged_attention,
    VERIFIER: tokenlaw.check_verifier,
    DECODER: tokenlaw.check_decoder,
}
NAMES = ("manager", "copies_whole_forks", "kernel", "chain", "block_rule")
"""Innocents, one of each contract."""
TURNS = 3


def seconds(name: str, *, controls: bool, **options: Any) -> float:
    """Processor time of an audit, which must hold, and whose controls must say something."""
    suspect = SUSPECTS[name]
    implementation = suspect.implementation()
    check, offered = CHECKS[suspect.contract], implementation.factories[suspect.contract]
    started = time.process_time()
    report = check(
        offered() if suspect.contract == VERIFIER else offered,
        capabilities=implementation.capabilities.get(suspect.contract),
        controls=controls,
        raises=False,
        **options,
    )
    used = time.process_time() - started
    silent = [one.message for one in report.controls if one.verdict is None]
    if report.verdict is not Verdict.HOLDS or silent:
        raise SystemExit(f"{name}: {report.summary()}; controls not run: {silent}")
    return used


def main() -> None:
    """A line for each implementation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="name")
    parser.add_argument("--profile", default="dev")
    parser.add_argument("--budget", type=int)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for name in asked.names:
        sampled = SUSPECTS[name].contract in (VERIFIER, DECODER) and asked.budget
        options = {"profile": asked.profile} | ({"budget": asked.budget} if sampled else {})
        seconds(name, controls=True, **options)  # imports, and warms up
        turns = [
            (seconds(name, controls=False, **options), seconds(name, controls=True, **options))
            for _ in range(TURNS)
        ]
        shares = [both / alone - 1 for alone, both in turns]
        alone = statistics.median(alone for alone, _ in turns)
        print(f"{name}: {alone:.1f} s, controls {statistics.median(shares):.0%} of that", flush=True)


if __name__ == "__main__":
    main()
