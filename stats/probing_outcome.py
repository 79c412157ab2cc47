"""What a probe is told about a verifier, and what it found, in words."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch


class Told(NamedTuple):
    """What a verifier says about itself, and what it is held to: see `Verifier`."""

    claims: str
    precision: torch.dtype
    has_noise: bool
    refused: frozenset[str] = frozenset()


@dataclass
class Probed:
    """What a probe found.

    Attributes
    ----------
    thresholds, inside, evaluations : thresholds that were found, those of them between 0 and 1, rows asked.
    kinds : kinds of rows whose laws were composed.
    distance : of a threshold from the right one at most, where the claim gives one.
    largest, tv : differences of the composed laws from the spec's, at most.
    allowed : by how much rounding explains a cell to be off.
    findings : what is wrong, in words.
    """

    thresholds: int = 0
    inside: int = 0
    evaluations: int = 0
    kinds: int = 0
    distance: float = 0.0
    largest: float = 0.0
    tv: float = 0.0
    allowed: float = 0.0
    findings: list[str] = field(default_factory=list)

    def message(self, told: Told) -> str:
        """The evidence in words."""
        head = (
            f"Probed: {self.evaluations} evaluations, {self.thresholds} thresholds in {self.kinds} kinds of "
            "rows; "
        )
        unseen = "how the implementation makes its own random numbers isn't seen by this."
        if not told.has_noise:
            return (
                f"{head}thresholds of acceptance differ from the right ones by {self.distance:.1g} at most. "
                f"Without `noise` the tokens behind accepted drafts stay sampled, and {unseen}"
            )
        precision = str(told.precision).removeprefix("torch.")
        return (
            f"{head}the laws that they add up to differ from the spec's by {self.largest:.1g} at most, TV "
            f"{self.tv:.1g} ({self.allowed:.1g} is explained by {precision}); {unseen}"
        )
