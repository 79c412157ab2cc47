"""Verifiers of trees against the exact laws: of whole steps, and given one tree.

All tests that sample have together a false-alarm probability of at most 1e-6 (`ALPHA` for each of at most
25). With 60,000 rows and at most 120 outcomes, each refutes a law at total variation 0.04 with probability
0.999 or more: the noncentrality is at least 4 * 0.04^2 * 60,000 = 384, the critical value at most 224.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.tree_shapes import SHAPES
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.spec.draft_trees import (
    Parents,
    drawn_trees,
    most_probable,
    with_replacement,
    without_replacement,
)
from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch
from tokenlaw.spec.laws import Tokens, collect, normalised
from tokenlaw.spec.models import TableModel, in_floats
from tokenlaw.spec.philox import uniforms
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.tree_steps import tree_step_law
from tokenlaw.spec.tree_verification import (
    deterministic_tree_verification,
    verification_with_replacement,
    verification_without_replacement,
)
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.tree_drafts import draw_tree

ALPHA = 1e-6 / 25
SAMPLES = 60_000
VOCABULARY = 3

Model = TableModel[Fraction]


def model(weights: dict[Tokens, tuple[int, int, int]]) -> Model:
    return TableModel(1, {context: normalised(tuple(map(Fraction, row))) for context, row in weights.items()})


TARGET = model({(): (1, 1, 1), (0,): (1, 4, 3), (1,): (1, 1, 4), (2,): (3, 0, 3)})
DRAFT = model({(): (1, 1, 1), (0,): (6, 1, 1), (1,): (1, 0, 0), (2,): (2, 3, 0)})
"""With impossible tokens, and a draft law that two siblings use up; the context () is not asked for."""

RULES = {
    "with": (verification_with_replacement, with_replacement),
    "without": (verification_without_replacement, without_replacement),
    "top-k": (deterministic_tree_verification, most_probable),
}


def table(model: Model) -> Tensor:
    """Laws after each token; the root of all trees here is token 0."""
    return torch.tensor([in_floats(model)((token,)) for token in range(VOCABULARY)], dtype=torch.float64)


def drawn_tokens(parents: Parents, draft: Model, way: str, seed: int) -> Tensor:
    if way == "top-k":
        (tree,) = drawn_trees(parents, draft=draft, prompt=(0,), siblings=most_probable)
        return torch.tensor(tree).expand(SAMPLES, len(parents))
    laws = table(draft)
    numbers = uniforms(seed, torch.arange(SAMPLES), len(parents))
    return draw_tree(parents, lambda depth, tokens: laws[tokens.clamp(min=0)], numbers, way == "with")


def batch_of(tokens: Tensor, parents: Parents, target: Model, draft: Model | None, way: str) -> TreeBatch:
    after = torch.cat([torch.zeros_like(tokens[:, :1]), tokens], dim=1)
    return TreeBatch(
        tokens=tokens,
        parents=tuple(parents),
        target_logits=table(target).log()[after],
        draft_logits=None if draft is None else table(draft).log()[after],
        replacement=way == "with",
        params=RowParameters.default(len(tokens)),
    )


def p_value(emitted: Tensor, law: dict[Tokens, Any]) -> float:
    """Pearson's test of the emitted tokens, padding included."""
    length, base = emitted.shape[1], VOCABULARY + 1
    cells = np.zeros(base**length)
    for tokens, probability in law.items():
        padded = [*tokens, *[NO_TOKEN] * (length - len(tokens))]
        cells[sum((token + 1) * base**place for place, token in enumerate(padded))] = float(probability)
    codes = ((emitted + 1) * base ** torch.arange(length)).sum(1)
    return chi_square(np.bincount(codes.numpy(), minlength=len(cells)), cells).p_value


