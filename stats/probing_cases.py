"""What a probe asks about: every sequence of drafts of a few small kinds of rows, each in a row of its own.

Three tokens and up to two drafts are enough for every decision that a step makes, and few enough to go
through all sequences of drafts: the law given the drafts is then found whole, not sampled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from jaxtyping import Float64, Int64

from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.stats import row_kinds as kinds
from tokenlaw.stats.scenario import Kind, Scenario, Tables, without
from tokenlaw.stats.scenarios import make_scenario

PROBE_NAME = "probed laws"
"""Stands for a scenario where something is found by a probe."""

VOCABULARY, DRAFTS = 3, 2


@dataclass(frozen=True)
class Contexts:
    """C rows, all with other drafts or of another kind.

    Attributes
    ----------
    tables : of the scenario.
    batch : one row for each context.
    kinds : int64 ``[C]``, which kind of the scenario each is.
    drafts : the drafts of each.
    weights : float64 ``[C]``, probability of the drafts; equal numbers where they aren't drawn.
    target : float64 ``[C, K + 1, V]``, laws of the target after each of the drafts.
    draft : float64 ``[C, K, V]``, laws of the drafts; one-hot where they aren't drawn.
    """

    tables: Tables
    batch: VerifyBatch
    kinds: Int64[np.ndarray, " contexts"]
    drafts: tuple[tuple[int, ...], ...]
    weights: Float64[np.ndarray, " contexts"]
    target: Float64[np.ndarray, "contexts drafts+1 vocabulary"]
    draft: Float64[np.ndarray, "contexts drafts vocabulary"]

    @property
    def scenario(self) -> Scenario:
        """What they are contexts of."""
        return self.tables.scenario

    @property
    def lengths(self) -> Int64[np.ndarray, " contexts"]:
        """Number of drafts of each."""
        return np.array([len(drafts) for drafts in self.drafts], dtype=np.int64)

    def named(self, context: int) -> str:
        """Kind and drafts in words."""
        kind = self.scenario.kinds[int(self.kinds[context])]
        return f"rows of kind {kind.name!r} of {self.scenario.name!r}, drafts {list(self.drafts[context])}"

    @staticmethod
    def of(tables: Tables) -> "Contexts":
        """All sequences of drafts of all kinds that can be drafted."""
        found = [one for index, _ in enumerate(tables.scenario.kinds) for one in _sequences(tables, index)]
        numbers = torch.tensor([kind for kind, _, _ in found])
        drafts = tuple(tokens for _, tokens, _ in found)
        padded = torch.zeros(len(found), tables.scenario.drafts, dtype=torch.int64)
        for row, tokens in enumerate(drafts):
            padded[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
        batch, target, draft = _looked_up(tables, numbers, padded)
        if tables.scenario.deterministic:
            draft = np.eye(tables.scenario.vocabulary)[padded.numpy()]
        return Contexts(
            tables, batch, numbers.numpy(), drafts, np.array([w for *_, w in found]), target, draft
        )


def _sequences(tables: Tables, index: int) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Number of the kind, drafts, and their probability, if there is one."""
    scenario, draft = tables.scenario, tables.draft[index].cpu()
    length = scenario.kinds[index].length
    for tokens in product(range(scenario.vocabulary), repeat=length):
        weight = float(scenario.vocabulary) ** -length
        if not scenario.deterministic:
            weight = 1.0
            for position, token in enumerate(tokens):
                context = tokens[position - 1] % scenario.contexts if position else 0
                weight *= float(draft[position, context, token])
        if weight > 0:
            yield index, tokens, weight


def _looked_up(
    tables: Tables, numbers: torch.Tensor, drafts: torch.Tensor
) -> tuple[VerifyBatch, np.ndarray, np.ndarray]:
    """The batch of given drafts, and laws of target and draft at their contexts."""
    device, positions = tables.target.device, drafts.shape[1] + 1
    rows = numbers.to(device)[:, None]
    context = torch.nn.functional.pad(drafts % tables.scenario.contexts, (1, 0)).to(device)
    place = torch.arange(positions, device=device)
    at = (rows, place[None, :-1], context[:, :-1])
    batch = VerifyBatch(
        drafts.to(device),
        tables.lengths[rows[:, 0]],
        tables.target_logits[rows, place, context],
        None if tables.scenario.deterministic else tables.draft_logits[at],
        tables.params.rows(rows[:, 0]),
    )
    return batch, tables.target[rows, place, context].cpu().numpy(), tables.draft[at].cpu().numpy()


def halves(generator: np.random.Generator, vocabulary: int, drafts: int) -> Kind:
    """Ratios of exactly 1/2, 1 and 0, in any arithmetic: two tokens of the target are equally likely.

    The draft is certain of one of them, or equally torn between one of them and an impossible token.
    """
    shape = (drafts + 1, vocabulary, vocabulary)
    order = torch.from_numpy(generator.random(shape)).argsort(-1)
    target = torch.full(shape, -torch.inf).scatter(-1, order[..., :2], 0.0)
    certain = torch.full(shape, -torch.inf).scatter(-1, order[..., :1], 0.0)
    torn = certain.scatter(-1, order[..., 2:3], 0.0)
    which = torch.from_numpy(generator.random((drafts + 1, vocabulary, 1)) < 0.5)
    draft = torch.where(which, torn, certain)
    draft[0] = certain[0]
    return Kind("halves", target, draft[:drafts].clone(), drafts)


DRAWN: tuple[kinds.Make, ...] = (
    kinds.plain,
    kinds.residual,
    halves,
    kinds.zeros,
    kinds.near_one(0.9962),
    kinds.ties,
    kinds.tiny,
    kinds.warm,
    kinds.equal,
    kinds.top_k,
    kinds.disjoint,
    kinds.greedy,
    kinds.top_p,
    kinds.min_p,
    kinds.filters,
)
LOOKED_UP: tuple[kinds.Make, ...] = (kinds.residual, kinds.zeros, kinds.certain)
"""Makers of the kinds whose drafts are drawn, and of those whose drafts are looked up."""


def probed_scenarios(seed: int, refused: frozenset[str] = frozenset()) -> list[Scenario]:
    """Drafts that are drawn, and drafts that are looked up; without rows that a verifier refuses.

    Rows with one draft come first: a small budget is enough for them.
    """
    found = [
        make_scenario(
            name, makers, vocabulary=VOCABULARY, drafts=DRAFTS, share=1.0, seed=seed, deterministic=looked_up
        )
        for name, makers, looked_up in (
            (PROBE_NAME, DRAWN, False),
            (f"{PROBE_NAME}, looked-up drafts", LOOKED_UP, True),
        )
    ]
    ordered = (
        replace(one, kinds=tuple(sorted(one.kinds, key=lambda kind: kind.length != 1))) for one in found
    )
    taken = (without(scenario, refused) for scenario in ordered)
    return [scenario for scenario in taken if scenario is not None]
