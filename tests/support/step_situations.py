"""Small batches in which a planted fault shows, or is hidden; all of them fixed by their names."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from tokenlaw.impl.faults import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch, as_logits
from tokenlaw.spec.row_laws import UNSEEDED, RowParameters

ROWS, DRAFTS, VOCABULARY = 512, 3, 5
SEED = 20_260


def random_laws(*shape: int, seed: int) -> Tensor:
    """Laws without zeros and ties."""
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(1.5 * torch.randn(*shape, generator=generator, dtype=torch.float64), -1)


def batch_of(
    target: Tensor, draft: Tensor | None, params: RowParameters | None = None, lengths: Tensor | None = None
) -> VerifyBatch:
    """A batch whose drafts come from the draft laws, or from the target's where there are none."""
    rows, drafts = len(target), target.shape[1] - 1
    params = params or RowParameters.default(rows)
    logits = as_logits(target, "target"), None if draft is None else as_logits(draft, "draft")
    source = logits[0][:, :-1] if logits[1] is None else logits[1]
    drawn = [
        ChainVerifier().draft(source[:, place], params, position=place, seed=SEED) for place in range(drafts)
    ]
    if lengths is None:
        lengths = torch.full((rows,), drafts)
    tokens = torch.stack(drawn, dim=1) if drawn else torch.empty(rows, 0, dtype=torch.int64)
    return VerifyBatch(tokens, lengths, *logits, params)


def _laws(rows: int = ROWS, places: int = DRAFTS + 1) -> tuple[Tensor, Tensor]:
    """Laws that depend on row and place."""
    return random_laws(rows, places, VOCABULARY, seed=1), random_laws(rows, places - 1, VOCABULARY, seed=2)


def plain() -> VerifyBatch:
    """Every row and place has laws of its own; temperature 1."""
    return batch_of(*_laws())


def one_law() -> VerifyBatch:
    """All rows and places have one target law and one draft law."""
    target, draft = _laws(1, 2)
    return batch_of(target[:, :1].expand(ROWS, DRAFTS + 1, -1), draft[:, :1].expand(ROWS, DRAFTS, -1))


def equal_laws() -> VerifyBatch:
    """Draft and target laws are equal, bit for bit."""
    target, _ = _laws()
    return batch_of(target, target[:, :-1])


def one_draft() -> VerifyBatch:
    """Every row and place has laws of its own, but there is one draft only."""
    return batch_of(*_laws(places=2))


def parameters(**values: float) -> RowParameters:
    """Equal parameters for all rows."""
    params = RowParameters.default(ROWS)
    tensors = {name: torch.full_like(getattr(params, name), value) for name, value in values.items()}
    return replace(params, **tensors)


def no_drafts() -> VerifyBatch:
    """K is 0."""
    return batch_of(*_laws(places=1))


def greedy() -> VerifyBatch:
    """Temperature 0 in all rows."""
    return batch_of(*_laws(), parameters(temperature=0.0))


def mixed() -> VerifyBatch:
    """Even rows are greedy, odd ones random."""
    params = parameters()
    return batch_of(*_laws(), replace(params, temperature=(torch.arange(ROWS) % 2).double()))


def cool() -> VerifyBatch:
    """Temperature .5."""
    return batch_of(*_laws(), parameters(temperature=0.5))


def truncated(**values: float) -> Callable[[], VerifyBatch]:
    """Builder of a batch with the given top_k, top_p, min_p."""
    return lambda: batch_of(*_laws(), parameters(**values))


def ragged() -> VerifyBatch:
    """0 to 3 drafts, the shortest rows first."""
    return batch_of(*_laws(), lengths=torch.arange(ROWS) % (DRAFTS + 1))


def longest_first() -> VerifyBatch:
    """A row of three drafts, then one of one."""
    target, draft = _laws(2)
    return batch_of(target, draft, lengths=torch.tensor([3, 1]))


def zeros() -> VerifyBatch:
    """The target never gives token 0, which is drafted often."""
    target, draft = _laws()
    target[..., 0] = 0
    return batch_of(target / target.sum(-1, keepdim=True), draft)


def lookup() -> VerifyBatch:
    """Drafts that weren't drawn."""
    target, _ = _laws()
    return batch_of(target, None)


def wide() -> VerifyBatch:
    """4096 tokens."""
    return batch_of(random_laws(64, 2, 4096, seed=1), random_laws(64, 1, 4096, seed=2))


def odd_vocabulary() -> VerifyBatch:
    """1029 tokens, five more than a tile."""
    return batch_of(random_laws(256, 2, 1029, seed=1), random_laws(256, 1, 1029, seed=2))


def many_drafts() -> VerifyBatch:
    """Eight drafts, most of which are accepted."""
    target = random_laws(ROWS, 9, 6, seed=1)
    return batch_of(target, 0.8 * target[:, :8] + 0.2 * random_laws(ROWS, 8, 6, seed=2))


def near_one() -> VerifyBatch:
    """One draft of two tokens; token 0 has the ratio .9975, 40000 rows."""
    target = torch.tensor([0.49875, 0.50125], dtype=torch.float64).expand(40_000, 2, 2)
    draft = torch.tensor([0.5, 0.5], dtype=torch.float64).expand(40_000, 1, 2)
    return batch_of(target, draft)


def seeded() -> VerifyBatch:
    """Odd rows have a seed of their own."""
    numbers = torch.arange(ROWS)
    seeds = torch.where(numbers % 2 == 1, numbers, UNSEEDED)
    return batch_of(*_laws(), replace(parameters(), seeds=seeds))


def all_seeded() -> VerifyBatch:
    """All rows have a seed of their own."""
    return batch_of(*_laws(), replace(parameters(), seeds=torch.arange(ROWS)))


SITUATIONS: Mapping[str, Callable[[], VerifyBatch]] = {
    "plain": plain,
    "one law": one_law,
    "equal laws": equal_laws,
    "one draft": one_draft,
    "no drafts": no_drafts,
    "greedy": greedy,
    "mixed": mixed,
    "cool": cool,
    "top-k": truncated(top_k=2),
    "top-p": truncated(top_p=0.7),
    "min-p": truncated(min_p=0.2),
    "top-k and top-p": truncated(top_k=3, top_p=0.7),
    "ragged": ragged,
    "longest first": longest_first,
    "zeros": zeros,
    "lookup": lookup,
    "wide": wide,
    "odd vocabulary": odd_vocabulary,
    "many drafts": many_drafts,
    "cold": lambda: batch_of(*_laws(), parameters(temperature=0.25)),
    "near one": near_one,
    "seeded": seeded,
    "all seeded": all_seeded,
}
"""Builders of batches."""
