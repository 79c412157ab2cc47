"""Judges of KV stores asked alone: who suffers from an overflow, and which answers of attention are wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from support.broken_stores import NoLimit
from support.list_store import CONFIG, ListStore
from support.store_scene import Scene
from tokenlaw.properties import kv_store_attention
from tokenlaw.properties.kv_store_attention import AttentionJudge
from tokenlaw.properties.kv_store_checks import ATTENTION, BATCH, CAPACITY
from tokenlaw.properties.kv_store_overflow import overflow
from tokenlaw.properties.kv_store_payload import scattered
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks
from tokenlaw.spec.verdicts import Check


class Reserves(ListStore):
    """Tells how often and how far room was asked for, and how much was appended."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self.asked: list[int] = []

    def reserve(self, sequence: int, length: int) -> None:
        self.asked.append(length)
        super().reserve(sequence, length)


@pytest.mark.parametrize(
    ("others", "count", "muted"), [(0, 1, ()), (1, 0, ()), (1, -1, ()), (1, 1, (CAPACITY.id,))]
)
def test_an_overflow_needs_company_something_to_append_and_its_check(
    others: int, count: int, muted: tuple[str, ...]
) -> None:
    scene, exercised = Scene(Reserves, muted=muted), Counter[str]()
    shadow, *_ = [scene.holds(1) for _ in range(others + 1)]
    scene.told.asked.clear()
    overflow(scene.store, exercised, shadow, count)
    assert (+exercised, scene.told.asked) == (Counter(), [])


@pytest.mark.parametrize(("length", "asked", "accepted"), [(1, 2, 3), (2, 3, 5), (3, 4, 5)])
def test_an_overflow_goes_on_from_whole_blocks_of_spare_room(length: int, asked: int, accepted: int) -> None:
    class Accepts(Reserves, NoLimit):
        """Has no limit, and tells."""

    scene, exercised = Scene(Accepts), Counter[str]()
    shadow, _ = scene.holds(length), scene.holds(1)
    overflow(scene.store, exercised, shadow, 1)
    assert (exercised, scene.told.asked[-1], shadow.room) == ({"overflow": 1}, asked, asked)
    (violation,) = scene.store.violations
    assert (violation.check, violation.sequence) == (CAPACITY.id, shadow.number)
    assert violation.expected == f"an error: there is room for {asked} positions"
    assert violation.found == f"{accepted} positions were accepted"


def test_room_that_was_refused_is_not_there_and_room_that_was_given_stays() -> None:
    class Full(NoLimit):
        full = False

        def reserve(self, sequence: int, length: int) -> None:
            if self.full:
                raise OutOfBlocks("full")
            super().reserve(sequence, length)

    for full, room in ((True, 5), (False, 6)):
        scene = Scene(Full)
        shadow, _ = scene.holds(2), scene.holds(1)
        scene.told.full, shadow.room = full, room
        overflow(scene.store, Counter(), shadow, 1)
        assert (shadow.room, scene.store.violations[0].found) == (room, "7 positions were accepted")


def test_all_who_suffered_from_an_overflow_are_named_and_only_they() -> None:
    class WritesAll(NoLimit):
        """What goes beyond the room is written over the first position of the others too."""

        def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
            beyond = self.length(sequence) + keys.shape[2] > self.room[sequence]
            super().append(sequence, keys, values)
            for other in self.content.keys() - {sequence} if beyond else ():
                self.content[other][1][0, :, 0] = 9.0

    scene = Scene(WritesAll)
    first, acting, third = (scene.holds(1) for _ in range(3))
    overflow(scene.store, Counter(), acting, 1)
    assert [(one.sequence, one.position) for one in scene.store.violations] == [
        (first.number, 0),
        (third.number, 0),
    ]
    assert "and now this one holds layer 1, key, head 0, dim 0: 9" in scene.store.violations[0].found


class ErrsAlone(ListStore):
    """Some sequences get wrong answers, of which some only while they are asked alone."""

    always: tuple[int, ...] = ()
    alone: tuple[int, ...] = ()

    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        return super().row(sequence, query, layer, scale) + 9 * (sequence in self.always)

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        off = 9 * (len(sequences) == 1 and sequences[0] in self.alone)
        return super().attend(sequences, queries, layer, scale) + off


