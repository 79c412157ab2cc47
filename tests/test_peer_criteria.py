"""The content-only criteria of the benchmarks know a block manager from a store, and pass what is exact."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from tokenlaw.impl.faults.targets import SUSPECTS

BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")


@pytest.fixture
def criteria(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """By their names."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return {one.name: one for one in importlib.import_module("peers.paged_content").CONTENTS}


@pytest.mark.parametrize("name", ["manager", "store", "copies_whole_forks"])
def test_exact_caches_have_the_content_of_contiguous_ones(criteria: dict[str, Any], name: str) -> None:
    for criterion in criteria.values():
        assert not criterion.kills(SUSPECTS[name].planted.make, 0)


@pytest.mark.parametrize("name", ["no_copy_on_write", "writes_shared_blocks"])
def test_sharing_shows_what_plain_calls_dont(criteria: dict[str, Any], name: str) -> None:
    make = SUSPECTS[name].planted.make
    assert criteria["content, shared"].kills(make, 0)
    assert not criteria["content"].kills(make, 0)
