"""Running a trace on a KV store: everything that is stored is read back after every operation.

The harness keeps a contiguous copy (the *shadow*) of each live sequence. Token ids don't matter here: an
operation with n tokens stores n positions of numbers that occur nowhere else in the trace.
"""

import traceback
from collections.abc import Callable
from typing import Any

from tokenlaw.properties.kv_store_checks import KV_STORE_CHECKS, needed_capabilities
from tokenlaw.properties.kv_store_operations import Operations
from tokenlaw.properties.kv_store_payload import dtype_of
from tokenlaw.properties.kv_store_shadow import ShadowedStore
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.settled import settled
from tokenlaw.properties.trace import Trace, TraceError
from tokenlaw.spec.contracts import CacheConfig, ContractError

__all__ = ["KV_STORE_CHECKS", "needed_capabilities", "run_trace"]


@settled
def run_trace(
    store_factory: Callable[[CacheConfig], Any],
    trace: Trace,
    capabilities: frozenset[str],
    muted: frozenset[str] = frozenset(),
    watch: Callable[[Operations], None] = lambda _: None,
) -> Outcome:
    """Run a trace on a fresh store until an unmuted check breaks.

    Operations that the contract or the capabilities don't have are skipped. What a muted check is about isn't
    done at all where it would only spread the known fault: no overflow when ``store/capacity`` is muted, no
    append to one layer when ``store/layers`` is, no attention for ``store/attention`` and ``store/batch``; a
    sequence that a muted fault damaged isn't looked at any more.

    Two operations need company. ``Overflow`` appends beyond the room *rounded up to whole blocks*, which a
    paged store may give, and only while another sequence is live that could suffer. ``Reorder`` needs all
    the sequences that it touches to have one length.

    ``watch`` is called after each operation, also after one that breaks a check, but not after a crash.

    Raises
    ------
    ContractError, TraceError
        The factory refuses, or the configuration can't be judged. Whatever else the store raises against its
        contract is `Outcome.crash`.
    """
    dtype_of(trace.config)
    outcome = Outcome()
    try:
        store = ShadowedStore(store_factory(trace.config), trace.config, muted)
        operations = Operations(store, capabilities, outcome.exercised)
        for operation in trace.operations:
            operations.step(operation)
            outcome.violations = store.violations
            watch(operations)
            if outcome.violations:
                break
            outcome.operations += 1
    except (ContractError, TraceError):
        raise
    except Exception:
        outcome.crash = traceback.format_exc()
    return outcome
