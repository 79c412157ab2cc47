"""Faults that the owner of an implementation knows of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any


@dataclass(frozen=True)
class KnownDeviation:
    """A fault of an implementation that its owner knows of and hasn't repaired yet.

    An audit runs the counterexample first. While it still refutes the check, the check is reported as a known
    deviation, doesn't count against the verdict, and is not searched for other faults: a second fault that
    breaks the same check stays hidden until the first is repaired. Once the counterexample passes, the entry
    has expired: the check runs as ever and is ``unknown`` at best until the entry is removed. After the day
    ``expires`` the entry excuses nothing any more: a counterexample that still refutes the check counts.

    Attributes
    ----------
    check : id of the check, such as ``kv/content``.
    counterexample : what an audit saved for it, as plain JSON data.
    reason : why it is accepted for now, in one sentence.
    link : where it is tracked.
    expires : the last day on which it is accepted; None for as long as it stands.
    """

    check: str
    counterexample: Mapping[str, Any]
    reason: str
    link: str
    expires: date | None = None
