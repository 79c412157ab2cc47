"""What other projects' tests assert about speculative sampling, re-stated in our own code.

Read from their public test files and described in our words; nothing is copied. Each `Criterion` is asked of
a verifier with a seed and says whether the verifier would have failed.
"""

from peers.chi_squares import CHI_SQUARES
from peers.common import Criterion
from peers.distances import DISTANCES
from peers.examples import EXAMPLES
from peers.ratios import RATIOS
from peers.texts import TEXTS
from peers.validity import VALIDITY

CRITERIA: tuple[Criterion, ...] = RATIOS + EXAMPLES + CHI_SQUARES + DISTANCES + VALIDITY + TEXTS
"""All criteria, whole suites apart."""

SUITES: dict[str, tuple[str, ...]] = {
    "vLLM V1 suite": ("V1 ratio", "V1 golden", "V1 top-k", "V1 recovered"),
    "vLLM V2 suite": ("V2 wide", "V2 narrow"),
}
"""Suites: killed if one of their criteria kills."""

__all__ = ["CRITERIA", "SUITES", "Criterion"]
