"""Probing: exact verifiers hold to the last digits, in any precision; faults show, with their thresholds."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.probed_verifiers import (
    Given,
    Logarithms,
    Product,
    SingleBias,
    SingleClamp,
    SingleGiven,
    probed,
)
from tokenlaw.impl.faults import INNOCENTS, VERIFIER_FAULTS, ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.impl.speculative.chain import ChainVerifier as Reference
from tokenlaw.spec.capabilities import probe_capabilities
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import APPROXIMATE

UNSEEN = {
    "mixed_greedy": "its first rows are never greedy here",
    "argmax_draft": "its own drafter",
    "filter_order": "needs more than three tokens",
    "pos_shared_u": "its own numbers",
    "dup_rows": "its own numbers",
    "draft_accept_u": "its own numbers",
    "restarted_stream": "its own numbers",
    "draft_restarted": "its own numbers",
    "seeds_dropped": "its own numbers",
    "fp16_cumsum": "how it draws without noise",
    "u_bf16": "its own numbers",
    "draft_bf16": "its own drafter",
    "tree_with_replacement": "trees",
    "tree_without_replacement": "trees",
    "tree_not_renormalised": "trees",
    "long_runs_unchecked": "needs six drafts",
    "last_tile_lost": "needs more tokens than a tile",
    "low_temp_greedy": "needs a temperature below 0.3",
}
"""Planted faults that numbers which are given don't show, and why."""

LATEST = {(fault.classes, UNSEEN.get(name)): name for name, fault in VERIFIER_FAULTS.items()}
"""One fault of all that are classed alike and show, or don't for the same reason."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["chain", "block", "one-hot"])
def test_reference_verifiers_have_the_spec_s_law_to_the_last_digits(name: str, seed: int) -> None:
    found, rows = probed(VERIFIERS[name](), seed=seed)
    assert found.findings == []
    assert found.largest < 1e-15
    assert found.tv < 1e-15
    assert found.allowed < 1e-12
    assert found.kinds > 18
    assert found.inside > 250
    assert found.evaluations == rows <= 24_000


@pytest.mark.parametrize(
    "name", [n for n, one in INNOCENTS.items() if n not in ("sample_and_match", "top_k_tree")]
)
def test_innocents_hold(name: str) -> None:
    found, _ = probed(INNOCENTS[name].make(), seed=7)
    assert found.findings == []
    assert found.distance < (1e-6 if name == "rounds_by_rows" else 1e-12)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in LATEST.values()))
        for name in VERIFIER_FAULTS
    ],
)
def test_planted_faults_show_unless_they_are_about_something_else(name: str) -> None:
    """Those that show by chance are wrong in one of a thousand rows: seven in seven thousand rows."""
    found, _ = probed(VERIFIER_FAULTS[name].make())
    assert bool(found.findings) == (name not in UNSEEN)


@pytest.mark.parametrize("verifier", [SingleGiven(), Product(), Logarithms()])
@pytest.mark.parametrize("seed", range(2))
def test_rounding_to_float32_is_no_fault(verifier: Any, seed: int) -> None:
    found, _ = probed(verifier, seed=seed)
    assert found.findings == []
    assert 1e-9 < found.largest < 1e-6
    assert found.kinds > 18


class Trembling(Given):
    """Rounds otherwise in every row of every call, as sums in another order do; 1/2 is never rounded."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        generator = torch.Generator().manual_seed(seed)
        moved = [
            one * (1 + 2.0**-50 * torch.rand(one.shape, generator=generator, dtype=torch.float64))
            for one in (uniforms, noise)
        ]
        exact = (uniforms - 0.5).abs() < 1e-9
        uniforms = torch.where(exact, uniforms, moved[0].clamp(max=1 - 2.0**-53))
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=moved[1])


@pytest.mark.parametrize("seed", range(2))
def test_rounding_that_depends_on_the_call_is_no_fault(seed: int) -> None:
    found, _ = probed(Trembling(), seed=seed)
    assert found.findings == []
    assert 1e-16 < found.largest < found.allowed


