"""Audits the KV store of the target; see `tokenlaw.pytest_plugin` for the options."""

from collections.abc import Callable

import pytest

from tokenlaw.spec.contracts import KV_STORE


@pytest.mark.tokenlaw_contract(KV_STORE)
def test_kv_store(tokenlaw_check: Callable[[], None]) -> None:
    """The check that stands in the brackets of the item's name holds."""
    tokenlaw_check()
