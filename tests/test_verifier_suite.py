"""Whole runs of the laws on verifiers whose claims are true, and on the same ones held to too much.

Each run refutes an exact verifier with a probability of at most 1e-9 (its alpha). The seeds are fixed: what
is refuted here is refuted every time.
"""

import functools
import re
from typing import Any

import pytest

from support.law_runs import SingleChain, audited, implementation, tally_of, verdicts
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.one_hot import OneHotVerifier
from tokenlaw.impl.speculative.sample_and_match import SampleAndMatchVerifier
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.impl.speculative.typical import TypicalAcceptance
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.stats.measures import COMPLETED, JOINT, LENGTH, SUPPORT
from tokenlaw.stats.verifier_checks import BY_ID, PREFIXES, PROTOCOL, REPLAY, SEARCHED, TOGETHER, WIDE
from tokenlaw.stats.verifier_suite import VerifierSuite

WITHOUT_SEARCH = frozenset(BY_ID) - {SEARCHED}
BUDGET = 60_000
"""From here on every check promises something; below, some are not exercised."""


def run(make: Any, **options: Any) -> Any:
    return audited(make, **{"only": WITHOUT_SEARCH, "budget": BUDGET} | options)


claimed = functools.cache(run)
"""The run of a verifier as it declares itself; several tests look at the same."""


@pytest.mark.parametrize(
    "make",
    [
        ChainVerifier,
        BlockVerifier,
        pytest.param(OneHotVerifier, marks=pytest.mark.slow),
        pytest.param(SampleAndMatchVerifier, marks=pytest.mark.slow),
        TopKTreeVerifier,
        TypicalAcceptance,
    ],
)
def test_what_is_claimed_holds(make: Any) -> None:
    found = claimed(make)
    assert set(tally_of(found)) == {"holds", "not supported"}
    assert all(row.operations for row in found.values() if str(row.verdict) == "holds")


def test_the_textbook_is_more_than_exactness() -> None:
    assert claimed(BlockVerifier)[LENGTH].message == "not part of the claim 'block'"
    held = verdicts(run(BlockVerifier, claims="textbook", only=frozenset({JOINT, COMPLETED})))
    assert (held[JOINT], held[COMPLETED]) == ("refuted", "holds")


def test_typical_acceptance_is_not_exact() -> None:
    found = claimed(TypicalAcceptance)
    assert verdicts(found)[COMPLETED] == "not supported"
    assert "not part of the claim 'approximate'; it would be refuted" in found[COMPLETED].message
    held = run(TypicalAcceptance, claims="exact", only=frozenset({COMPLETED}))
    assert verdicts(held)[COMPLETED] == "refuted"


def test_what_is_watched_may_stand() -> None:
    found = run(ChainVerifier, claims="exact")
    assert "not part of the claim 'exact'; it stands (log10 e = -" in found[JOINT].message