@pytest.mark.parametrize(
    ("verifier", "where"),
    [(SingleBias(), "is accepted below"), (SingleClamp(), "it must have no probability")],
)
def test_small_faults_show_in_float32(verifier: Any, where: str) -> None:
    found, _ = probed(verifier)
    assert where in found.findings[0]


class Clamped(ChainVerifier):
    """A residual of 1e-6 at least for every token."""

    def excess(self, target: Tensor, draft: Tensor) -> Tensor:
        return (target - draft).clamp(min=1e-6)


class Inclusive(ChainVerifier):
    """Accepts at the ratio itself, where that is possible at all."""

    def passes(self, step: Step, numbers: Tensor) -> Tensor:
        return (numbers <= self.ratio(step)) & (self.ratio(step) > 0)


class Returning(Given):
    """Accepts again from u = .9 on."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        return super().verify(batch, seed=seed, uniforms=uniforms * (uniforms < 0.9), noise=noise)


class Lonely(Given):
    """Rows alone in a call get their numbers backwards."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        noise = noise.flip(-1) if len(noise) == 1 else noise
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


class Coupled(Given):
    """The second draft's number is moved by the first one's, while that is neither 0 nor nearly 1."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        moved = uniforms.clone()
        first = uniforms[:, 0]
        moved[:, 1] = torch.where((first > 0) & (first < 0.999), 1 - uniforms[:, 1], uniforms[:, 1])
        return super().verify(batch, seed=seed, uniforms=moved, noise=noise)


class Seedy(Given):
    """Draws its tokens by the seed, whatever noise it is given."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        return super().verify(batch, seed=seed, uniforms=uniforms)


class WrongPlace(Given):
    """Reads the noise of the place before."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise.roll(1, 1))


@pytest.mark.parametrize(
    ("verifier", "said"),
    [
        (Clamped(), "it must have no probability"),
        (Inclusive(), "is accepted at u = 0.5, which isn't below p / q = 0.5."),
        (Returning(), "there is no threshold"),
        (Lonely(), "alone, with the same numbers"),
        (Coupled(), "its own thresholds give"),
        (Seedy(), "loses against token "),
        (WrongPlace(), "token "),
    ],
)
def test_what_is_said_about_a_fault(verifier: Any, said: str) -> None:
    found, _ = probed(verifier)
    assert said in found.findings[0]
    assert "of kind '" in found.findings[0]
    assert "drafts [" in found.findings[0]


def test_a_refutation_tells_the_threshold_and_the_law() -> None:
    found, _ = probed(VERIFIER_FAULTS["ratio_x1.003"].make(), seed=1)
    threshold, law = found.findings[:2]
    told = [float(word.rstrip(".,")) for word in threshold.replace("=", " ").split() if word[:2] == "0."]
    assert told[0] / told[1] == pytest.approx(1.003, rel=1e-11)
    assert "thresholds are wrong." in threshold
    assert "TV " in law


def test_without_noise_only_acceptance_is_probed() -> None:
    verifier = VERIFIERS["tree"]()
    assert "noise" not in probe_capabilities(VERIFIER, verifier)
    found, rows = probed(verifier)
    assert found.findings == []
    assert 0 < found.distance < 1e-15
    assert found.largest == 0
    assert rows < 5_000


class ExactOnly(Reference):
    """Claims less than it has."""

    claims = "exact"


def test_a_claim_of_exactness_is_held_to_the_completed_law() -> None:
    held, _ = probed(ExactOnly())
    assert held.findings == []
    assert held.largest < 1e-15
    biased = VERIFIER_FAULTS["ratio_x1.003"].make()
    biased.claims = "exact"
    found, _ = probed(biased)
    assert "are completed to [" in found.findings[0]


@pytest.mark.parametrize("rows", [0, 50, 500, 3_000])
def test_few_rows_probe_few_kinds(rows: int) -> None:
    found, used = probed(VERIFIERS["chain"](), rows=rows)
    assert used <= rows
    assert found.findings == []
    assert (found.kinds > 0) == (rows >= 500)


def test_what_is_approximate_is_refuted() -> None:
    verifier = VERIFIER_FAULTS["typical_acceptance"].make()
    assert verifier.claims != APPROXIMATE
    found, _ = probed(verifier)
    assert found.tv > 0.01
    assert np.isfinite(found.tv)
