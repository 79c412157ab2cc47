"""Searches for the pair of laws on which a verifier deviates most, since one fixed pair is a lottery.

Every example is a random pair of laws, or a variation of the one that was farthest off so far, and gets
random numbers of its own. So its e-value is one given everything before it, and the average of a planned
number of them is an e-value of the whole search, where those that were not run count as 1: bets not placed.

Further examples may be guided by hypothesis, which chooses them and climbs towards large e-values. With some
tens of examples independent draws find more, since hypothesis stays near earlier ones; with hundreds the two
find different things.

An example that refutes alone ends the search, and is made smaller on further examples that count for nothing:
they only serve the reader. While the laws shrink the deviation changes too, and the number of rows is solved
again, so that a deviation of the size last seen is found with the same probability.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.e_values import average_log_e, log10_of
from tokenlaw.stats.examiner import ROWS_AT_ONCE, Examiner, Example
from tokenlaw.stats.findings import worst_finding, worst_law
from tokenlaw.stats.guarded import CrashError
from tokenlaw.stats.guided_search import climb
from tokenlaw.stats.planner import noncentrality
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.searched_laws import LawPair, drawn_pair, varied_pair
from tokenlaw.stats.shown_laws import shown_gate
from tokenlaw.stats.smaller_laws import smaller
from tokenlaw.stats.trial import Trial

MISS = 1e-3
"""Probability that a deviation of the size last seen is missed while the laws shrink."""

BUDGET_FACTOR = 1.3
"""A gate that may look at any time needs about so many times the samples of a test, on typical deviations."""

MOST_ROWS_FACTOR = 20
"""A smaller pair gets at most so many times the rows of an example."""

SHRINKING_FACTOR = 200
"""Shrinking takes at most so many times the rows of an example in all."""

PROMISING = 1.0
"""Log e-value from which on half of the further examples are variations of one: below there's only noise."""

LEAST_ROWS = 50
"""What was found is tried once more for the report if so many rows are left."""

PILOT = 4
"""A smaller pair that needs more rows than this many examples is tried with one in so many of them first."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    log_e : natural logarithm of the e-value of the whole search.
    samples : rows behind it; those of shrinking don't count.
    examples : pairs of laws that were tried.
    finding : the smallest pair that refutes, its laws and worst outcomes; empty if the search doesn't refute.
    counterexample : plain JSON data of that pair, for `repeat`; None if there is none.
    shown : its law as data to be drawn (`tokenlaw.stats.shown_laws`); None where it wasn't tried once more.
    visible : for each law that was tried the total variation from which on it would have refuted alone.
    """

    log_e: float
    samples: int
    examples: int
    finding: str = ""
    counterexample: Mapping[str, Any] | None = None
    visible: tuple[float, ...] = ()
    shown: Mapping[str, Any] | None = None


def search(
    verifier: Any,
    *,
    claims: str,
    seed: int,
    examples: int,
    rows: int,
    device: str,
    alive: Callable[[], None],
    needed: float,
    own_drafter: bool,
    guided: int = 0,
    spare: float = math.inf,
    rows_at_once: int = ROWS_AT_ONCE,
    refused: frozenset[str] = frozenset(),
) -> SearchResult:
    """Search, and make what is found small.

    Parameters
    ----------
    verifier : a `tokenlaw.spec.generation_contracts.Verifier`. Its exceptions, and
        `tokenlaw.stats.protocol.ProtocolError`, end the search and are passed on, unless it has refuted.
    claims : what it is held to: the completed law, with ``textbook`` the joint law as well.
    seed, device : of the run; the same seed gives the same result.
    examples, guided : pairs of laws that are tried at most, and how many more that hypothesis chooses.
    rows : mean number of rows of each.
    alive : called after each call of the verifier.
    needed : log e-value of the search from which on it refutes.
    own_drafter : whether the verifier has a drafter of its own; half of the examples use it then.
    spare : rows that making it smaller, and trying it once more, may take in all.
    rows_at_once : rows of a call at most.
    refused : rows that the verifier doesn't take, of `tokenlaw.spec.generation_contracts.REFUSALS`.
    """
    total = examples + guided
    shrinking = min(SHRINKING_FACTOR * rows, spare * 3 / 4)
    examiner = Examiner(verifier, claims, seed, device, alive, rows_at_once)
    hunt = _Hunt(examiner, total, rows, needed, shrinking, refused)
    hunt.run(random.Random(derived_key(seed, "searched laws")), examples, own_drafter=own_drafter)
    if guided and hunt.smallest is None:
        climb(lambda choices: hunt.climbed(choices, own_drafter), guided, derived_key(seed, "guided"))
    hunt.shrink()
    log_es = hunt.log_es + [0.0] * (total - len(hunt.log_es))
    log_e = average_log_e(log_es, [1 / total] * total)
    # Several examples may refute together where none does so alone.
    found = hunt.smallest or hunt.best
    if found is None or log_e < needed:
        return SearchResult(log_e, hunt.samples, len(hunt.log_es), visible=tuple(hunt.visible))
    rows_left = min(found.rows, (spare - hunt.shrinking_rows) * 4 / 5)
    counterexample = {"name": found.name, "claims": claims, "seed": seed, "rows": rows_left}
    counterexample |= found.pair.to_data()
    again, shown = f"log10 e = {log10_of(found.log_e)} ({log10_of(hunt.threshold)} refutes)", None
    try:
        if rows_left >= LEAST_ROWS:
            trial = repeat(verifier, counterexample, device=device, alive=alive, rows_at_once=rows_at_once)
            again += f"; tried once more:\n{worst_finding(trial, claims, hunt.threshold)}"
            shown = shown_gate(trial, worst_law(trial, claims))
    except (CrashError, ProtocolError) as error:
        again += f"; tried once more, it fails: {error}"
    told = f"{found.pair.describe()}\n{again}"
    return SearchResult(log_e, hunt.samples, len(hunt.log_es), told, counterexample, shown=shown)


