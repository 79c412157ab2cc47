"""What mutation testing of carrying out sessions found untested: events, forks, patience, last looks."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import DECODER, OutOfBlocks
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.serving import PATIENCE, Served, carry_out
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionOperation, Step, Submit
from tokenlaw.spec.shown_tokens import IllegalAnswer

SERVER = frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models", "logprobs", "free-blocks"}


class Scripted:
    """Shows what its script says: a list for each request, of what it has after each of the first steps.

    Attributes
    ----------
    steps : how many were done.
    full : whether the next request or fork is refused.
    """

    def __init__(self, *scripts: Sequence[Sequence[Tokens]]) -> None:
        self.scripts, self.begun = list(scripts), list[int]()
        self.steps, self.full = 0, False
        self.ended_at: dict[int, int] = {}

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        if self.full:
            raise OutOfBlocks("full")
        self.begun.append(self.steps)
        return len(self.begun) - 1

    def step(self) -> None:
        self.steps += 1

    def generated(self, handle: int) -> Sequence[Tokens]:
        script = self.scripts[handle]
        return script[min(self.steps - self.begun[handle], len(script) - 1)]

    def is_finished(self, handle: int) -> bool:
        return self.steps - self.begun[handle] >= len(self.scripts[handle]) - 1

    def abort(self, handle: int) -> None:
        self.ended_at[handle] = self.steps

    def fork(self, handle: int, *, seed: int) -> int:
        return self.submit(asked(), seed=seed)


def script(*texts: str) -> list[list[Tokens]]:
    """For one sample, what it has after each step, a digit a token."""
    return [[tuple(map(int, text))] for text in texts]


SLEEPING = script(*[""] * 99)


def asked(num_tokens: int = 2, **changes: Any) -> DecodeRequest:
    return DecodeRequest((0,), num_tokens, **changes)


def serve(decoder: Any, *operations: SessionOperation, **configuration: int) -> Served:
    return carry_out(decoder, Session(operations, 4, **configuration), SERVER)


def test_events_are_counted_once_each() -> None:
    first = script("", "1", "11", "113")
    second = [[(), ()], [(1,), (1,)], [(1, 1), (1, 1)]]
    operations = (
        Submit(asked(9, stop=frozenset({3}))),
        Step(),
        Submit(asked(samples=2)),
    )
    served = serve(Scripted(first, second), *operations)
    expected = {"submit": 2, "join": 1, "several samples": 1, "step": 3, "leave": 1, "stop": 1}
    assert {name: count for name, count in served.events.items() if count} == expected
    assert [answer.joined for answer in served.answers] == [False, True]
    assert not any(answer.refused or answer.aborted for answer in served.answers)


def test_whoever_has_nothing_while_others_grow_waits() -> None:
    served = serve(Scripted(script("", "1", "11"), script("", "", "", "1", "11")), *[Submit(asked())] * 2)
    assert served.events["wait"] == 2
    both = serve(Scripted(script("", "1", "11"), script("", "1", "11")), *[Submit(asked())] * 2)
    assert both.events["wait"] == both.events["several samples"] == 0
    neither = serve(Scripted(script("", "", "1", "11"), script("", "", "1", "11")), *[Submit(asked())] * 2)
    assert neither.events["wait"] == 0


class InTurn:
    """Decodes one request after the other."""

    def decode(self, request: DecodeRequest, *, seed: int) -> list[Tokens]:
        return [(1,) * request.num_tokens] * request.samples


def test_whoever_is_decoded_alone_joins_nobody() -> None:
    session = Session((Submit(asked()), Submit(asked())), 4)
    assert [answer.joined for answer in carry_out(InTurn(), session).answers] == [False, False]


class Full(Scripted):
    """Has no room for a second request, nor for a fork."""

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        self.full = bool(self.begun)
        return super().submit(request, seed=seed)


def test_refusals_are_counted_and_a_refused_fork_leaves_no_answer() -> None:
    refused = serve(Full(script("", "11")), Submit(asked()), Submit(asked(samples=9)), Fork(0))
    assert (refused.events["refused"], refused.events["fork refused"], refused.events["fork"]) == (1, 1, 0)
    assert [answer.refused for answer in refused.answers] == [False, True]
    assert refused.answers[0].forked == []


def test_a_fork_goes_on_from_what_its_origin_has() -> None:
    """The index counts all requests of one sample, also beyond their number."""
    decoder = Scripted(
        script("", "1", "12"), [[(), ()], [(1, 1), (1, 1)]], script("", "2", "22"), script("2", "20")
    )
    served = serve(decoder, Submit(asked()), Submit(asked(samples=2)), Submit(asked()), Step(), Fork(3))
    child = served.answers[3]
    assert (child.origin, child.given, child.joined, child.tokens) == (2, (2,), True, ((2, 0),))
    assert [answer.forked for answer in served.answers] == [[], [], [(2,)], []]
    assert (served.events["fork"], served.events["fork with tokens"]) == (1, 1)
    early = serve(Scripted(script("", "12"), script("", "20")), Submit(asked()), Fork(0))
    assert (early.events["fork"], early.events["fork with tokens"]) == (1, 0)


@pytest.mark.parametrize(
    ("origin", "child"), [(script("", "1", "12"), script("3", "31")), (script("", "1", "12"), script(""))]
)
def test_a_fork_is_looked_at_before_the_next_step(
    origin: list[list[Tokens]], child: list[list[Tokens]]
) -> None:
    decoder = Scripted(SLEEPING, origin, child)
    with pytest.raises(IllegalAnswer, match=r"sample 0 was \(1,\) before and is \(.*\) now") as raised:
        serve(decoder, Submit(asked()), Submit(asked()), Step(), Fork(1))
    assert (raised.value.operation, decoder.steps) == (3, 1)


class Flickering(Scripted):
    """A fork changes its origin's tokens."""

    def fork(self, handle: int, *, seed: int) -> int:
        self.scripts[handle] = script("", "3", "33")
        return super().fork(handle, seed=seed)


