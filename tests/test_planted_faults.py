"""Planted faults: described, named once, refuted by their weakest check; innocents: not refuted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tokenlaw.checks import load_suites
from tokenlaw.errors import BadUse
from tokenlaw.faults import Row, audit_all
from tokenlaw.impl.faults import (
    ATTENTION_FAULTS,
    DECODER_FAULTS,
    DECODER_INNOCENTS,
    INNOCENTS,
    KV_INNOCENTS,
    MANAGER_FAULTS,
    STORE_FAULTS,
    VERIFIER_FAULTS,
    Fault,
    Innocent,
    targets,
)
from tokenlaw.impl.faults.store_base import FaultyStore
from tokenlaw.impl.faults.store_moves import MovingLayer, MovingTwoLayer
from tokenlaw.impl.faults.targets import ATTENTION, DECODING, FAMILIES, KV, SPECULATION, SUSPECTS, Suspect
from tokenlaw.spec.contracts import KV_STORE, VERIFIER, Implementation
from tokenlaw.spec.suites import PROFILES, Profile, ignore
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.targets import resolve

EXACT = KV_INNOCENTS | INNOCENTS | DECODER_INNOCENTS

STORAGE = {**MANAGER_FAULTS, **STORE_FAULTS, **ATTENTION_FAULTS}
CLASSES = {f"C{number}" for number in range(1, 26)}
QUICK = Profile("quick", examples=60, max_operations=12, seconds=30.0)
FEW = Profile("few", examples=12, max_operations=12, seconds=30.0)
SAMPLE = (
    "no_copy_on_write",
    "free_forgets_tail",
    "hits_the_whole_prompt",
    "rollback_does_nothing",
    "fork_by_reference",
    "reorders_by_candidate",
    "rejected_drafts_keep_their_key",
    "moves_over_waiting_blocks",
    "store_rollback_clips",
    "attends_in_its_own_order",
    "group_modulo",
    "keeps_scale",
)
"""Faults of every contract that are found at once."""


def test_every_fault_and_every_innocent_has_a_name_of_its_own() -> None:
    faults = (MANAGER_FAULTS, STORE_FAULTS, ATTENTION_FAULTS, VERIFIER_FAULTS, DECODER_FAULTS)
    groups = (*faults, KV_INNOCENTS, INNOCENTS, DECODER_INNOCENTS)
    assert len(SUSPECTS) == sum(map(len, groups))
    assert len(dir(targets)) == len(SUSPECTS)
    assert {suspect.family for suspect in SUSPECTS.values()} == set(FAMILIES)


@pytest.mark.parametrize("fault", STORAGE.values(), ids=STORAGE)
def test_faults_of_storage_and_attention_are_described(fault: Fault) -> None:
    assert set(fault.classes) <= CLASSES
    assert any(character.isdigit() for character in fault.report)
    assert fault.effect
    known = {check.id for check in load_suites()[SUSPECTS[fault.name].contract].checks}
    assert fault.weakest_check in known


def test_every_class_of_the_catalogue_is_planted() -> None:
    assert {one for fault in STORAGE.values() for one in fault.classes} == CLASSES


def test_the_page_shows_what_became_of_each() -> None:
    page = (Path(__file__).parents[1] / "docs" / "faults.md").read_text()
    assert [name for name in SUSPECTS if f"\n| {name} | " not in page] == []


@pytest.mark.parametrize("innocent", EXACT.values(), ids=EXACT)
def test_innocents_say_where_they_were_taken_for_a_bug_and_why_they_are_none(innocent: Innocent) -> None:
    assert any(character.isdigit() for character in innocent.report)
    assert innocent.reason


@pytest.mark.parametrize("name", ["no_copy_on_write", "copies_keys_only", "bias_0.3pct", "rounds_weights"])
def test_each_is_a_target(name: str) -> None:
    suspect = SUSPECTS[name]
    found = resolve(suspect.address)
    assert (found.name, tuple(found.factories)) == (name, (suspect.contract,))
    assert ("row-seeds" in found.capabilities[suspect.contract]) == (suspect.contract == VERIFIER)


def test_an_unknown_one_is_no_target() -> None:
    with pytest.raises(BadUse, match="no_copy_on_write"):
        resolve("tokenlaw.impl.faults.targets:no_copy_on_writ")


def verdicts(suspect: Suspect, profile: Profile, only: str | None = None) -> dict[str, Verdict]:
    """What a short run of the suite says, all checks by default."""
    suite = load_suites()[suspect.contract]
    selected = frozenset(check.id for check in suite.checks if only in (None, check.id))
    found = suite.run(suspect.implementation(), profile=profile, seed=0, selected=selected, progress=ignore)
    return {row.check.id: row.verdict for row in found}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_fault_is_refuted_by_its_weakest_check(name: str) -> None:
    fault: Any = SUSPECTS[name].planted
    assert verdicts(SUSPECTS[name], QUICK, fault.weakest_check)[fault.weakest_check] is Verdict.REFUTED


def test_a_fault_of_unused_room_is_found_early() -> None:
    """It takes a fork of a sequence with a layer behind, whose room both then fill."""
    suite, suspect = load_suites()[KV_STORE], SUSPECTS["fork_shares_room"]
    selected = frozenset(
        {"store/bystanders", "store/layers"}
    )  # layers alone are extended where both are asked
    profile = replace(PROFILES["dev"], examples=120)
    found = suite.run(suspect.implementation(), profile=profile, seed=0, selected=selected, progress=ignore)
    assert [row.verdict for row in found] == [Verdict.REFUTED, Verdict.HOLDS]


@pytest.mark.parametrize("name", [name for name in KV_INNOCENTS if SUSPECTS[name].family == KV])
def test_innocents_of_storage_are_not_refuted(name: str) -> None:
    """Exact kernels are audited by the tests of the attention suite."""
    found = verdicts(SUSPECTS[name], FEW).values()
    assert not {Verdict.REFUTED, Verdict.UNKNOWN} & set(found)
    assert Verdict.HOLDS in found


class Moves(FaultyStore):
    first = others = MovingLayer


class MovesTwo(FaultyStore):
    first = others = MovingTwoLayer


@pytest.mark.parametrize("store", [Moves, MovesTwo])
def test_a_store_whose_blocks_move_is_exact_if_all_are_told_and_copies_stay_in_order(store: Any) -> None:
    target = Implementation("moves", "1", {KV_STORE: store})
    suite = load_suites()[KV_STORE]
    selected = frozenset(check.id for check in suite.checks)
    found = suite.run(target, profile=FEW, seed=0, selected=selected, progress=ignore)
    assert not {Verdict.REFUTED, Verdict.UNKNOWN} & {row.verdict for row in found}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_default_audit_kills_every_fault_of_storage_and_attention() -> None:
    chosen = [suspect for suspect in SUSPECTS.values() if suspect.family in (KV, ATTENTION)]
    rows = audit_all(chosen, processes=2, progress=ignore)
    assert [row.suspect.name for row in rows if not row.right] == []
    assert [row.suspect.name for row in rows if row.suspect.guilty and not _seen(row)] == []
    traces = [row for row in rows if row.suspect.guilty and row.suspect.family == KV]
    assert max(min(kill.operations or 0 for kill in row.kills) for row in traces) <= 6


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", [SPECULATION, DECODING])
def test_the_default_audit_kills_every_fault_of_generation(family: str) -> None:
    """Each of the innocents is refuted with a probability of at most 1e-9; the seed is fixed."""
    chosen = [suspect for suspect in SUSPECTS.values() if suspect.family == family]
    rows = audit_all(chosen, processes=2, progress=ignore)
    assert [row.suspect.name for row in rows if not row.right] == []
    assert [row.suspect.name for row in rows if row.suspect.guilty and not _seen(row)] == []


def _seen(row: Row) -> bool:
    """Whether the weakest check is among those that refuted a fault."""
    planted: Any = row.suspect.planted
    return planted.weakest_check.partition(" ")[0] in {kill.check for kill in row.kills}
