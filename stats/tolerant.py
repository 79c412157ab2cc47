"""The tolerant test: is the law within a total variation of the exact one?

For implementations whose arithmetic is part of their law (bf16 logits, 24-bit uniform numbers) the hypothesis
is not "q equals p" but "TV(q, p) is at most the tolerance", where TV(q, p) is half the sum of abs(q_i - p_i).
Two tests of it, each with its own part of alpha, since each is up to a hundred times better than the other
somewhere:

- `tolerant_log_e`, by universal inference (Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020): the
  likelihood of the gate's mixture over the largest likelihood that a law within the tolerance can have.
  Under any such law this is at most a test martingale, so it may be looked at *any time*. Best for faults of
  few cells.
- `mcdiarmid_log_p`: the distance of the observed frequencies, which one draw changes by at most 1/N
  (McDiarmid's inequality). Best for faults spread over many cells. A p-value, so it may be computed *once*:
  at a number of draws, or of Poisson chunks, that was fixed before the first draw.
"""

import math

import numpy as np

from tokenlaw.stats.counts import (
    Counts,
    Law,
    check_counts_and_law,
    check_inside_unit,
    check_law,
    check_samples,
)
from tokenlaw.stats.gates import DirichletGate, GammaPoissonGate
from tokenlaw.stats.likeliest_law import distance, likeliest_law


def tolerant_log_e(
    counts: Counts, law: Law, tolerance: float, *, expected_total: float | None = None
) -> float:
    """Natural logarithm of the e-value against "the total variation to the law is at most the tolerance".

    Parameters
    ----------
    counts : of each cell, cumulative; of draws, or of chunks of Poisson sizes.
    law : the exact law; may give cells the probability zero.
    tolerance : above 0 and below 1. For tolerance 0 use `tokenlaw.stats.e_values`.
    expected_total : for chunks of Poisson sizes, the sum of the means of these sizes, else None.

    Returns
    -------
    Logarithm of an e-value that is legal at any look. Rounding errs by about 1e-16 times the number of draws.

    Raises
    ------
    ValueError
        Counts or law are none, or their lengths differ; the tolerance or the total is out of range.

    Examples
    --------
    >>> law, counts = np.array([0.5, 0.5]), np.array([5300, 4700])
    >>> tolerant_log_e(counts, law, 0.02) < 0 < tolerant_log_e(counts, law, 0.001)
    True
    """
    observed, exact = check_counts_and_law(counts, law)
    check_inside_unit(tolerance, "tolerance")
    centre = _centre(exact / exact.sum(), tolerance)
    if expected_total is None:
        mixture = DirichletGate(centre).log_e(observed)
    else:
        mixture = GammaPoissonGate(centre).log_e(observed, expected_total)
    seen = observed > 0
    closest = likeliest_law(observed, exact, tolerance)
    return mixture - float((observed[seen] * np.log(closest[seen] / centre[seen])).sum())


def mcdiarmid_threshold(law: Law, tolerance: float, alpha: float, num_draws: int) -> float:
    """The distance that refutes "the total variation to the law is at most the tolerance", for one look.

    The distance of the frequencies exceeds its mean by t with probability at most exp(-2 N t^2) (McDiarmid).
    Its mean is at most TV(q, p) plus half the sum of the standard deviations of the frequencies. That sum is
    at most the sum of sqrt(p_i (1 - p_i) / N) plus sqrt(2 tolerance V / N) for V cells, as
    abs(sqrt(q (1 - q)) - sqrt(p (1 - p))) <= sqrt(abs(q - p)); and it is never above sqrt((V - 1) / N).

    Parameters
    ----------
    law : the exact law.
    tolerance, alpha : above 0 and below 1.
    num_draws : N, at least 1, fixed in advance (or given by a fixed number of Poisson chunks).

    Returns
    -------
    Distance at and above which the claim is refuted; above 1 if so few draws can't refute it.

    Raises
    ------
    ValueError
        The law isn't one, or a number is out of range.

    Examples
    --------
    >>> round(mcdiarmid_threshold(np.array([0.5, 0.5]), 0.01, 1e-9, 1_000_000), 4)
    0.0137
    """
    check_inside_unit(alpha, "alpha")
    return _largest_mean(law, tolerance, num_draws) + math.sqrt(math.log(1 / alpha) / (2 * num_draws))


def mcdiarmid_log_p(counts: Counts, law: Law, tolerance: float) -> float:
    """Natural logarithm of the p-value that belongs to `mcdiarmid_threshold`.

    Legal at one number of draws that was fixed in advance, or after a number of Poisson chunks that was:
    given their sizes, the counts are those of a fixed number of draws. Not legal where sampling was stopped
    because of what was seen.

    Raises
    ------
    ValueError
        Counts or law are none, their lengths differ, or the tolerance is out of range.

    Examples
    --------
    >>> law = np.array([0.5, 0.5])
    >>> mcdiarmid_log_p(np.array([5, 5]), law, 0.01), mcdiarmid_log_p(np.array([900, 100]), law, 0.01) < -200
    (-0.0, True)
    """
    observed, exact = check_counts_and_law(counts, law)
    check_inside_unit(tolerance, "tolerance")
    num_draws = int(observed.sum())
    if num_draws == 0:
        return 0.0
    excess = max(0.0, distance(observed, exact) - _largest_mean(exact, tolerance, num_draws))
    return -2 * num_draws * excess**2


def _centre(law: Law, tolerance: float) -> Law:
    """Where the mixture sits: the law, with half of the tolerance moved to impossible cells if there are any.

    A law within the tolerance may hit them, so the mixture must give them some likelihood.
    """
    impossible = law == 0
    if not impossible.any():
        return law
    return np.where(impossible, tolerance / 2 / impossible.sum(), law * (1 - tolerance / 2))


def _largest_mean(law: Law, tolerance: float, num_draws: int) -> float:
    """Bound on the mean distance of the frequencies of any law within the tolerance."""
    check_inside_unit(tolerance, "tolerance")
    check_samples(num_draws)
    exact = check_law(law)
    cells = len(exact)
    near = float(np.sqrt(exact * np.maximum(1 - exact, 0)).sum()) + math.sqrt(2 * tolerance * cells)
    return tolerance + min(near, math.sqrt(cells - 1)) / (2 * math.sqrt(num_draws))
