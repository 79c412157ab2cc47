"""The claims that are asked of a KV store, and the capabilities that its traces need."""

from tokenlaw.properties.trace import (
    AppendLayer,
    Attend,
    Fork,
    Operation,
    Overflow,
    Reorder,
    Rollback,
    Trace,
)
from tokenlaw.spec.contracts import KV_STORE
from tokenlaw.spec.verdicts import Check, Severity


def _check(
    name: str,
    rule: str,
    title: str,
    *,
    severity: Severity = Severity.WRONG_CONTENT,
    needs: tuple[str, ...] = (),
    exercised_by: tuple[str, ...],
) -> Check:
    return Check(f"store/{name}", rule, title, KV_STORE, severity, frozenset(needs), exercised_by)


CONTENT = _check(
    "content",
    "K1",
    "What was appended to a sequence is read back bit for bit, in every layer, keys and values.",
    exercised_by=("new", "append"),
)
BYSTANDERS = _check(
    "bystanders",
    "K11",
    "An operation on a sequence changes no other sequence.",
    severity=Severity.CROSS_SEQUENCE,
    exercised_by=("append", "free"),
)
CAPACITY = _check(
    "capacity",
    "K11/K12",
    "An append beyond the reserved room raises and changes nothing.",
    severity=Severity.CROSS_SEQUENCE,
    needs=("reserve",),
    exercised_by=("overflow",),
)
ATOMIC = _check(
    "atomic",
    "K12",
    "A refused operation changes nothing.",
    exercised_by=("out of blocks",),
)
RELEASE = _check(
    "release",
    "K13",
    "A sequence is released once: its room can be used again, and a second release changes nothing.",
    severity=Severity.LEAK,
    exercised_by=("free", "free again", "slot reuse"),
)
ROLLBACK = _check(
    "rollback",
    "K15",
    "Rolling back forgets exactly the last positions; a negative count, or more than there is, raises.",
    needs=("rollback",),
    exercised_by=("rollback", "bad rollback"),
)
REORDER = _check(
    "reorder",
    "K25",
    "After a reorder every beam holds what its parent held, parents that occur twice or never included.",
    severity=Severity.CROSS_SEQUENCE,
    needs=("reorder",),
    exercised_by=("reorder",),
)
LAYERS = _check(
    "layers",
    "K1",
    "Each layer owns its content and its length: extending one leaves the others as they are.",
    needs=("layers",),
    exercised_by=("append to a layer", "layers of different lengths", "append to a layer behind"),
)
ATTENTION = _check(
    "attention",
    "K21",
    "Attention of all live sequences equals contiguous float64 attention within the derived bound.",
    severity=Severity.CROSS_SEQUENCE,
    needs=("attend",),
    exercised_by=("attend",),
)
BATCH = _check(
    "batch",
    "K19",
    "Attention of some live sequences in any order is what attention of all of them gives.",
    severity=Severity.CROSS_SEQUENCE,
    needs=("attend", "any-batch"),
    exercised_by=("attend a part",),
)

KV_STORE_CHECKS = (
    CONTENT,
    BYSTANDERS,
    CAPACITY,
    ATOMIC,
    RELEASE,
    ROLLBACK,
    REORDER,
    LAYERS,
    ATTENTION,
    BATCH,
)
"""All checks of the contract, in the order of reports."""

_NEEDED: dict[type[Operation], frozenset[str]] = {
    Fork: frozenset({"fork"}),
    Rollback: frozenset({"rollback"}),
    Reorder: frozenset({"reorder"}),
    Overflow: frozenset({"reserve"}),
    AppendLayer: frozenset({"layers"}),
    Attend: frozenset({"attend", "any-batch"}),
}


def needed_capabilities(trace: Trace) -> frozenset[str]:
    """Capabilities without which some operations of the trace mean nothing.

    >>> sorted(needed_capabilities(Trace((Fork(0), Overflow(0, 1)))))
    ['fork', 'reserve']
    """
    needed = (_NEEDED.get(type(operation), frozenset()) for operation in trace.operations)
    return frozenset().union(*needed)
