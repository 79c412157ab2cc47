"""What the proof of a verifier asks: situations so small that every path of random numbers can be run.

They are those of the sampled suite (`tokenlaw.stats.scenarios`) with few tokens and drafts: other laws in
every context, zeros, ties, disjoint supports, certain tokens, greedy rows among random ones, temperatures and
truncations, ragged lengths, drafts that weren't drawn, the implementation's own drafter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.spec.row_laws import OFF_TOP_K, OFF_TOP_P, RowParameters, row_laws
from tokenlaw.stats import row_kinds as kinds
from tokenlaw.stats.row_kinds import Make
from tokenlaw.stats.scenario import Kind, Scenario, without
from tokenlaw.stats.scenarios import make_scenario
from tokenlaw.stats.tree_trial import DRAWN_WITH, DRAWN_WITHOUT, LIKELIEST, ROOT, SHAPES

PREFIX = "proof: "
"""Names of cases begin with it: other scenarios have none of these."""

Group = tuple[tuple[int, ...], ...]
"""For each call of verify the kinds of its rows."""


@dataclass(frozen=True)
class Case:
    """Situations whose law is enumerated together.

    Attributes
    ----------
    scenario : the kinds of rows.
    group : the kinds of the rows of each call, where several rows or calls are looked at together: their
        joint law must be the product of their laws. Empty for one row of a kind that is drawn first, the same
        probability for each.
    parents, way : of a tree (`tokenlaw.stats.tree_trial`); without parents, drafts are a chain.
    larger : whether there are many paths.
    """

    scenario: Scenario
    group: Group = ()
    parents: tuple[int, ...] = ()
    way: str = ""
    larger: bool = False

    @property
    def name(self) -> str:
        """Unique among the cases of a seed."""
        return self.scenario.name

    @property
    def title(self) -> str:
        """The name, for people."""
        return repr(self.name.removeprefix(PREFIX))


_TRIES = 200


def _telling(make: Make, tells: Callable[[Kind], bool]) -> Make:
    """A maker of kinds whose first position tells; with few tokens, many settings change nothing there."""

    def made(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
        for _ in range(_TRIES):
            kind = make(generator, vocabulary, drafts)
            if tells(kind):
                break
        return kind

    return made


def _first_law(kind: Kind, **changes: float) -> Float64[Tensor, " vocabulary"]:
    """The target's law at position 0, under the kind's settings or changed ones."""
    settings = {name: getattr(kind, name) for name in ("temperature", "top_k", "top_p", "min_p")} | changes
    params = RowParameters(**{name: torch.tensor([value]) for name, value in settings.items()})
    return row_laws(kind.target_logits[0, :1], params)[0]


def _drops_two(kind: Kind) -> bool:
    """Whether a truncation leaves out two tokens at least, and keeps two."""
    law = _first_law(kind)
    return int((law == 0).sum()) >= 2 and int((law > 0).sum()) >= 2


def _order_matters(kind: Kind) -> bool:
    """Whether top-p before top-k would keep other tokens."""
    by_p, by_k = _first_law(kind, top_k=OFF_TOP_K) > 0, _first_law(kind, top_p=OFF_TOP_P) > 0
    return not torch.equal(by_p & by_k, _first_law(kind) > 0)


def _heat_matters(kind: Kind) -> bool:
    """Whether min-p before the temperature would keep other tokens."""
    return not torch.equal(_first_law(kind, temperature=1.0) > 0, _first_law(kind) > 0)


_ONE_DRAFT: tuple[Make, ...] = (
    kinds.residual,
    kinds.zeros,
    kinds.equal,
    kinds.disjoint,
    kinds.certain,
    kinds.ties,
    kinds.near_one(0.9985),
)
_SETTINGS: tuple[Make, ...] = (
    kinds.warm,
    kinds.top_k,
    _telling(kinds.top_p, _drops_two),
    _telling(kinds.min_p, _drops_two),
    kinds.greedy_filters,
    _telling(kinds.filters, _order_matters),
    _telling(kinds.warm_min_p, _heat_matters),
)
_TWO_DRAFTS: tuple[Make, ...] = (kinds.residual, kinds.equal, kinds.residual)
_LOOKED_UP: tuple[Make, ...] = (kinds.plain, kinds.zeros, kinds.certain)
_OWN: tuple[Make, ...] = (kinds.residual, kinds.top_k, kinds.warm)
_PAIR: tuple[Make, ...] = (kinds.residual, kinds.residual)
_MIXED: tuple[Make, ...] = (kinds.greedy, kinds.residual)
_LONGER: tuple[Make, ...] = (kinds.plain, kinds.zeros, kinds.top_p)
_TREE: tuple[Make, ...] = (kinds.residual, kinds.zeros)


def chain_cases(
    seed: int, *, own_drafter: bool, refused: frozenset[str] = frozenset(), larger: bool = False
) -> list[Case]:
    """Rows whose drafts are a chain, the most telling cases first.

    Parameters
    ----------
    seed : of the run; another seed, other tables.
    own_drafter : whether the implementation has a drafter of its own.
    refused : rows that it doesn't take, of `tokenlaw.spec.generation_contracts.REFUSALS`.
    larger : whether three drafts and four tokens are asked as well.
    """
    found = []
    for case in _chains(seed, own_drafter=own_drafter, larger=larger):
        scenario = without(case.scenario, refused)
        # Kinds of a group have numbers: without one of them the group is gone.
        if scenario is not None and (not case.group or scenario == case.scenario):
            found.append(replace(case, scenario=scenario))
    return found


def _chains(seed: int, *, own_drafter: bool, larger: bool) -> Iterator[Case]:
    yield Case(_small("one of 3 tokens drafted", _ONE_DRAFT, 3, 1, seed))
    yield Case(_small("sampling parameters", _SETTINGS, 5, 1, seed))
    if own_drafter:
        yield Case(_small("own drafts", _OWN, 3, 1, seed, own_drafter=True))
    yield Case(_small("drafts looked up", _LOOKED_UP, 3, 2, seed, deterministic=True))
    yield Case(_small("greedy and random rows in one call", _MIXED, 3, 1, seed), ((0, 1),))
    yield Case(_small("two rows in one call", _PAIR, 2, 1, seed, deterministic=True), ((0, 1),))
    name = "rows of 1 and 2 drafts in one call"
    yield Case(_small(name, _PAIR, 2, 2, seed, lengths=(1, 2), deterministic=True), ((0, 1),))
    yield Case(_small("up to two of 2 tokens drafted", _TWO_DRAFTS, 2, 2, seed, lengths=(2, 2, 1)))
    calls = _small("two calls", _PAIR, 2, 1, seed, lengths=(1, 0), deterministic=True)
    yield Case(calls, ((0,), (1,)))
    if larger:
        up_to_two = _small("up to two of 3 tokens drafted", _LONGER, 3, 2, seed, lengths=(2, 2, 1))
        yield Case(up_to_two, larger=True)
        up_to_three = _small("up to three of 2 tokens drafted", _LONGER, 2, 3, seed, lengths=(3, 2, 3))
        yield Case(up_to_three, larger=True)
        yield Case(_small("two of 4 tokens drafted", _LONGER[:2], 4, 2, seed), larger=True)
        if own_drafter:
            calls = _small("two calls with own drafts", _PAIR, 2, 1, seed, own_drafter=True)
            yield Case(calls, ((0,), (1,)), larger=True)
            yield Case(_small("two own drafts", _OWN[:1], 2, 2, seed, own_drafter=True), larger=True)
            yield Case(_small("two of 3 own drafts", _OWN, 3, 2, seed, own_drafter=True), larger=True)


def tree_cases(seed: int, *, larger: bool = False) -> list[Case]:
    """Trees, drawn in every way."""
    two = "two candidates"
    shapes = {two: (SHAPES[two], 3, 1)}
    if larger:
        deep = "one deep, one shallow"
        shapes |= {deep: (SHAPES[deep], 2, 3), "three candidates": ((ROOT, ROOT, ROOT), 3, 1)}
    found = []
    for shape, (parents, vocabulary, depth) in shapes.items():
        for way in (DRAWN_WITH, DRAWN_WITHOUT, LIKELIEST):
            scenario = _small(f"tree of {shape}, {way}", _TREE, vocabulary, depth, seed)
            found.append(Case(scenario, parents=parents, way=way, larger=shape != two))
    return found


def _small(
    name: str,
    makers: tuple[Make, ...],
    vocabulary: int,
    drafts: int,
    seed: int,
    *,
    lengths: tuple[int, ...] = (),
    **options: bool,
) -> Scenario:
    """A scenario of few tokens; ``lengths`` are the numbers of drafts of its kinds, where they differ."""
    scenario = make_scenario(
        f"{PREFIX}{name}",
        makers,
        vocabulary=vocabulary,
        drafts=drafts,
        share=1.0,
        seed=seed,
        ragged=False,
        **options,
    )
    if not lengths:
        return scenario
    pairs = zip(scenario.kinds, lengths, strict=True)
    kinds = (replace(kind, name=f"{kind.name}, {_drafts(count)}", length=count) for kind, count in pairs)
    return replace(scenario, kinds=tuple(kinds))


def _drafts(count: int) -> str:
    return f"{count} draft{'' if count == 1 else 's'}"
