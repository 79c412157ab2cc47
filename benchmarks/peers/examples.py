"""Tests by example: vLLM V1's greedy lists, top-k support and recovered tokens; transformers' two tests.

Sources: vllm-project/vllm, ``tests/v1/sample/test_rejection_sampler.py``; huggingface/transformers,
``tests/generation/test_utils.py``. Examples and numbers are our own, built as the descriptions say.
"""

from typing import Any

import torch
from torch import Tensor

from peers.common import Criterion, generator
from tokenlaw.impl.faults import ChainVerifier
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters

GREEDY_LISTS: tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], ...] = (
    (((1, 2, 3), (1, 2, 3)),),
    (((1, 2, 3), (1, 5, 3)),),
    (((1, 2), (1, 2)), ((3,), (3,))),
    (((1,), (2,)),),
    (((), ()),),
    (((7, 8, 9), (7, 8, 4)), ((5, 6), (1, 6))),
)
"""Batches of (drafts, most probable target tokens); ragged, the longest first."""

GREEDY_REQUESTS = sum(len(batch) for batch in GREEDY_LISTS)


def greedy_lists(verifier: Any, seed: int) -> bool:
    """Exact tokens at T = 0; the bonus token is supplied in the original, so only its presence counts."""
    for rows in GREEDY_LISTS:
        drafts = max(len(one) for one, _ in rows)
        tokens = torch.zeros(len(rows), drafts, dtype=torch.int64)
        target = torch.full((len(rows), drafts + 1, 100), -100.0)
        for row, (drafted, wanted) in enumerate(rows):
            tokens[row, : len(drafted)] = torch.tensor(drafted, dtype=torch.int64)
            for place, token in enumerate((*wanted, 50)):
                target[row, place, token] = 100.0
        params = RowParameters.default(len(rows))
        params = RowParameters(0 * params.temperature, params.top_k, params.top_p, params.min_p)
        lengths = torch.tensor([len(one) for one, _ in rows])
        emitted = verifier.verify(VerifyBatch(tokens, lengths, target, None, params), seed=seed)
        if any(not _as_wanted(emitted[row], *rows[row]) for row in range(len(rows))):
            return True
    return False