def step_tokens(
    way: str, shape: Parents, target: Model, draft: Model, drawn: str = ""
) -> dict[Tokens, float]:
    """Exact law of the emitted tokens, in floats; ``drawn`` names another way of drawing than the rule's."""
    step = tree_step_law(
        RULES[way][0],
        shape,
        target=in_floats(target),
        draft=in_floats(draft),
        prompt=(0,),
        siblings=RULES[drawn or way][1],
    )
    return {outcome.tokens: probability for outcome, probability in step.items()}


PARTS = {"chain", "two children", "two by two"}
"""The ragged tree has a path and siblings as well; the last one, given its tokens, is asked about below."""


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=name, marks=[pytest.mark.slow] * (name in PARTS))
        for name, shape in SHAPES.items()
    ],
)
@pytest.mark.parametrize("way", RULES)
def test_steps_have_the_exact_law(way: str, shape: Parents) -> None:
    """15 samples."""
    tokens = drawn_tokens(shape, DRAFT, way, seed=1)
    batch = batch_of(tokens, shape, TARGET, None if way == "top-k" else DRAFT, way)
    emitted = TreeVerifier().verify_tree(batch, seed=2)
    assert p_value(emitted, step_tokens(way, shape, TARGET, DRAFT)) > ALPHA


@pytest.mark.parametrize("way", ["with", "without"])
def test_drawn_candidates_that_count_as_certain_keep_their_law(way: str) -> None:
    """EAGLE's rule on sampled trees: exact as well, with another joint law. 2 samples."""
    shape = SHAPES["ragged"]
    batch = batch_of(drawn_tokens(shape, DRAFT, way, seed=3), shape, TARGET, DRAFT, way)
    emitted = TopKTreeVerifier().verify_tree(batch, seed=4)
    assert p_value(emitted, step_tokens("top-k", shape, TARGET, DRAFT, drawn=way)) > ALPHA
    assert torch.equal(emitted, TreeVerifier().verify_tree(replace(batch, draft_logits=None), seed=4))


@pytest.mark.parametrize(
    ("way", "tokens"),
    [("with", (1, 1, 2, 1, 0, 2)), ("without", (2, 1, 1, 0, 2, 1)), ("top-k", (0, 1, 1, 1, 2, 0))],
)
def test_given_one_tree_the_law_is_exact(way: str, tokens: Tokens) -> None:
    """Equal siblings too, where they can be. 3 samples."""
    shape, rule = SHAPES["two by two"], RULES[way][0]
    target = model({(): (1, 1, 1), (0,): (2, 3, 1), (1,): (1, 1, 4), (2,): (3, 2, 1)})
    draft = model({(): (1, 1, 1), (0,): (1, 3, 2), (1,): (4, 1, 1), (2,): (1, 2, 3)})
    contexts = [(0,), *[(token,) for token in tokens]]
    outcomes = rule(
        tokens, shape, target=[target(one) for one in contexts], draft=[draft(one) for one in contexts]
    )
    law = collect((outcome.tokens, probability) for outcome, probability in outcomes.items())
    batch = batch_of(torch.tensor(tokens).expand(SAMPLES, 6), shape, target, draft, way)
    verifier = TopKTreeVerifier() if way == "top-k" else TreeVerifier()
    assert p_value(verifier.verify_tree(batch, seed=5), law) > ALPHA


@pytest.mark.parametrize("drawn", ["with", "without"])
def test_the_wrong_way_of_drawing_is_refuted(drawn: str) -> None:
    """The tests above can fail: total variation 3/16 and 1/2 of the first token. 2 samples that must fail."""
    target, draft = (
        model(dict.fromkeys([(), (0,), (1,), (2,)], weights)) for weights in ((0, 2, 2), (3, 0, 1))
    )
    verified = "without" if drawn == "with" else "with"
    shape = SHAPES["two children"]
    batch = batch_of(drawn_tokens(shape, draft, drawn, seed=6), shape, target, draft, verified)
    emitted = TreeVerifier().verify_tree(batch, seed=7)
    assert p_value(emitted, step_tokens(verified, shape, target, draft)) < 1e-9
