"""The contracts for what is random can be fulfilled: the spec's own chain rule, sampled, is a `Verifier`."""

import numpy as np
import torch

from tokenlaw.spec.generation_contracts import NO_TOKEN, Decoder, Verifier, VerifyBatch
from tokenlaw.spec.speculation import chain_verification

DRAFT, TARGET = (0.25, 0.75), (0.75, 0.25)


class SampledChainRule:
    """Draws the outcome of each row from the exact law of the textbook rule."""

    def verify(self, batch: VerifyBatch, *, seed: int) -> torch.Tensor:
        generator = np.random.default_rng(seed)
        emitted = torch.full((len(batch.draft_tokens), batch.draft_tokens.shape[1] + 1), NO_TOKEN)
        assert batch.draft_probabilities is not None
        for row, count in enumerate(batch.num_draft_tokens.tolist()):
            law = chain_verification(
                tuple(batch.draft_tokens[row, :count].tolist()),
                target=batch.target_probabilities[row, : count + 1].tolist(),
                draft=batch.draft_probabilities[row, :count].tolist(),
            )
            outcome = list(law)[generator.choice(len(law), p=np.array(list(law.values())))]
            emitted[row, : len(outcome.tokens)] = torch.tensor(outcome.tokens)
        return emitted


def test_a_ragged_batch_is_verified_row_by_row() -> None:
    batch = VerifyBatch(
        draft_tokens=torch.tensor([[1, 0], [1, 7], [7, 7]]),
        num_draft_tokens=torch.tensor([2, 1, 0]),
        target_probabilities=torch.tensor([[TARGET] * 3] * 3, dtype=torch.float64),
        draft_probabilities=torch.tensor([[DRAFT] * 2] * 3, dtype=torch.float64),
    )
    verifier = SampledChainRule()
    assert isinstance(verifier, Verifier)
    assert not isinstance(verifier, Decoder)
    lengths = set()
    for seed in range(40):
        emitted = verifier.verify(batch, seed=seed)
        assert torch.equal(emitted, verifier.verify(batch, seed=seed))
        lengths.add(tuple((emitted != NO_TOKEN).sum(dim=1).tolist()))
    assert lengths == {(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1)}
