"""Verifiers that take few rows a call, or not every kind of row, and say so."""

from typing import Any

import pytest
import torch

from support.law_runs import audited
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.generation_contracts import REFUSALS, TreeBatch, VerifyBatch
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.spec.verifiers import as_verifier
from tokenlaw.stats.measures import COMPLETED
from tokenlaw.stats.scenario import without
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.verifier_checks import BOUNDARY, PROTOCOL, ROWS


class Watched(ChainVerifier):
    """Remembers the largest call and which parameters rows had."""

    most_rows: int
    refuses: frozenset[str]

    def __init__(self) -> None:
        self.largest = 0
        self.used: set[str] = set()

    def verify(self, batch: VerifyBatch, **options: Any) -> torch.Tensor:
        self.largest = max(self.largest, len(batch.num_draft_tokens))
        self.used |= batch.params.used
        lengths = batch.num_draft_tokens
        self.used |= {"ragged"} if bool((lengths < batch.shape[1]).any()) else set()
        self.used |= {"looked-up drafts"} if batch.draft_logits is None else set()
        if bool(((batch.params.temperature != 0) & (batch.params.temperature != 1)).any()):
            self.used |= {"other temperatures"}
        return super().verify(batch, **options)


@pytest.mark.parametrize("most", [1, *(pytest.param(most, marks=pytest.mark.slow) for most in (7, 60))])
def test_calls_are_as_small_as_the_verifier_asks(most: int) -> None:
    verifier = Watched()
    verifier.most_rows = most
    found = audited(lambda: verifier, budget=1_000)
    assert verifier.largest == most
    assert {row.verdict for row in found.values()} <= {
        Verdict.HOLDS,
        Verdict.NOT_SUPPORTED,
        Verdict.NOT_EXERCISED,
    }
    assert (found[ROWS].verdict is Verdict.NOT_SUPPORTED) == (most == 1)


LEFT_OUT_ALIKE = {"greedy", "min_p", "top_k"}
"""As temperatures and top-p: one more parameter of a row."""


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(refused, marks=[pytest.mark.slow] * (refused in LEFT_OUT_ALIKE))
        for refused in sorted(REFUSALS)
    ],
)
def test_refused_rows_never_come(refused: str) -> None:
    verifier = Watched()
    verifier.refuses = frozenset({refused})
    found = audited(lambda: verifier, budget=1_000)
    name = "other temperatures" if refused == "temperature" else refused
    assert name not in verifier.used
    assert len(verifier.used - {"temperature", "other temperatures", refused}) >= 4
    assert f"Left out, since the verifier refuses it: {refused}." in found[COMPLETED].message
    assert found[COMPLETED].statistics is not None
    assert found[COMPLETED].statistics["refused"] == [refused]


def test_nothing_is_left_of_a_scenario_of_refused_kinds() -> None:
    everything = scenarios(1, own_drafter=True, seeded=True)
    left = scenarios(1, own_drafter=True, seeded=True, refused=frozenset({"looked-up drafts", "top_k"}))
    assert {one.name for one in everything} - {one.name for one in left} == {"looked-up drafts"}
    assert without(everything[0], frozenset({"ragged"})) != everything[0]
    assert without(everything[0], frozenset()) == everything[0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("refuses", {"top-k"}, r"refuses \['top-k'\]; a verifier may refuse greedy, looked-up drafts"),
        ("most_rows", 0, "most_rows is 0; it must be a whole number from 1 on"),
        ("most_rows", 2.5, "most_rows is 2.5"),
        ("most_rows", True, "most_rows is True"),
    ],
)
def test_what_is_declared_must_make_sense(name: str, value: Any, message: str) -> None:
    verifier = ChainVerifier()
    setattr(verifier, name, value)
    with pytest.raises(ContractError, match=message):
        as_verifier(verifier, "mine")


def test_trees_keep_the_limit() -> None:
    from tokenlaw.impl.speculative import TreeVerifier

    class Small(TreeVerifier):
        most_rows = 5
        largest = 0

        def verify_tree(self, batch: TreeBatch, *, seed: int) -> torch.Tensor:
            Small.largest = max(Small.largest, len(batch.tokens))
            return super().verify_tree(batch, seed=seed)

    audited(Small, budget=1_500, only=frozenset({"law/trees"}))
    assert Small.largest == 5


def test_injected_numbers_keep_the_limit() -> None:
    largest = 0

    class Small(ChainVerifier):
        most_rows = 20

        def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> torch.Tensor:
            nonlocal largest
            largest = max(largest, len(batch.num_draft_tokens))
            return super().verify(batch, seed=seed, uniforms=uniforms)

    found = audited(Small, budget=2_000, only=frozenset({BOUNDARY}))
    assert found[BOUNDARY].verdict is Verdict.HOLDS
    assert largest == 20


def test_rows_without_an_answer_are_no_evidence() -> None:
    class Raises(ChainVerifier):
        def verify(self, batch: VerifyBatch, **options: Any) -> torch.Tensor:
            raise RuntimeError("out of order")

    found = audited(Raises, budget=2_000)
    assert found[PROTOCOL].verdict is Verdict.NOT_EXERCISED
    assert Verdict.HOLDS not in {row.verdict for row in found.values()}
