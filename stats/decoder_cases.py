"""One small situation in which the law of a decoder is asked for, and how such situations are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import msgspec

from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Model
from tokenlaw.spec.sessions import Abort, Session, SessionOperation, Step, Submit
from tokenlaw.stats.decoder_models import table_models

PROMPT = (2, 0, 1)
"""An odd number of tokens, so that it ends inside a block of two."""

PAIR_PROMPT = (1, 0, 1)
"""The same over two tokens, for requests side by side, whose paths multiply."""

SEEDS = 2**31 - 1
"""Seeds of requests stay below this."""

NUMBERED = 64
"""Consecutive seeds begin with a multiple of this, which is more than a case has of them."""


@dataclass(frozen=True)
class Case:
    """One situation.

    Attributes
    ----------
    check : id of the check that it is for.
    title : for people; with the check it is its name.
    session : what is done; its seeds are replaced for every run.
    served : whether it is driven by submitting and stepping; if not, by ``decode``.
    larger : which round of larger runs it belongs to; 0 for those of every run.
    needs : capabilities beyond those of its check.
    models : makes its target and draft from the number of tokens and a seed.
    """

    check: str
    title: str
    session: Session
    served: bool = False
    larger: int = 0
    needs: frozenset[str] = frozenset()
    models: Callable[[int, int], tuple[Model, Model]] = table_models

    @property
    def name(self) -> str:
        """Check and title."""
        return f"{self.check}: {self.title}"


def reseeded(case: Case, *names: int | str) -> Session:
    """The session of a case with other seeds, which depend on the names.

    In every other round, the first one included, they are consecutive, as those are that users number. The
    first of them has zeros at its end, so that seeds that come of them by small numbers meet always or never.
    """
    names = (*names, case.name)
    first = derived_key(*names) % (SEEDS // NUMBERED) * NUMBERED
    consecutive = count(first)

    def seed(place: int) -> int:
        return derived_key(*names, place) % SEEDS if case.larger % 2 else next(consecutive)

    operations = tuple(
        operation
        if isinstance(operation, Step | Abort)
        else msgspec.structs.replace(operation, seed=seed(place))
        for place, operation in enumerate(case.session.operations)
    )
    return msgspec.structs.replace(case.session, operations=operations)


def _session(operations: Sequence[SessionOperation], vocabulary_size: int = 3) -> Session:
    return Session(tuple(operations), vocabulary_size)


def decoded(check: str, title: str, request: DecodeRequest, vocabulary_size: int = 3) -> Case:
    """A case of one request."""
    return Case(check, title, _session([Submit(request)], vocabulary_size))


def sampled(check: str, title: str, num_tokens: int, draft_length: int, sampling: SamplingParameters) -> Case:
    """A case of one request of three tokens with such parameters."""
    request = DecodeRequest(PROMPT, num_tokens, draft_length=draft_length, sampling=sampling)
    return decoded(check, title, request)


def served(
    check: str, title: str, operations: Sequence[SessionOperation], *needs: str, size: int = 2, **shape: int
) -> Case:
    """A case of a server over so many tokens, with this shape of the cache or of the batch."""
    session = msgspec.structs.replace(_session(operations, size), **shape)
    return Case(check, title, session, served=True, needs=frozenset(needs))


def in_blocks_of_four(case: Case) -> Case:
    """Sequences that share the block at the end of their prompt have room in it for drafts of both."""
    session = msgspec.structs.replace(case.session, block_size=4)
    return replace(case, title=f"{case.title} in blocks of 4", session=session)