def _as_wanted(emitted: Tensor, drafted: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Matching drafts and the first correction; then one bonus token, or nothing."""
    same = [one == other for one, other in zip(drafted, wanted, strict=True)]
    if all(same):
        there = [*wanted, int(emitted[len(wanted)])]
        return there[-1] != NO_TOKEN and _padded(emitted, there)
    return _padded(emitted, list(wanted[: same.index(False) + 1]))


def _padded(emitted: Tensor, tokens: list[int]) -> bool:
    return bool(emitted.tolist() == tokens + [NO_TOKEN] * (len(emitted) - len(tokens)))


def rows_of_laws(source: torch.Generator, *shape: int) -> Tensor:
    """Logits of unlike rows."""
    return torch.rand(*shape, generator=source, dtype=torch.float64)


def top_k_support(verifier: Any, seed: int) -> bool:
    """100 requests, V = 100, K = 3, one draw: nothing outside the mask; the bonus token is cut off."""
    source = generator(seed, "top-k")
    target, draft = rows_of_laws(source, 100, 4, 100), rows_of_laws(source, 100, 3, 100)
    kept = torch.randint(1, 100, (100, 1, 1), generator=source)
    ranks = target.argsort(-1, descending=True).argsort(-1)
    target = target.masked_fill(ranks >= kept, -torch.inf)
    drafts = torch.randint(0, 100, (100, 3), generator=source)
    batch = VerifyBatch(drafts, torch.full((100,), 3), target, draft, RowParameters.default(100))
    emitted = verifier.verify(batch, seed=seed)[:, :3]
    allowed = (ranks < kept)[:, :3].gather(-1, emitted.clamp(min=0)[..., None])[..., 0]
    return not bool((allowed | (emitted == NO_TOKEN)).all())


RECOVERED = ((1, 1, 100), (100, 3, 100), (100, 3, 1_000), (100, 1, 1_000), (100, 3, 500), (3, 3, 10_000))


def recovered_tokens(verifier: Any, seed: int) -> bool:
    """Same noise, plain code: tokens in place of rejected drafts are equal. Acceptance isn't compared.

    Noise is shared through the common base of the planted faults, so verifiers without it, and the one that
    draws with Gumbel noise, are never killed.
    """
    if not isinstance(verifier, ChainVerifier) or type(verifier).draft is not ChainVerifier.draft:
        return False
    for number, (rows, drafts, vocabulary) in enumerate(RECOVERED):
        source = generator(seed, "recovered", number)
        target = 2 * rows_of_laws(source, rows, drafts + 1, vocabulary)
        draft = 2 * rows_of_laws(source, rows, drafts, vocabulary)
        tokens = torch.randint(0, vocabulary, (rows, drafts), generator=source)
        batch = VerifyBatch(tokens, torch.full((rows,), drafts), target, draft, RowParameters.default(rows))
        largest = torch.full((rows, drafts), 1 - 2.0**-53, dtype=torch.float64)
        emitted = verifier.verify(batch, seed=seed, uniforms=largest)
        wanted = ChainVerifier().verify(batch, seed=seed, uniforms=largest)
        lengths = [(one != NO_TOKEN).sum(1) for one in (emitted, wanted)]
        same = (lengths[0] == lengths[1]) & (lengths[1] <= drafts)
        if not torch.equal(emitted[same], wanted[same]):
            return True
    return False


def transformers_examples(verifier: Any, seed: int) -> bool:
    """Two matches and one recovered token by hand; then the order of four counts in 10,000 calls.

    The third draft is impossible for the target both times, so the acceptance number is never needed.
    """
    calls = 10_000
    first = _hand_made(verifier, seed, 1, {8: 1.0})
    if first.tolist() != [[1, 4, 8, NO_TOKEN]]:
        return True
    third = _hand_made(verifier, seed + 1, calls, {1: 0.4, 8: 0.3, 3: 0.2, 7: 0.1})
    if not bool((third[:, :2] == torch.tensor([1, 4])).all() and torch.isin(third[:, 2], ONE_OF).all()):
        return True
    one, three, seven, eight = (int((third[:, 2] == token).sum()) for token in (1, 3, 7, 8))
    return not (one > three > seven > 0 and eight > three)


ONE_OF = torch.tensor([1, 3, 7, 8])


def _hand_made(verifier: Any, seed: int, calls: int, recovered: dict[int, float]) -> Tensor:
    """Drafts 1, 4, 5 from laws that are certain; the target agrees with the first two."""
    draft = torch.full((3, 10), -torch.inf, dtype=torch.float64)
    draft[torch.arange(3), torch.tensor([1, 4, 5])] = 0
    target = torch.full((4, 10), -torch.inf, dtype=torch.float64)
    target[:2] = draft[:2]
    for token, probability in recovered.items():
        target[2, token] = torch.tensor(probability).double().log()
    target[3] = 0
    batch = VerifyBatch(
        torch.tensor([1, 4, 5]).expand(calls, 3),
        torch.full((calls,), 3),
        target.expand(calls, 4, 10),
        draft.expand(calls, 3, 10),
        RowParameters.default(calls),
    )
    emitted: Tensor = verifier.verify(batch, seed=seed)
    return emitted


EXAMPLES = (
    Criterion("V1 golden", "vLLM V1", GREEDY_REQUESTS, greedy_lists),
    Criterion("V1 top-k", "vLLM V1", 100, top_k_support),
    Criterion("V1 recovered", "vLLM V1", sum(rows for rows, _, _ in RECOVERED), recovered_tokens),
    Criterion("HF", "transformers", 10_001, transformers_examples),
)
"""Criteria of this file."""
