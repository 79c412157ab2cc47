"""Closed forms of the laws of one step: equal to their enumeration from the rule itself."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import VerificationRule, chain_verification, deterministic_verification
from tokenlaw.spec.steps import accepted_length_law, completed_law, step_law
from tokenlaw.stats.block_laws import block_impossible, block_joint
from tokenlaw.stats.chain_laws import (
    ROUNDING,
    KindLaws,
    chain_joint,
    completed,
    draft_law,
    emitted_lengths,
    impossible_tokens,
    rejected_pairs,
)

ROUNDED = 1e-14
"""Sums of at most 256 products of at most 9 doubles."""


def model(table: np.ndarray) -> Callable[[Tokens], tuple[float, ...]]:
    """The language model that a table states: its context is the last token, modulo the contexts."""

    def law(tokens: Tokens) -> tuple[float, ...]:
        if len(tokens) >= len(table):  # asked for, but of no use, without drafts
            return (1 / table.shape[2],) * table.shape[2]
        context = tokens[-1] % table.shape[1] if tokens else 0
        return tuple(table[len(tokens), context].tolist())

    return law


def random_laws(seed: int, vocabulary: int, length: int, contexts: int, zeros: float) -> KindLaws:
    """Laws with impossible tokens, equal rows and equal probabilities here and there."""
    generator = np.random.default_rng(seed)
    weights = generator.integers(1, 5, (2 * length + 1, contexts, vocabulary)).astype(float)
    weights[generator.random(weights.shape) < zeros] = 0
    weights[..., 0] += weights.sum(-1) == 0
    laws = weights / weights.sum(-1, keepdims=True)
    return KindLaws(laws[: length + 1], laws[length + 1 :])


@st.composite
def kinds(draw: st.DrawFn) -> KindLaws:
    vocabulary, length = draw(st.sampled_from([(2, 3), (3, 2), (4, 2), (4, 1), (3, 0), (1, 2)]))
    contexts, seed = draw(st.integers(1, vocabulary)), draw(st.integers(0, 10_000))
    return random_laws(seed, vocabulary, length, contexts, draw(st.sampled_from([0.0, 0.4])))


def enumerated(rule: VerificationRule[float], laws: KindLaws) -> Any:
    target, draft = model(laws.target), model(laws.draft)
    return step_law(rule, target=target, draft=draft, prompt=(), draft_length=laws.length)


def in_cells(law: dict[Tokens, float], shape: Sequence[int], shift: int) -> np.ndarray:
    cells = np.zeros(shape)
    for tokens, probability in law.items():
        place = [token + shift for token in tokens]
        cells[(*place, *(0,) * (len(shape) - len(place)))] += probability
    return cells


@given(laws=kinds())
def test_the_joint_law_is_that_of_the_rule(laws: KindLaws) -> None:
    joint, rounding = chain_joint(laws)
    step = {outcome.tokens: mass for outcome, mass in enumerated(chain_verification, laws).items()}
    exact = in_cells(step, joint.shape, 1)
    np.testing.assert_allclose(joint, exact, atol=ROUNDED)
    assert (exact[(joint == 0) & (rounding == 0)] == 0).all()
    assert (joint[rounding > 0] == 0).all()


@given(laws=kinds())
def test_the_completed_law_is_target_only(laws: KindLaws) -> None:
    law = completed(laws)
    target = model(laws.target)
    exact = in_cells(target_only_law(target, (), laws.length + 1), law.shape, 0)
    np.testing.assert_allclose(law, exact, atol=ROUNDED)
    step = enumerated(chain_verification, laws)
    done = completed_law(step, target=target, prompt=(), num_tokens=laws.length + 1)
    np.testing.assert_allclose(law, in_cells(done, law.shape, 0), atol=ROUNDED)


@given(laws=kinds())
def test_lengths_count_the_emitted_tokens(laws: KindLaws) -> None:
    joint, _ = chain_joint(laws)
    lengths = emitted_lengths(laws.length, laws.vocabulary)
    masses = np.bincount(lengths.ravel(), weights=joint.ravel(), minlength=laws.length + 2)
    exact = accepted_length_law(enumerated(chain_verification, laws))
    assert masses[0] == 0  # holes
    np.testing.assert_allclose(masses[1:], [exact.get(n, 0.0) for n in range(laws.length + 1)], atol=ROUNDED)


@given(laws=kinds())
def test_a_rejected_draft_and_its_replacement_are_those_of_the_rule(laws: KindLaws) -> None:
    """From the rule for each draft: the draft behind the accepted ones is the rejected one."""
    exact = np.zeros((laws.length, laws.vocabulary, laws.vocabulary))
    target, draft = model(laws.target), model(laws.draft)
    for drafts, weight in target_only_law(draft, (), laws.length).items():
        prefixes = [drafts[:place] for place in range(laws.length + 1)]
        verified = chain_verification(
            drafts, target=[target(prefix) for prefix in prefixes], draft=[draft(p) for p in prefixes[:-1]]
        )
        for outcome, probability in verified.items():
            if outcome.accepted < laws.length:
                place = outcome.accepted
                exact[place, drafts[place], outcome.tokens[-1]] += weight * probability
    masses, rounding = rejected_pairs(laws)
    np.testing.assert_allclose(masses, exact, atol=ROUNDED)
    assert (exact[(masses == 0) & (rounding == 0)] == 0).all()


@given(laws=kinds())
def test_certain_drafts_give_the_law_of_deterministic_verification(laws: KindLaws) -> None:
    certain = np.zeros_like(laws.draft)
    np.put_along_axis(certain, laws.draft.argmax(-1)[..., None], 1.0, -1)
    found, _ = chain_joint(KindLaws(laws.target, certain))
    step = enumerated(deterministic_verification, KindLaws(laws.target, certain))
    exact = in_cells({outcome.tokens: mass for outcome, mass in step.items()}, found.shape, 1)
    np.testing.assert_allclose(found, exact, atol=ROUNDED)


@given(laws=kinds())
def test_block_verification_is_enumerated(laws: KindLaws) -> None:
    joint = block_joint(laws)
    step = {outcome.tokens: mass for outcome, mass in enumerated(block_verification, laws).items()}
    np.testing.assert_allclose(joint, in_cells(step, joint.shape, 1), atol=ROUNDED)


@given(laws=kinds())
def test_what_block_verification_rules_out_is_never_possible(laws: KindLaws) -> None:
    """And all that it never emits is ruled out, where p and q aren't equal up to rounding."""
    joint, impossible = block_joint(laws), block_impossible(laws)
    assert (joint[impossible] == 0).all()
    if laws.length == 1:
        doubtful = chain_joint(laws)[1] > 0  # one draft: the chain rule
        assert (impossible | doubtful)[joint == 0].all()


