"""Faults of the prefix cache: weak keys, and what is hit."""

from collections.abc import Callable, Hashable, Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager, HeadsGoFirst
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.prefix_cache import BlockKey, PrefixCache


class _StaleKeys(PhysicalBlocks):
    def take(self, count: int) -> list[int]:
        return [self.device.take() for _ in range(count)]


class KeepsKeysOfReusedBlocks(FaultyManager):
    """A cached block that is handed out again can still be hit.

    Classes: C8.
    Report: vllm-project/vllm 4761; GeeeekExplorer/nano-vllm 163.
    Effect: another prompt's KV is hit.
    Weakest check: kv/cached-immutable.
    """

    physical = _StaleKeys


class _LastTokenMissing(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Sequence[int], index: int) -> BlockKey:
        start = index * self._block_size
        return BlockKey(parent, tuple(tokens[start : start + self._block_size - 1]), self._hash_function)


class KeyWithoutLastToken(FaultyManager):
    """The key of a block leaves its last token out.

    Classes: C9.
    Report: kekzl/imp 1301.
    Effect: a prompt hits KV of another last token.
    Weakest check: kv/hit.
    """

    prefix_cache = _LastTokenMissing


class _LowBytes(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Sequence[int], index: int) -> BlockKey:
        start = index * self._block_size
        content = tuple(token % 256 for token in tokens[start : start + self._block_size])
        return BlockKey(parent, content, self._hash_function)


class KeyOfLowBytes(FaultyManager):
    """The key of a block holds the low byte of each token id.

    Classes: C9.
    Report: none known of this form; nearest is openvinotoolkit/openvino.genai 3722 (blocks are found by a
    hash alone).
    Effect: a prompt hits KV of token ids that differ by multiples of 256.
    Weakest check: kv/hit.
    """

    prefix_cache = _LowBytes


class _NoParent(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Sequence[int], index: int) -> BlockKey:
        while parent.parent is not None:
            parent = parent.parent
        return super()._child(parent, tokens, index)


class KeyWithoutParent(FaultyManager):
    """The key of a block leaves out what comes before it.

    Classes: C9.
    Report: openvinotoolkit/model_server 4376.
    Effect: equal tokens after another prefix hit wrong KV.
    Weakest check: kv/hit.
    """

    prefix_cache = _NoParent


class KeyWithoutNamespace(FaultyManager):
    """Adapters and salts are left out of the keys.

    Classes: C9.
    Report: vllm-project/vllm 3264, 44250; xLLM-AI/xllm 2047.
    Effect: one adapter hits another's KV.
    Weakest check: kv/hit.
    """

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Admit into the default namespace."""
        return super().allocate(tokens)


class _TwoBitKey(BlockKey):
    __slots__ = ()

    def __hash__(self) -> int:
        return self.chain_hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockKey) and self.chain_hash == other.chain_hash


class _TwoBits(PrefixCache):
    def root(self, namespace: Hashable, epoch: int) -> BlockKey:
        return _TwoBitKey(None, (namespace, epoch), lambda value: hash(value) % 4)

    def _child(self, parent: BlockKey, tokens: Sequence[int], index: int) -> BlockKey:
        start = index * self._block_size
        content = tuple(tokens[start : start + self._block_size])
        return _TwoBitKey(parent, content, lambda value: hash(value) % 4)


class KeyOfTwoBits(FaultyManager):
    """A block is found by a hash alone, of two bits; its tokens are never compared.

    Classes: C9.
    Report: openvinotoolkit/openvino.genai 3722; kvcache-ai/Mooncake 644.
    Effect: any prompt may hit any block.
    Weakest check: kv/hit.
    """

    prefix_cache = _TwoBits


class _SkipsHoles(PrefixCache):
    def lookup(
        self, root: BlockKey, tokens: Sequence[int], usable: Callable[[int], bool]
    ) -> tuple[list[BlockKey], list[int]]:
        keys: list[BlockKey] = []
        blocks: list[int] = []
        parent = root
        for index in range((len(tokens) - 1) // self._block_size):
            parent = self._child(parent, tokens, index)
            block = self._block_of.get(parent)
            if block is not None and usable(block):
                keys.append(parent)
                blocks.append(block)
        return keys, blocks


class HitsBehindHoles(FaultyManager):
    """The head of a prefix is evicted first, and a hit goes on behind the hole.

    Classes: C23, C8.
    Report: llm-d/llm-d-inference-sim 705, 704.
    Effect: blocks stand at the wrong positions.
    Weakest check: kv/hit.
    """

    physical, prefix_cache = HeadsGoFirst, _SkipsHoles


class _StaysIdle(BlockPool):
    def share(self, block: int) -> None:
        self._references[block] += 1


class HitStaysFree(FaultyManager):
    """An idle block that is hit stays in the line of blocks to be handed out.

    Classes: C7.
    Report: sgl-project/mini-sglang 52.
    Effect: the block of a live sequence is handed out.
    Weakest check: kv/partition.
    """

    pool = _StaysIdle


class _TakesFirst(PhysicalBlocks):
    def share_and_take(self, hits: list[int], count: int, purpose: str) -> list[int]:
        self.require(count, purpose, spoken_for=sum(map(self.device.is_evictable, hits)))
        new = self.take(count)
        for block in hits:
            self.device.share(block)
        return hits + new


class EvictsItsOwnHit(FaultyManager):
    """New blocks are taken between the lookup of a hit and its acquisition.

    Classes: C7.
    Report: vllm-project/vllm 37076, 37164; sgl-project/sglang 27631.
    Effect: the block that was hit is handed out for something else.
    Weakest check: kv/waste.
    """

    physical = _TakesFirst


class HitsTheWholePrompt(FaultyManager):
    """A prompt that is cached to its end leaves no token to compute.

    Classes: C11.
    Report: vllm-project/vllm 3193; ml-explore/mlx-lm 1581.
    Effect: there are no logits to continue from.
    Weakest check: kv/hit.
    """

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Look one token further."""
        handle = super().allocate([*tokens, 0], namespace)
        self._truncate(self._record(handle), len(tokens), self._blocks_for(len(tokens)))
        return handle


PREFIX_FAULTS = (
    ("keeps_keys_of_reused_blocks", KeepsKeysOfReusedBlocks),
    ("key_without_last_token", KeyWithoutLastToken),
    ("key_of_low_bytes", KeyOfLowBytes),
    ("key_without_parent", KeyWithoutParent),
    ("key_without_namespace", KeyWithoutNamespace),
    ("key_of_two_bits", KeyOfTwoBits),
    ("hits_behind_holes", HitsBehindHoles),
    ("hit_stays_free", HitStaysFree),
    ("evicts_its_own_hit", EvictsItsOwnHit),
    ("hits_the_whole_prompt", HitsTheWholePrompt),
)
