"""What ``tokenlaw audit --vary-seed`` says, for people and as JSON."""

from typing import Any

from scipy import stats

from tokenlaw.runner import versions
from tokenlaw.seeds import SeedRun, Tally
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line

SCHEMA = "tokenlaw.seeds/1"
CONFIDENCE = 0.95
"""Of the intervals of rates."""

FEWEST = 5
"""P-values from which on their spread is tested."""

_SHOWN = 10


def interval(count: int, of: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson (1934) for the rate behind ``count`` of ``of``.

    >>> [round(bound, 4) for bound in interval(0, 500)]
    [0.0, 0.0074]
    """
    if of == 0:
        return 0.0, 1.0
    found = stats.binomtest(count, of).proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def spread(p_values: list[float]) -> dict[str, float] | None:
    """How p-values are spread: tests of Kolmogorov and Smirnov against the uniform law; None for too few.

    ``too_small`` is the probability that honest p-values are as small as these: they may be larger than
    uniform ones, never smaller. ``uniform`` is that of uniform ones being so far off on either side.
    """
    if len(p_values) < FEWEST:
        return None
    return {
        "count": len(p_values),
        "at_most_0.05": sum(p <= 0.05 for p in p_values) / len(p_values),
        "too_small": float(stats.kstest(p_values, "uniform", alternative="greater").pvalue),
        "uniform": float(stats.kstest(p_values, "uniform").pvalue),
    }


def lines(run: SeedRun, command: str, *, asked: int) -> list[str]:
    """A line for each check that was decided, or couldn't be, and a summary."""
    told = [_line(tally) for tally in run.tallies.values() if tally.decided or tally.undecided]
    done = len(run.verdicts)
    refuted = run.with_verdict(Verdict.REFUTED)
    undecided = run.with_verdict(Verdict.UNKNOWN, Verdict.NOT_EXERCISED)
    low, high = interval(len(refuted), done)
    stopped = "" if done == asked else f" (of {asked} asked for)"
    name = f"{one_line(run.target)} {one_line(run.version)}"
    summary = (
        f"{name}: refuted with {len(refuted)} of {done} seeds{stopped}: "
        f"a rate of {low:.4f} to {high:.4f} (confidence {CONFIDENCE})"
    )
    if undecided:
        summary += f"; undecided with {len(undecided)}: {_listed(undecided)}"
    return [*told, "", summary, f"repeat: {command}"]


def _line(tally: Tally) -> str:
    low, high = interval(len(tally.refuted), tally.decided)
    line = f"{tally.check:28} refuted {len(tally.refuted)} of {tally.decided}: {low:.4f} to {high:.4f}"
    if tally.refuted:
        line += f" (seeds {_listed(tally.refuted)})"
    if tally.undecided:
        line += f"; undecided {len(tally.undecided)} (seeds {_listed(tally.undecided)})"
    found = spread(tally.p_values)
    if found is not None:
        line += f"; p <= 0.05 in {found['at_most_0.05']:.3f}, as small by chance: {found['too_small']:.3g}"
    return line


def _listed(seeds: list[int]) -> str:
    rest = len(seeds) - _SHOWN
    return ", ".join(map(str, seeds[:_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def to_data(run: SeedRun, command: str, *, profile: str, asked: int) -> dict[str, Any]:
    """The JSON envelope as plain data."""
    refuted = run.with_verdict(Verdict.REFUTED)
    return {
        "schema": SCHEMA,
        "target": {"name": run.target, "version": run.version},
        "profile": profile,
        "seeds": sorted(run.verdicts),
        "asked": asked,
        "confidence": CONFIDENCE,
        "refuted": {"seeds": refuted, "interval": list(interval(len(refuted), len(run.verdicts)))},
        "undecided": run.with_verdict(Verdict.UNKNOWN, Verdict.NOT_EXERCISED),
        "checks": [_row(tally) for tally in run.tallies.values()],
        "versions": versions(),
        "command": command,
    }


def _row(tally: Tally) -> dict[str, Any]:
    return {
        "id": tally.check,
        "contract": tally.contract,
        "decided": tally.decided,
        "refuted": tally.refuted,
        "undecided": tally.undecided,
        "interval": list(interval(len(tally.refuted), tally.decided)),
        "p_values": tally.p_values,
        "spread": spread(tally.p_values),
    }
