"""One scenario tried on one verifier: samples in Poisson-sized stages, a look after each."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.chain_laws import KindLaws, emitted_lengths
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.e_values import average_log_e, product_log_e
from tokenlaw.stats.measures import COMPLETED, JOINT, KindMeasures, Seen, measures_of
from tokenlaw.stats.neighbours import Neighbours
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.tally import JointTally, complete, of_kind
from tokenlaw.stats.tolerant import tolerant_log_e

FIRST_LOOK = 8_000
"""Samples before the first look at a scenario; there is another one whenever four times as many are there."""

LOOK_FACTOR = 4

SURPRISE = 5.0
"""Before the last look e-values are worked out only if some kind's counts are off by so many standard
deviations: a look costs as much as a hundred thousand samples. Then all of them are, so that what is known of
a check are always e-values of one time."""


@dataclass
class KindResult:
    """What is known of one kind.

    Attributes
    ----------
    seen : its counts so far.
    log_es : check id to log e-value.
    """

    measures: KindMeasures
    seen: Seen | None = None
    log_es: dict[str, float] = field(default_factory=dict)

    @property
    def counted(self) -> Seen:
        """Its counts; raises `ValueError` before there are any."""
        if self.seen is None:
            raise ValueError("no rows of this kind were counted yet")
        return self.seen

    def judge(self, tolerance: float) -> None:
        """Work out the log e-values of the counts so far."""
        seen, measures = self.counted, self.measures
        if tolerance:
            self.log_es = {
                check: tolerant_log_e(
                    measures.counts(check, seen).ravel(),
                    (law := measures.measures[check].law.ravel()) / law.sum(),
                    tolerance,
                    expected_total=seen.expected,
                )
                for check in (COMPLETED, JOINT)
                if check in measures.measures
            }
            return
        self.log_es = {check: measures.log_e(check, seen) for check in measures.measures}

    def impossible(self) -> list[tuple[int, ...]]:
        """Outcomes that were seen and can't happen, as tuples of tokens, most frequent first."""
        outcomes = self.counted.outcomes
        cells = np.argwhere(self.measures.impossible & (outcomes > 0))
        ordered = sorted(cells.tolist(), key=lambda cell: -int(outcomes[tuple(cell)]))
        return [tuple(index - 1 for index in cell if index) for cell in ordered]

    def doubtful(self) -> tuple[int, float]:
        """Outcomes that only rounding allows: how many there were, and how many it may explain on average."""
        found = int(self.counted.outcomes[self.measures.doubtful].sum())
        return found, self.counted.expected * self.measures.doubtful_mass


