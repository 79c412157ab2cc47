"""One alpha: how it is split, what may be recorded, what is refuted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.stats.ledger import Entry, Kind, Ledger, Stake

GATE, P_VALUE = Kind.GATE, Kind.P_VALUE


def even(alpha: float = 0.01, gates: int = 2, p_values: int = 2) -> Ledger:
    """Gates g0, g1, ... and p-values p0, p1, ... of equal weight."""
    stakes = [Stake(f"g{i}", GATE) for i in range(gates)] + [Stake(f"p{i}", P_VALUE) for i in range(p_values)]
    return Ledger.allot(alpha, stakes)


@given(weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=200), alpha=st.floats(1e-12, 0.5))
def test_alpha_is_split_by_weight_and_spent_once(weights: list[float], alpha: float) -> None:
    ledger = Ledger.allot(alpha, [Stake(str(i), GATE, weight) for i, weight in enumerate(weights)])
    parts = [ledger.alpha_of(entry.name) for entry in ledger.entries]
    assert math.fsum(parts) == pytest.approx(alpha, rel=1e-12)
    assert parts == pytest.approx([alpha * weight / math.fsum(weights) for weight in weights])


@pytest.mark.parametrize(
    ("log_p", "refuted"), [(math.log(0.0025), True), (math.log(0.0026), False), (-math.inf, True)]
)
def test_a_p_value_is_held_against_its_own_part(log_p: float, refuted: bool) -> None:
    ledger = even().record("p0", log_p)
    assert ledger.refutes("p0") is ledger.refuted is refuted
    assert not ledger.gates_refuted


@pytest.mark.parametrize(("e_value", "refuted"), [(401.0, True), (399.0, False)])
def test_a_gate_is_held_against_its_own_part(e_value: float, refuted: bool) -> None:
    ledger = even().record("g0", math.log(e_value)).record("g1", -math.inf)
    assert ledger.refutes("g0") is ledger.gates_refuted is refuted
    assert not ledger.refutes("g1")


def test_gates_refute_together_what_none_refutes_alone() -> None:
    ledger = even().record("g0", math.log(250.0)).record("g1", math.log(250.0))
    assert ledger.gates_log_e == pytest.approx(math.log(250.0))
    assert ledger.gates_refuted
    assert ledger.refuted
    assert ledger.refuted_names() == ()


@given(
    log_es=st.lists(st.floats(-50, 50) | st.just(math.inf), min_size=1, max_size=8),
    weights=st.lists(st.floats(0.01, 100), min_size=8, max_size=8),
)
def test_a_claim_refuted_alone_costs_no_further_alpha(log_es: list[float], weights: list[float]) -> None:
    stakes = [Stake(str(i), GATE, weight) for i, weight in zip(range(len(log_es)), weights, strict=False)]
    ledger = Ledger.allot(1e-9, [*stakes, Stake("p", P_VALUE)])
    for i, log_e in enumerate(log_es):
        ledger = ledger.record(str(i), log_e)
    total = math.fsum(entry.share for entry in ledger.entries[:-1])
    if ledger.refuted_names():
        assert ledger.gates_log_e >= -math.log(1e-9 * total) - 1e-9


def test_what_was_not_looked_at_refutes_nothing_and_counts_as_one() -> None:
    ledger = even()
    assert not ledger.refuted
    assert ledger.gates_log_e == pytest.approx(0.0)
    assert ledger.record("g0", math.log(3.0)).gates_log_e == pytest.approx(math.log(2.0))
    assert even(gates=0).gates_log_e == 0.0


def test_recording_leaves_the_old_ledger_alone_and_gates_may_be_looked_at_again() -> None:
    first = even()
    second = first.record("g0", 1.0).record("g0", 2.0)
    assert first.entry("g0").observed is None
    assert second.entry("g0").observed == 2.0


@pytest.mark.parametrize(
    ("name", "observed", "message"),
    [
        ("other", 0.0, "no part of alpha was given to 'other'"),
        ("g0", math.nan, "evidence on g0 is NaN"),
        ("p0", 0.1, "p-value of p0 is above one"),
        ("p1", -1.0, "p-value of p1 is recorded already"),
    ],
)
def test_records_that_are_refused(name: str, observed: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        even().record("p1", -1.0).record(name, observed)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_weights_that_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight of a must be finite and above 0"):
        Ledger.allot(0.01, [Stake("a", GATE, weight), Stake("b", GATE)])


@pytest.mark.parametrize(
    ("alpha", "entries", "message"),
    [
        (0.0, (Entry("a", GATE, 1.0),), "alpha must be above 0"),
        (0.1, (Entry("a", GATE, 0.5), Entry("a", P_VALUE, 0.5)), "occur twice: a"),
        (0.1, (Entry("a", GATE, 0.6), Entry("b", P_VALUE, 0.5)), "more than one alpha"),
        (0.1, (Entry("a", GATE, math.nan),), "share of a must be"),
    ],
)
def test_ledgers_that_are_refused(alpha: float, entries: tuple[Entry, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ledger(alpha, entries)


def test_a_run_without_claims_is_refused() -> None:
    with pytest.raises(ValueError, match="no claim"):
        Ledger.allot(0.01, [])
