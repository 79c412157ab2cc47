"""Small constants of random numbers are left out of a law, and counted in all bounds that follow from it."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tokenlaw
from support import proofs
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.decoder_laws import GIVEN, TOKENS, Question
from tokenlaw.stats.decoder_laws import compared as decoder_compared
from tokenlaw.stats.decoder_programs import Outcome
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law, exact_laws
from tokenlaw.stats.enumeration.forms import EXPONENTIAL, UNIFORM
from tokenlaw.stats.enumeration.law import Law, total_variation
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.states import same_state
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.law_pairs import tv_between

GUARD = 2.0**-34
WEIGHTS = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(shape or 1, dtype=torch.float64)


def guarded_token(guard: float = GUARD) -> list[int]:
    """A token of Gumbel noise with one guard for each of three numbers."""
    gumbel = -torch.log(-torch.log(uniform(3) + guard))
    return [int((WEIGHTS.log() + gumbel).argmax())]


def test_bounds_hold_for_the_program_as_it_is() -> None:
    """log(u + c) < log(t) if u < t - c, which the law takes for u < t."""
    law = exact_law(lambda: bool((torch.log(uniform() + GUARD) < math.log(0.5)).all()))
    assert law.probabilities[True] == 0.5
    assert law.neglected == GUARD
    lower, upper = law.bounds(True)
    assert lower <= 0.5 - GUARD <= upper
    assert total_variation(law, {True: 0.5 - GUARD, False: 0.5 + GUARD}) == (0, 2 * GUARD)


COUNTED: list[tuple[Callable[[], object], float]] = [
    (guarded_token, 3 * GUARD),
    (lambda: guarded_token(0.0), 0.0),
    (lambda: guarded_token() + guarded_token(GUARD / 2), 4.5 * GUARD),
    (lambda: bool(uniform().clamp(min=GUARD) < 0.5), GUARD),
    (lambda: bool(uniform().clamp(max=1 - GUARD) < 0.5), GUARD),
    (lambda: bool(uniform().clamp(min=-1.0) < 0.5), 0.0),
    (lambda: bool(1 / (4 * uniform() - 4 * GUARD) < 0.5), GUARD),
    (lambda: bool(uniform().sqrt().add(GUARD / 2).log() < -1), GUARD),
    (lambda: bool(uniform().square().add(GUARD**2).log() < -1), GUARD),
]


@pytest.mark.parametrize(("program", "effect"), COUNTED)
def test_what_is_left_out_is_counted(program: Callable[[], object], effect: float) -> None:
    assert exact_law(program).neglected == pytest.approx(effect, rel=1e-12)


def test_guards_of_a_number_of_which_more_is_known_count_more() -> None:
    """Below 1/4 a change is four times as probable; after a race nothing is known."""

    def below() -> bool:
        number = uniform()
        return bool(number < 0.25) and bool(torch.log(number + GUARD / 8) < -3)

    def raced() -> int:
        noise = torch.empty(2).exponential_()
        first = int(noise.argmin())
        return first + int((1 / (noise + GUARD)).argmax())

    assert exact_law(below).neglected == GUARD / 2
    assert exact_law(raced).neglected >= 1


def test_the_worst_path_counts_and_each_row_for_itself() -> None:
    law = exact_law(lambda: guarded_token() if random.random() < 0.5 else guarded_token(GUARD / 2))
    assert law.neglected == 3 * GUARD
    batch = exact_laws(lambda: list((uniform(5) + GUARD).log() < -1), 5)
    assert batch.neglected == GUARD


def test_declared_states_count_as_often_as_they_are_visited() -> None:
    """Each of two visits on average draws a number with a guard."""

    def until_below_half() -> int:
        same_state("again")
        while not bool(torch.log(uniform() + GUARD) < math.log(0.5)):
            same_state("again")
        return 1

    assert exact_law(until_below_half).neglected == pytest.approx(2 * GUARD)


def test_powers_below_one_make_guards_larger() -> None:
    """The density of sqrt(u) is 2 at its largest, that of u ** 0.01 is 100: guards move more there."""
    with pytest.raises(UndecidableError, match="shifted"):
        exact_law(lambda: bool((uniform() ** 0.01 + GUARD).log() < -1))


@pytest.mark.parametrize("kind", [UNIFORM, EXPONENTIAL])
@pytest.mark.parametrize("power", [0.5, 0.8, 1.0, 2.0])
def test_effects_bound_the_total_variation(kind: int, power: float) -> None:
    """Against the distance of both distribution functions, which total variation is never below."""
    shift = 1e-3
    book = NoiseBook(Tape())
    forms = book.read(book.fresh([0], kind)).to_power(np.float64(power)).plus(np.float64(shift))
    bounds = np.linspace(0, 3, 30_001)
    many = forms[np.zeros(len(bounds), np.int64)]
    levels = many.levels(bounds)[0] - many.plus(np.float64(-shift)).levels(bounds)[0]
    farthest = float(np.abs(levels).max())
    effect = float(forms._effects_of_shifts()[0])
    assert farthest <= effect * (1 + 1e-9)
    assert effect <= 4 * farthest


def test_proofs_count_guards() -> None:
    """They raise the bound, and what is left out is no evidence for a difference."""
    weights = WEIGHTS.tolist()
    report = tokenlaw.prove(guarded_token, spec=lambda tokens: weights, raises=False)
    (evidence,) = report.evidence
    assert evidence.verdict is Verdict.HOLDS
    assert evidence.statistics is not None
    assert evidence.statistics["neglected"] == pytest.approx(3 * GUARD)
    assert evidence.statistics["tv_at_most"] >= 3 * GUARD
    assert "TV <= 1.8e-10" in evidence.message
    assert "guards left out that change 1.8e-10 at most" in evidence.message
    strict = tokenlaw.prove(guarded_token, spec=lambda tokens: weights, raises=False, tolerance=1e-10)
    assert strict.evidence[0].verdict is Verdict.UNKNOWN
    assert "add smaller constants" in strict.evidence[0].message


class Guarded(ChainVerifier):
    """Draws a number with a guard for each row, besides."""

    def verify(self, batch: VerifyBatch, *, seed: int, **given: Any) -> torch.Tensor:
        torch.log(uniform(len(batch.draft_tokens)) + GUARD)
        return super().verify(batch, seed=seed, **given)


def test_proofs_of_verifiers_count_guards_given_the_kind_of_row() -> None:
    """The law of each kind of row may be off by as many times more as there are kinds."""
    plain, guarded = (proofs.case(make, proofs.SETTINGS).statistics for make in (ChainVerifier, Guarded))
    assert plain is not None
    assert guarded is not None
    assert plain["tv_at_most"] < 1e-14
    kinds = guarded["tv_at_most"] / GUARD
    assert kinds == pytest.approx(round(kinds), rel=1e-3)
    assert kinds >= 2
    assert guarded["tv_at_least"] == 0


@pytest.mark.parametrize(("what", "times"), [(TOKENS, 1), (GIVEN, 2)])
def test_proofs_of_decoders_count_guards(what: str, times: int) -> None:
    """What a law is given was found by the same law, and may be off as well."""
    law = Law({Outcome(((0,),), ((),)): 1.0}, neglected=GUARD)
    question = Question(
        what, lambda outcome: None, lambda outcome: outcome.tokens, lambda group: {((0,),): 1.0}
    )
    found = decoder_compared(law, question)
    assert (found.least, found.most) == (0, times * GUARD)


def test_laws_keep_what_they_neglect() -> None:
    law = Law({0: 0.5, 1: 0.5}, neglected=0.125).map(str)
    assert law.neglected == 0.125
    assert tv_between({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}, 0.25, 0.125) == (0.0, 0.375)
