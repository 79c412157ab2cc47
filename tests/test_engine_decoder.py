"""The reference decoder: greedy text, blocks, joining and leaving, refusals. Nothing is left to chance."""

import random
from dataclasses import replace
from typing import Any

import pytest
from targets.fake_decoders import greedy

from tokenlaw.impl.engine import ReferenceDecoder, TransformerDecoder
from tokenlaw.impl.engine.runner import Run, TableRunner
from tokenlaw.impl.engine.samples import Sample
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS, probe_capabilities
from tokenlaw.spec.contracts import DECODER, OutOfBlocks
from tokenlaw.spec.decoder_contract import DecoderConfig, ServingDecoder
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import in_floats, random_table_model
from tokenlaw.spec.requests import DecodeRequest, Grammar, is_finished, logprobs
from tokenlaw.spec.sampling import SamplingParameters

VOCABULARY, BLOCKS = 4, 9
ROUNDING = 1e-9


def configuration(seed: int, **shape: int) -> DecoderConfig:
    """A decoder over four tokens whose models look at three of them."""
    target, draft = (in_floats(random_table_model(VOCABULARY, 3, seed + part)) for part in (0, 1000))
    return DecoderConfig(target, draft, VOCABULARY, **{"num_blocks": BLOCKS, "max_sequences": 4, **shape})


def random_request(generator: random.Random, temperature: float) -> DecodeRequest:
    """Any features together."""
    chance = generator.random
    return DecodeRequest(
        prompt=tuple(generator.choice([(0,), (1, 2, 3), (1, 2, 3, 0), (1, 2, 0, 0, 3)])),
        num_tokens=generator.randint(1, 7),
        draft_length=generator.randint(0, 3),
        samples=generator.choice([1, 1, 2, 3]),
        sampling=SamplingParameters(
            temperature=temperature,
            repetition_penalty=generator.choice([1.0, 1.3]),
            presence_penalty=generator.choice([0.0, 0.37]),
            frequency_penalty=generator.choice([0.0, 0.23]),
            logit_bias={2: 0.71} if chance() < 0.3 else {},
            min_p=generator.choice([None, 0.1]),
        ),
        stop=frozenset({3}) if chance() < 0.3 else frozenset(),
        # All tokens are possible somewhere, so that no model is left without one.
        grammar=Grammar(({0: 1, 1: 1, 2: 0, 3: 0}, {0: 0, 1: 0, 2: 1, 3: 1})) if chance() < 0.3 else None,
    )


def served(
    decoder: Any, generator: random.Random, steps: int, temperature: float
) -> dict[int, DecodeRequest]:
    """Requests come, are forked and aborted; those that are left have ended."""
    asked: dict[int, DecodeRequest] = {}
    for number in range(steps):
        if generator.random() < 0.7:
            request = random_request(generator, temperature)
            asked[decoder.submit(request, seed=2 * number)] = request
        decoder.step()
        chosen = generator.choice(list(asked)) if asked else None
        if chosen is not None and not decoder.is_finished(chosen):
            if asked[chosen].samples == 1:
                asked[decoder.fork(chosen, seed=2 * number + 1)] = asked[chosen]
            elif generator.random() < 0.2:
                decoder.abort(chosen)
                del asked[chosen]
    while not all(map(decoder.is_finished, asked)):
        decoder.step()
    return asked


@pytest.mark.parametrize("seed", range(10))
def test_greedy_text_is_that_of_target_only_decoding(seed: int) -> None:
    """With every feature, in a pool that is too small for all requests."""
    decoder = ReferenceDecoder(config := configuration(seed))
    asked = served(decoder, random.Random(seed), 8, temperature=0.0)
    for handle, request in asked.items():
        assert decoder.generated(handle) == greedy(config.target, request)
    assert decoder.num_free_blocks() == BLOCKS


@pytest.mark.parametrize("seed", range(10))
def test_logprobs_are_those_of_target_only_decoding(seed: int) -> None:
    decoder = ReferenceDecoder(config := configuration(seed))
    for handle, request in served(decoder, random.Random(seed), 8, temperature=1.0).items():
        for tokens, found in zip(decoder.generated(handle), decoder.logprobs(handle), strict=True):
            assert is_finished(request, tokens)
            assert found == pytest.approx(logprobs(config.target, request, tokens), abs=ROUNDING)
    assert decoder.num_free_blocks() == BLOCKS


@pytest.mark.parametrize("seed", range(3))
def test_the_transformer_reads_what_contiguous_attention_sees(seed: int) -> None:
    decoder = TransformerDecoder(configuration(seed))
    for handle, request in served(decoder, random.Random(seed), 6, temperature=1.0).items():
        for tokens, found in zip(decoder.generated(handle), decoder.logprobs(handle), strict=True):
            assert found == pytest.approx(logprobs(decoder.target_law, request, tokens), abs=1e-11)
    assert decoder.num_free_blocks() == BLOCKS


