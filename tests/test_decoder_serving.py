"""What carrying out a session shows of a decoder, and what its protocol forbids."""

import pytest

from support.pooled_decoder import CAPABILITIES, PooledDecoder
from support.serving_decoders import Impatient, Leaking, ShownDrafts
from tokenlaw.spec.requests import DecodeRequest, sample_law
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.serving import PATIENCE, carry_out
from tokenlaw.spec.session_models import Hashed
from tokenlaw.spec.sessions import Abort, Fork, Session, Step, Submit, surely_fits
from tokenlaw.spec.shown_tokens import IllegalAnswer, shown_logprobs

GREEDY = SamplingParameters(temperature=0.0)


def serve(decoder_class, *operations, **configuration):
    session = Session(
        operations,
        3,
        Hashed(3, seed=1),
        Hashed(3, seed=1, stray_seed=2),
        **({"num_blocks": 32} | configuration),
    )
    return carry_out(decoder_class(session.config), session, CAPABILITIES)


def asked(prompt=(0,), num_tokens=6, **changes):
    return DecodeRequest(prompt, num_tokens, sampling=GREEDY, **changes)


def expected(request):
    (tokens,) = sample_law(Hashed(3, seed=1).model(), request)
    return tokens


def test_answers_and_events_of_a_session():
    first, second = asked(num_tokens=20, draft_length=2), asked((1, 0), samples=2)
    served = serve(
        PooledDecoder,
        Submit(first, 1),
        Step(),
        Step(),
        Submit(second, 2),
        Fork(0, 3),
        Step(),
        Abort(1),
        Abort(5),
    )
    origin, aborted, child = served.answers
    assert origin.tokens == (expected(first),)
    assert origin.forked == [child.given]
    assert child.origin == 0
    assert child.aborted
    assert child.tokens[0] == expected(first)[: len(child.tokens[0])]
    assert aborted.aborted
    assert aborted.joined
    assert not origin.joined
    assert all(len(sample) == 1 for sample in aborted.tokens)
    assert served.events["fork with tokens"] == served.events["join"] == 1
    assert served.events["abort"] == 2
    assert served.free_before == served.free_after == 32


def test_operations_without_a_request_do_nothing():
    served = serve(PooledDecoder, Step(), Fork(3), Abort(-2), Submit(asked(), 1))
    assert served.answers[0].tokens == (expected(asked()),)
    assert set(served.events) & {"fork", "abort"} == set()


def test_what_became_of_drafts_is_counted():
    served = serve(
        PooledDecoder, *(Submit(asked((token, token), 40, draft_length=3), token) for token in range(3))
    )
    assert all(
        served.events[event] for event in ("rejected at 0", "rejected at 1", "rejected at 2", "all accepted")
    )
    assert not served.events["rejected at 3"]


def test_a_request_that_waits_is_counted_and_ends():
    served = serve(PooledDecoder, Submit(asked()), Submit(asked((1,))), max_sequences=1)
    assert served.events["wait"]
    assert [answer.tokens for answer in served.answers] == [(expected(asked()),), (expected(asked((1,))),)]


def test_what_cannot_fit_may_be_refused_and_what_fits_may_not():
    assert serve(PooledDecoder, Submit(asked(num_tokens=600))).answers[0].refused
    with pytest.raises(IllegalAnswer, match="OutOfBlocks for a request that fits: not now") as raised:
        serve(Impatient, Step(), Submit(asked()), Step(), Submit(asked()), max_sequences=1)
    assert (raised.value.rule, raised.value.operation) == ("progress", 3)
    session = Session((), 3, num_blocks=4, block_size=2, max_sequences=2)
    assert surely_fits(asked(num_tokens=5), session)
    assert not surely_fits(asked(num_tokens=6), session)
    assert not surely_fits(asked(num_tokens=1, samples=3), session)


def test_free_blocks_are_read_before_and_after():
    served = serve(Leaking, Submit(asked()), Step(), Abort(0))
    assert served.free_after == served.free_before - 1


class Bad(PooledDecoder):
    """Answers with whatever it is told to."""

    shown: object = None
    ended = True

    def generated(self, handle):
        return self.shown

    def is_finished(self, handle):
        return self.ended


@pytest.mark.parametrize(
    ("shown", "ended", "rule", "message"),
    [
        ([[0, 3]], True, "protocol", "token 3 of sample 0 is outside the vocabulary 0..2"),
        ([[0, -1]], True, "protocol", "token -1 of sample 0"),
        ([[0.0]], True, "protocol", "expected token ids for each sample, not .*float"),
        (None, True, "protocol", "expected token ids for each sample, not None"),
        ([[0] * 7], True, "protocol", "sample 0 has 7 tokens, 6 were asked for"),
        ([[0], [0]], True, "samples", "2 samples were given, 1 asked for"),
        ([[0]], True, "protocol", "sample 0 ended with .0,., before 6 tokens or a stop token"),
        ([[0] * 6], False, "protocol", "is_finished says no, but every sample has ended"),
        ([[]], False, "progress", f"nothing grew in {PATIENCE} steps; unfinished: operation 1"),
    ],
)
def test_the_protocol_is_watched(shown, ended, rule, message):
    kind = type("Told", (Bad,), {"shown": shown, "ended": ended})
    with pytest.raises(IllegalAnswer, match=message) as raised:
        serve(kind, Submit(asked()))
    assert raised.value.rule == rule


def test_what_was_shown_stays():
    with pytest.raises(IllegalAnswer, match=r"sample 0 was \(.*\) before and is \(.*\) now"):
        serve(ShownDrafts, *(Submit(asked((token,), 40, draft_length=3)) for token in range(3)))


class Forgotten(PooledDecoder):
    """Says that the first request had other tokens, once the second one has ended."""

    def generated(self, handle):
        tokens = super().generated(handle)
        return [()] if handle == 0 and len(self.samples) > 1 and super().is_finished(1) else tokens


def test_what_ended_is_looked_at_again():
    short = asked(num_tokens=1)
    with pytest.raises(IllegalAnswer, match=r"sample 0 was .* before and is .* now"):
        serve(Forgotten, Submit(short), Step(), Submit(short))


class FewLogprobs(PooledDecoder):
    def logprobs(self, handle):
        return [[0.0]]


def test_there_is_a_log_probability_for_each_token():
    with pytest.raises(IllegalAnswer, match=r"logprobs gives .1. numbers for .6. tokens") as raised:
        serve(FewLogprobs, Submit(asked()))
    assert raised.value.rule == "logprobs"


def test_without_requests_each_is_decoded_in_turn():
    class OnlyDecode:
        def decode(self, request, *, seed):
            return [expected(request)]

    session = Session((Submit(asked()), Step(), Fork(0), Submit(asked((2,)))), 3, Hashed(3, seed=1))
    served = carry_out(OnlyDecode(), session)
    assert [answer.tokens for answer in served.answers] == [(expected(asked()),), (expected(asked((2,))),)]
    assert served.free_before is None


@pytest.mark.parametrize("given", [None, [None], [["a"]], 3])
def test_log_probabilities_that_are_no_numbers_are_an_illegal_answer(given: object) -> None:
    with pytest.raises(IllegalAnswer, match="expected numbers for each sample"):
        shown_logprobs(given, ((1,),))