def test_the_origin_of_a_fork_is_looked_at_as_well() -> None:
    decoder = Flickering(script("", "1", "12"), script("1", "12"))
    with pytest.raises(IllegalAnswer, match=r"sample 0 was \(1,\) before and is \(3,\) now"):
        serve(decoder, Submit(asked()), Step(), Fork(0))
    assert decoder.steps == 1


def steps_until_patience_ends(decoder: Scripted, *operations: SessionOperation) -> int:
    with pytest.raises(IllegalAnswer, match=f"nothing grew in {PATIENCE} steps") as raised:
        serve(decoder, *operations)
    assert raised.value.rule == "progress"
    return decoder.steps


def test_patience_begins_anew_with_whatever_changes_something() -> None:
    sleep, start = [Step()] * 5, Submit(asked())
    assert steps_until_patience_ends(Scripted(SLEEPING), start) == PATIENCE
    growing = script("", "", "", "1", *["1"] * 99)
    assert steps_until_patience_ends(Scripted(growing), start) == 3 + PATIENCE
    ended = script("", "", "", "11")
    assert steps_until_patience_ends(Scripted(ended, SLEEPING), start, start) == 3 + PATIENCE
    for change in (Submit(asked()), Fork(0), Abort(0)):
        decoder = Scripted(SLEEPING, SLEEPING, SLEEPING)
        assert steps_until_patience_ends(decoder, start, start, *sleep, change) == 5 + PATIENCE


def test_what_grows_for_longer_than_patience_is_let_alone() -> None:
    texts = ["1" * length for length in range(3 * PATIENCE)]
    assert len(serve(Scripted(script(*texts)), Submit(asked(3 * PATIENCE - 1))).answers[0].tokens[0]) == 47


class Unstable(Scripted):
    """At the end of the session the first request has changed."""

    more: Tokens = ()

    def is_finished(self, handle: int) -> bool:
        ended = self.steps - self.begun[handle] >= len(self.scripts[handle]) - 1
        return ended and (bool(self.more) or self.steps < 3 or handle > 0)

    def generated(self, handle: int) -> Sequence[Tokens]:
        (tokens,) = super().generated(handle)
        return [tokens + self.more] if self.steps > 2 and handle == 0 else [tokens]


@pytest.mark.parametrize("more", [(), (1,)])
def test_what_has_ended_stays_as_it_was(more: Tokens) -> None:
    """Neither may it be unfinished again, nor have grown while it still counts as finished."""
    decoder = Unstable(script("", "13"), script("", "1", "11", "111"))
    decoder.more = more
    told = f"request of operation 2 had ended with ((1, 3),) and is {((1, 3, *more),)} at the end"
    with pytest.raises(IllegalAnswer, match=re.escape(told)) as raised:
        serve(decoder, Step(), Submit(asked(9, stop=frozenset({3}))), Submit(asked(3)))
    assert raised.value.operation == 3


def test_a_stop_token_counts_where_it_ended_the_sample() -> None:
    first_alone = asked(2, stop=frozenset({3}))
    assert serve(Scripted(script("", "13")), Submit(first_alone)).events["stop"] == 1
    assert serve(Scripted(script("", "31")), Submit(first_alone)).events["stop"] == 0
