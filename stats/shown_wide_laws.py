"""Refuted laws of single tokens, where sequences are too many to be counted, as data to be drawn."""

import math
from collections.abc import Mapping

import numpy as np

from tokenlaw.stats.prefix_tally import PrefixTally
from tokenlaw.stats.shown_laws import ShownLaw, shown_law
from tokenlaw.stats.tails import dyadic_exponents
from tokenlaw.stats.wide_trial import FIRST_TOKEN, LAST_TOKEN, WideTrial

MOST_CELLS = 10
"""Outcomes that are shown."""


def shown_wide(trial: WideTrial, log_es: Mapping[str, float]) -> ShownLaw:
    """What speaks most against the law, of `WideTrial.log_es`: tokens, or bands of their probability."""
    what = max(log_es, key=lambda one: log_es[one])
    where = f"rows of scenario {trial.scenario.name!r}"
    if what == LAST_TOKEN:
        counts, masses = trial.last_tokens()
        asked = np.where(masses > 0, counts, 0)
        return shown_law(f"law of the {what}", where, asked, masses, _last_token, most=MOST_CELLS)
    if what == FIRST_TOKEN:
        return shown_law(
            "law of the first token",
            where,
            *trial.first_tokens(),
            lambda cell: f"first token {cell[0]}",
            most=MOST_CELLS,
        )
    return _shown_bands(trial, where)


def shown_prefixes(prefixes: PrefixTally, scenario: str) -> ShownLaw:
    """The class of prefixes that speaks most against the law of the next token."""
    worst = prefixes.worst()
    where = f"scenario {scenario!r}, tokens {worst.place}"
    what = "law of a token after a class of prefixes"
    return shown_law(what, where, worst.counts, worst.law, lambda cell: worst.name(cell[0]), most=MOST_CELLS)


def _last_token(place: list[int]) -> str:
    accepted, token = place
    return f"{accepted} drafts accepted, then token {token}"


def _shown_bands(trial: WideTrial, where: str) -> ShownLaw:
    """First tokens by powers of two of their probability: a tail is all bands from one on."""
    counts, law = trial.first_tokens()
    exponents, bands = np.unique(dyadic_exponents(law), return_inverse=True)
    sizes = np.bincount(bands)

    def name(place: list[int]) -> str:
        (band,) = place
        if not exact[band]:
            return f"one of {sizes[band]:,} first tokens of probability 0"
        most, least = (math.ldexp(1.0, -int(exponents[band]) - part) for part in (0, 1))
        return f"one of {sizes[band]:,} first tokens of probability {least:.3g} to {most:.3g}"

    seen, exact = (np.bincount(bands, numbers) for numbers in (counts, law))
    return shown_law(
        "law of the first token by bands of probability",
        where,
        seen.astype(np.int64),
        exact,
        name,
        most=MOST_CELLS,
    )
