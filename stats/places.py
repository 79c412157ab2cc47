"""Where something was seen: plain data in a counterexample, from which it can be run again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import CLAIMS
from tokenlaw.spec.number_kinds import is_whole_number
from tokenlaw.spec.suites import CounterexampleError, Settings
from tokenlaw.stats.place_fields import Fields, fields_of, is_number
from tokenlaw.stats.verifier_checks import BY_ID

SCHEMA = "tokenlaw.law/1"


@dataclass(frozen=True)
class Place:
    """A scenario of a run, or all of them.

    Attributes
    ----------
    scenario : its name, or that of a tree.
    requests : rows that it got at most.
    seed, claims, tolerance : of the run.
    alpha : what the checks of ``asked`` share, or all checks where that is empty.
    check : id of the check that was refuted there; empty while nothing was, then all checks are meant.
    looks : stages of the scenario that were run until then, of those that so many rows give; 0 for the small
        checks, which have no stages.
    asked : the checks on which the verdict depends, each with the natural logarithm of the e-value that
        earlier runs brought along, 0 without any.
    """

    scenario: str
    requests: int
    seed: int
    claims: str
    tolerance: float = 0.0
    alpha: float = 1e-9
    check: str = ""
    looks: int = 0
    asked: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def under(
        settings: Settings,
        scenario: str,
        requests: int,
        seed: int,
        claims: str,
        *,
        check: str = "",
        looks: int = 0,
    ) -> "Place":
        """A place of a run with these settings; with a check, one that depends on nothing but this check."""
        asked = {check: 0.0} if check else {}
        return Place(
            scenario, requests, seed, claims, settings.tolerance, settings.alpha, check, looks, asked
        )

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"schema": SCHEMA, "contract": VERIFIER, **asdict(self)}


def place_of(data: Mapping[str, Any]) -> Place:
    """The place that plain data describe.

    Raises
    ------
    CounterexampleError
        They don't: the message says which part is wrong, missing or unknown, and what belongs there.
    """
    found = fields_of(data, SCHEMA, _FIELDS, "a law")
    if found["check"] and found["check"] not in BY_ID:
        raise CounterexampleError(f"there is no check {found['check']!r}")
    return Place(**found)


def _is_evidence(value: object) -> bool:
    return isinstance(value, dict) and all(
        check in BY_ID and is_number(log_e) for check, log_e in value.items()
    )


_FIELDS: Fields = {
    "scenario": (lambda value: isinstance(value, str), "the name of a scenario"),
    "requests": (lambda value: is_whole_number(value) and value >= 0, "a number of rows"),
    "seed": (is_whole_number, "a whole number"),
    "claims": (lambda value: value in CLAIMS, f"one of {', '.join(CLAIMS)}"),
    "tolerance": (lambda value: is_number(value) and 0 <= value < 1, "0 or a number below 1"),
    "alpha": (lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1"),
    "check": (lambda value: isinstance(value, str), "the id of a check, or an empty text for all of them"),
    "looks": (lambda value: is_whole_number(value) and value >= 0, "a number of stages"),
    "asked": (_is_evidence, "check ids, each with the logarithm of an e-value"),
}
"""What each part must be, and how to say so."""
