"""Searches for the pair of laws on which a verifier deviates most, since one fixed pair is a lottery.

Every example is a pair of laws that hypothesis chose, knowing how far the earlier ones were off, and gets random
numbers of its own. So its e-value is one given everything before it, and the average of a planned number of
them is an e-value of the whole search, where those that were not run count as 1, as bets not placed.

An example that refutes alone is made smaller, on further examples that count for nothing: they only serve the
reader. While the laws shrink the deviation does so too, and the number of rows is solved again, so that a
deviation of the size last seen is found with the same probability.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tokenlaw.spec.generation_contracts import EXACT, TEXTBOOK
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.chain_laws import KindLaws, chain_joint
from tokenlaw.stats.distances import plug_in_tv
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.e_values import average_log_e, product_log_e
from tokenlaw.stats.findings import gate_finding, support_finding
from tokenlaw.stats.measures import COMPLETED, JOINT, KindMeasures, PoissonMeasure, Seen, measures_of
from tokenlaw.stats.planner import BUDGET_FACTOR, noncentrality
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.searched_laws import LawPair, law_pairs
from tokenlaw.stats.tally import JointTally, complete, of_kind
from tokenlaw.stats.trial import Trial, kind_laws

MISS = 1e-3
"""Probability that a deviation of the size last seen is missed while the laws shrink."""

MOST_ROWS_FACTOR = 20
"""A smaller pair gets at most so many times the rows of an example."""

SHRINKING_FACTOR = 200
"""Shrinking takes at most so many times the rows of an example in all."""

_ROWS_AT_ONCE = 8_192
_TARGET_CAP = 500.0


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    log_e : natural logarithm of the e-value of the whole search.
    samples : rows behind it; those of shrinking don't count.
    examples : pairs of laws that were tried.
    finding : the smallest pair that refutes, its laws and worst outcomes; empty if none refutes alone.
    counterexample : plain JSON data of that pair, for `repeat`; None if there is none.
    """

    log_e: float
    samples: int
    examples: int
    finding: str = ""
    counterexample: Mapping[str, Any] | None = None


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
) -> SearchResult:
    """Let hypothesis search, and make what it finds small.

    Parameters
    ----------
    verifier : a `tokenlaw.spec.generation_contracts.Verifier`. Its exceptions, and
        `tokenlaw.stats.protocol.ProtocolError`, end the search and are passed on.
    claims : what it is held to: the completed law, with ``textbook`` the joint law as well.
    seed, device : of the run; the same seed gives the same result.
    examples : pairs of laws that are tried at most.
    rows : mean number of rows of each.
    alive : called after each call of the verifier.
    needed : log e-value of the search from which on it refutes.
    own_drafter : whether the verifier has a drafter of its own; half of the examples use it then.
    """
    examiner = _Examiner(verifier, claims, seed, device, alive)
    hunt = _Hunt(examiner, examples, rows, needed)
    _explore(hunt, law_pairs(own_drafter=own_drafter), examples, derived_key(seed, "searched laws"))
    log_es = hunt.log_es + [0.0] * (examples - len(hunt.log_es))
    log_e = average_log_e(log_es, [1 / examples] * examples)
    if hunt.smallest is None:
        return SearchResult(log_e, hunt.samples, len(hunt.log_es))
    found = hunt.smallest
    counterexample = {
        **found.pair.to_data(),
        "name": found.name,
        "claims": claims,
        "seed": seed,
        "rows": found.rows,
    }
    finding = _finding(repeat(verifier, counterexample, device=device, alive=alive), found.pair, hunt.threshold)
    return SearchResult(log_e, hunt.samples, len(hunt.log_es), finding, counterexample)


