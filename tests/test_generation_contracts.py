"""The contracts for what is random can be fulfilled: the spec's own chain rule, sampled, is a `Verifier`."""

import numpy as np
import pytest
import torch

from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.decoder_contract import Decoder
from tokenlaw.spec.generation_contracts import (
    NO_TOKEN,
    TreeBatch,
    Verifier,
    VerifyBatch,
    as_logits,
)
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.speculation import chain_verification

DRAFT, TARGET = (0.25, 0.75), (0.75, 0.25)


class SampledChainRule:
    """Draws the outcome of each row from the exact law of the textbook rule."""

    def verify(self, batch: VerifyBatch, *, seed: int) -> torch.Tensor:
        generator = np.random.default_rng(seed)
        emitted = torch.full((len(batch.draft_tokens), batch.draft_tokens.shape[1] + 1), NO_TOKEN)
        assert batch.draft_probs is not None
        for row, count in enumerate(batch.num_draft_tokens.tolist()):
            law = chain_verification(
                tuple(batch.draft_tokens[row, :count].tolist()),
                target=batch.target_probs[row, : count + 1].tolist(),
                draft=batch.draft_probs[row, :count].tolist(),
            )
            outcome = list(law)[generator.choice(len(law), p=np.array(list(law.values())))]
            emitted[row, : len(outcome.tokens)] = torch.tensor(outcome.tokens)
        return emitted


def ragged_batch() -> VerifyBatch:
    target = torch.tensor([[TARGET] * 3] * 3, dtype=torch.float64)
    draft = torch.tensor([[DRAFT] * 2] * 3, dtype=torch.float64)
    return VerifyBatch(
        draft_tokens=torch.tensor([[1, 0], [1, 7], [7, 7]]),
        num_draft_tokens=torch.tensor([2, 1, 0]),
        target_logits=as_logits(target, "target"),
        draft_logits=as_logits(draft, "draft"),
        params=RowParameters.default(3),
    )


def test_a_ragged_batch_is_verified_row_by_row() -> None:
    batch = ragged_batch()
    check_batch(batch)
    verifier = SampledChainRule()
    assert isinstance(verifier, Verifier)
    assert not isinstance(verifier, Decoder)
    lengths = set()
    for seed in range(40):
        emitted = verifier.verify(batch, seed=seed)
        assert torch.equal(emitted, verifier.verify(batch, seed=seed))
        lengths.add(tuple((emitted != NO_TOKEN).sum(dim=1).tolist()))
    assert lengths == {(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1)}


def test_a_batch_knows_its_sizes_and_its_laws() -> None:
    batch = ragged_batch()
    assert batch.shape == (3, 2, 2)
    assert batch.target_probs[0, 0].tolist() == pytest.approx(TARGET, rel=1e-15)
    assert batch.draft_probs is not None
    assert batch.draft_probs[2, 1].tolist() == pytest.approx(DRAFT, rel=1e-15)
    deterministic = VerifyBatch(
        batch.draft_tokens, batch.num_draft_tokens, batch.target_logits, None, batch.params
    )
    assert deterministic.draft_probs is None


def test_a_tree_knows_its_depth_and_its_laws() -> None:
    logits = torch.zeros(1, 5, 2)
    tree = TreeBatch(
        tokens=torch.zeros(1, 4, dtype=torch.int64),
        parents=(-1, 0, 1, 0),
        target_logits=logits,
        draft_logits=logits,
        replacement=True,
        params=RowParameters.default(1),
    )
    assert tree.depth == 3
    assert torch.equal(tree.target_probs, torch.full((1, 5, 2), 0.5, dtype=torch.float64))
    assert tree.draft_probs is not None
    assert torch.equal(tree.draft_probs, tree.target_probs)
