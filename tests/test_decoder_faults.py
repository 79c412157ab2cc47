"""Planted faults of decoders change the law, innocents don't; all of it proved, on the smallest requests."""

from collections.abc import Callable
from typing import Any

import pytest

from support.known_laws import independent
from tokenlaw.checks import load_suites
from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.faults import DECODER_FAULTS, DECODER_INNOCENTS, Fault, Innocent
from tokenlaw.impl.faults.targets import DECODING, SUSPECTS
from tokenlaw.properties.decoder_expected import certain_tokens
from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import in_floats, random_table_model
from tokenlaw.spec.requests import DecodeRequest, Grammar, logprobs, sample_law
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import total_variation

VISIBLE, ROUNDING, SINGLE_PRECISION = 1e-3, 1e-12, 1e-6
TARGET, DRAFT = (in_floats(random_table_model(3, 2, seed)) for seed in (2, 105))
CONFIG = DecoderConfig(TARGET, DRAFT, 3)
CLASSES = {f"C{number:02}" for number in range(1, 23)}


def asked(**parts: Any) -> DecodeRequest:
    """Two tokens with one draft, after a prompt that ends inside a block."""
    sampling = SamplingParameters(**parts.pop("sampling", {}))
    return DecodeRequest(
        **{"prompt": (1, 0, 2), "num_tokens": 2, "draft_length": 1, **parts}, sampling=sampling
    )


def law_is_off_by(make: Callable[[Any], Any], request: DecodeRequest) -> float:
    """Total variation between what a decoder gives and target-only decoding, of one or two samples."""
    found = exact_law(lambda: tuple(map(tuple, make(CONFIG).decode(request, seed=1))))
    law = sample_law(TARGET, request)
    return float(total_variation(found, independent(*[law] * request.samples))[1])


PLAIN = asked()
MASKED = asked(grammar=Grammar(({0: 1, 1: 1}, {1: 0, 2: 0})))
WARM = asked(sampling={"temperature": 0.6})
BIASED = asked(sampling={"logit_bias": {0: 1.0}})
PENALISED = asked(num_tokens=3, sampling={"repetition_penalty": 1.8, "presence_penalty": 0.7})
LAWS = {
    "greedy_with_drafts": PLAIN,
    "parameters_ignored_with_drafts": WARM,
    "rejected_stop_ends": asked(num_tokens=3, stop=frozenset({1})),
    "draft_numbers_accept": PLAIN,
    "greedy_drafts_declared_drawn": PLAIN,
    "draft_tokens_mapped": PLAIN,
    "only_likely_drafts_kept": PLAIN,
    "raw_draft_logits_declared": MASKED,
    "refused_drafts_are_cut": MASKED,
    "bonus_unmasked": MASKED,
    "mask_not_advanced": MASKED,
    "bias_skipped_at_drafts": BIASED,
    "penalties_see_committed_tokens": PENALISED,
    "penalties_at_first_position": PENALISED,
    "samples_share_numbers": asked(num_tokens=1, samples=2),
}
"""Faults of laws, each with a request that shows it."""

ASKED_ALIKE = {
    "greedy_drafts_declared_drawn",
    "draft_tokens_mapped",
    "only_likely_drafts_kept",
    "raw_draft_logits_declared",
    "refused_drafts_are_cut",
    "mask_not_advanced",
    "penalties_at_first_position",
}
"""Others show by the same request."""


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        pytest.param(*fault, id=fault[0], marks=[pytest.mark.slow] * (fault[0] in ASKED_ALIKE))
        for fault in LAWS.items()
    ],
)
def test_a_fault_changes_the_law(name: str, request_: DecodeRequest) -> None:
    assert law_is_off_by(DECODER_FAULTS[name].make, request_) > VISIBLE


ASKED = {"plain": PLAIN, "masked": MASKED, "longer": asked(num_tokens=3)}
WITH_MASKS = {
    "drafts_beyond_the_end",
    "drafts_not_masked",
    "no_prefix_cache_in_decoder",
    "one_hot_rule",
    "no_bonus_token",
    "logits_by_rows",
    "preempts_in_turn",
}
"""Innocents that are asked with a grammar by default; the others without one, so that each is asked once."""


@pytest.mark.parametrize(
    ("request_", "innocent"),
    [
        pytest.param(
            request_,
            innocent,
            id=f"{kind}-{name}",
            marks=[pytest.mark.slow] * (kind != ("masked" if name in WITH_MASKS else "plain")),
        )
        for kind, request_ in ASKED.items()
        for name, innocent in DECODER_INNOCENTS.items()
    ],
)
def test_an_innocent_leaves_the_law_alone(innocent: Innocent, request_: DecodeRequest) -> None:
    bound = SINGLE_PRECISION if innocent.name == "logits_by_rows" else ROUNDING
    assert law_is_off_by(innocent.make, request_) < bound


