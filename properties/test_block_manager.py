"""Audits the block manager of the target; see `tokenlaw.pytest_plugin` for the options."""

from collections.abc import Callable

import pytest

from tokenlaw.spec.contracts import BLOCK_MANAGER


@pytest.mark.tokenlaw_contract(BLOCK_MANAGER)
def test_block_manager(tokenlaw_check: Callable[[], None]) -> None:
    """The check that stands in the brackets of the item's name holds."""
    tokenlaw_check()