@given(laws=kinds())
def test_impossible_are_the_outcomes_that_no_extension_makes_possible(laws: KindLaws) -> None:
    impossible, possible = impossible_tokens(laws), set()
    for tokens, mass in target_only_law(model(laws.target), (), laws.length + 1).items():
        possible |= {tokens[: end + 1] for end in range(len(tokens)) if mass}
    for cell in np.ndindex(impossible.shape):
        tokens = tuple(index - 1 for index in cell if index)
        hole = cell != (*(token + 1 for token in tokens), *(0,) * (len(cell) - len(tokens)))
        assert impossible[cell] == (hole or tokens not in possible)


@given(laws=kinds())
def test_drafts_have_the_law_of_the_draft_model(laws: KindLaws) -> None:
    exact = target_only_law(model(laws.draft), (), laws.length)
    law = draft_law(laws)
    np.testing.assert_allclose(law, in_cells(exact, law.shape, 0), atol=ROUNDED)


@pytest.mark.parametrize("relative", [0.5 * ROUNDING, 2 * ROUNDING])
def test_what_rounding_may_decide_is_no_part_of_the_law(relative: float) -> None:
    """p and q differ by a little at tokens 0 and 1, and much at 2 and 3."""
    target = np.array([[[0.25 * (1 + relative), 0.25 * (1 - relative), 0.3, 0.2]], [[0.25] * 4]])
    laws = KindLaws(target, np.array([[[0.25, 0.25, 0.2, 0.3]]]))
    joint, rounding = chain_joint(laws)
    masses, doubt = rejected_pairs(laws)
    close = relative < ROUNDING
    assert (joint[1, 0] == 0) == close
    assert (rounding[1, 0] > 0.25 * relative) == close
    assert rounding[3, 0] == rounding[4, 0] == 0
    assert (masses[0, 1, 2] == 0) == close  # draft 1 is rejected by rounding only
    assert (doubt[0, 1, 2] > 0) == close
    residual = 0.1 + (0.0 if close else 0.25 * relative)
    assert masses[0, 3, 2] == pytest.approx(0.1 * 0.1 / residual)
    assert doubt[0, 3, 2] == 0
