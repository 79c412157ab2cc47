"""The capability ``noise``: what decides about the token behind the accepted drafts."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from support.verifier_requests import REQUESTS, batch_of, drawn_from_laws
from tokenlaw.impl.faults import ChainVerifier as PlainChain
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.spec.capabilities import needed, probe_capabilities
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.verifiers import as_verifier

RACING = [VERIFIERS["chain"](), VERIFIERS["block"](), VERIFIERS["one-hot"](), PlainChain()]
ALL = pytest.mark.parametrize("verifier", RACING, ids=["chain", "block", "one-hot", "faults"])
SHAPE = (700, 3, 4)


def given(seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.empty(SHAPE, dtype=torch.float64).exponential_(generator=generator)
    return {"uniforms": torch.rand(SHAPE[0], 2, generator=generator, dtype=torch.float64), "noise": noise}


def asked(*, drawn: bool = True) -> VerifyBatch:
    batch = batch_of(REQUESTS, SHAPE[0], drawn_from_laws(seed=1))
    return batch if drawn else replace(batch, draft_logits=None)


def accepted_of(emitted: torch.Tensor) -> torch.Tensor:
    return (emitted != NO_TOKEN).sum(1) - 1


@ALL
@pytest.mark.parametrize("drawn", [True, False])
def test_nothing_is_left_to_the_seed(verifier: Any, drawn: bool) -> None:
    batch = asked(drawn=drawn)
    first = verifier.verify(batch, seed=1, **given())
    assert torch.equal(first, verifier.verify(batch, seed=2, **given()))
    assert not torch.equal(first, verifier.verify(batch, seed=1, **given(3)))


@pytest.mark.parametrize("drawn", [True, False])
def test_two_implementations_of_one_rule_emit_the_same(drawn: bool) -> None:
    batch = asked(drawn=drawn)
    emitted = [one.verify(batch, seed=0, **given()) for one in (RACING[0], RACING[3])]
    assert torch.equal(*emitted)
    certain = RACING[2].verify(asked(), seed=0, **given())
    assert torch.equal(certain, RACING[0].verify(asked(drawn=False), seed=0, **given()))


@ALL
def test_infinity_takes_a_token_out_and_other_places_do_not_matter(verifier: Any) -> None:
    batch, numbers = asked(), given()
    emitted = verifier.verify(batch, seed=0, **numbers)
    rows, ends = torch.arange(SHAPE[0]), accepted_of(emitted)
    elsewhere = torch.arange(3)[None] != ends[:, None]
    moved = torch.where(elsewhere[..., None], given(5)["noise"], numbers["noise"])
    assert torch.equal(emitted, verifier.verify(batch, seed=0, uniforms=numbers["uniforms"], noise=moved))
    out = numbers["noise"].clone()
    out[rows, ends, emitted[rows, ends]] = torch.inf
    others = verifier.verify(batch, seed=0, uniforms=numbers["uniforms"], noise=out)
    free = (batch.target_probs[rows, ends] > 0).sum(-1) > 3  # so that another token is left in the residual
    changed = others[rows, ends] != emitted[rows, ends]
    assert float(changed[free & (ends == batch.num_draft_tokens)].double().mean()) == 1


def test_the_capability_is_shown_by_the_keyword() -> None:
    def verify(batch: Any, *, seed: int, noise: Any = None) -> Any:
        return batch

    assert probe_capabilities(VERIFIER, as_verifier(verify, "mine")) == {"noise"}
    assert needed(VERIFIER, {"noise"}) == "needs noise (keyword noise of verify)"
    assert "noise" not in probe_capabilities(VERIFIER, VERIFIERS["tree"]())
