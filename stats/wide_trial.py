"""A wide vocabulary, or many drafts: too many sequences to count, so tokens are counted by what they are.

Counted are the first token (its law is the target's, whatever exact rule was used) and, for verifiers that
follow the textbook, the last token by the number of accepted drafts. Faults hide in the tail: the first token
is also counted in bands of powers of two, and every tail as a whole. These are marginal laws; how tokens
depend on those before them is counted by classes of prefixes, see `tokenlaw.stats.prefix_tally`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64

from tokenlaw.spec.generation_contracts import TEXTBOOK
from tokenlaw.stats.chain_laws import ROUNDING, KindLaws
from tokenlaw.stats.driver import Driver, Step
from tokenlaw.stats.e_values import average_log_e, log10_of
from tokenlaw.stats.measures import PoissonMeasure
from tokenlaw.stats.prefix_tally import PrefixTally
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.tails import cumulative_tails, dyadic_exponents, probability_bands
from tokenlaw.stats.tally import Counts
from tokenlaw.stats.trial import kind_laws, poisson_size

FIRST_TOKEN, BANDS, TAILS, LAST_TOKEN = (
    "first token",
    "first token by bands of probability",
    "tails of the first token",
    "last token by accepted drafts",
)
"""The ways of counting single tokens."""


class WideTrial:
    """Counts a scenario of one kind.

    Parameters
    ----------
    verifier, claims, seed, device : as for `tokenlaw.stats.trial.Trial`.

    Attributes
    ----------
    samples : how many rows were verified.
    expected : mean of the Poisson number of them.
    prefixes : tokens by the class of those before them.
    """

    def __init__(self, verifier: Any, scenario: Scenario, *, claims: str, seed: int, device: str) -> None:
        self.scenario = scenario
        tables = Tables.of(scenario, device)
        self._driver = Driver(verifier, tables, seed)
        (self._laws,) = kind_laws(tables)
        self._textbook, self._seed = claims == TEXTBOOK, seed
        size = scenario.vocabulary
        self._first = torch.zeros(size, dtype=torch.int64, device=device)
        self._last = torch.zeros((scenario.drafts + 1) * size, dtype=torch.int64, device=device)
        self.prefixes = PrefixTally(tables, self._laws, claims=claims, seed=seed)
        self.samples, self.expected = 0, 0.0

    def run(self, mean: float, rows: int, alive: Callable[[], None], most: int | None = None) -> None:
        """Verify a Poisson number of samples, in calls of so many rows; none if it exceeds ``most``."""
        samples = poisson_size(mean, self._seed, self.scenario.name)
        if most is not None and samples > most:
            return
        self.expected = mean
        for step in self._driver.steps(0, samples, rows):
            self.add(step)
            alive()

    def add(self, step: Step) -> None:
        """Count the rows of one call."""
        accepted, ones = step.columns.accepted, torch.ones_like(step.kinds)
        places = torch.arange(0, step.emitted.numel(), step.emitted.shape[1], device=accepted.device)
        last = step.emitted.flatten().index_select(0, places.add_(accepted))
        self._first.index_add_(0, step.columns.entries[0] - 1, ones)
        self._last.index_add_(0, last.add_(accepted, alpha=self.scenario.vocabulary), ones)
        self.prefixes.add(step)
        self.samples += len(step.kinds)

    def events(self) -> dict[str, int]:
        """How often what the laws are about has happened."""
        rejections = int(self._last[: self.scenario.drafts * self.scenario.vocabulary].sum())
        found = {"tokens after hashed prefixes": self.prefixes.tokens(first=1)}
        if self.scenario.contexts == 1:
            found |= {"rows of a wide vocabulary": self.samples}
            found |= {"rejections of a wide vocabulary": rejections}
        return found

    def log_es(self) -> dict[str, float]:
        """Log e-value of every way of counting single tokens, for tables with one context."""
        first, law = self.first_tokens()
        bands = probability_bands(law)
        found = {
            FIRST_TOKEN: PoissonMeasure(law, strict=True).log_e(first, self.expected),
            BANDS: PoissonMeasure(bands.law).log_e(bands.pool(first).astype(np.int64), self.expected),
            TAILS: _tails_log_e(first, law, self.expected),
        }
        if self._textbook:
            last, masses = self.last_tokens()
            found[LAST_TOKEN] = PoissonMeasure(masses.ravel()).log_e(last.ravel(), self.expected)
        return found

    @property
    def cells(self) -> int:
        """Number of possible first tokens."""
        return int(np.count_nonzero(self.first_tokens()[1]))

    def first_tokens(self) -> tuple[Counts, Float64[np.ndarray, " vocabulary"]]:
        """Counts of the first token, and its law."""
        law = self._laws.target[0, 0]
        return self._first.cpu().numpy(), np.asarray(law / law.sum())

    def last_tokens(self) -> tuple[Counts, Float64[np.ndarray, "positions vocabulary"]]:
        """Counts of (accepted drafts, last token), and their masses; zero where rounding may decide."""
        masses = last_token_law(self._laws)
        return self._last.cpu().numpy().reshape(masses.shape), masses

    def finding(self, log_es: Mapping[str, float]) -> str:
        """What speaks most against the law, of `log_es`, and the tail that is farthest from it."""
        what, log_e = max(log_es.items(), key=lambda pair: pair[1])
        text = (
            f"Scenario {self.scenario.name!r}, {what}: log10 e = {log10_of(log_e)} after {self.samples} rows."
        )
        for worst in cumulative_tails(*self.first_tokens())[:1]:
            text += (
                f"\n  first tokens of probability <= {worst.largest_probability:.3g} ({worst.cells} tokens): "
                f"{worst.observed} times, expected {worst.expected:.1f} (p = {worst.p_value:.1e})"
            )
        return text


def _tails_log_e(counts: Counts, law: Float64[np.ndarray, " cells"], expected: float) -> float:
    """Average over the tails: is a token in the tail as often as it should be?"""
    exponents = dyadic_exponents(law)
    log_es = []
    for exponent in np.unique(exponents[law > 0])[1:]:
        tail = (exponents >= exponent) & (law > 0)
        log_es.append(
            PoissonMeasure(law[tail].sum(keepdims=True)).log_e(counts[tail].sum(keepdims=True), expected)
        )
    return average_log_e(log_es, [1 / len(log_es)] * len(log_es)) if log_es else 0.0


def last_token_law(laws: KindLaws) -> Float64[np.ndarray, "positions vocabulary"]:
    """Masses of (accepted drafts, last token) under the chain rule, for tables with one context.

    Zero where rounding may decide.
    """
    masses, reached = np.zeros_like(laws.target[:, 0]), 1.0
    for position in range(laws.length):
        target, draft = laws.target[position, 0], laws.draft[position, 0]
        close = np.abs(target - draft) <= ROUNDING * np.maximum(target, draft)
        masses[position] = reached * np.where(close, 0.0, np.maximum(target - draft, 0.0))
        reached *= float(np.minimum(target, draft).sum())
    masses[laws.length] = reached * laws.target[laws.length, 0]
    return masses
