"""For all tests: failures inside shared helpers explain themselves, and torch runs on one thread."""

import gc
import sys
from collections.abc import Iterator

import pytest
import torch

from tokenlaw import process, prove_plain_runs

# Asserts are rewritten in test modules only, unless pytest is told before the first import.
pytest.register_assert_rewrite("support")


def pytest_collection_finish() -> None:
    """Thousands of tests are no garbage: neither collections nor enumerations go through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Products this small only lose time to more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _few_plain_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs of small programs make fewer plain runs, but the least; else these take most of the time."""
    monkeypatch.setattr(prove_plain_runs, "LEAST_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def warm_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits fork their child processes from one that has imported torch: two seconds less for each.

    Only where forks are safe. Tests of the process itself put ``subprocess`` back.
    """
    if sys.platform == "linux":
        from support.warm_children import WARM

        monkeypatch.setattr(process, "subprocess", WARM)
