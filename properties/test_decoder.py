"""Audits the decoder of the target; see `tokenlaw.pytest_plugin` for the options."""

from collections.abc import Callable

import pytest

from tokenlaw.spec.contracts import DECODER


@pytest.mark.tokenlaw_contract(DECODER)
def test_decoder(tokenlaw_check: Callable[[], None]) -> None:
    """The check that stands in the brackets of the item's name holds."""
    tokenlaw_check()