def repeat(
    verifier: Any,
    counterexample: Mapping[str, Any],
    *,
    device: str,
    alive: Callable[[], None],
    rows_at_once: int = ROWS_AT_ONCE,
) -> Trial:
    """Try the pair of laws of a `SearchResult` once more: one stage, of the same seed every time."""
    scenario = LawPair.from_data(counterexample).scenario(counterexample["name"])
    claims, seed = counterexample["claims"], counterexample["seed"]
    trial = Trial(verifier, scenario, claims=claims, seed=seed, device=device)
    trial.run_stage(counterexample["rows"], rows_at_once, alive)
    return trial


@dataclass
class _Hunt:
    """What the examples have shown so far."""

    examiner: Examiner
    examples: int
    rows: int
    needed: float
    shrinking: float
    refused: frozenset[str]
    log_es: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    samples: int = 0
    best: Example | None = None
    smallest: Example | None = None
    shrinking_rows: float = 0.0

    @property
    def threshold(self) -> float:
        """Log e-value from which on one example refutes alone."""
        return self.needed + math.log(self.examples)

    def run(self, dice: random.Random, examples: int, *, own_drafter: bool) -> None:
        """Try so many examples, or until one refutes."""
        while len(self.log_es) < examples and self.smallest is None:
            if self.best is not None and self.best.log_e > PROMISING and dice.random() < 0.5:
                pair = varied_pair(dice, self.best.pair)
            else:
                pair = drawn_pair(dice, own_drafter=own_drafter)
            self._counted(pair)

    def climbed(self, choices: random.Random, own_drafter: bool) -> float | None:
        """Try an example that hypothesis chose; its log e-value, or None if the search is over."""
        if self.smallest is not None or len(self.log_es) == self.examples:
            return None
        return min(self._counted(drawn_pair(choices, own_drafter=own_drafter)).log_e, self.threshold)

    def _counted(self, pair: LawPair) -> Example:
        """An example of the search itself."""
        example = self.examiner.examine(pair.without(self.refused), self.rows)
        self.log_es.append(example.log_e)
        self.visible += example.visible(self.threshold)
        self.samples += example.samples
        if example.log_e >= self.threshold:
            self.smallest = example
        if self.best is None or example.log_e > self.best.log_e:
            self.best = example
        return example

    def shrink(self) -> None:
        """Make the pair that refutes smaller."""
        if self.smallest is not None:
            smaller(self.smallest.pair, self._refutes)

    def _refutes(self, pair: LawPair) -> bool:
        """Whether a smaller pair refutes as well; no, if there are no rows left to find out."""
        rows = self._rows_needed()
        try:
            pilot = self._uncounted(pair, rows / PILOT) if rows > PILOT * self.rows else None
            if pilot is not None and pilot.log_e <= 0:
                return False
            example = self._uncounted(pair, rows)
        except (CrashError, ProtocolError):
            # What is refuted already must stay so, and another failure is another finding.
            return False
        if example is None or example.log_e < self.threshold:
            return False
        self.smallest = example
        return True

    def _uncounted(self, pair: LawPair, rows: float) -> Example | None:
        """An example that counts for nothing; None once all rows for shrinking are used."""
        if self.shrinking_rows + rows > self.shrinking:
            return None
        self.shrinking_rows += rows
        return self.examiner.examine(pair, rows)

    def _rows_needed(self) -> float:
        """Rows that find a deviation as large as that of the smallest pair with probability 1 - `MISS`."""
        last = self.smallest
        assert last is not None
        if last.cells < 2 or not last.tv or math.isinf(last.log_e):
            return last.rows
        # A threshold beyond the smallest double is out of every planner's reach.
        alpha = max(math.exp(-self.threshold), 1e-300)
        kind = BUDGET_FACTOR * noncentrality(last.cells - 1, alpha, MISS) / (4 * last.tv**2)
        return float(min(max(2 * kind, self.rows), MOST_ROWS_FACTOR * self.rows))
