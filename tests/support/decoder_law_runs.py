"""Whole runs of the laws of decoders, their replays, and proofs of single situations."""

import json
from collections.abc import Callable
from typing import Any

from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import DECODER, Implementation
from tokenlaw.spec.suites import PROFILES, Settings
from tokenlaw.spec.verdicts import Evidence
from tokenlaw.stats.decoder_checks import BY_ID
from tokenlaw.stats.decoder_proving import Asked
from tokenlaw.stats.decoder_suite import DecoderLaws

ALL = frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models", "free-blocks"}
Make = Callable[..., Any]


def implementation(make: Make, capabilities: frozenset[str] = ALL) -> Implementation:
    return Implementation("tested", "1", {DECODER: make}, {DECODER: capabilities})


def audited(
    make: Make, *only: str, capabilities: frozenset[str] = ALL, seed: int = 0, **settings: Any
) -> dict[str, Evidence]:
    rows = DecoderLaws().run(
        implementation(make, capabilities),
        profile=PROFILES["dev"],
        seed=seed,
        selected=frozenset(only or BY_ID),
        progress=lambda *_: None,
        settings=Settings(**settings),
    )
    return {row.check.id: row for row in rows}


def asked(make: Make) -> Asked:
    return Asked(make, ALL, lambda case: case.session.config.target, seed=0, tolerance=1e-6)


def replayed(make: Make, row: Evidence) -> Evidence:
    """What becomes of the row's counterexample, saved and read again."""
    assert row.counterexample is not None
    (again,) = DecoderLaws().replay(implementation(make), json.loads(json.dumps(row.counterexample)))
    return again
