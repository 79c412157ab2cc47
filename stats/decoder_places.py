"""Where a law of a decoder was found wrong: plain data in a counterexample, from which it is run again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.number_kinds import is_whole_number
from tokenlaw.spec.sessions import session_of, to_data
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.stats.decoder_cases import Case
from tokenlaw.stats.decoder_checks import BY_ID
from tokenlaw.stats.place_fields import Fields, fields_of, is_number

SCHEMA = "tokenlaw.decoder-law/1"


@dataclass(frozen=True)
class DecoderPlace:
    """One situation of a run.

    Attributes
    ----------
    check : id of the check that it is for.
    case : its title.
    paths, samples : how many there are at most; one of them is 0.
    seed, tolerance : of the run.
    alpha : probability that the samples of this situation refute an exact decoder.
    before : natural logarithm of the e-value that earlier runs brought along; 0 without any.
    session : what is done.
    """

    check: str
    case: str
    paths: int
    samples: int
    seed: int
    tolerance: float
    alpha: float
    before: float = 0.0
    session: Mapping[str, Any] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"schema": SCHEMA, "contract": DECODER, **asdict(self)}


def place_of(data: Mapping[str, Any]) -> DecoderPlace:
    """The place that plain data describe.

    Raises
    ------
    CounterexampleError
        They don't: the message says which part is wrong, missing or unknown, and what belongs there.
    """
    return DecoderPlace(**fields_of(data, SCHEMA, _FIELDS, "a decoder's law"))


def case_at(place: DecoderPlace, cases: Sequence[Case]) -> Case:
    """The situation of a place, of which its session must be.

    Raises
    ------
    CounterexampleError
        There is none of that name, or it has another session.
    """
    found = [case for case in cases if (case.check, case.title) == (place.check, place.case)]
    if not found:
        raise CounterexampleError(f"{place.check} has no situation {place.case!r} here")
    if session_of(place.session) != session_of(to_data(found[0].session)):
        raise CounterexampleError(
            f"the session isn't that of situation {place.case!r}: it was changed, or saved by another version"
        )
    return found[0]


_FIELDS: Fields = {
    "check": (lambda value: isinstance(value, str) and value in BY_ID, f"one of {', '.join(BY_ID)}"),
    "case": (lambda value: isinstance(value, str), "the title of a situation"),
    "paths": (lambda value: is_whole_number(value) and value >= 0, "a number of paths, 0 for samples"),
    "samples": (lambda value: is_whole_number(value) and value >= 0, "a number of samples, 0 for paths"),
    "seed": (is_whole_number, "a whole number"),
    "tolerance": (lambda value: is_number(value) and 0 <= value < 1, "0 or a number below 1"),
    "alpha": (lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1"),
    "before": (is_number, "the logarithm of an e-value"),
    "session": (lambda value: isinstance(value, Mapping), "a session"),
}
"""What each part must be, and how to say so."""
