"""Tries one pair of laws on a verifier: one e-value, and how far the pair was off."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenlaw.spec.generation_contracts import TEXTBOOK
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.chain_laws import Array, KindLaws, chain_joint, completed
from tokenlaw.stats.distances import plug_in_tv
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.e_values import average_log_e, product_log_e
from tokenlaw.stats.measures import COMPLETED, JOINT, PoissonMeasure
from tokenlaw.stats.power import visible_tv
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.searched_laws import LawPair
from tokenlaw.stats.tally import Counts, JointTally, complete, of_kind
from tokenlaw.stats.trial import kind_laws

ROWS_AT_ONCE = 8_192
"""Rows of a call at most."""


@dataclass(frozen=True)
class Example:
    """How one pair of laws fared.

    Attributes
    ----------
    name : of its scenario; its random numbers come from this name and the seed of the run.
    rows, samples : mean of the Poisson law of the number of rows, and the number that it gave.
    log_e : natural logarithm of its e-value; infinity after an impossible outcome.
    tv : by how much the plug-in distance exceeds what noise adds to it, under the law that was off most.
    cells : number of possible outcomes of that law.
    laws : the same of every law that was judged.
    kinds : of rows; each has an equal part of the rows and of the laws.
    """

    pair: LawPair
    name: str
    rows: float
    samples: int
    log_e: float
    tv: float
    cells: int
    laws: tuple[int, ...]
    kinds: int

    def visible(self, needed: float) -> list[float]:
        """For each law the total variation from which on `log_e` would have reached what is needed."""
        averaged = len(self.laws) / self.kinds * (self.kinds + 1)
        alpha = math.exp(-needed) / averaged
        return [visible_tv(self.rows / self.kinds, cells, alpha) for cells in self.laws]


@dataclass(frozen=True)
class _Judged:
    """Counts of one kind beside one law."""

    counts: Counts
    law: Array
    log_e: float

    @staticmethod
    def of(counts: Counts, law: Array, impossible: Array, expected: float) -> "_Judged":
        """Judge the counts; a single impossible outcome refutes."""
        broken = bool(counts[impossible].any())
        return _Judged(counts, law, math.inf if broken else PoissonMeasure(law).log_e(counts, expected))

    @property
    def cells(self) -> int:
        """Number of possible outcomes."""
        return int(np.count_nonzero(self.law))

    def excess(self) -> float:
        """By how much the plug-in total variation exceeds its mean under the law."""
        used = self.law > 0
        law, counts = self.law[used] / self.law[used].sum(), self.counts[used]
        if not counts.any():
            return 0.0
        noise = float(np.sqrt(law * (1 - law) / (2 * math.pi * counts.sum())).sum())
        return max(plug_in_tv(counts, law) - noise, 0.0)


@dataclass
class Examiner:
    """Tries pairs of laws, each with random numbers of its own.

    Attributes
    ----------
    verifier, claims, seed, device, alive, rows_at_once : see `tokenlaw.stats.search.search`.
    tried : how many pairs were tried so far; gives each its random numbers.
    """

    verifier: Any
    claims: str
    seed: int
    device: str
    alive: Callable[[], None]
    rows_at_once: int = ROWS_AT_ONCE
    tried: int = 0

    def examine(self, pair: LawPair, rows: float) -> Example:
        """Verify a Poisson number of rows with this mean.

        The e-value averages the laws that are claimed. For each law it averages rows with all drafts, rows
        with one less, and the product of the two, whose counts are independent.
        """
        self.tried += 1
        name = f"searched {self.tried}"
        tables = Tables.of(pair.scenario(name), self.device)
        generator = np.random.Generator(np.random.Philox(derived_key(self.seed, name, "size")))
        size = int(generator.poisson(rows))
        outcomes = self._outcomes(tables, size)
        by_kind = [
            self._judged(of_kind(outcomes, index, laws.length), laws, rows / len(outcomes), name, index)
            for index, laws in enumerate(kind_laws(tables))
        ]
        averages = []
        for check in by_kind[0]:
            log_es = [judged[check].log_e for judged in by_kind]
            averages.append(_averaged([*log_es, product_log_e(log_es)]))
        every = [one for judged in by_kind for one in judged.values()]
        worst, laws = max(every, key=lambda one: one.log_e), tuple(one.cells for one in every)
        log_e = _averaged(averages)
        return Example(pair, name, rows, size, log_e, worst.excess(), worst.cells, laws, len(by_kind))

    def _outcomes(self, tables: Tables, size: int) -> Counts:
        """Counts ``[kinds] + [V + 1] * (K + 1)`` of so many rows."""
        driver, tally = Driver(self.verifier, tables, self.seed), JointTally(tables, self.seed)
        for start in range(0, size, self.rows_at_once):
            tally.add(driver.step(start, min(start + self.rows_at_once, size)))
            self.alive()
        return tally.outcomes()

    def _judged(
        self, counts: Counts, laws: KindLaws, expected: float, *names: int | str
    ) -> dict[str, _Judged]:
        """What the counts of one kind say about each law that is claimed."""
        law, extended = completed(laws), complete(counts, laws, self.seed, *names)
        # What was emitted in spite of a probability of 0 stands in a cell of probability 0.
        found = {COMPLETED: _Judged.of(extended, law, law == 0, expected)}
        if self.claims == TEXTBOOK:
            joint, rounding = chain_joint(laws)
            found[JOINT] = _Judged.of(counts, joint, (joint == 0) & (rounding == 0), expected)
        return found


def _averaged(log_es: list[float]) -> float:
    return average_log_e(log_es, [1 / len(log_es)] * len(log_es))
