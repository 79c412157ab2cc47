"""Targets whose owners know of a deviation: it stands, it has expired, or the entry itself is wrong."""

import os

from fake_targets import Manager, Refuted

from tokenlaw.properties.trace import New, Trace, to_data
from tokenlaw.spec.contracts import BLOCK_MANAGER, Implementation
from tokenlaw.spec.deviations import KnownDeviation

CASE = to_data(Trace((New((1, 2)),)))
ENTRY = KnownDeviation("fake/content", CASE, "forks tear, rewrite planned", "https://example.org/7")
UNRUNNABLE = KnownDeviation("fake/content", CASE | {"operations": []}, "swaps", "issue 8")
UNKNOWN = KnownDeviation("fake/contend", CASE, "?", "?")
UNSUPPORTED = KnownDeviation("fake/forks", CASE, "forks", "issue 3")


def target(manager, *entries):
    """An implementation with these known deviations."""
    return Implementation("deviating", "1", {BLOCK_MANAGER: manager}, known_deviations=entries)


class RefutedForking(Refuted):
    def fork(self, sequence):
        return 1


class RefutedDying(RefutedForking):
    """Dies in the search, not in the replay."""

    def append(self, sequence, tokens):
        if tokens == (3,):
            os._exit(7)


STANDING = target(Refuted, ENTRY)
EXPIRED = target(Manager, ENTRY)
EXPIRED_UNSUPPORTED = target(Manager, UNSUPPORTED)
NOT_RUNNABLE = target(Refuted, UNRUNNABLE)
NO_CHECK = target(Refuted, UNKNOWN)
NO_ENTRY = target(Refuted, "fake/content")
STANDING_FORKING = target(RefutedForking, ENTRY)
STANDING_DYING = target(RefutedDying, ENTRY)
