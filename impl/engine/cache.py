"""The KV cache of running samples: their block tables, and the writes that go through them."""

from collections.abc import Sequence

from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.runner import Run, Runner
from tokenlaw.impl.engine.samples import Sample
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.spec.contracts import CacheConfig
from tokenlaw.spec.decoder_contract import DecoderConfig


class SequenceCache:
    """Joins a block manager and a runner.

    Parameters
    ----------
    config : number and size of the blocks.
    runner : writes and reads their content.

    Attributes
    ----------
    manager_class : of the block manager.
    """

    manager_class: type[PagedBlockManager] = PagedBlockManager

    def __init__(self, config: DecoderConfig, runner: Runner) -> None:
        self._runner, self._block_size, self._num_blocks = runner, config.block_size, config.num_blocks
        self._manager = self.manager_class(CacheConfig(config.num_blocks, config.block_size))

    def admit(self, sample: Sample) -> None:
        """Find or compute the KV of all its tokens but the last; raises `OutOfBlocks` if it doesn't fit."""
        known = self.tokens_to_admit(sample)
        sample.blocks = self._manager.allocate(known)
        start = self._manager.num_cached_tokens(sample.blocks)
        if start < len(known):
            self._apply_copies()
            self._runner.run(Run(self.table(sample), start, known[start:]), wanted=0)
        self._manager.commit(sample.blocks, len(known))

    def tokens_to_admit(self, sample: Sample) -> list[int]:
        """The tokens whose KV must be there before the sample's next step."""
        return sample.tokens[:-1]

    def share(self, parent: Sample, child: Sample) -> None:
        """The child runs on the parent's blocks; both have the same tokens."""
        child.blocks = self._manager.fork(parent.handle)

    def extend(self, sample: Sample) -> None:
        """Make a slot for its last token; raises `OutOfBlocks`."""
        self._manager.append(sample.handle, sample.tokens[-1:])

    def has_room(self, sample: Sample, count: int) -> bool:
        """Whether so many drafts fit; its last block is its own, for it has just got a slot there."""
        length = self._manager.num_tokens(sample.handle)
        return self._blocks(length + count) - self._blocks(length) <= self._manager.num_free_blocks()

    def speculate(self, sample: Sample, drafts: Sequence[int]) -> None:
        """Make slots for drafts; raises `OutOfBlocks`."""
        self._manager.speculate(sample.handle, drafts)

    def run(self, sample: Sample, drafts: Sequence[int]) -> Float64[Tensor, "drafts+1 vocabulary"]:
        """Write the KV of its last token and of the drafts; logits behind each of them."""
        self._apply_copies()
        tokens = [sample.tokens[-1], *drafts]
        start = self._manager.num_tokens(sample.handle) - len(tokens)
        return self._runner.run(Run(self.table(sample), start, tokens), wanted=len(tokens))

    def table(self, sample: Sample) -> Sequence[int]:
        """The sample's blocks, in logical order."""
        return self._manager.block_table(sample.handle)

    def settle(self, sample: Sample, accepted: int) -> None:
        """Keep the first drafts and forget the others; what is kept can be found by others from now on."""
        self._manager.accept(sample.handle, accepted)
        self._manager.commit(sample.handle, self._manager.num_tokens(sample.handle))

    def release(self, sample: Sample) -> None:
        """Give its blocks back, with what is in them."""
        self._manager.free(sample.handle)
        sample.blocks = None

    def num_free_blocks(self) -> int:
        """Blocks that no running sample needs, cached ones included."""
        return self._manager.num_free_blocks()

    def can_hold(self, length: int) -> bool:
        """Whether a sample of so many tokens fits into the empty pool."""
        return self._blocks(length) <= self._num_blocks

    def _blocks(self, length: int) -> int:
        return -(-length // self._block_size)

    def _apply_copies(self) -> None:
        self._runner.copy(self._manager.pending_copies())
