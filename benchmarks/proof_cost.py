"""What the proof of transformers' ``generate`` costs, against as many plain calls, in processor time.

    python benchmarks/proof_cost.py llama_3_2_3

Both are run in turns of a few paths, so that a machine whose speed changes is no harm. Paths reject drafts
more often than calls that are drawn, and then pass through the models more often; so the second figure
compares with calls that have as many passes. Runs that are made twice, to see that nothing is kept between
calls, count as cost.
"""

import importlib
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.exact_law import Enumerator
from tokenlaw.stats.enumeration.exploration import Exploration

AT_ONCE, BLOCK, LAWS = 5, 50, 4
"""Paths in a turn and in a block; laws that are enumerated."""


class Calls:
    """A case that takes down the passes through the models, and the time, of its calls."""

    def __init__(self, case: Any) -> None:
        self.case, self.passes, self.seconds = case, list[int](), list[float]()
        self._passed = 0
        for model in (case.target, case.assistant):
            model.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self._passed += 1

    def __call__(self) -> list[Any]:
        before, started = self._passed, time.process_time()
        found = [self.case()]
        self.seconds.append(time.process_time() - started)
        self.passes.append(self._passed - before)
        return found


@dataclass
class Turns:
    """A block of paths and of as many plain calls."""

    paths: int = 0
    seconds: float = 0.0
    path_passes: int = 0
    runs: int = 0
    plain_seconds: float = 0.0
    plain_passes: int = 0


def measured(case: Any, laws: int) -> tuple[list[Turns], float]:
    """Blocks of turns, and the seconds of one more pass in a plain call."""
    proof, plain, blocks = Calls(case), Calls(case), [Turns()]
    for _ in range(laws):
        enumerator = Enumerator(proof)
        exploration = Exploration(1, enumerator._tape)  # `exact_law` can't be left and entered again
        while exploration.unfinished:
            enumerator._tape.beginning.clear()
            turn(enumerator, exploration, proof, plain, blocks[-1])
            if blocks[-1].paths >= BLOCK:
                blocks.append(Turns())
    slope = float(np.polyfit(plain.passes, plain.seconds, 1)[0])
    return blocks[:-1], slope


def turn(enumerator: Enumerator, exploration: Exploration, proof: Calls, plain: Calls, block: Turns) -> None:
    """A few paths, then as many plain calls."""
    before, first = exploration.paths, len(proof.passes)
    with enumerator:
        started = time.process_time()
        while exploration.unfinished and exploration.paths < before + AT_ONCE:
            exploration.run(proof)
        block.seconds += time.process_time() - started
    done = exploration.paths - before
    block.paths += done
    block.runs += len(proof.passes) - first
    block.path_passes += sum(proof.passes[first:])
    for _ in range(done):
        plain()
    block.plain_seconds += sum(plain.seconds[-done:])
    block.plain_passes += sum(plain.passes[-done:])


def main(name: str) -> None:
    """Measure a case of the audit of transformers."""
    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "audits"))
    case = importlib.import_module("transformers_generate").CASES[name]
    measured(case, 1)  # the first one imports, and warms up
    blocks, slope = measured(case, LAWS)
    drawn = [one.seconds / one.plain_seconds for one in blocks]
    # What the plain calls of a block would take with the passes of its paths.
    further = [one.path_passes * one.paths / one.runs - one.plain_passes for one in blocks]
    same = [
        one.seconds / (one.plain_seconds + more * slope) for one, more in zip(blocks, further, strict=True)
    ]
    for what, ratios in (("any plain calls", drawn), ("plain calls with as many passes", same)):
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{what}: {middle:.2f} times, quartiles {low:.2f} and {high:.2f}, {len(blocks)} blocks")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "llama_3_2_3")
