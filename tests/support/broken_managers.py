"""Faults of the reference block manager that are about the harness, or too gross to be planted."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_copies import CopiesBothWays
from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import BlockCopy


class NoCopyOnWrite(PagedBlockManager):
    """Neither copies a shared block nor takes its key from a published one."""

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        new = self._blocks_for(len(record.tokens) + len(tokens)) - len(record.table)
        record.table += self._blocks.take(new)
        record.tokens += tokens


class CopiesTwice(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        return super().pending_copies() * 2


class CopiesInADeclaredOrder(CopiesBothWays):
    copies_in_order = True
