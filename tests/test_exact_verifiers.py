"""The reference verifiers have the laws that they claim, in batches of all kinds of rows.

Every statistical test compares the joint law of accepted length and tokens with its exact enumeration. All
of this file together has a false-alarm probability of at most 1e-6: there are fewer than 100 chi-square tests
of single requests, each at `ALPHA` = 1e-8. With 30,000 rows for each request and at most 84 outcomes, each
sees a total variation of 0.05 with probability above 0.999: the noncentrality is at least 4 * 0.05^2 * 30,000
= 300, the critical value at most 180.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.verifier_requests import (
    REQUESTS,
    Request,
    batch_of,
    drawn_from_laws,
    smallest_p_value,
)
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.greedy import GreedyVerifier
from tokenlaw.impl.speculative.one_hot import OneHotVerifier
from tokenlaw.impl.speculative.sample_and_match import SampleAndMatchVerifier
from tokenlaw.impl.speculative.steps import SampledDrafts
from tokenlaw.spec.block_verification import block_verification
from tokenlaw.spec.generation_contracts import APPROXIMATE, BLOCK, EXACT, TEXTBOOK, Verifier, VerifyBatch
from tokenlaw.spec.laws import Tokens, one_hot
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.speculation import (
    StepOutcome,
    VerificationRule,
    chain_verification,
    deterministic_verification,
)

ALPHA = 1e-8
ROWS = 30_000 * len(REQUESTS)

Laws = Sequence[Sequence[float]]
GREEDY = [place for place, request in enumerate(REQUESTS) if request.parameters.temperature == 0]


def one_hot_block_verification(drafts: Tokens, *, target: Laws, draft: Laws) -> dict[StepOutcome, float]:
    """Block verification of drafts that weren't drawn."""
    certain = [[float(one) for one in one_hot(token, len(target[0]))] for token in drafts]
    return block_verification(drafts, target=target, draft=certain)


CASES: dict[str, tuple[Verifier, VerificationRule[float], bool]] = {
    "chain": (ChainVerifier(), chain_verification, True),
    "chain, no draft laws": (ChainVerifier(), deterministic_verification, False),
    "block": (BlockVerifier(), block_verification, True),
    "block, no draft laws": (BlockVerifier(), one_hot_block_verification, False),
    "one-hot": (OneHotVerifier(), deterministic_verification, True),
    "sample-and-match": (SampleAndMatchVerifier(), deterministic_verification, True),
}
"""Verifier, the rule whose law it has, and whether the batch has draft laws."""


@pytest.fixture(scope="module")
def mixed_batch() -> VerifyBatch:
    return batch_of(REQUESTS, ROWS, drawn_from_laws(seed=1))


@pytest.fixture(scope="module")
def fewer_rows() -> VerifyBatch:
    return batch_of(REQUESTS, ROWS // 10, drawn_from_laws(seed=1))


ALSO_IN_OTHERS = {"chain, no draft laws", "block", "sample-and-match"}
"""With their own drafters below, or with the rule of one-hot."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case in ALSO_IN_OTHERS)) for case in CASES]
)
def test_joint_law(case: str, mixed_batch: VerifyBatch) -> None:
    verifier, rule, has_laws = CASES[case]
    batch = mixed_batch if has_laws else replace(mixed_batch, draft_logits=None)
    assert smallest_p_value(verifier, rule, batch, seed=2) > ALPHA


@pytest.mark.parametrize(
    "verifier",
    [pytest.param(ChainVerifier(), marks=pytest.mark.slow), BlockVerifier(), SampleAndMatchVerifier()],
)
def test_joint_law_with_the_drafter_of_the_verifier(verifier: SampledDrafts) -> None:
    """Its random numbers are independent of those of the verification, for rows with and without seeds."""

    def own_drafts(logits: Tensor, params: RowParameters, position: int) -> Tensor:
        return verifier.draft(logits, params, position=position, seed=3)

    assert isinstance(verifier, Verifier)
    (rule,) = {rule for known, rule, has_laws in CASES.values() if type(known) is type(verifier) and has_laws}
    batch = batch_of(REQUESTS, ROWS, own_drafts)
    assert smallest_p_value(verifier, rule, batch, seed=3) > ALPHA


@pytest.mark.parametrize("case", ["chain", "block", "one-hot", "sample-and-match"])
def test_another_law_is_refuted(case: str, fewer_rows: VerifyBatch) -> None:
    """The tests above can fail: with these tables a tenth of the rows tells the three rules apart."""
    verifier, right, _ = CASES[case]
    for rule in {chain_verification, deterministic_verification, block_verification} - {right}:
        assert smallest_p_value(verifier, rule, fewer_rows, seed=2) < 1e-20


def test_greedy_verification_is_exact_for_greedy_rows_only(mixed_batch: VerifyBatch) -> None:
    requests = [replace(request, parameters=SamplingParameters(temperature=0.0)) for request in REQUESTS]
    batch = batch_of(requests, 70, drawn_from_laws(seed=1))
    verifier = GreedyVerifier()
    assert torch.equal(verifier.verify(batch, seed=0), ChainVerifier().verify(batch, seed=1))
    assert torch.equal(
        verifier.verify(mixed_batch, seed=0)[GREEDY[0] :: len(REQUESTS)],
        ChainVerifier().verify(mixed_batch, seed=0)[GREEDY[0] :: len(REQUESTS)],
    )
    for rule in (chain_verification, deterministic_verification):
        assert smallest_p_value(verifier, rule, mixed_batch, seed=0) == 0


@pytest.mark.parametrize("verifier", [kind() for kind in VERIFIERS.values()], ids=list(VERIFIERS))
def test_greedy_rows_take_the_lowest_of_equal_tokens(verifier: Verifier) -> None:
    """After token 3 all tokens are equal for the target: 0 is right, then 0 again."""
    request = Request(3, parameters=SamplingParameters(temperature=0.0))
    batch = replace(batch_of([request], 4, drawn_from_laws(seed=1)), draft_logits=None)
    batch = replace(batch, draft_tokens=torch.tensor([[0, 0], [0, 1], [1, 0], [3, 3]]))
    batch = replace(batch, target_logits=batch.target_logits[:, :1].expand(-1, 3, -1).contiguous())
    assert verifier.verify(batch, seed=5).tolist() == [[0, 0, 0], [0, 0, -1], [0, -1, -1], [0, -1, -1]]


def test_what_is_claimed() -> None:
    claims = {name: getattr(verifier(), "claims", None) for name, verifier in VERIFIERS.items()}
    expected = {
        "chain": TEXTBOOK,
        "block": BLOCK,
        "one-hot": EXACT,
        "sample-and-match": EXACT,
        "greedy": APPROXIMATE,
    }
    assert {name: claims[name] for name in expected} == expected
