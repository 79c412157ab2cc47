"""For all tests: failures inside shared helpers explain themselves, and torch runs on one thread."""

from collections.abc import Iterator

import pytest
import torch

# Asserts are rewritten in test modules only, unless pytest is told before the first import.
pytest.register_assert_rewrite("support")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Products this small only lose time to more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
