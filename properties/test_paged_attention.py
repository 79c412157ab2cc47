"""Audits the paged attention of the target; see `tokenlaw.pytest_plugin` for the options."""

from collections.abc import Callable

import pytest

from tokenlaw.spec.contracts import PAGED_ATTENTION


@pytest.mark.tokenlaw_contract(PAGED_ATTENTION)
def test_paged_attention(tokenlaw_check: Callable[[], None]) -> None:
    """The check that stands in the brackets of the item's name holds."""
    tokenlaw_check()
