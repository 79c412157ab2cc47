"""The scenarios of a run: small, and varying what the tests that people use today hold still.

Another law at every position, in every context and every row; lengths from 0 to K in one batch; greedy rows
among random ones; temperatures, truncations on both sides; exact zeros and ties; disjoint and equal supports;
certain tokens; probabilities of 1e-8; ratios close to 1; residuals of several tokens; large logits.
"""

from dataclasses import replace

import numpy as np

from tokenlaw.spec.philox import derived_key
from tokenlaw.stats import row_kinds as kinds
from tokenlaw.stats.scenario import Kind, Scenario, without

COMMON: tuple[kinds.Make, ...] = (
    kinds.shifted(kinds.plain),
    kinds.zeros,
    kinds.ties,
    kinds.equal,
    kinds.disjoint,
    kinds.certain,
    kinds.tiny,
    kinds.residual,
    kinds.warm,
    kinds.greedy,
)
FILTERS: tuple[kinds.Make, ...] = (
    kinds.top_k,
    kinds.top_p,
    kinds.min_p,
    kinds.filters,
    kinds.cold,
    kinds.shifted(kinds.top_k),
    kinds.warm_min_p,
    kinds.greedy_filters,
    kinds.plain,
)
CLOSE: tuple[kinds.Make, ...] = tuple(kinds.near_one(ratio) for ratio in (0.9962, 0.9985, 0.9995, 0.9962))
DRAFTED: tuple[kinds.Make, ...] = (
    kinds.residual,
    kinds.top_k,
    kinds.residual,
    kinds.top_p,
    kinds.warm,
    kinds.filters,
    kinds.shifted(kinds.residual),
    kinds.greedy,
)
LOOKED_UP: tuple[kinds.Make, ...] = (
    kinds.plain,
    kinds.zeros,
    kinds.certain,
    kinds.shifted(kinds.residual),
    kinds.top_k,
    kinds.warm,
    kinds.greedy,
    kinds.top_p,
)
MIXED: tuple[kinds.Make, ...] = (
    kinds.plain,
    kinds.shifted(kinds.residual),
    kinds.greedy,
    kinds.warm,
    kinds.top_k,
    kinds.zeros,
)
TREE_KINDS: tuple[kinds.Make, ...] = (kinds.shifted(kinds.plain), kinds.residual, kinds.zeros, kinds.warm)
TREE_FILTERS: tuple[kinds.Make, ...] = (kinds.residual, kinds.filters, kinds.warm_min_p, kinds.greedy)


def make_scenario(
    name: str,
    makers: tuple[kinds.Make, ...],
    *,
    vocabulary: int,
    drafts: int,
    share: float,
    seed: int,
    ragged: bool = True,
    **options: bool,
) -> Scenario:
    """A scenario whose kinds come from these makers.

    Ragged: every third kind comes once more with fewer drafts than K, the first of them with none.
    """
    generator = np.random.Generator(np.random.Philox(derived_key(seed, name, "tables")))
    made = [make(generator, vocabulary, drafts) for make in makers]
    if ragged:
        made += [_shorter(make(generator, vocabulary, drafts), at) for at, make in enumerate(makers[::3])]
    return Scenario(name, tuple(made), share, **options)


def _shorter(kind: Kind, at: int) -> Kind:
    length = at % kind.draft_logits.shape[0] if kind.draft_logits.shape[0] else 0
    return replace(kind, name=f"{kind.name}, {length} of {kind.length} drafts", length=length)


def scenarios(
    seed: int, *, own_drafter: bool, seeded: bool, refused: frozenset[str] = frozenset()
) -> list[Scenario]:
    """All scenarios of a run, in the order in which they're tried: the most telling first.

    Parameters
    ----------
    seed : of the run; another seed, other tables.
    own_drafter : whether the implementation has a drafter of its own.
    seeded : whether its rows can have seeds.
    refused : rows that it doesn't take, of `tokenlaw.spec.generation_contracts.REFUSALS`; they are left out.
    """
    found = [
        make_scenario("mixed rows", COMMON, vocabulary=4, drafts=3, share=0.20, seed=seed, seeded=seeded),
        make_scenario("filters", FILTERS, vocabulary=8, drafts=2, share=0.24, seed=seed),
        make_scenario(
            "looked-up drafts",
            LOOKED_UP,
            vocabulary=5,
            drafts=2,
            share=0.09,
            seed=seed,
            deterministic=True,
            seeded=seeded,
        ),
        make_scenario("ratios near one", CLOSE, vocabulary=3, drafts=4, share=0.24, seed=seed),
        make_scenario("one draft", MIXED, vocabulary=16, drafts=1, share=0.08, seed=seed, seeded=seeded),
        make_scenario(
            "wide vocabulary",
            (kinds.wide,),
            vocabulary=4101,
            drafts=1,
            share=0.02,
            seed=seed,
            ragged=False,
            wide=True,
        ),
        make_scenario(
            "many drafts",
            (kinds.many_drafts if "top_k" in refused else kinds.many_top_k,),
            vocabulary=50,
            drafts=8,
            share=0.02,
            seed=seed,
            ragged=False,
            wide=True,
        ),
    ]
    if own_drafter:
        drafted = make_scenario(
            "own drafts", DRAFTED, vocabulary=8, drafts=2, share=0.14, seed=seed, own_drafter=True
        )
        found.insert(2, drafted)
    taken = (without(scenario, refused) for scenario in found)
    return [scenario for scenario in taken if scenario is not None]