@pytest.mark.parametrize(("name", "exact"), [("fork_shares_numbers", False), ("draft_is_target", True)])
def test_whether_a_fork_is_independent(name: str, exact: bool) -> None:
    make: Any = SUSPECTS[name].planted.make
    request = asked(num_tokens=1)

    def program() -> tuple[Tokens, ...]:
        decoder = make(CONFIG)
        parent = decoder.submit(request, seed=1)
        child = decoder.fork(parent, seed=2)
        decoder.step()
        return (*decoder.generated(parent), *decoder.generated(child))

    law = sample_law(TARGET, request)
    off = float(total_variation(exact_law(program), independent(law, law))[1])
    assert (off < ROUNDING) if exact else (off > VISIBLE)


def logprobs_are_right(make: Callable[[Any], Any], seed: int) -> bool:
    """Whether every token of two samples, and of a long request beside them, has the law of its context."""
    decoder = make(DecoderConfig(TARGET, DRAFT, 3, num_blocks=16, block_size=4))
    prompt = (0, 1, 2)
    requests = (
        asked(prompt=prompt, num_tokens=6, draft_length=2, samples=2),
        asked(prompt=prompt, num_tokens=8, draft_length=3),
    )
    handles = [decoder.submit(request, seed=seed + place) for place, request in enumerate(requests)]
    while not all(map(decoder.is_finished, handles)):
        decoder.step()
    return all(
        found == pytest.approx(logprobs(TARGET, request, tokens), abs=ROUNDING)
        for handle, request in zip(handles, requests, strict=True)
        for tokens, found in zip(decoder.generated(handle), decoder.logprobs(handle), strict=True)
    )


UNLIKE_CONTEXT = (
    "rejected_drafts_stay",
    "one_rejected_draft_stays",
    "accepted_draft_lost",
    "last_token_not_written",
    "drafts_in_shared_blocks",
    "copies_forgotten",
    "draft_logprobs",
    "draft_logprobs_zero",
    "logprobs_of_next_row",
    "bonus_from_padding",
)
"""Faults after which some token isn't drawn, or reported, as what came before it asks for."""


@pytest.mark.parametrize("name", UNLIKE_CONTEXT)
def test_a_fault_shows_in_logprobs(name: str) -> None:
    """Fixed seeds: nothing is left to chance."""
    make = DECODER_FAULTS[name].make
    assert not all(logprobs_are_right(make, 10 * seed) for seed in range(10))


@pytest.mark.parametrize("name", [None, "rejected_drafts_are_found"])
def test_a_prompt_that_goes_on_with_a_rejected_draft(name: str | None) -> None:
    """Greedy: the first request drafts token 1 behind its prompt, and gets 0 in its place."""
    make = ReferenceDecoder if name is None else DECODER_FAULTS[name].make
    target, draft = (Hashed(2, seed).model() for seed in (3, 1003))
    sampling, prompt = {"temperature": 0.0}, (1, 0, 1)
    decoder = make(DecoderConfig(target, draft, 2))
    first = decoder.submit(asked(prompt=prompt, num_tokens=3, sampling=sampling), seed=1)
    decoder.step()
    decoder.step()
    assert decoder.generated(first)[0][0] == 0
    second = asked(prompt=(*prompt, 1, 0, 1), num_tokens=3, sampling=sampling)
    right = certain_tokens(target, second)
    assert (decoder.decode(second, seed=2) == [right]) == (name is None)


def test_exact_logprobs_are_right() -> None:
    assert all(logprobs_are_right(SUSPECTS["one_hot_rule"].planted.make, seed) for seed in range(3))


@pytest.mark.parametrize("fault", DECODER_FAULTS.values(), ids=DECODER_FAULTS)
def test_faults_are_described(fault: Fault) -> None:
    assert set(fault.classes) <= CLASSES
    assert any(character.isdigit() for character in fault.report)
    assert fault.effect
    assert fault.weakest_check in {check.id for check in load_suites()[DECODER].checks}


def test_the_classes_of_speculation_in_a_decoding_loop_are_planted() -> None:
    planted = {one for fault in DECODER_FAULTS.values() for one in fault.classes}
    assert planted >= {"C01", "C02", "C03", "C04", "C06", "C07", "C08", "C11", "C12", "C14", "C15", "C16"}
    assert planted >= {"C17", "C20", "C22"}


def test_each_is_a_target_of_its_own() -> None:
    named = {name for name, suspect in SUSPECTS.items() if suspect.family == DECODING}
    assert named == {*DECODER_FAULTS, *DECODER_INNOCENTS}
