"""Places in counterexamples: plain data, and clear words where something is wrong with them."""

import math
import re
from typing import Any

import pytest

from tokenlaw.spec.suites import CounterexampleError, Settings
from tokenlaw.stats.measures import JOINT
from tokenlaw.stats.places import Place, place_of

PLACE = Place("mixed rows", 1000, 3, "textbook", looks=2)


def test_a_place_is_plain_data() -> None:
    place = Place("filters", 7, 3, "exact", 0.5, 1e-3, JOINT, 1, {JOINT: 2.5})
    assert place_of(place.to_data()) == place
    assert place_of(PLACE.to_data()).check == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"scenari0": 3, "extra": 1},
            "unknown: extra, scenari0; a counterexample of a law has scenario, requests",
        ),
        ({"schema": "tokenlaw.law/2"}, "schema 'tokenlaw.law/2', expected 'tokenlaw.law/1'"),
        ({"requests": -1}, "requests is -1; expected a number of rows"),
        ({"seed": True}, "seed is True; expected a whole number"),
        ({"claims": "all"}, "claims is 'all'; expected one of textbook, block, exact, approximate"),
        ({"claims": ["exact"]}, "claims is ['exact']; expected one of textbook"),
        ({"tolerance": 1.0}, "tolerance is 1.0; expected 0 or a number below 1"),
        ({"alpha": 0}, "alpha is 0; expected a number between 0 and 1"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"check": None}, "check is None; expected the id of a check, or an empty text for all of them"),
        ({"check": "law/none"}, "there is no check 'law/none'"),
        ({"looks": 1.5}, "looks is 1.5; expected a number of stages"),
        ({"asked": {"law/none": 0.0}}, "asked is {'law/none': 0.0}; expected check ids"),
        ({"asked": [JOINT]}, "asked is ['law/joint']; expected check ids"),
        ({"asked": {JOINT: math.inf}}, "each with the logarithm of an e-value"),
    ],
)
def test_what_is_no_place_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CounterexampleError, match=re.escape(message)):
        place_of({**PLACE.to_data(), **change})


def test_what_a_place_lacks_is_told() -> None:
    data = PLACE.to_data()
    del data["alpha"]
    with pytest.raises(CounterexampleError, match="alpha is missing; expected a number between 0 and 1"):
        place_of(data)


def test_a_place_has_what_a_replay_needs_of_the_settings() -> None:
    settings = Settings(tolerance=0.25, alpha=1e-4)
    place = Place.under(settings, "filters", 7, 3, "exact", check=JOINT)
    assert place == Place("filters", 7, 3, "exact", 0.25, 1e-4, JOINT, 0, {JOINT: 0.0})
    assert Place.under(settings, "filters", 7, 3, "exact", looks=2).asked == {}
