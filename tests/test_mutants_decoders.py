"""What mutation testing of the specification of decoders and their sessions found untested."""

from collections.abc import Sequence
from typing import Any

import pytest

from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.decoders import (
    built_decoder,
    default_config,
    is_decode_function,
    takes_config,
    target_of,
    vocabulary_of,
)
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.session_models import Hashed, Table
from tokenlaw.spec.sessions import (
    LARGEST,
    MAX_OPERATIONS,
    MAX_SAMPLES,
    MAX_SEED,
    MAX_TOKENS,
    Fork,
    Session,
    SessionError,
    Submit,
    session_of,
    surely_fits,
    to_data,
)
from tokenlaw.spec.shown_tokens import IllegalAnswer, fates_of_drafts, shown_tokens

OWN = frozenset({"own-models"})
CONFIG = default_config()


class WithLaw:
    """A decoder whose target gives this law after whatever tokens."""

    def __init__(self, *law: float) -> None:
        self.law = law

    def target_law(self, tokens: Tokens) -> Sequence[float]:
        return self.law


def test_the_law_of_an_engine_may_be_off_by_low_precision_only() -> None:
    law = target_of(WithLaw(0.0, 0.5004, 0.5), CONFIG, OWN)((0,))
    assert law == [0.0, 0.5004 / 1.0004, 0.5 / 1.0004]
    for wrong in ((0.5, 0.502), (0.5, 0.498), (-0.5, 1.5), (0.25, float("nan"))):
        with pytest.raises(ContractError, match=r"target_law\(\(0,\)\) isn't a law: its numbers sum to"):
            target_of(WithLaw(*wrong), CONFIG, OWN)((0,))


def test_the_vocabulary_of_an_engine_is_that_of_its_law() -> None:
    assert vocabulary_of(WithLaw(0.25, 0.25, 0.5), OWN, otherwise=7) == 3
    assert vocabulary_of(WithLaw(0.25, 0.25, 0.5), frozenset(), otherwise=7) == 7


def test_a_vocabulary_is_asked_for_with_a_token_that_every_vocabulary_has() -> None:
    single: Any = WithLaw()
    single.target_law = Hashed(1, seed=0).model()  # of one token
    assert vocabulary_of(single, OWN, otherwise=7) == 1


class Decodes:
    """A class, which is a factory, however it is made."""

    def __init__(self, request: object, *, seed: int) -> None:
        pass


def test_a_decode_function_says_so_by_its_parameters() -> None:
    assert is_decode_function(lambda request, seed: [])
    others: list[Any] = [
        Decodes,
        "text",
        min,
        lambda prompt, *, seed: [],
        lambda request, **options: [],
        lambda request, seed, more: [],
    ]
    assert [other for other in others if is_decode_function(other)] == []


def test_a_factory_without_a_signature_gets_the_configuration() -> None:
    """Such as a builtin class."""
    assert takes_config(dict)
    decoder = built_decoder(lambda config: lambda request, *, seed: [[config.vocabulary_size]], "it", CONFIG)
    assert decoder.decode(DecodeRequest((0,), 1), seed=0) == [[3]]


def test_models_to_look_at_a_decoder_with_differ() -> None:
    config = default_config()
    target, draft = config.target((0,)), config.draft((0,))
    assert len(target) == len(draft) == config.vocabulary_size
    assert target != draft


REQUEST = DecodeRequest(prompt=(0,), num_tokens=9, draft_length=2, stop=frozenset({3}))


@pytest.mark.parametrize(
    ("old", "new", "fates"),
    [
        ((1,), (1, 0), ["rejected at 0"]),
        ((1,), (1, 0, 0), ["rejected at 1"]),
        ((1,), (1, 0, 0, 0), ["all accepted"]),
        ((1,), (1,), []),  # it waited
        ((), (0, 0), []),  # the first step need not have drafts
        ((1,) * 6, (1,) * 7, ["rejected at 0"]),
        ((1,) * 7, (1,) * 8, []),  # no room for both drafts and a bonus token
        ((1,), (1, 3), []),
        ((1,), (1, 0, 3), ["stop behind a draft"]),
        ((1,), (1, 0, 0, 3), ["stop behind a draft"]),
        ((), (0, 3), ["stop behind a draft"]),
    ],
)
def test_the_fate_of_drafts_is_read_off_the_tokens(old: Tokens, new: Tokens, fates: list[str]) -> None:
    assert list(fates_of_drafts(REQUEST, (old,), (new,))) == fates
    without = DecodeRequest(prompt=(0,), num_tokens=9, stop=frozenset({3}))
    assert list(fates_of_drafts(without, (old,), (new,))) == [one for one in fates if "stop" in one]


def test_the_first_token_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(
        IllegalAnswer, match=r"token 5 of sample 0 is outside the vocabulary 0\.\.2"
    ) as raised:
        shown_tokens(DecodeRequest((0,), 3), [[1, 5, 7]], ((),), 3)
    assert raised.value.operation == 0


def test_a_table_names_every_context_of_its_order() -> None:
    assert Table(0, ((0.25, 0.75),)).model()((1, 1)) == (0.25, 0.75)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        Table(1, ((0.5, 0.5),)).model()


