"""The ledger of alpha, as the HTML page shows it."""

import math
from dataclasses import dataclass

from tokenlaw.html_data import Entry

_PLAIN = 4
"""Numbers between this many powers of ten and as many negative ones are written out."""

_LARGEST = 2**63
"""No whole number of a report is as large."""


@dataclass(frozen=True)
class LedgerView:
    """A test of a law: what it was allotted, what it showed, and how many percent that is of what refutes."""

    check: str
    kind: str
    share: float
    alpha: str
    observed: str
    needed: str
    reached: float


def entry_of(entry: Entry) -> LedgerView:
    """Gates by their e-value, which refutes from 1 / alpha on; others by a p-value, from alpha down."""
    gate = entry.kind == "gate"
    needed = -math.log10(entry.alpha)
    shown = None if entry.observed is None else entry.observed / math.log(10) * (1 if gate else -1)
    observed = "not looked at" if shown is None else _told(shown, gate=gate)
    reached = 0.0 if shown is None else round(100 * min(max(shown / needed, 0.0), 1.0), 1)
    refutes = f"e \u2265 10^{needed:.1f}" if gate else f"p \u2264 {number(entry.alpha)}"
    return LedgerView(
        entry.check, entry.kind, round(100 * entry.share, 1), number(entry.alpha), observed, refutes, reached
    )


def _told(log10: float, *, gate: bool) -> str:
    """The e-value, or the p-value, in a form that people can read.

    >>> _told(9.03, gate=True), _told(0.301, gate=True), _told(0.301, gate=False), _told(1e5, gate=False)
    ('e = 10^9.0', 'e = 2', 'p = 0.5', 'p = 0')
    """
    if log10 > 1e4:
        return "e = \u221e" if gate else "p = 0"
    if gate:
        return f"e = {10.0**log10:.2g}" if abs(log10) < _PLAIN else f"e = 10^{log10:.1f}"
    return f"p = {10.0 ** -max(log10, 0.0):.2g}"


def number(value: object) -> str:
    """A number with three digits; nothing for what is none.

    >>> number(0.12345), number("x"), number(10**400)
    ('0.123', '', '')
    """
    is_number = isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)
    return f"{value:.3g}" if is_number else ""