def repeat(
    verifier: Any, counterexample: Mapping[str, Any], *, device: str, alive: Callable[[], None]
) -> Trial:
    """Try the pair of laws of a `SearchResult` once more: one stage, of the same seed every time."""
    scenario = LawPair.from_data(counterexample).scenario(counterexample["name"])
    claims, seed = counterexample["claims"], counterexample["seed"]
    trial = Trial(verifier, scenario, claims=claims, seed=seed, device=device)
    trial.run_stage(counterexample["rows"], _ROWS_AT_ONCE, alive)
    return trial


def _finding(trial: Trial, pair: LawPair, needed: float) -> str:
    """The laws, and what happened under them when they were tried again."""
    checks = [check for check in (COMPLETED, JOINT) if trial.log_e(check) is not None]
    worst = max(checks, key=lambda check: trial.log_e(check) or 0.0)
    return f"{pair.describe()}\n{support_finding(trial) or gate_finding(trial, worst, needed)}"


@dataclass(frozen=True)
class _Example:
    """How one pair fared.

    ``tv`` is how far the plug-in distance exceeds what noise adds to it, under the law that was off most, and
    ``cells`` the number of cells of that law.
    """

    pair: LawPair
    name: str
    rows: float
    samples: int
    log_e: float
    tv: float
    cells: int


@dataclass
class _Examiner:
    """Tries pairs of laws, each with random numbers of its own."""

    verifier: Any
    claims: str
    seed: int
    device: str
    alive: Callable[[], None]
    tried: int = 0

    def examine(self, pair: LawPair, rows: float) -> _Example:
        """Verify a Poisson number of rows of this mean."""
        self.tried += 1
        name = f"searched {self.tried}"
        tables = Tables.of(pair.scenario(name), self.device)
        driver, tally = Driver(self.verifier, tables, self.seed), JointTally(tables, self.seed)
        generator = np.random.Generator(np.random.Philox(derived_key(self.seed, name, "size")))
        size = int(generator.poisson(rows))
        for start in range(0, size, _ROWS_AT_ONCE):
            tally.add(driver.step(start, min(start + _ROWS_AT_ONCE, size)))
            self.alive()
        log_es, worst = self._judged(tables, tally, name, rows)
        tv, cells = _excess(*worst)
        return _Example(pair, name, rows, size, log_es, tv, cells)

    def _judged(
        self, tables: Tables, tally: JointTally, name: str, rows: float
    ) -> tuple[float, tuple[KindMeasures, str, Seen]]:
        """The log e-value of all counts; and which kind, under which law, was off most."""
        outcomes, pairs, drafts = tally.outcomes(), tally.pairs(), tally.drafts()
        found: dict[str, list[float]] = {}
        judged = []
        for index, laws in enumerate(kind_laws(tables)):
            measures = _measures(laws, self.claims)
            counts = of_kind(outcomes, index, laws.length)
            extended = complete(counts, laws, self.seed, name, index)
            seen = Seen(counts, extended, pairs[index], drafts[index], rows / len(outcomes))
            impossible = bool((counts[measures.impossible] > 0).any())
            for check in measures.measures:
                log_e = math.inf if impossible else measures.log_e(check, seen)
                found.setdefault(check, []).append(log_e)
                judged.append((log_e, (measures, check, seen)))
        worst = max(judged, key=lambda entry: entry[0])[1]
        averages = [_averaged([*log_es, product_log_e(log_es)]) for log_es in found.values()]
        return _averaged(averages), worst


def _averaged(log_es: list[float]) -> float:
    return average_log_e(log_es, [1 / len(log_es)] * len(log_es))


def _measures(laws: KindLaws, claims: str) -> KindMeasures:
    """The completed law, and the joint one of the chain rule: the others say nothing that these don't."""
    found = measures_of(laws, EXACT, own_drafter=False)
    if claims != TEXTBOOK:
        return found
    joint, rounding = chain_joint(laws)
    return replace(
        found,
        measures={**found.measures, JOINT: PoissonMeasure(joint)},
        impossible=(joint == 0) & (rounding == 0),
    )


