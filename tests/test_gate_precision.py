"""The gates against their definitions, evaluated in 60 digits, and where counts are far from the law."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from tokenlaw.stats.e_values import dirichlet_log_e
from tokenlaw.stats.gates import (
    DIRICHLET_CONCENTRATIONS,
    EXPONENTS,
    POISSON_CONCENTRATIONS,
    GammaPoissonGate,
)


def mixture_by_hand(counts: list[int], law: list[float], total: float) -> float:
    """The gamma-Poisson e-value, straight from its definition in 60 digits."""
    p = [mpmath.mpf(x) for x in law]

    def log_factor(cell: int, shape: Any) -> Any:
        n, expected = mpmath.mpf(counts[cell]), total * p[cell]
        gammas = mpmath.loggamma(shape + n) - mpmath.loggamma(shape) - n * mpmath.log(shape)
        return gammas - (shape + n) * mpmath.log(1 + expected / shape) + expected

    cells = range(len(p))
    dense = [
        mpmath.exp(sum(log_factor(i, c * p[i] ** s / sum(x ** (1 + s) for x in p)) for i in cells))
        for s in map(mpmath.mpf, EXPONENTS)
        for c in map(mpmath.mpf, POISSON_CONCENTRATIONS)
    ]
    single = [mpmath.exp(log_factor(i, mpmath.mpf(c))) for i in cells for c in POISSON_CONCENTRATIONS]
    return float(mpmath.log((sum(dense) / len(dense) + sum(single) / len(single)) / 2))


@pytest.mark.parametrize("size", [3.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("excess", [0.0, 4.0])
def test_poisson_gate_follows_its_definition_up_to_1e12_draws(size: float, excess: float) -> None:
    law = np.array([0.5, 0.25, 0.125, 0.125])
    counts = np.maximum(np.round(size * law + excess * np.sqrt(size * law) * [1, -1, 1, 0]), 0)
    with mpmath.workdps(60):
        exact = mixture_by_hand([int(count) for count in counts], list(law), size)
    assert GammaPoissonGate(law).log_e(counts, size) == pytest.approx(exact, abs=1e-9)


def dirichlet_by_hand(counts: list[int], law: list[float]) -> float:
    """The Dirichlet e-value, straight from its definition in 60 digits."""
    size = sum(counts)

    def log_ratio(shapes: list[Any], ns: list[int], ps: list[Any]) -> Any:
        prior = mpmath.loggamma(sum(shapes)) - mpmath.loggamma(sum(shapes) + size)
        cells = zip(shapes, ns, ps, strict=True)
        return prior + sum(
            mpmath.loggamma(a + n) - mpmath.loggamma(a) - n * mpmath.log(p) for a, n, p in cells
        )

    p = [mpmath.mpf(x) for x in law]
    dense, single = [], []
    for c in map(mpmath.mpf, DIRICHLET_CONCENTRATIONS):
        dense.append(mpmath.exp(log_ratio([c * x for x in p], counts, p)))
        for n, x in zip(counts, p, strict=True):
            single.append(mpmath.exp(log_ratio([c * x, c * (1 - x)], [n, size - n], [x, 1 - x])))
    return float(mpmath.log((sum(dense) / len(dense) + sum(single) / len(single)) / 2))


@pytest.mark.parametrize(
    "counts", [[0, 0, 0], [3, 0, 1], [5300, 2500, 2200], [500_000_000, 250_030_000, 249_970_000]]
)
def test_dirichlet_gate_follows_its_definition(counts: list[int]) -> None:
    law = [0.5, 0.25, 0.25]
    with mpmath.workdps(60):
        exact = dirichlet_by_hand(counts, law)
    assert dirichlet_log_e(np.array(counts), np.array(law)) == pytest.approx(exact, abs=1e-7)


def test_wildly_wrong_counts_are_finite_evidence() -> None:
    law = np.array([1.0 - 1e-300, 1e-300])
    for log_e in (
        GammaPoissonGate(law).log_e(np.array([0, 1000]), 1e6),
        dirichlet_log_e(np.array([0, 1000]), law),
    ):
        assert 1e5 < log_e < math.inf
    assert GammaPoissonGate(np.full(8, 1 / 8)).log_e(np.zeros(8), 1e12) > 1e11
