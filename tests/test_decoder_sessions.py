"""Sessions as data, and what carrying one out shows of a decoder."""

import json

import pytest

from support.pooled_decoder import PooledDecoder
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.decoders import as_decoder, decoder_factory, target_of
from tokenlaw.spec.models import in_floats, random_table_model
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed, table_of
from tokenlaw.spec.sessions import (
    Abort,
    Fork,
    Session,
    SessionError,
    Step,
    Submit,
    session_of,
    to_data,
)

GREEDY = SamplingParameters(temperature=0.0)
EVERYTHING = DecodeRequest(
    prompt=(0, 1),
    num_tokens=4,
    draft_length=2,
    samples=2,
    sampling=SamplingParameters(logit_bias={1: 0.5}, allowed_tokens=frozenset({0, 1}), top_k=2, min_p=0.1),
    stop=frozenset({1, 2}),
    grammar=Grammar(({0: 1, 1: 0}, {0: 0})),
)
TABLE = table_of(in_floats(random_table_model(3, 1, seed=1)))
SESSION = Session(
    (Submit(EVERYTHING, 7), Step(), Fork(0, 8), Abort(-1)),
    vocabulary_size=3,
    target=TABLE,
    draft=Hashed(3, seed=5, stray_seed=6),
    num_blocks=9,
)


def changed(**changes):
    return to_data(SESSION) | changes


def with_request(**changes):
    request = to_data(SESSION)["operations"][0]["request"] | changes
    return changed(operations=[{"op": "submit", "request": request}])


def test_a_session_comes_back_from_json_as_it_was():
    assert session_of(json.loads(json.dumps(to_data(SESSION)))) == SESSION
    assert TABLE.model()((2, 1)) == in_floats(random_table_model(3, 1, seed=1))((1,))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "schema None; this version of tokenlaw reads 'tokenlaw.session/1'"),
        (changed(schema="tokenlaw.session/2"), "schema 'tokenlaw.session/2'"),
        (changed(sead=1), "unknown field `sead`"),
        (changed(contract="verifier"), "of contract 'verifier', not 'decoder'"),
        (changed(vocabulary_size=0), "vocabulary_size is 0; it must be 1 to 10000"),
        (changed(num_blocks=10**7), "num_blocks is 10000000; it must be 1 to 1000000"),
        (changed(operations=[{"op": "stop"}]), "Invalid value 'stop'"),
        (changed(operations=[{"op": "step"}] * 10_001), "it has 10001 operations; at most 10000 are run"),
        (changed(operations=[{"op": "fork", "request_index": 0, "seed": -1}]), r"operations\[0\].seed is -1"),
        (changed(draft={"kind": "hashed", "vocabulary_size": 2, "seed": 0}), "draft: it is a model of 2"),
        (changed(draft={"kind": "hashed", "vocabulary_size": 3, "seed": -1}), "draft: its seed is -1"),
        (changed(target={"kind": "table", "order": 1, "rows": [[1, 0, 0]]}), "need 4 rows, not 1"),
        (changed(target={"kind": "table", "order": 30, "rows": []}), "at most 10000 rows are read"),
        (changed(target={"kind": "table", "order": 0, "rows": [[1, 1, 0]]}), "row 0 sum to 2"),
        (changed(target={"kind": "table", "order": 0, "rows": [[1]]}), "row 0 has 1 numbers for 3 tokens"),
        (with_request(prompt=[]), "the length of the prompt must be at least 1"),
        (with_request(prompt=[3]), "prompt has token 3; the vocabulary is 0..2"),
        (with_request(stop=[-1]), "stop has token -1"),
        (with_request(num_tokens=True), "Expected `int`, got `bool`"),
        (with_request(num_tokens=10**6), "it brings and asks for 2000002 tokens"),
        (with_request(samples=1001), "samples is 1001; it must be 1 to 1000"),
        (with_request(temperature=0), r"operations\[0\].request has no 'temperature'"),
        (with_request(sampling={"temprature": 0}), r"request.sampling has no 'temprature'"),
        (with_request(sampling={"top_p": 1.5}), "top_p is 1.5; it must be 0 to 1"),
        (with_request(sampling={"top_k": 0}), "top_k is 0; it must be 1 to 3"),
        (with_request(sampling={"temperature": float("nan")}), "temperature"),
        (with_request(sampling={"presence_penalty": float("inf")}), "presence_penalty is inf"),
        (with_request(sampling={"logit_bias": {"4": 1.0}}), "logit_bias has token 4"),
        (with_request(grammar={"transitions": [{"0": 5}]}), "there is no state 5"),
        (with_request(grammar={"transitions": [{"5": 0}]}), "grammar has token 5"),
    ],
)
def test_what_is_no_session_is_refused_in_words(data, message):
    with pytest.raises(SessionError, match=message):
        session_of(data)


@pytest.mark.parametrize("certain", [False, True])
def test_a_hashed_model_looks_at_every_token(certain):
    model = Hashed(3, seed=1, certain=certain).model()
    texts = [(a, b, c, 0) for a in range(3) for b in range(3) for c in range(3)]
    laws = [model(text) for text in texts]
    assert len(set(laws)) == (3 if certain else 6)
    for place in range(3):  # no place, given all others, leaves the law alone
        others = {text[:place] + text[place + 1 :] for text in texts}
        same = [{model((*o[:place], t, *o[place:])) for t in range(3)} for o in others]
        assert any(len(laws) > 1 for laws in same)


def test_a_model_that_strays_agrees_after_three_quarters_of_all_contexts():
    """Of 600 contexts 450 agree on average; outside 400 .. 500 lies a probability below 1e-5."""
    target, draft = Hashed(3, seed=1).model(), Hashed(3, seed=1, stray_seed=2).model()
    contexts = [
        (a, b, c, d, e, f)
        for a in range(3)
        for b in range(3)
        for c in range(3)
        for d in range(3)
        for e in range(3)
        for f in range(3)
    ][:600]
    agree = sum(target(context) == draft(context) for context in contexts)
    assert 400 < agree < 500


def test_what_is_taken_for_a_decoder():
    def decode(request, *, seed):
        return [[0]]

    assert as_decoder(decode, "mine").decode(None, seed=0) == [[0]]
    with pytest.raises(ContractError, match="mine: the decoder factory returned int, which lacks decode"):
        as_decoder(3, "mine")
    assert decoder_factory(PooledDecoder) is None
    with pytest.raises(ContractError, match="can't be given models: offer a factory"):
        decoder_factory(decode)
    decode.target_law = lambda tokens: (0.25, 0.75)
    made = decoder_factory(decode)(SESSION.config)
    assert target_of(made, SESSION.config, frozenset({"own-models"}))((0,)) == [0.25, 0.75]
    assert target_of(made, SESSION.config, frozenset())((0,)) == TABLE.model()((0,))