def _excess(measures: KindMeasures, check: str, seen: Seen) -> tuple[float, int]:
    """How far the plug-in total variation exceeds its mean under the law; and the number of cells."""
    measure = measures.measures[check]
    used = measure.law.ravel() > 0
    law, counts = measure.law.ravel()[used], measures.counts(check, seen).ravel()[used]
    if not counts.any():
        return 0.0, measure.cells
    law = law / law.sum()
    noise = float(np.sqrt(law * (1 - law) / (2 * math.pi * counts.sum())).sum())
    return max(plug_in_tv(counts, law) - noise, 0.0), measure.cells


class _RefutedError(Exception):
    """Tells hypothesis that an example is one to be made smaller."""


class _StopSearch(BaseException):
    """Ends a hypothesis run from within; an `Exception` would count as a failing example."""


@dataclass
class _Hunt:
    """What hypothesis' examples have shown so far."""

    examiner: _Examiner
    examples: int
    rows: int
    needed: float
    log_es: list[float] = field(default_factory=list)
    samples: int = 0
    smallest: _Example | None = None
    shrinking: dict[LawPair, bool] = field(default_factory=dict)
    shrinking_rows: float = 0.0

    @property
    def threshold(self) -> float:
        """Log e-value from which on one example refutes alone."""
        return self.needed + math.log(self.examples)

    def count(self, pair: LawPair) -> _Example:
        """An example of the search itself."""
        if len(self.log_es) >= self.examples:
            raise _StopSearch
        example = self.examiner.examine(pair, self.rows)
        self.log_es.append(example.log_e)
        self.samples += example.samples
        if example.log_e >= self.threshold:
            self.smallest = example
            self.shrinking[pair] = True
        return example

    def shrink(self, pair: LawPair) -> bool:
        """Whether this pair refutes as well; a pair is tried once."""
        if pair not in self.shrinking:
            rows = self.rows_for_shrinking()
            self.shrinking_rows += rows
            if self.shrinking_rows > SHRINKING_FACTOR * self.rows:
                raise _StopSearch
            example = self.examiner.examine(pair, rows)
            self.shrinking[pair] = example.log_e >= self.threshold
            assert self.smallest is not None
            if self.shrinking[pair] and pair.size <= self.smallest.pair.size:
                self.smallest = example
        return self.shrinking[pair]

    def rows_for_shrinking(self) -> float:
        """Rows that find a deviation as large as that of the smallest pair with probability 1 - `MISS`."""
        assert self.smallest is not None
        most = float(MOST_ROWS_FACTOR * self.rows)
        if self.smallest.cells < 2 or not self.smallest.tv or math.isinf(self.smallest.log_e):
            return self.smallest.rows
        alpha = max(math.exp(-self.threshold), 1e-300)
        needed = noncentrality(self.smallest.cells - 1, alpha, MISS) / (4 * self.smallest.tv**2)
        return min(max(2 * BUDGET_FACTOR * needed, float(self.rows)), most)


def _explore(hunt: _Hunt, pairs: Any, examples: int, seed: int) -> None:
    """Run hypothesis until it has tried enough, or has made what it found small."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, Verbosity

    failure: list[Exception] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )
    @hypothesis.given(pairs)
    def trial(pair: LawPair) -> None:
        try:
            refuted = _tried(hunt, pair, hypothesis.target)
        except Exception as error:
            # One of the verifier is no failing example.
            failure.append(error)
            raise _StopSearch from error
        if refuted:
            raise _RefutedError

    try:
        trial()
    except (_StopSearch, _RefutedError, hypothesis.errors.Flaky):
        pass
    if failure:
        raise failure[0]


def _tried(hunt: _Hunt, pair: LawPair, target: Callable[..., Any]) -> bool:
    """Whether the pair refutes; hypothesis is told how far it is off."""
    if hunt.smallest is not None:
        return hunt.shrink(pair)
    example = hunt.count(pair)
    target(min(example.log_e, _TARGET_CAP), label="log e-value")
    target(example.tv, label="total variation")
    return hunt.smallest is not None
