"""Situations of the laws of decoders: in each one a fault shows that others of its check don't show."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

import pytest
import torch
from torch import Tensor

from support.decoder_law_runs import asked
from tokenlaw.impl.engine import ReferenceDecoder
from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.samples import Row, Sample, SampleNumbers, uniforms_of
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.impl.engine.verification import Verification
from tokenlaw.impl.speculative.random import Use
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.sessions import Fork, Submit
from tokenlaw.stats.decoder_cases import Case, reseeded
from tokenlaw.stats.decoder_checks import FORK, GRAMMAR, REQUESTS, SAMPLES
from tokenlaw.stats.decoder_proving import Prover
from tokenlaw.stats.decoder_situations import law_cases

ADMITTED: WeakKeyDictionary[Sample, int] = WeakKeyDictionary()


class NotingCache(SequenceCache):
    def admit(self, sample: Sample) -> None:
        super().admit(sample)
        ADMITTED[sample] = len(sample.tokens)


class NumbersSinceAdmission(SampleNumbers):
    def key(self, sample: Sample) -> int:
        return derived_key(sample.seed, len(sample.tokens) - ADMITTED[sample])


class RestartedNumbers(ReferenceDecoder):
    """A sample that was preempted gets its first random numbers again."""

    cache_class = NotingCache
    numbers_class = NumbersSinceAdmission


class FirstSeedAgain(Scheduler):
    def __init__(self, cache: SequenceCache, max_sequences: int) -> None:
        super().__init__(cache, max_sequences)
        self.seeds: dict[int, int] = {}

    def _join(self) -> list[Sample]:
        joined = super()._join()
        for sample in {id(one.request): one for one in reversed(joined)}.values():
            sample.seed = self.seeds.setdefault(id(sample.request), sample.seed)
        return joined


class LateSamplesAgain(ReferenceDecoder):
    """A sample that starts later than another one of its request is the same again."""

    scheduler_class = FirstSeedAgain


class ForkWhereItStarts(Scheduler):
    origin: Mapping[Sample, Sample] = MappingProxyType({})

    def fork(self, parent: Sample, child: Sample) -> None:
        super().fork(parent, child)
        self.origin = {child: parent}

    def _join(self) -> list[Sample]:
        for child in self.waiting:
            parent = self.origin.get(child)
            if parent is not None and parent in self.running:
                child.tokens[:], child.logprobs[:] = parent.tokens, parent.logprobs
        return super()._join()


class LateFork(ReferenceDecoder):
    """A fork that waits gets what its origin is given meanwhile."""

    scheduler_class = ForkWhereItStarts


class EqualForks(ReferenceDecoder):
    """The random numbers of a fork depend on its origin alone."""

    def fork(self, handle: int, *, seed: int) -> int:
        return super().fork(handle, seed=derived_key(handle, "fork"))


class TwoRowsOfNumbers(Verification):
    def decide(self, batch: VerifyBatch, rows: list[Row]) -> Tensor:
        return super().decide(batch, [rows[place % 2] for place in range(len(rows))])


class ThirdRowAgain(ReferenceDecoder):
    """The third row of a batch has the random numbers of the first one."""

    verification_class = TwoRowsOfNumbers


class ThreeTests(Verification):
    def decide(self, batch: VerifyBatch, rows: list[Row]) -> Tensor:
        tests = uniforms_of(rows, Use.ACCEPTANCE, batch.shape[1])
        tests = tests[:, torch.arange(batch.shape[1]) % 3]
        return self.verifier.step(batch, tests, uniforms_of(rows, Use.EXTRA_TOKEN, 1)[:, 0])


class FourthDraftAgain(ReferenceDecoder):
    """The fourth draft is accepted by the random number of the first one."""

    verification_class = ThreeTests


class SeedPlusNumber(ReferenceDecoder):
    """The second sample has the seed that the next request brings."""

    def sample_seed(self, seed: int, number: int) -> int:
        return seed + number


class SamplesModFour(ReferenceDecoder):
    """The fifth sample is the first one again."""

    def sample_seed(self, seed: int, number: int) -> int:
        return super().sample_seed(seed, number % 4)


def case_of(check: str, title: str) -> Case:
    (case,) = [one for one in law_cases(0) if (one.check, one.title) == (check, title)]
    return case


@pytest.mark.parametrize(
    ("make", "check", "title"),
    [
        (RestartedNumbers, REQUESTS, "a random request that makes room"),
        pytest.param(
            LateSamplesAgain, SAMPLES, "2 samples, of which one has to wait", marks=pytest.mark.slow
        ),
        pytest.param(LateFork, FORK, "a fork that has to wait", marks=pytest.mark.slow),
        (EqualForks, FORK, "two forks of one state"),
        (ThirdRowAgain, REQUESTS, "three random requests at once"),
        (SeedPlusNumber, REQUESTS, "a request of 2 samples and one of 1"),
        pytest.param(
            FourthDraftAgain,
            GRAMMAR,
            "4 drafts a step, of which the first and the last are free",
            marks=pytest.mark.slow,
        ),
        (SamplesModFour, SAMPLES, "5 samples of 1 token"),
    ],
)
def test_a_situation_shows_what_it_is_for(
    make: Callable[..., ReferenceDecoder], check: str, title: str
) -> None:
    """The law of the reference is right there, so the situation comes about and nothing else is wrong."""
    case = case_of(check, title)
    for one, is_wrong in ((make, True), (ReferenceDecoder, False)):
        with Prover(asked(one)) as prover:
            proof = prover.prove(case)
        assert proof.refuted(0.05) == is_wrong, proof.reason
        assert proof.proved(1e-6) != is_wrong, proof.reason


def test_seeds_are_numbered_in_every_other_round() -> None:
    """Operations without a seed don't count; the first seed has zeros at its end."""
    first = case_of(FORK, "two forks of one state")
    again = case_of(FORK, "two forks of one state, models 1")
    seeds = {
        case.larger: [one.seed for one in reseeded(case, 0).operations if isinstance(one, Submit | Fork)]
        for case in (first, again)
    }
    assert seeds[0] == [seeds[0][0] + place for place in range(3)]
    assert seeds[0][0] % 64 == 0
    assert reseeded(first, 1) != reseeded(first, 0)
    assert len(set(seeds[1])) == 3
    assert seeds[1] != [seeds[1][0] + place for place in range(3)]
