"""The check ``law/probed``: what probing a verifier found, as a row of the report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenlaw.spec.announcing import announce
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import PROBED as BY_PROBE
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.places import Place
from tokenlaw.stats.probing import probe
from tokenlaw.stats.probing_cases import PROBE_NAME
from tokenlaw.stats.probing_outcome import Probed, Told
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.verifier_checks import BY_ID, PROBED

MOST_ROWS, SHARE = 24_000, 16
"""Rows of a probe: so many, or one in so many of a small budget."""


def rows_of(budget: int) -> int:
    """How many rows of a budget a probe may take at most.

    >>> rows_of(600_000), rows_of(32_000)
    (24000, 2000)
    """
    return min(MOST_ROWS, budget // SHARE)


@dataclass(frozen=True)
class ProbeRequest:
    """What is asked of a verifier.

    Attributes
    ----------
    make : builds the verifier.
    told : what it says about itself, and what it's held to.
    seed, settings : of the run.
    """

    make: Callable[[], Any]
    told: Told
    seed: int
    settings: Settings

    def place(self, rows: int) -> Place:
        """Where the same can be found again."""
        return Place.under(self.settings, PROBE_NAME, rows, self.seed, self.told.claims, check=PROBED)


def probed(
    request: ProbeRequest, rows: int, progress: Callable[[str, int, int], None]
) -> tuple[Evidence, int]:
    """Probe a verifier with so many rows at most; the row of the report, and how many rows it took."""
    started, place = time.perf_counter(), request.place(rows).to_data()
    verifier = Guarded(request.make(), lambda: progress("probe", min(verifier.rows, rows), rows))
    announce(place)
    try:
        found = probe(verifier, request.told, seed=request.seed, device=request.settings.device, rows=rows)
        verdict, message = _verdict(found, request.told, rows)
    except ProtocolError as error:
        found, verdict = Probed(), Verdict.REFUTED
        message = f"With numbers that are given it breaks the contract: {error}"
    except CrashError as error:
        found, verdict, message = Probed(), Verdict.UNKNOWN, str(error)
    return Evidence(
        BY_ID[PROBED],
        verdict,
        {"evaluations": verifier.answered, "thresholds": found.inside},
        verifier.answered,
        time.perf_counter() - started,
        message,
        place if verdict is Verdict.REFUTED else None,
        _statistics(found, verifier.answered),
    ), verifier.rows


def _verdict(found: Probed, told: Told, rows: int) -> tuple[Verdict, str]:
    if found.findings:
        return Verdict.REFUTED, "\n".join(found.findings)
    if not found.inside:
        text = f"{rows} rows are too few to find the thresholds of one kind of rows"
        return Verdict.NOT_EXERCISED, text if not found.thresholds else "every decision was certain"
    return Verdict.HOLDS, found.message(told)


def _statistics(found: Probed, rows: int) -> Mapping[str, Any]:
    return {
        "evidence": BY_PROBE,
        "evaluations": rows,
        "thresholds": found.thresholds,
        "kinds": found.kinds,
        "known_to": found.known,
        "explained": found.allowed,
        "largest_difference": max(found.largest, found.distance if not found.findings else 0.0),
        "tv": found.tv,
    } | ({"laws_shown": found.shown} if found.shown else {})