@pytest.mark.parametrize(
    ("check", "always", "alone", "named"),
    [(BATCH, (2,), (), []), (BATCH, (), (2,), [1]), (BATCH, (1,), (2,), [1]), (ATTENTION, (2,), (), [1])],
)
def test_what_is_wrong_among_all_as_well_is_no_fault_of_a_part(
    check: Check, always: tuple[int, ...], alone: tuple[int, ...], named: list[int]
) -> None:
    """The store calls its second sequence 2, the harness 1."""
    scene = Scene(ErrsAlone)
    _, second = scene.holds(2), scene.holds(2)
    scene.told.always, scene.told.alone = always, alone
    scene.store.report_rows(check, [second])
    assert [(one.check, one.sequence) for one in scene.store.violations] == [(check.id, one) for one in named]
    scene.store.violations.clear()
    second.damaged = True
    scene.store.report_rows(check, [second])
    assert scene.store.violations == []


class Tells:
    """A store that keeps its queries and answers the same number everywhere."""

    def __init__(self, number: float = 0.0, cut: int | None = None, dtype: torch.dtype | None = None) -> None:
        self.number, self.cut, self.dtype = number, cut, dtype
        self.queries: list[Tensor] = []

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        self.queries.append(queries)
        return torch.full_like(queries[:, : self.cut], self.number, dtype=self.dtype)


NARROW_HEADS = replace(CONFIG, head_size=3)


def held(length: int) -> tuple[Tensor, ...]:
    return (torch.ones(2, 2, length, 3),) * 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_each_sequence_length_and_layer_has_a_query_of_its_own_four_times_the_usual_size(dtype: str) -> None:
    store, kind = Tells(), getattr(torch, dtype)
    judge = AttentionJudge(store, replace(NARROW_HEADS, dtype=dtype))
    for length in (1, 2):
        content = tuple(one.to(kind) for one in held(length))
        judge.wrong_rows([(number, None, content) for number in (0, 1, 2, 63)])
    queries = torch.stack(store.queries)
    assert queries.shape == (4, 4, 2 * 2, 3)  # two query heads for each of two KV heads
    assert len(set(queries.flatten().tolist())) == queries.numel()
    usual = scattered(0, 2**13, kind)
    assert torch.isin(queries / 4, usual).all()


@pytest.mark.parametrize("store", [Tells(cut=2), Tells(dtype=torch.float64)], ids=["shape", "dtype"])
def test_answers_of_another_shape_or_dtype_are_wrong_in_every_row(store: Tells) -> None:
    found = AttentionJudge(store, NARROW_HEADS).wrong_rows([(number, None, held(1)) for number in (5, 8)])
    assert set(found) == {5, 8}
    assert found[5][0] == "outputs of shape (2, 4, 3) in torch.float32"


@pytest.mark.parametrize(
    ("number", "wide", "excused"), [(0.5, 1.0, None), (0.75, 0.5, False), (0.75, 0.75, True)]
)
def test_a_row_as_far_off_as_its_bound_is_within(
    number: float, wide: float, excused: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a value of one the answer is one; the bound is told, and smaller in one place."""

    def bound(dtype: torch.dtype, query: Tensor, *_: Any, score_dtype: torch.dtype, **__: Any) -> Any:
        told = torch.full_like(query, wide)
        if score_dtype == torch.float32:
            told[:] = 0.5
            told[0, 2, 1] -= 0.125 * (number > 0.5)
        return told, None

    monkeypatch.setattr(kv_store_attention, "error_bound", bound)
    content = tuple(one.to(torch.bfloat16) for one in held(1))
    judge = AttentionJudge(Tells(1 + number), replace(NARROW_HEADS, dtype="bfloat16"))
    found = judge.wrong_rows([(3, None, content)])
    if excused is None:
        assert found == {}
    else:
        expected, said = found[3]
        assert expected == "1 within 3.8e-01 (layer 0, query head 2, dim 1)"
        excuse = ", as it may be with scores in its dtype (declare scores_in_input_dtype)"
        assert said == "1.75, off by 0.75" + excuse * excused
