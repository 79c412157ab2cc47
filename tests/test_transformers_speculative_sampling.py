"""The adapter to transformers' _speculative_sampling: importable without transformers, right with it."""

from typing import Any

import pytest
import torch

from support.verifier_requests import REQUESTS, batch_of, drawn_from_laws, smallest_p_value
from tokenlaw.impl.adapters import transformers_speculative_sampling as adapter
from tokenlaw.spec.contracts import VERIFIER, ContractError
from tokenlaw.spec.generation_contracts import Verifier, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.speculation import chain_verification

INSTALLED = adapter.IMPLEMENTATION.version != adapter.NOT_INSTALLED
needs_transformers = pytest.mark.skipif(
    not INSTALLED, reason="transformers isn't installed: pip install 'tokenlaw[transformers]'"
)


def built() -> Verifier:
    verifier: Verifier = adapter.IMPLEMENTATION.factories[VERIFIER]()
    return verifier


def test_without_transformers_the_factory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name}")

    monkeypatch.setattr(adapter, "import_module", missing)
    with pytest.raises(ContractError, match=r"pip install 'tokenlaw\[transformers\]'"):
        built()


def test_another_transformers_without_the_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "import_module", lambda _name: torch)
    with pytest.raises(ContractError, match=r"_speculative_sampling.*written for transformers 5\.24"):
        built()


@pytest.mark.engines
@needs_transformers
def test_the_joint_law_is_the_textbook_one() -> None:
    """Joint law of every kind of request, 7 of them, 12,000 rows.

    False alarm: below 7e-6, for a threshold of 1e-6. Power: a wrong ratio or residual moves TV by more than
    0.05 in one of these laws, which 1,700 rows see with probability above 0.999.
    """
    batch = batch_of(REQUESTS, 12_000, drawn_from_laws(3))
    assert smallest_p_value(built(), chain_verification, batch, seed=5) > 1e-6


@pytest.mark.engines
@needs_transformers
def test_the_global_random_numbers_are_seeded_and_put_back() -> None:
    batch, verifier = batch_of(REQUESTS, 70, drawn_from_laws(3)), built()
    before = torch.get_rng_state()
    first, second, other = (verifier.verify(batch, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.engines
@needs_transformers
def test_a_number_of_exactly_zero_accepts_a_draft_that_the_target_rules_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``r <= p / q`` with r = 0 and p = 0: one float32 number in 2^24 is 0, so sampling hardly sees it."""
    logits = torch.tensor([[[0.0, float("-inf")], [0.0, 0.0]]])
    batch = VerifyBatch(
        torch.tensor([[1]]), torch.tensor([1]), logits, torch.zeros(1, 1, 2), RowParameters.default(1)
    )
    verifier = built()
    assert verifier.verify(batch, seed=0)[0].tolist() == [0, -1]
    monkeypatch.setattr(torch, "rand_like", torch.zeros_like)
    assert verifier.verify(batch, seed=0)[0, 0] == 1
