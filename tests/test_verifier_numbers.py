"""What the tokens of the reference verifiers depend on: seeds, and nothing else that they shouldn't."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.verifier_requests import REQUESTS, batch_of, drawn_from_laws
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.impl.speculative.random import RowNumbers, Use
from tokenlaw.spec.generation_contracts import APPROXIMATE, Verifier, VerifyBatch
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters

ALL = pytest.mark.parametrize("verifier", [kind() for kind in VERIFIERS.values()], ids=list(VERIFIERS))
SEEDED = [place for place, request in enumerate(REQUESTS) if request.seeded]


@ALL
def test_equal_calls_give_equal_tokens_and_other_seeds_others(verifier: Verifier) -> None:
    batch = batch_of(REQUESTS, 700, drawn_from_laws(seed=1))
    first = verifier.verify(batch, seed=3)
    assert first.dtype == torch.int64
    assert first.shape == (700, 3)
    assert torch.equal(first, verifier.verify(batch, seed=3))
    if getattr(verifier, "claims", None) != APPROXIMATE:
        assert not torch.equal(first, verifier.verify(batch, seed=4))


@ALL
def test_rows_with_seeds_do_not_see_the_rest_of_the_batch(verifier: Verifier) -> None:
    batch = batch_of(REQUESTS, 700, drawn_from_laws(seed=1))
    seeded = torch.arange(700)[torch.isin(torch.arange(700) % len(REQUESTS), torch.tensor(SEEDED))]
    kept = seeded[torch.randperm(len(seeded), generator=torch.Generator().manual_seed(0))]
    assert batch.draft_logits is not None
    alone = VerifyBatch(
        batch.draft_tokens[kept],
        batch.num_draft_tokens[kept],
        batch.target_logits[kept],
        batch.draft_logits[kept],
        batch.params.rows(kept),
    )
    assert torch.equal(verifier.verify(batch, seed=3)[kept], verifier.verify(alone, seed=99))


def numbers_of(use: Use, position: int, seeds: Tensor | None) -> Tensor:
    params = replace(RowParameters.default(64), seeds=seeds)
    return RowNumbers(5, params, position=position).uniforms(use, 3)


@pytest.mark.parametrize(
    "seeds", [None, torch.arange(64), torch.arange(64) - 1], ids=["call", "own", "mixed"]
)
def test_uses_and_positions_have_numbers_of_their_own(seeds: Tensor | None) -> None:
    """Among 3072 numbers of 53 bits two are equal by chance with probability 1e-9."""
    every = torch.stack([numbers_of(use, position, seeds) for use in Use for position in range(4)]).flatten()
    assert len(set(every.tolist())) == len(every)
    assert bool(((every * 2**53).frac() == 0).all())
    assert bool(((every * 2**24).frac() != 0).all())


def test_numbers_of_seeds_are_not_those_of_the_call() -> None:
    own, call = numbers_of(Use.ACCEPTANCE, 0, torch.arange(64) - 1), numbers_of(Use.ACCEPTANCE, 0, None)
    assert UNSEEDED == -1
    assert torch.equal(own[0], call[0])
    assert not bool((own[1:] == call[1:]).any())


@pytest.fixture(scope="module")
def many_rows() -> VerifyBatch:
    return batch_of(REQUESTS, 70_000, drawn_from_laws(seed=1))


CUT_ALIKE = {"block", "one-hot", "top-k-tree"}
"""Their steps are those of chains and of trees."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in CUT_ALIKE))
        for name in VERIFIERS
        if name != "greedy"
    ],
)
def test_a_batch_in_pieces_is_the_batch(name: str, many_rows: VerifyBatch) -> None:
    """70,000 rows of 12 logits are more than one piece; laws that are made already are used whole."""
    verifier = VERIFIERS[name]()
    batch, whole = replace(many_rows), replace(many_rows)
    assert whole.target_probs.shape == (70_000, 3, 4)
    assert whole.draft_probs is not None
    assert torch.equal(verifier.verify(batch, seed=3), verifier.verify(whole, seed=3))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
@ALL
def test_a_gpu_gives_rows_with_seeds_the_tokens_of_the_cpu(verifier: Verifier) -> None:
    """Sums are rounded otherwise there, which moves edges by 1e-15: probability 1e-10 here."""
    requests = [replace(request, seeded=True) for request in REQUESTS]
    batch = batch_of(requests, 7_000, drawn_from_laws(seed=1))
    params = {name: getattr(batch.params, name).cuda() for name in ("temperature", "top_k", "top_p", "min_p")}
    assert batch.draft_logits is not None
    assert batch.params.seeds is not None
    there = VerifyBatch(
        batch.draft_tokens.cuda(),
        batch.num_draft_tokens.cuda(),
        batch.target_logits.cuda(),
        batch.draft_logits.cuda(),
        RowParameters(**params, seeds=batch.params.seeds.cuda()),
    )
    emitted = verifier.verify(there, seed=3)
    assert emitted.is_cuda
    assert torch.equal(emitted.cpu(), verifier.verify(batch, seed=3))
    assert torch.equal(
        verifier.verify(replace(there, draft_logits=None), seed=3).cpu(),
        verifier.verify(replace(batch, draft_logits=None), seed=3),
    )