class Impossible(ChainVerifier):
    """Replaces a rejected draft by itself, which the joint law rules out."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        last = (emitted >= 0).sum(-1) - 1
        rejected = (last < batch.num_draft_tokens).nonzero()[:, 0]
        emitted[rejected, last[rejected]] = batch.draft_tokens[rejected, last[rejected]]
        return emitted


def test_what_is_watched_may_be_impossible() -> None:
    found = run(Impossible, claims="exact")
    assert found[JOINT].message == (
        "not part of the claim 'exact'; it would be refuted by an outcome that is impossible under it"
    )


def test_what_is_left_out_stands_on_a_line_of_its_own() -> None:
    class Picky(Impossible):
        refuses = frozenset({"top_k", "greedy"})

    lines = run(Picky)[JOINT].message.split("\n")
    assert lines[-1] == "Left out, since the verifier refuses it: greedy, top_k."
    assert "Left out" not in "".join(lines[:-1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_single_precision_is_not_refuted(seed: int) -> None:
    """All checks at the default budget, with p == q ties, certain tokens, 1e-8 and truncations."""
    found = audited(SingleChain, seed=seed)
    assert set(tally_of(found)) == {"holds", "not supported"}


def test_single_precision_is_not_refuted_by_a_short_run() -> None:
    assert set(tally_of(run(SingleChain, seed=3))) == {"holds", "not supported"}


class Failing(ChainVerifier):
    """Raises on a vocabulary of this size."""

    def __init__(self, vocabulary: int = 0, error: type[Exception] = RuntimeError) -> None:
        self.vocabulary, self.error = vocabulary, error

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        if self.vocabulary in (0, batch.shape[2]):
            raise self.error("no such kernel")
        return super().verify(batch, seed=seed, uniforms=uniforms)


@pytest.mark.parametrize(
    ("error", "only", "unknown"),
    [
        (RuntimeError, WITHOUT_SEARCH, [WIDE, PREFIXES, TOGETHER]),
        (MemoryError, frozenset({WIDE, REPLAY}), [WIDE]),
    ],
)
def test_an_exception_in_one_scenario_leaves_the_others_alone(
    error: type[Exception], only: frozenset[str], unknown: list[str]
) -> None:
    found = run(lambda: Failing(4101, error), only=only)
    assert [check for check, verdict in verdicts(found).items() if verdict == "unknown"] == unknown
    assert "Scenario 'wide vocabulary': verify raised an exception." in found[WIDE].message
    assert "no such kernel" in found[WIDE].message


def test_an_exception_makes_unknown_what_the_scenario_was_asked() -> None:
    found = verdicts(run(lambda: Failing(16)))
    assert found[JOINT] == found[SUPPORT] == "unknown"
    assert found[WIDE] == found[REPLAY] == "holds"


def test_a_verifier_that_always_raises_is_unknown() -> None:
    found = run(Failing)
    assert set(tally_of(found)) == {"not exercised", "unknown", "not supported"}
    assert verdicts(found)[PROTOCOL] == "not exercised"
    told = [check for check, row in found.items() if "Traceback" in row.message]
    assert len(told) == 1
    unknown = [row for row in found.values() if str(row.verdict) == "unknown" and row.check.id not in told]
    assert unknown
    assert all(row.message.endswith(f"(see {told[0]})") for row in unknown)


@pytest.mark.parametrize("vocabulary", [0, 5])
def test_an_exception_is_told_where_only_the_protocol_is_asked(vocabulary: int) -> None:
    row = run(lambda: Failing(vocabulary), only={PROTOCOL})[PROTOCOL]
    assert str(row.verdict) == "unknown"
    assert "no such kernel" in row.message


class TooMany(ChainVerifier):
    """Emits a token too many where a row has no drafts, in scenarios of this vocabulary."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        if batch.shape[2] == self.vocabulary:
            emitted[batch.num_draft_tokens == 0, 1] = 0
        return emitted


@pytest.mark.parametrize("vocabulary", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_a_broken_protocol_is_refuted_and_replayed(vocabulary: int) -> None:
    """With 4 tokens a small check meets it first, with 16 a scenario."""
    found = run(lambda: TooMany(vocabulary))
    assert verdicts(found)[PROTOCOL] == "refuted"
    assert re.search(
        r"row \d+ of \d+, position 1: 2 tokens were emitted from 0 drafts", found[PROTOCOL].message
    )
    assert verdicts(found)[JOINT] == "unknown"
    assert f"breaks {PROTOCOL}" in found[JOINT].message
    counterexample = found[PROTOCOL].counterexample
    assert counterexample is not None
    target = implementation(lambda: TooMany(vocabulary))
    (again,) = VerifierSuite().replay(target, counterexample)
    assert str(again.verdict) == "refuted"
    assert again.message.split("\n")[0] in found[PROTOCOL].message
    (healed,) = VerifierSuite().replay(implementation(ChainVerifier), counterexample)
    assert str(healed.verdict) == "holds"
