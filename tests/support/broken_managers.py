"""The reference block manager with one fault each."""

from collections.abc import Hashable, Sequence

from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import BlockCopy, OutOfBlocks


class LosesCopies(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        super().pending_copies()
        return []


class ForkWithoutReference(PagedBlockManager):
    def fork(self, sequence: int) -> int:
        return self._admit(self._usable(sequence).copy())


class LeaksOnFree(PagedBlockManager):
    def free(self, sequence: int) -> None:
        self._blocks.device.share(self._record(sequence).blocks[-1])
        super().free(sequence)


class RefusesTheLastBlock(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        if self._blocks_for(len(tokens)) == self.num_free_blocks():
            raise OutOfBlocks("exactly full")
        return super().allocate(tokens, namespace)


class NoCopyOnWrite(PagedBlockManager):
    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        new = self._blocks_for(len(record.tokens) + len(tokens)) - len(record.table)
        record.table += self._blocks.take(new)
        record.tokens += tokens


class CopiesTwice(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        return super().pending_copies() * 2


class CopiesInACycle(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        copies = super().pending_copies()
        return copies + [BlockCopy(copy.destination, copy.source) for copy in copies]


class CopiesInADeclaredOrder(CopiesInACycle):
    copies_in_order = True


class TakesABlockEarly(PagedBlockManager):
    def _blocks_for(self, length: int) -> int:
        return length // self._block_size + 1


class KeepsMoreThanItDeclares(PagedBlockManager):
    def accept(self, sequence: int, count: int) -> None:
        self.lookahead = 8
        super().accept(sequence, count)
        self.lookahead = 0


class NamesABlockTwice(PagedBlockManager):
    def block_table(self, sequence: int) -> list[int]:
        return [super().block_table(sequence)[0]] * len(self._record(sequence).table)


class NamesForeignBlocks(PagedBlockManager):
    def block_table(self, sequence: int) -> list[int]:
        return [block + 100 for block in super().block_table(sequence)]


class HitsTheWholePrompt(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate([*tokens, 0], namespace)
        self._truncate(self._record(handle), len(tokens), self._blocks_for(len(tokens)))
        return handle


class IgnoresNamespaces(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        return super().allocate(tokens)


class ResetDoesNothing(PagedBlockManager):
    def reset_cache(self) -> None:
        pass


class PublishesBeforeTheWrite(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate(tokens, namespace)
        self.commit(handle, len(tokens))
        return handle


class PublishesPartialBlocks(PagedBlockManager):
    def _publish(self, record: SequenceRecord) -> None:
        for index in range(len(record.keys), self._blocks_for(record.committed)):
            key = self._blocks.cache.publish(record.last_key, record.tokens, index, record.table[index])
            record.keys.append(key)


class PublishesDrafts(PagedBlockManager):
    def speculate(self, sequence: int, drafts: Sequence[int]) -> None:
        super().append(sequence, drafts)
        self._record(sequence).committed = len(self._record(sequence).tokens)
        self._publish(self._record(sequence))
        self._record(sequence).drafts = len(drafts)


class ForgetsEpochs(PagedBlockManager):
    def new_epoch(self) -> None:
        pass


class PublishesOldEpochs(PagedBlockManager):
    def new_epoch(self) -> None:
        super().new_epoch()
        for record in self._sequences.values():
            record.epoch = self._epoch


class CutsANeighbour(PagedBlockManager):
    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        super().append(sequence, tokens)
        first = next(iter(self._sequences.values()))
        first.table = first.table[::-1]


class LeaksOnRefusal(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        try:
            return super().allocate(tokens, namespace)
        except OutOfBlocks:
            self._blocks.take(1)
            raise


class CountsEveryRelease(PagedBlockManager):
    extra = 0

    def free(self, sequence: int) -> None:
        if sequence in self._sequences:
            super().free(sequence)
        else:
            self.extra += 1

    def num_free_blocks(self) -> int:
        return super().num_free_blocks() + self.extra


class RollbackDoesNothing(PagedBlockManager):
    def rollback(self, sequence: int, count: int) -> None:
        if not 0 <= count <= self.num_tokens(sequence):
            raise ValueError("can't roll back")


class RollbackClips(PagedBlockManager):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, min(max(count, 0), self.num_tokens(sequence)))


class AcceptsOneMore(PagedBlockManager):
    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, min(count + 1, self._record(sequence).drafts))


class DropsOptimistically(PagedBlockManager):
    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        super()._extend(record, tokens)
        record.committed = len(record.tokens)
        self._drop_below_window(record)


class NoStepFence(PagedBlockManager):
    def begin_step(self) -> None:
        pass

    def end_step(self) -> None:
        pass
