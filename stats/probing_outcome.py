"""What a probe is told about a verifier, and what it found, in words."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.stats.shown_laws import ShownLaw


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
    known : how closely each of the thresholds of these kinds is known, at worst.
    allowed : by how much rounding explains a cell to be off; without noise, a threshold.
    findings : what is wrong, in words.
    shown : what of it can be drawn.
    """

    thresholds: int = 0
    inside: int = 0
    evaluations: int = 0
    kinds: int = 0
    known: float = 0.0
    distance: float = 0.0
    largest: float = 0.0
    tv: float = 0.0
    allowed: float = 0.0
    findings: list[str] = field(default_factory=list)
    shown: list[ShownLaw] = field(default_factory=list)

    def message(self, told: Told) -> str:
        """The evidence in words."""
        head = (
            f"Probed: {self.evaluations} evaluations, {self.thresholds} thresholds in {self.kinds} kinds of "
            f"rows, each known to within {rounded_up(self.known, 1)}; "
        )
        unseen = "how the implementation makes its own random numbers isn't seen by this."
        precision = str(told.precision).removeprefix("torch.")
        explained = f"{rounded_up(self.allowed, 1)} is explained by {precision}, more would be refuted"
        if not told.has_noise:
            return (
                f"{head}thresholds of acceptance differ from the right ones by {self.distance:.1g} at most "
                f"({explained}). Without `noise` the tokens behind accepted drafts stay sampled, and {unseen}"
            )
        return (
            f"{head}the laws that they add up to differ from the spec's by {self.largest:.1g} at most, TV "
            f"{self.tv:.1g} ({explained}); {unseen}"
        )