class Trial:
    """Runs one scenario.

    Parameters
    ----------
    verifier : a `tokenlaw.spec.generation_contracts.Verifier`.
    claims : what it is held to.
    seed, device : of the run.
    tolerance : total variation up to which a law may differ.
    """

    def __init__(
        self,
        verifier: Any,
        scenario: Scenario,
        *,
        claims: str,
        seed: int,
        device: str,
        tolerance: float = 0.0,
    ) -> None:
        self.scenario, self._seed, self.tolerance = scenario, seed, tolerance
        self.tables = Tables.of(scenario, device)
        self._driver = Driver(verifier, self.tables, seed)
        self._tally = JointTally(self.tables, seed)
        self.neighbours = Neighbours(self.tables)
        self.kinds = [
            KindResult(measures_of(laws, claims, own_drafter=scenario.own_drafter))
            for laws in kind_laws(self.tables)
        ]
        self._outcomes = np.zeros_like(self._tally.outcomes())
        self._completed = [np.zeros((), dtype=np.int64)] * len(self.kinds)
        self._stage = 0
        self.samples, self.expected = 0, 0.0

    @property
    def looks(self) -> int:
        """How many stages were run."""
        return self._stage

    def run_stage(
        self, mean: float, rows: int, alive: Callable[[], None], *, last: bool = True, most: int | None = None
    ) -> bool:
        """Draw the size of a stage, verify so many samples in calls of so many rows, and look.

        Parameters
        ----------
        last : whether to work out the e-values in any case, not only where something is surprising.
        most : samples that the stage may have at most; if it would have more, it has none. For a mean from
            `stages` that happens once in thousands of times, whatever was seen, and raises the mean of an
            e-value from one by as little.

        Returns
        -------
        Whether the e-values are those of all samples so far.
        """
        self._stage += 1
        size = poisson_size(mean, self._seed, self.scenario.name, self._stage)
        if most is not None and size > most:
            size, mean = 0, 0.0
        for step in self._driver.steps(self.samples, self.samples + size, rows):
            self._tally.add(step)
            self.neighbours.add(step)
            alive()
        self.samples += size
        self.expected += mean
        self._count()
        looked = last or self.tolerance > 0 or self._surprising()
        if looked:
            for result in self.kinds:
                result.judge(self.tolerance)
        return looked

    def _surprising(self) -> bool:
        """Whether a look promises something."""
        return any(
            result.seen is not None and result.measures.surprise(result.seen) > SURPRISE
            for result in self.kinds
        )

    def _count(self) -> None:
        outcomes, pairs, drafts = self._tally.outcomes(), self._tally.pairs(), self._tally.drafts()
        added, self._outcomes = outcomes - self._outcomes, outcomes
        for index, (kind, result) in enumerate(zip(self.scenario.kinds, self.kinds, strict=True)):
            laws, length = result.measures.laws, kind.length
            names = (self._seed, self.scenario.name, index, self._stage)
            more = complete(of_kind(added, index, length), laws, *names)
            self._completed[index] = self._completed[index] + more
            result.seen = Seen(
                of_kind(outcomes, index, length),
                self._completed[index],
                pairs[index, :length],
                _first_drafts(drafts[index], length) if self.scenario.own_drafter else drafts[index],
                self.expected / len(self.kinds),
            )

    def log_e(self, check: str) -> float | None:
        """Log e-value of a check over all kinds that it is asked of: half average, half product."""
        log_es = [result.log_es[check] for result in self.kinds if check in result.log_es]
        if not log_es:
            return None
        average = average_log_e(log_es, [1 / len(log_es)] * len(log_es))
        return average_log_e([average, product_log_e(log_es)], [0.5, 0.5])

    def events(self) -> dict[str, int]:
        """How often what the laws are about has happened."""
        events = {"rejections": 0, "bonus tokens": 0, "rejections at the last draft": 0, "own drafts": 0}
        for kind, result in zip(self.scenario.kinds, self.kinds, strict=True):
            outcomes, length = result.counted.outcomes, kind.length
            lengths = emitted_lengths(length, self.scenario.vocabulary)
            events["bonus tokens"] += int(outcomes[lengths == length + 1].sum()) if length else 0
            events["rejections"] += int(outcomes[(lengths > 0) & (lengths <= length)].sum())
            if length > 1:
                events["rejections at the last draft"] += int(outcomes[lengths == length].sum())
            events["own drafts"] += int(result.counted.drafts.sum()) if self.scenario.own_drafter else 0
        return events


def _first_drafts(counts: np.ndarray, length: int) -> np.ndarray:
    """Counts of the first drafts, whatever the later ones."""
    return np.asarray(counts.sum(axis=tuple(range(length, counts.ndim))))


def kind_laws(tables: Tables) -> list[KindLaws]:
    """The laws of each kind, cut to its length."""
    target, draft = tables.target.cpu().numpy(), tables.draft.cpu().numpy()
    lengths = [kind.length for kind in tables.scenario.kinds]
    return [KindLaws(target[at, : length + 1], draft[at, :length]) for at, length in enumerate(lengths)]


def stages(budget: int) -> list[float]:
    """Means of the Poisson laws from which the stages of a scenario get their sizes.

    >>> [round(mean) for mean in stages(40_000)]
    [8000, 24000, 7208]
    """
    total = affordable_mean(budget)
    looks = [0.0]
    while looks[-1] < total:
        looks.append(min(max(looks[-1] * LOOK_FACTOR, float(FIRST_LOOK)), total))
    return [after - before for before, after in pairwise(looks)]


def affordable_mean(budget: int) -> float:
    """Mean of a Poisson number that is within the budget up to four standard deviations.

    >>> mean = affordable_mean(10_000)
    >>> round(mean + 4 * mean**0.5, 6)
    10000.0
    """
    return float((math.sqrt(budget + 4) - 2) ** 2)


def poisson_size(mean: float, *names: int | str) -> int:
    """A Poisson number of this mean, which depends on the names alone."""
    return int(np.random.Generator(np.random.Philox(derived_key(*names, "size"))).poisson(mean))


def largest_rows(scenario: Scenario, budget: int, device: str) -> int:
    """Rows of a call: few enough to stay in a processor's cache, or to fit in a device's free memory."""
    numbers = (2 * scenario.drafts + 1) * scenario.vocabulary
    if torch.device(device).type == "cuda":
        free, _ = torch.cuda.mem_get_info(torch.device(device))
        # Logits, laws, sums and temporaries in float64 take about 16 times as many numbers of 4 bytes.
        return max(min(free // (4 * 16 * numbers) // 4, 2**22), 1)
    return max(min(2**20 // numbers, 8_192, budget // 24), min(64, max(budget, 1)))
