"""The prefix cache: which block holds the KV of which full block of tokens after which prefix.

A key is a chain: the tokens of a block and the key of the block before it, down to a root that names the
namespace and the epoch. Keys are compared by their tokens, not by their hash, so a collision costs time and
never gives wrong content (reports on weak keys: vLLM #8229, Mooncake #644, openvino.genai #3722).
"""

from collections.abc import Callable, Container, Hashable, Sequence

HashFunction = Callable[[Hashable], int]


class BlockKey:
    """Identity of the KV in a full block: its tokens, everything before them, namespace and epoch.

    ``parent`` is None for a root; ``content`` is the tokens of the block, or what tells roots apart.
    ``chain_hash`` stands for the whole chain.
    """

    __slots__ = ("chain_hash", "content", "parent")

    def __init__(self, parent: "BlockKey | None", content: Hashable, hash_function: HashFunction) -> None:
        self.parent = parent
        self.content = content
        # From the hash of the parent, so that a key costs O(block size) and not O(length).
        self.chain_hash: int = hash_function((None if parent is None else parent.chain_hash, content))

    def __hash__(self) -> int:
        return self.chain_hash

    def __eq__(self, other: object) -> bool:
        """Compare along both chains, which nearly always meet in one object after a step."""
        mine: BlockKey | None = self
        if not isinstance(other, BlockKey):
            return NotImplemented
        theirs: BlockKey | None = other
        while mine is not theirs:
            if mine is None or theirs is None:
                return False
            if mine.chain_hash != theirs.chain_hash or mine.content != theirs.content:
                return False
            mine, theirs = mine.parent, theirs.parent
        return True

    def __repr__(self) -> str:
        chain: list[str] = []
        key: BlockKey | None = self
        while key is not None:
            chain.append(str(key.content))
            key = key.parent
        return f"BlockKey({' > '.join(reversed(chain))})"


class PrefixCache:
    """Two inverse maps, key to block and block to key: at most one block for a key.

    Parameters
    ----------
    block_size
        Tokens in a block.
    hash_function
        Hash of hashable values. Any function is correct, also a constant one.
    """

    def __init__(self, block_size: int, hash_function: HashFunction = hash) -> None:
        self._block_size = block_size
        self._hash_function = hash_function
        self._block_of: dict[BlockKey, int] = {}
        self._key_of: dict[int, BlockKey] = {}

    @property
    def blocks(self) -> Container[int]:
        """The blocks that have a key now (a live view)."""
        return self._key_of.keys()

    def root(self, namespace: Hashable, epoch: int) -> BlockKey:
        """The key before the first block of every sequence of this namespace and epoch."""
        return BlockKey(None, (namespace, epoch), self._hash_function)

    def key_of(self, block: int) -> BlockKey | None:
        """The key under which the block can be hit."""
        return self._key_of.get(block)

    def lookup(
        self, root: BlockKey, tokens: Sequence[int], usable: Callable[[int], bool]
    ) -> tuple[list[BlockKey], list[int]]:
        """Keys and blocks of the longest cached prefix, up to the first block that isn't ``usable``.

        The prefix is whole blocks and leaves at least one token to compute: without it there would be no
        logits to continue from (reports: vLLM #3193, mlx-lm #1581). The lookup changes nothing.
        """
        keys: list[BlockKey] = []
        blocks: list[int] = []
        parent = root
        for index in range((len(tokens) - 1) // self._block_size):
            block = self._block_of.get(self._child(parent, tokens, index))
            if block is None or not usable(block):
                break
            # The stored key as the parent of the next one: equality then stops after one step.
            parent = self._key_of[block]
            keys.append(parent)
            blocks.append(block)
        return keys, blocks

    def publish(self, parent: BlockKey, tokens: Sequence[int], index: int, block: int) -> BlockKey:
        """Make logical block ``index`` of ``tokens`` findable in ``block``, and return its key.

        If another block has the key already, that one keeps it and ``block`` stays private.
        """
        key = self._child(parent, tokens, index)
        found = self._block_of.get(key)
        if found is not None:
            return self._key_of[found]
        self._block_of[key] = block
        self._key_of[block] = key
        return key

    def forget(self, block: int) -> None:
        """Make the block unreachable; nothing happens if it has no key."""
        if (key := self._key_of.pop(block, None)) is not None:
            del self._block_of[key]

    def clear(self) -> None:
        """Make every block unreachable."""
        self._block_of.clear()
        self._key_of.clear()

    def _child(self, parent: BlockKey, tokens: Sequence[int], index: int) -> BlockKey:
        start = index * self._block_size
        return BlockKey(parent, tuple(tokens[start : start + self._block_size]), self._hash_function)
