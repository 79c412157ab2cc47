"""The scenarios of a run: small, and varying what the tests that people use today hold still.

Another law at every position, in every context and every row; lengths from 0 to K in one batch; greedy rows
among random ones; temperatures, truncations on both sides; exact zeros and ties; disjoint and equal supports;
certain tokens; probabilities of 1e-8; ratios close to 1; residuals of several tokens.
"""

from collections.abc import Callable

import numpy as np
import torch

from tokenlaw.spec.philox import derived_key
from tokenlaw.stats import tables
from tokenlaw.stats.scenario import Kind, Scenario, without
from tokenlaw.stats.truncations import min_p_apart, top_p_apart

Make = Callable[[np.random.Generator, int, int], Kind]
"""Makes a kind from a generator, V and K."""


def plain(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Unlike laws, everything possible."""
    target, draft = _both(generator, vocabulary, drafts)
    return Kind("plain", target, draft, drafts)


def zeros(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Impossible tokens in target and draft, not the same ones."""
    target, draft = _both(generator, vocabulary, drafts)
    return Kind("zeros", tables.with_zeros(generator, target), tables.with_zeros(generator, draft), drafts)


def ties(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Target and draft agree bit for bit but for two tokens."""
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary), 1.0)
    return Kind("ties", target, tables.swapped(generator, target[:drafts]), drafts)


def equal(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """The draft is the target: everything is accepted, and the bonus token is what can be wrong."""
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("draft equals target", target, target[:drafts].clone(), drafts)


def disjoint(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Supports without a common token in half of the contexts: everything is rejected there."""
    target, draft = tables.disjoint(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("disjoint supports", target, draft[:drafts].clone(), drafts)


def certain(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """The target has one possible token at half of the places."""
    target, draft = _both(generator, vocabulary, drafts)
    hot = tables.one_hot(generator, (drafts + 1, vocabulary, vocabulary))
    where = torch.from_numpy(generator.random((drafts + 1, vocabulary, 1)) < 0.5)
    return Kind("certain tokens", torch.where(where, hot, target), draft, drafts)


def tiny(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Probabilities of 1e-8 on both sides."""
    target, draft = _both(generator, vocabulary, drafts)
    light = tables.with_tiny(generator, target), tables.with_tiny(generator, draft)
    return Kind("tiny probabilities", *light, drafts)


def residual(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Many rejections, and residuals of several tokens with unequal draft probabilities."""
    target, draft = tables.residual_pair(generator, (drafts + 1, vocabulary, vocabulary))
    return Kind("unequal residuals", target, draft[:drafts].clone(), drafts)


def warm(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A temperature other than 1."""
    temperature = float(generator.choice([0.4, 0.7, 1.4, 2.5]))
    target, draft = _both(generator, vocabulary, drafts)
    return Kind(f"temperature {temperature}", target, draft, drafts, temperature=temperature)


def cold(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A temperature near 0, and logits as close together: no row is greedy."""
    shape = (drafts + 1, vocabulary, vocabulary)
    target, draft = (0.1 * tables.spread(generator, shape) for _ in range(2))
    return Kind("temperature 0.1", target, draft[:drafts].clone(), drafts, temperature=0.1)


def greedy(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature 0; the draft agrees with the target about half of the time."""
    target, draft = _both(generator, vocabulary, drafts)
    same = torch.from_numpy(generator.random((drafts, vocabulary, 1)) < 0.5)
    return Kind("greedy", target, torch.where(same, target[:drafts], draft), drafts, temperature=0.0)


def top_k(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Top-k, which keeps other tokens of target and draft."""
    k = int(generator.integers(2, max(3, vocabulary // 2 + 1)))
    target, draft = _both(generator, vocabulary, drafts)
    return Kind(f"top-k {k}", target, draft, drafts, top_k=k)


def top_p(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Top-p."""
    target, draft = _both(generator, vocabulary, drafts)
    threshold = top_p_apart(generator, target, draft)
    return Kind(f"top-p {threshold:.3f}", target, draft, drafts, top_p=threshold)


def min_p(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Min-p."""
    target, draft = _both(generator, vocabulary, drafts)
    share = min_p_apart(generator, target, draft)
    return Kind(f"min-p {share:.3f}", target, draft, drafts, min_p=share)


def filters(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Temperature, top-k and top-p at once: their order matters."""
    target, draft = _both(generator, vocabulary, drafts)
    temperature, k = float(generator.choice([0.6, 1.5])), max(2, vocabulary // 2)
    threshold = top_p_apart(generator, target, draft, temperature, k)
    name = f"temperature {temperature}, top-k {k}, top-p {threshold:.3f}"
    return Kind(name, target, draft, drafts, temperature=temperature, top_k=k, top_p=threshold)


def near_one(ratio: float) -> Make:
    """A maker of kinds whose ratio p / q is just below 1 for almost every draft."""

    def make(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
        target, draft = tables.near_one(generator, (drafts + 1, vocabulary, vocabulary), ratio)
        return Kind(f"ratio {ratio}", target, draft[:drafts].clone(), drafts)

    return make


def wide(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """A wide vocabulary with a long tail, which the draft neglects. All rows share their tables."""
    shape = (drafts + 1, 1, vocabulary)
    target = tables.tail(generator, shape, mass=0.3)
    draft = tables.tail(generator, shape, mass=0.02)[:drafts].clone()
    return Kind("long tail", target, draft, drafts)


def many_drafts(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Half as many contexts as tokens, and a draft of which most is accepted, so that rows get far."""
    shape = (drafts + 1, vocabulary // 2, vocabulary)
    target = tables.spread(generator, shape)
    noise = tables.spread(generator, (drafts, *shape[1:]), 0.6)
    return Kind("many drafts", target, target[:drafts] + noise, drafts)


COMMON: tuple[Make, ...] = (plain, zeros, ties, equal, disjoint, certain, tiny, residual, warm, greedy)
FILTERS: tuple[Make, ...] = (top_k, top_p, min_p, filters, cold, top_k, filters, greedy, plain)
CLOSE: tuple[Make, ...] = tuple(near_one(ratio) for ratio in (0.9962, 0.9985, 0.9995, 0.9962))
DRAFTED: tuple[Make, ...] = (residual, top_k, residual, top_p, warm, filters, residual, greedy)
LOOKED_UP: tuple[Make, ...] = (plain, zeros, certain, residual, top_k, warm, greedy, top_p)
MIXED: tuple[Make, ...] = (plain, residual, greedy, warm, top_k, zeros)
TREE_KINDS: tuple[Make, ...] = (plain, residual, zeros, warm)


def _both(generator: np.random.Generator, vocabulary: int, drafts: int) -> tuple[torch.Tensor, torch.Tensor]:
    target = tables.spread(generator, (drafts + 1, vocabulary, vocabulary))
    return target, tables.spread(generator, (drafts, vocabulary, vocabulary))


def make_scenario(
    name: str,
    makers: tuple[Make, ...],
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
    kinds = [make(generator, vocabulary, drafts) for make in makers]
    if ragged:
        kinds += [_shorter(make(generator, vocabulary, drafts), at) for at, make in enumerate(makers[::3])]
    return Scenario(name, tuple(kinds), share, **options)


def _shorter(kind: Kind, at: int) -> Kind:
    length = at % kind.draft_logits.shape[0] if kind.draft_logits.shape[0] else 0
    return Kind(
        f"{kind.name}, {length} of {kind.length} drafts",
        kind.target_logits,
        kind.draft_logits,
        length,
        kind.temperature,
        kind.top_k,
        kind.top_p,
        kind.min_p,
    )


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
            "looked-up drafts", LOOKED_UP, vocabulary=5, drafts=2, share=0.09, seed=seed, deterministic=True
        ),
        make_scenario("ratios near one", CLOSE, vocabulary=4, drafts=3, share=0.24, seed=seed),
        make_scenario("one draft", MIXED, vocabulary=16, drafts=1, share=0.08, seed=seed, seeded=seeded),
        make_scenario(
            "wide vocabulary",
            (wide,),
            vocabulary=4101,
            drafts=1,
            share=0.02,
            seed=seed,
            ragged=False,
            wide=True,
        ),
        make_scenario(
            "many drafts",
            (many_drafts,),
            vocabulary=32,
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
