"""Where something was seen: plain data in a counterexample, from which it can be run again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import CLAIMS
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.stats.verifier_checks import BY_ID

SCHEMA = "tokenlaw.law/1"


@dataclass(frozen=True)
class Place:
    """A scenario of a run.

    Attributes
    ----------
    check : id of the check that was refuted there; empty while nothing was.
    scenario : its name, or that of a tree.
    requests : rows that it got at most.
    seed, claims, tolerance : of the run.
    looks : stages of the scenario that were run until then, of those that so many rows give; 0 for the small
        checks, which have no stages.
    """

    scenario: str
    requests: int
    seed: int
    claims: str
    tolerance: float = 0.0
    check: str = ""
    looks: int = 0

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"schema": SCHEMA, "contract": VERIFIER, **asdict(self)}


def place_of(data: Mapping[str, Any]) -> Place:
    """The place that plain data describe.

    Raises
    ------
    CounterexampleError
        They don't.
    """
    if data.get("schema") != SCHEMA:
        raise CounterexampleError(f"schema {data.get('schema')!r}, expected {SCHEMA!r}")
    fields: Mapping[str, tuple[type, ...]] = {
        "scenario": (str,),
        "requests": (int,),
        "seed": (int,),
        "claims": (str,),
        "tolerance": (int, float),
        "check": (str,),
        "looks": (int,),
    }
    for name, kinds in fields.items():
        if not isinstance(data.get(name), kinds) or isinstance(data.get(name), bool):
            raise CounterexampleError(f"{name} is {data.get(name)!r}")
    if data["check"] not in BY_ID:
        raise CounterexampleError(f"there is no check {data['check']!r}")
    counts = min(data["requests"], data["looks"]) >= 0
    if data["claims"] not in CLAIMS or not counts or not 0 <= data["tolerance"] < 1:
        raise CounterexampleError(
            f"claims {data['claims']!r}, requests {data['requests']}, looks {data['looks']}, tolerance "
            f"{data['tolerance']} don't go together"
        )
    return Place(**{name: data[name] for name in fields})