def test_running_samples_are_preempted_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    preempted: list[Tokens] = []
    real = Scheduler.preempt

    def noted(self: Scheduler, sample: Sample) -> None:
        preempted.append(sample.generated)
        real(self, sample)

    monkeypatch.setattr(Scheduler, "preempt", noted)
    decoder = ReferenceDecoder(config := configuration(1, num_blocks=4))
    request = DecodeRequest((1, 2), 6, sampling=SamplingParameters(temperature=0.0), samples=2)
    assert decoder.decode(request, seed=0) == greedy(config.target, request)
    assert any(preempted), "a sample with tokens of its own has to be among them"


def test_a_prompt_is_found_in_the_cache_and_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Run] = []
    real = TableRunner.run
    monkeypatch.setattr(
        TableRunner, "run", lambda self, run, wanted: (runs.append(run), real(self, run, wanted))[1]
    )
    decoder = ReferenceDecoder(configuration(1))
    request = DecodeRequest((1, 2, 3, 0, 1), 1)
    decoder.decode(request, seed=0)
    first, runs[:] = sum(len(run.tokens) for run in runs), []
    decoder.decode(request, seed=1)
    assert first == 5
    # Of the block before the last token nothing is hit: a prefix leaves one token to compute.
    assert sum(len(run.tokens) for run in runs) == 3


def test_samples_share_the_blocks_of_their_prompt() -> None:
    decoder = ReferenceDecoder(configuration(1, block_size=4, num_blocks=8))
    decoder.submit(DecodeRequest((0,) * 9, 3, samples=3), seed=0)
    decoder.step()
    assert decoder.num_free_blocks() == 8 - 2 - 3


def test_every_running_sample_grows_by_a_token_in_each_step() -> None:
    decoder = ReferenceDecoder(configuration(2, num_blocks=32))
    handles = [decoder.submit(DecodeRequest((0, 1), 8, draft_length=k), seed=k) for k in range(4)]
    for least in range(1, 5):
        decoder.step()
        assert all(len(decoder.generated(handle)[0]) >= least for handle in handles)


def test_what_was_given_once_stays() -> None:
    decoder = ReferenceDecoder(configuration(3, num_blocks=4))
    handles = [decoder.submit(DecodeRequest((0, 1), 6, draft_length=2), seed=seed) for seed in range(3)]
    before: list[Tokens] = [()] * 3
    while not all(map(decoder.is_finished, handles)):
        decoder.step()
        now = [decoder.generated(handle)[0] for handle in handles]
        assert all(new[: len(old)] == old for old, new in zip(before, now, strict=True))
        before = now


def test_no_row_depends_on_its_batch() -> None:
    """A sample's tokens follow from its own seed."""
    request = DecodeRequest((0, 1), 8, draft_length=2)
    alone = ReferenceDecoder(config := configuration(2, num_blocks=32)).decode(request, seed=5)
    decoder = ReferenceDecoder(config)
    for seed in range(3):
        decoder.submit(replace(request, num_tokens=3, draft_length=3), seed=seed)
    assert decoder.decode(request, seed=5) == alone


def test_one_that_can_never_fit_is_refused_and_changes_nothing() -> None:
    decoder = ReferenceDecoder(configuration(1, num_blocks=2))
    with pytest.raises(OutOfBlocks, match="5 tokens"):
        decoder.submit(DecodeRequest((0, 1), 4), seed=0)
    decoder.step()
    assert len(decoder.decode(DecodeRequest((0, 1), 3), seed=0)[0]) == 3


def test_only_an_unfinished_request_of_one_sample_is_forked() -> None:
    decoder = ReferenceDecoder(configuration(1))
    handles = [decoder.submit(DecodeRequest((0,), 1, samples=samples), seed=0) for samples in (1, 2)]
    with pytest.raises(ValueError, match="one sample"):
        decoder.fork(handles[1], seed=1)
    decoder.step()
    with pytest.raises(ValueError, match="hasn't ended"):
        decoder.fork(handles[0], seed=1)


def test_an_aborted_request_is_unknown() -> None:
    decoder = ReferenceDecoder(configuration(1))
    handle = decoder.submit(DecodeRequest((0,), 3), seed=0)
    decoder.step()
    decoder.abort(handle)
    with pytest.raises(KeyError, match="aborted"):
        decoder.generated(handle)
    assert decoder.num_free_blocks() == BLOCKS


def test_capabilities_are_found() -> None:
    shown = {name for name, members in CAPABILITY_MEMBERS[DECODER].items() if members}
    own = ReferenceDecoder(configuration(1))
    assert isinstance(own, ServingDecoder)
    assert probe_capabilities(DECODER, own) == shown - {"own-models"}
    assert probe_capabilities(DECODER, TransformerDecoder(configuration(1))) == shown