@pytest.mark.parametrize(
    ("table", "vocabulary_size", "problem"),
    [
        (Table(19, ((1.0,),) * 20), 1, None),
        (Table(20, ((1.0,),) * 21), 1, "order 20 over 1 tokens: at most 10000 rows are read"),
        (Table(-1, ()), 1, "order -1 over 1 tokens: at most 10000 rows are read"),
        (Table(1, ()), 9_999, "order 1 and 9999 tokens need 10000 rows, not 0"),
        (Table(1, ()), 10_000, "order 1 over 10000 tokens: at most 10000 rows are read"),
        (Hashed(2, seed=0), 2, None),
        (Hashed(2, seed=2**63 - 1, stray_seed=0), 2, None),
        (Hashed(2, seed=2**63), 2, "its seed is 9223372036854775808; it must be 0 to 2**63 - 1"),
        (Hashed(2, seed=0, stray_seed=-1), 2, "its seed is -1; it must be 0 to 2**63 - 1"),
    ],
)
def test_models_that_are_read_are_limited(
    table: Table | Hashed, vocabulary_size: int, problem: str | None
) -> None:
    assert next(table.problems(vocabulary_size), None) == problem


def test_a_stored_model_means_the_same_in_every_version() -> None:
    """After these contexts of zeros the draft follows its stray model; elsewhere the target's law."""
    target, stray = Hashed(3, seed=0).model(), Hashed(3, seed=1).model()
    draft = Hashed(3, seed=0, stray_seed=1).model()
    contexts = [(0,) * length for length in range(24)]
    assert all(draft(context) in (target(context), stray(context)) for context in contexts)
    astray = [len(context) for context in contexts if draft(context) != target(context)]
    assert astray == [1, 2, 4, 8, 16, 17]


def limited(**changes: Any) -> dict[str, Any]:
    return to_data(Session((), vocabulary_size=2)) | changes


def requests(*told: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    made = [{"op": "submit", "seed": seed, "request": {"prompt": [0], "num_tokens": 1} | one} for one in told]
    return limited(operations=made)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        *((limited(**{name: LARGEST[name]}), None) for name in LARGEST),
        *((limited(**{name: LARGEST[name] + 1}), f"{name} is {LARGEST[name] + 1}") for name in LARGEST),
        *((limited(**{name: 1}), None) for name in LARGEST),
        *((limited(**{name: 0}), f"{name} is 0; it must be 1 to") for name in LARGEST),
        (requests({}, seed=2**63 - 1), None),
        (requests({}, seed=2**63), r"operations\[0\].seed is 9223372036854775808; it must be 0 to"),
        (requests({"num_tokens": 999_999}), None),
        (requests({"num_tokens": 1_000_000}), "it brings and asks for 1000001 tokens; at most 1000000"),
        (requests({"num_tokens": 500_000, "samples": 2}), "it brings and asks for 1000001 tokens"),
        (requests({"num_tokens": 499_999}, {"num_tokens": 499_999}), None),
        (requests({"num_tokens": 499_999}, {"num_tokens": 500_000}), "it brings and asks for 1000001 tokens"),
        (requests({"samples": 1_000}), None),
        (requests({"samples": 1_001}), "samples is 1001; it must be 1 to 1000"),
        (limited(operations=[{"op": "step"}] * 10_000), None),
        (requests({"prompt": [2]}), r"prompt has token 2; the vocabulary is 0\.\.1"),
        (requests({"stop": [2, 3]}), "stop has token 2"),
        (requests({"stop": [1, 1, 0]}), None),
        (requests({"sampling": {"min_p": -0.5}}), "min_p is -0.5; it must be 0 to 1"),
        (requests({"sampling": {"min_p": 1.5}}), "min_p is 1.5; it must be 0 to 1"),
        (requests({"sampling": {"top_p": -0.5}}), "top_p is -0.5; it must be 0 to 1"),
        (requests({"sampling": {"top_k": 3}}), "top_k is 3; it must be 1 to 2"),
        (requests({"sampling": {"top_k": 1, "top_p": 1.0, "min_p": 0.0}}), None),
        (requests({"sampling": {"top_k": 2, "top_p": 0.5, "min_p": 1.0}}), None),
        (requests({"sampling": {"allowed_tokens": [1, 2]}}), "allowed_tokens has token 2"),
        (limited(target={"kind": "hashed", "vocabulary_size": 2, "seed": 0, "sead": 1}), "sead"),
        (limited(target={"kind": "table", "order": 0, "rows": [[0.5, 0.5]], "odrer": 1}), "odrer"),
    ],
)
def test_sessions_that_are_read_are_limited(data: dict[str, Any], problem: str | None) -> None:
    if problem is None:
        assert to_data(session_of(data)) == data | {"operations": to_data(session_of(data))["operations"]}
    else:
        with pytest.raises(SessionError, match=problem):
            session_of(data)


def test_limits_and_defaults_of_sessions_never_change_by_the_way() -> None:
    assert (MAX_OPERATIONS, MAX_TOKENS, MAX_SAMPLES, MAX_SEED) == (10_000, 1_000_000, 1_000, 2**63 - 1)
    session = Session((), vocabulary_size=2)
    assert (session.num_blocks, session.block_size, session.max_sequences) == (32, 2, 8)
    config = default_config()
    assert (config.num_blocks, config.block_size, config.max_sequences) == (32, 2, 8)
    assert (Submit(DecodeRequest((0,), 1)).seed, Fork(0).seed) == (0, 0)


@pytest.mark.parametrize("samples", [1, 2])
def test_a_request_surely_fits_with_its_drafts_and_a_block_to_spare(samples: int) -> None:
    """Prompt 2, 3 tokens and 4 drafts are 9 tokens: three blocks of four, and one."""
    request = DecodeRequest((0, 1), 3, draft_length=4, samples=samples)

    def fits(**changes: int) -> bool:
        return surely_fits(
            request, Session((), 2, **({"num_blocks": 4 * samples, "block_size": 4} | changes))
        )

    assert fits(max_sequences=samples)
    assert not fits(num_blocks=4 * samples - 1)
    assert not fits(max_sequences=samples - 1)
    assert not fits(block_size=3, num_blocks=4 * samples - 1)
    assert fits(block_size=3)
