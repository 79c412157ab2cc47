"""Verifiers of trees, row by row: chains number by number, seeds, greedy requests, borders, refusals."""

from dataclasses import replace

import pytest
import torch

from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.one_hot import OneHotVerifier
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.spec.generation_contracts import EXACT, NO_TOKEN, TEXTBOOK, TreeBatch, Verifier, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters


def ragged_chains(rows: int, drafted: bool) -> VerifyBatch:
    """Other laws, lengths and sampling parameters in every row; what isn't read is poisoned."""
    drafts, vocabulary = 3, 7
    generator = torch.Generator().manual_seed(8)
    lengths = torch.arange(rows) % (drafts + 1)
    tokens = torch.randint(vocabulary, (rows, drafts), generator=generator)
    unread = torch.arange(drafts) >= lengths[:, None]
    target = torch.randn(rows, drafts + 1, vocabulary, generator=generator, dtype=torch.float64)
    draft = torch.randn(rows, drafts, vocabulary, generator=generator, dtype=torch.float64)
    target[:, 1:][unread], draft[unread] = torch.nan, torch.nan
    params = replace(
        RowParameters.default(rows),
        temperature=torch.tensor([0.0, 0.7, 1.0, 1.5, 1.0]).double().repeat(rows // 5),
        seeds=torch.arange(rows) % 3 - 1,
    )
    return VerifyBatch(tokens.masked_fill(unread, 99), lengths, target, draft if drafted else None, params)


@pytest.mark.parametrize("drafted", [True, False])
def test_a_chain_is_verified_as_by_the_chain_rule(drafted: bool) -> None:
    """Equal numbers, equal decisions; only rounding at a threshold, about once in 1e12 rows, could differ."""
    batch = ragged_chains(10_000, drafted)
    wanted = ChainVerifier().verify(batch, seed=9)
    assert torch.equal(TreeVerifier().verify(batch, seed=9), wanted)
    numbers = torch.full((10_000, 3), 0.4, dtype=torch.float64)
    given = ChainVerifier().verify(batch, seed=9, uniforms=numbers)
    assert torch.equal(TreeVerifier().verify(batch, seed=9, uniforms=numbers), given)
    assert torch.equal(TopKTreeVerifier().verify(batch, seed=9), OneHotVerifier().verify(batch, seed=9))
    assert {0, 1, 2, 3} <= set((wanted == NO_TOKEN).sum(1).tolist())


def random_tree(rows: int) -> TreeBatch:
    """A tree of depth 2, other laws and candidates in every row."""
    parents, vocabulary = (-1, -1, 0, 0, 1, 1), 5
    generator = torch.Generator().manual_seed(10)
    logits = torch.randn(2, rows, len(parents) + 1, vocabulary, generator=generator, dtype=torch.float64)
    orders = torch.rand(rows, 3, vocabulary, generator=generator).argsort(-1)
    tokens = orders[:, :, :2].reshape(rows, 6)
    params = replace(RowParameters.default(rows), seeds=torch.arange(rows) - 1)
    return TreeBatch(tokens, parents, logits[0], logits[1], False, params)


def test_rows_with_seeds_do_not_depend_on_the_batch() -> None:
    """The large batch is verified in pieces, the small one at once; its first row has no seed."""
    large, rows = random_tree(10_000), torch.tensor([9_999, 7, 300])
    assert large.draft_logits is not None
    small = replace(
        large,
        tokens=large.tokens[rows],
        target_logits=large.target_logits[rows],
        draft_logits=large.draft_logits[rows],
        params=large.params.rows(rows),
    )
    emitted = TreeVerifier().verify_tree(large, seed=11)
    assert torch.equal(emitted, TreeVerifier().verify_tree(large, seed=11))
    assert torch.equal(emitted[rows], TreeVerifier().verify_tree(small, seed=12))
    assert torch.equal(emitted[1:], TreeVerifier().verify_tree(large, seed=12)[1:])


def test_greedy_rows_follow_the_largest_logit() -> None:
    """Token 2 follows everything; the tree has it as second child, and below that as first."""
    tokens = torch.tensor([[1, 2, 0, 2]])
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(1, 5, 3)
    params = replace(RowParameters.default(1), temperature=torch.zeros(1).double())
    for draft_logits in (None, logits.flip(-1)):
        batch = TreeBatch(tokens, (-1, -1, 0, 1), logits, draft_logits, True, params)
        assert TreeVerifier().verify_tree(batch, seed=13).tolist() == [[2, 2, 2]]


def test_an_empty_tree_adds_one_token() -> None:
    logits = torch.zeros(50, 1, 3)
    batch = TreeBatch(
        torch.zeros(50, 0, dtype=torch.int64), (), logits, logits, True, RowParameters.default(50)
    )
    emitted = TreeVerifier().verify_tree(batch, seed=14)
    assert emitted.shape == (50, 1)
    assert set(emitted.flatten().tolist()) == {0, 1, 2}


def test_refusals() -> None:
    logits = torch.zeros(1, 5, 3)
    batch = TreeBatch(
        torch.zeros(1, 4, dtype=torch.int64), (-1,) * 4, logits, logits, False, RowParameters.default(1)
    )
    with pytest.raises(ValueError, match="4 siblings can't be drawn without replacement from 3 tokens"):
        TreeVerifier().verify_tree(batch, seed=15)
    with pytest.raises(ValueError, match="parent of node 1"):
        TreeVerifier().verify_tree(replace(batch, parents=(-1, 2, -1, -1)), seed=15)
    assert TopKTreeVerifier().verify_tree(batch, seed=15).shape == (1, 2)


def test_claims() -> None:
    assert (TreeVerifier.claims, TopKTreeVerifier.claims) == (TEXTBOOK, EXACT)
    assert isinstance(TreeVerifier(), Verifier)
