"""The three known findings in torch's paged attention show, each under its own check, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.attention.experimental._paged_attention import PagedAttention

from tokenlaw.impl.adapters.torch_paged_attention import IMPLEMENTATION, TorchPagedStore
from tokenlaw.impl.paged import PagedKVStore
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import Append, Attend, Free, New, Operation, Overflow, Trace, load
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, OutOfBlocks

PUBLISHED = sorted((Path(__file__).parents[1] / "docs/audits/torch-paged-attention").glob("*.json"))
Factory = Callable[[CacheConfig], TorchPagedStore]

CAPABILITIES = IMPLEMENTATION.capabilities[KV_STORE]
CONFIG = CacheConfig(num_blocks=3, block_size=2, num_layers=1, max_sequences=3)

OWN_PAGES = (New((0, 0, 0)), Free(0), New((0,)))
"""Pages that the slot held before, at another place, are attended."""
FOREIGN_PAGES = (New((0, 0)), New((0, 0)), Free(0), Append(0, (0,)), New((0,)))
"""The page that the slot held before belongs to sequence 1 when the slot is used again."""
SECOND_ALONE = (New((0,)), New((0,)), Attend((1,)))
SWAPPED = (New((0,)), New((0,)), Attend((1, 0)))
OVERFLOW = (New((0, 0)), New((0, 0, 0)), Overflow(0, 1))


class PagingWithErase(PagedAttention):
    """Repaired: the erased slot's entries are cleared in the map itself, not in a copy of it."""

    def erase(self, batch_idx: Tensor) -> None:
        super().erase(batch_idx)
        self.physical_to_logical[batch_idx] = -1


def repaired(config: CacheConfig) -> TorchPagedStore:
    return TorchPagedStore(config, PagingWithErase)


def run(*operations: Operation, store: Factory = TorchPagedStore) -> Outcome:
    outcome = run_trace(store, Trace(operations, CONFIG, KV_STORE), CAPABILITIES)
    assert outcome.crash is None, outcome.crash
    return outcome


def broken(outcome: Outcome) -> set[tuple[str, int | None]]:
    return {(violation.check, violation.sequence) for violation in outcome.violations}


def test_what_is_declared_is_there() -> None:
    store = IMPLEMENTATION.factories[KV_STORE](CONFIG)
    assert effective_capabilities(IMPLEMENTATION, KV_STORE, store) == CAPABILITIES
    assert IMPLEMENTATION.version == torch.__version__


@pytest.mark.parametrize(
    ("operations", "sequence"),
    [
        pytest.param(OWN_PAGES, 1, id="own", marks=pytest.mark.slow),
        pytest.param(FOREIGN_PAGES, 2, id="foreign"),
    ],
)
def test_a_reused_slot_attends_stale_pages(operations: tuple[Operation, ...], sequence: int) -> None:
    assert broken(run(*operations)) == {("store/attention", sequence)}
    assert broken(run(*operations, store=repaired)) == set()


@pytest.mark.parametrize("store", [TorchPagedStore, pytest.param(repaired, marks=pytest.mark.slow)])
def test_a_batch_that_is_not_the_first_slots_in_order_is_wrong(store: Factory) -> None:
    assert broken(run(*SECOND_ALONE, store=store)) == {("store/batch", 1)}
    assert broken(run(*SWAPPED, store=store)) == {("store/batch", 0), ("store/batch", 1)}
    assert broken(run(New((0,)), New((0,)), Attend((0,)), store=store)) == set()


@pytest.mark.parametrize("store", [TorchPagedStore, repaired])
def test_an_overflow_overwrites_the_last_page(store: Factory) -> None:
    (violation,) = run(*OVERFLOW, store=store).violations
    assert (violation.check, violation.sequence, violation.position) == ("store/capacity", 1, 0)
    assert "written for sequence 0, position 2" in violation.found


def test_the_rest_of_the_life_of_a_sequence_is_right() -> None:
    outcome = run(New((0, 0, 0)), New((0,)), Append(1, (0,)), New((0,)), Free(1), New((0, 0)), store=repaired)
    assert outcome.violations == []
    assert outcome.operations == 6
    assert outcome.exercised["out of blocks"] == 1


def test_slots_and_pages_run_out_by_the_contract() -> None:
    store = TorchPagedStore(CONFIG)
    handles = [store.allocate() for _ in range(CONFIG.max_sequences)]
    with pytest.raises(OutOfBlocks, match="all 3 slots"):
        store.allocate()
    store.reserve(handles[0], 6)
    with pytest.raises(OutOfBlocks, match="requested 1 pages"):
        store.reserve(handles[1], 1)
    store.free(handles[0])
    with pytest.raises(ValueError, match="not in list"):
        store.free(handles[0])
    with pytest.raises(ValueError, match="window=None"):
        TorchPagedStore(CacheConfig(window=4))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_the_published_counterexamples_refute_torch_and_not_the_reference(path: Path) -> None:
    trace = load(path)
    check = path.stem.replace("-", "/", 1)
    assert {violation.check for violation in run_trace(TorchPagedStore, trace, CAPABILITIES).violations} == {
        check
    }
    assert run_trace(PagedKVStore, trace, CAPABILITIES).violations == []


def test_all_three_findings_are_published() -> None:
    assert [path.stem for path in PUBLISHED] == ["store-attention", "store-batch", "store-capacity"]
