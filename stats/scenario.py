"""What a verifier is asked: kinds of rows, mixed at random into batches.

A kind is a small world of its own, whose law is known exactly: at every position a table gives the logits
of target and draft for each context, and the context is the token before, modulo the number of contexts. So
every position has another law, and the law at a position depends on what was drafted or emitted before it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.spec.row_laws import OFF_MIN_P, OFF_TOP_K, OFF_TOP_P, RowParameters, row_laws


@dataclass(frozen=True)
class Kind:
    """One kind of row.

    Attributes
    ----------
    name : says what is special about it; reports name it.
    target_logits : float32 ``[K + 1, contexts, V]``; position 0 has context 0.
    draft_logits : float32 ``[K, contexts, V]``. Where drafts are deterministic the draft is the token with
        the largest logit.
    length : number of drafts, 0 .. K.
    temperature, top_k, top_p, min_p : sampling parameters of these rows, `tokenlaw.spec.row_laws`.
    """

    name: str
    target_logits: Float[Tensor, "positions contexts vocabulary"]
    draft_logits: Float[Tensor, "drafts contexts vocabulary"]
    length: int
    temperature: float = 1.0
    top_k: int = OFF_TOP_K
    top_p: float = OFF_TOP_P
    min_p: float = OFF_MIN_P

    def features(self, drafts: int) -> frozenset[str]:
        """What a verifier might refuse these rows for, in batches with room for so many drafts."""
        uses = {
            "greedy": self.temperature == 0,
            "temperature": self.temperature not in (0, 1),
            "top_k": self.top_k != OFF_TOP_K,
            "top_p": self.top_p < OFF_TOP_P,
            "min_p": self.min_p > OFF_MIN_P,
            "ragged": self.length < drafts,
        }
        return frozenset(name for name, used in uses.items() if used)


@dataclass(frozen=True)
class Scenario:
    """A mixture of kinds that are verified in the same batches.

    Attributes
    ----------
    name : unique in a run; random numbers and reports depend on it.
    kinds : of one vocabulary, one number of contexts and one K.
    share : share of the requests of a run, relative to that of other scenarios.
    deterministic : drafts are not drawn, and batches have no draft logits.
    own_drafter : the implementation draws the drafts.
    seeded : half of the rows have a seed of their own.
    wide : outcomes are counted by position, because there are too many sequences.
    """

    name: str
    kinds: tuple[Kind, ...]
    share: float
    deterministic: bool = False
    own_drafter: bool = False
    seeded: bool = False
    wide: bool = False

    @property
    def vocabulary(self) -> int:
        """V."""
        return self.kinds[0].target_logits.shape[-1]

    @property
    def contexts(self) -> int:
        """Number of contexts that the tables know."""
        return self.kinds[0].target_logits.shape[1]

    @property
    def drafts(self) -> int:
        """K, the largest number of drafts of a row."""
        return self.kinds[0].draft_logits.shape[0]


def without(scenario: Scenario, refused: frozenset[str]) -> Scenario | None:
    """The scenario without kinds that are refused, of `tokenlaw.spec.generation_contracts.REFUSALS`; None if
    nothing is left."""
    left = tuple(kind for kind in scenario.kinds if not kind.features(scenario.drafts) & refused)
    if not left or (scenario.deterministic and "looked-up drafts" in refused):
        return None
    return replace(scenario, kinds=left)


@dataclass(frozen=True)
class Tables:
    """The kinds of a scenario, stacked, on one device.

    Attributes
    ----------
    target_logits, draft_logits : float32 ``[kinds, positions, contexts, V]``.
    target, draft : float64 laws, the same shapes.
    lengths : int64 ``[kinds]``.
    params : one row of sampling parameters for each kind.
    """

    scenario: Scenario
    target_logits: Float[Tensor, "kinds positions contexts vocabulary"]
    draft_logits: Float[Tensor, "kinds drafts contexts vocabulary"]
    target: Float64[Tensor, "kinds positions contexts vocabulary"]
    draft: Float64[Tensor, "kinds drafts contexts vocabulary"]
    lengths: Int64[Tensor, " kinds"]
    params: RowParameters
    drawn: "Inverse" = field(repr=False)

    @staticmethod
    def of(scenario: Scenario, device: str = "cpu") -> "Tables":
        """Stack the kinds and compute their laws."""
        kinds = scenario.kinds
        target_logits = torch.stack([kind.target_logits for kind in kinds]).to(device)
        draft_logits = torch.stack([kind.draft_logits for kind in kinds]).to(device)
        params = RowParameters(
            torch.tensor([kind.temperature for kind in kinds], dtype=torch.float64, device=device),
            torch.tensor([kind.top_k for kind in kinds], device=device),
            torch.tensor([kind.top_p for kind in kinds], dtype=torch.float64, device=device),
            torch.tensor([kind.min_p for kind in kinds], dtype=torch.float64, device=device),
        )
        draft = row_laws(draft_logits, params)
        if scenario.deterministic:
            draft = torch.zeros_like(draft).scatter_(-1, draft_logits.argmax(-1, keepdim=True), 1.0)
        return Tables(
            scenario,
            target_logits,
            draft_logits,
            row_laws(target_logits, params),
            draft,
            torch.tensor([kind.length for kind in kinds], device=device),
            params,
            Inverse.of(draft),
        )

    @cached_property
    def completing(self) -> "Inverse":
        """For draws from the target."""
        return Inverse.of(self.target)

    def row(self, kinds: Int64[Tensor, " batch"], position: int, before: Int64[Tensor, " batch"]) -> Tensor:
        """Numbers of the rows of a table at a position, for its flattened leading dimensions.

        ``before`` is the token before the position; any at position 0.
        """
        first = kinds * self.scenario.contexts
        if not position or self.scenario.contexts == 1:
            return first
        # Few things take as long as a remainder.
        return first + (before if self._every_token_is_a_context else before % self.scenario.contexts)

    @cached_property
    def _every_token_is_a_context(self) -> bool:
        return self.scenario.contexts == self.scenario.vocabulary


@dataclass(frozen=True)
class Inverse:
    """Draws from many laws by one search in their cumulative sums, each raised by the number of its row.

    Uniform numbers count to 2^-40, so that a sum with the number of a row stays exact; what that moves is
    far below anything that a count can show.
    """

    sums: tuple[Float64[Tensor, " rows_times_vocabulary"], ...]
    vocabulary: int

    @staticmethod
    def of(laws: Float64[Tensor, "kinds positions contexts vocabulary"]) -> "Inverse":
        """For the laws of a table; one array of sums for each position."""
        vocabulary = laws.shape[-1]
        sums = []
        for position in range(laws.shape[1]):
            # Summed one after the other: in the parallel sums of a device impossible tokens may get a little.
            rows = _closed(laws[:, position].reshape(-1, vocabulary).cpu())
            raised = rows + torch.arange(len(rows))[:, None]
            sums.append(raised.reshape(-1).to(laws.device))
        return Inverse(tuple(sums), vocabulary)

    def draw(
        self, position: int, rows: Int64[Tensor, " batch"], uniforms: Float64[Tensor, " batch"]
    ) -> Int64[Tensor, " batch"]:
        """One token of each of the rows."""
        coarse = (uniforms * 2.0**40).floor_().mul_(2.0**-40)
        found = torch.searchsorted(self.sums[position], coarse.add_(rows), right=True)
        return found.sub_(rows, alpha=self.vocabulary)


def _closed(laws: Float64[Tensor, "rows vocabulary"]) -> Float64[Tensor, "rows vocabulary"]:
    """Cumulative sums that are exactly 1 from the last possible token on."""
    sums = laws.cumsum(-1)
    after = laws.flip(-1).cumsum(-1).flip(-1) - laws
    return torch.where(after <= 0, 1.0, sums.clamp(max=1.0))
