"""Proofs of verifiers for tests: all cases, or one of them by its name."""

from collections.abc import Callable
from typing import Any

from tokenlaw.spec.generation_contracts import TEXTBOOK
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence
from tokenlaw.stats.proving_check import ProofRequest, proof, proof_again

Make = Callable[[], Any]
PATHS = 2_000

ONE, SETTINGS, OWN, LOOKED_UP = (
    "one of 3 tokens drafted",
    "sampling parameters",
    "own drafts",
    "drafts looked up",
)
TWO, MIXED, ROWS, RAGGED = (
    "up to two of 2 tokens drafted",
    "greedy and random rows in one call",
    "two rows in one call",
    "rows of 1 and 2 drafts in one call",
)
CALLS, OWN_CALLS = "two calls", "two calls with own drafts"
TREE = "tree of two candidates, "
"""Cases of `tokenlaw.stats.proving_cases`."""


def request(make: Make, claims: str | None = None, **settings: Any) -> ProofRequest:
    verifier = make()
    return ProofRequest(
        make,
        claims=claims or getattr(verifier, "claims", TEXTBOOK),
        own_drafter=hasattr(verifier, "draft"),
        trees=hasattr(verifier, "verify_tree"),
        refused=frozenset(getattr(verifier, "refuses", ())),
        most_rows=getattr(verifier, "most_rows", None),
        seed=0,
        settings=Settings(**settings),
    )


def whole(make: Make, claims: str | None = None, **settings: Any) -> Evidence:
    return proof(request(make, claims, **settings), PATHS, lambda: None)


def case(make: Make, name: str, claims: str | None = None) -> Evidence:
    found = proof_again(request(make, claims), f"proof: {name}", PATHS, lambda: None)
    assert found is not None
    return found
