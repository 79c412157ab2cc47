"""Symbolic KV: what a slot holds, without tensors, model or GPU.

The payload of position i of a sequence is a *fingerprint*: the id of a node of a trie, interned from (node of
position i - 1, token i, epoch of the weights), under one root per namespace. Two payloads are equal only if
namespace, epochs and tokens 0..i are all equal, so a right token after a wrong prefix reads back as wrong.
Ids are interned, not hashed: there are no collisions.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable

from tokenlaw.spec.contracts import BlockCopy

NEVER_WRITTEN = 0
"""Content of a slot that nothing was ever written to."""


_SHOWN_TOKENS = 8


class Fingerprints:
    """Interned fingerprints; ids are positive and count up from 1."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, int, int], int] = {}
        self._roots: dict[str, int] = {}
        self._parents = [0]
        self._tokens = [-1]
        self._epochs = [0]
        self._oldest = [sys.maxsize]
        self._newest = 0
        self._positions = [-1]
        self._namespaces = [""]

    def root(self, namespace: str) -> int:
        """Node before position 0 of a namespace."""
        node = self._roots.get(namespace)
        if node is None:
            node = self._roots[namespace] = self._add(0, token=-1, epoch=0, namespace=namespace)
        return node

    def extend(self, parent: int, tokens: Iterable[int], epoch: int) -> list[int]:
        """Nodes of the tokens that follow ``parent``, written under the weights of ``epoch``."""
        nodes = []
        self._newest = max(self._newest, epoch)
        for token in tokens:
            key = (parent, token, epoch)
            node = self._ids.get(key)
            if node is None:
                node = self._ids[key] = self._add(parent, token, epoch, self._namespaces[parent])
                self._oldest[node] = min(self._oldest[parent], epoch)
                self._positions[node] = self._positions[parent] + 1
            nodes.append(node)
            parent = node
        return nodes

    def parent(self, node: int) -> int:
        """Node of the position before."""
        return self._parents[node]

    def position(self, node: int) -> int:
        """Position in its sequence; -1 for a root and for a slot that was never written."""
        return self._positions[node]

    def oldest_epoch(self, node: int) -> int:
        """Oldest epoch among the positions up to and with this one."""
        return self._oldest[node]

    def tokens(self, node: int) -> list[int]:
        """Tokens 0..i of a node of position i."""
        tokens = []
        while self._positions[node] >= 0:
            tokens.append(self._tokens[node])
            node = self._parents[node]
        return tokens[::-1]

    def differ_in_epoch_only(self, first: int, second: int) -> bool:
        """Whether two different nodes stand for equal tokens of one namespace under different weights."""
        return (
            first != second
            and self._namespaces[first] == self._namespaces[second]
            and self._positions[first] == self._positions[second] >= 0
            and self.tokens(first) == self.tokens(second)
        )

    def words(self, node: int) -> str:
        """What the node stands for, such as ``token 9 after [1, 2]``."""
        if node == NEVER_WRITTEN:
            return "nothing (the slot was never written)"
        *prefix, token = self.tokens(node)
        hidden = len(prefix) - _SHOWN_TOKENS
        after = f"{prefix}" if hidden <= 0 else f"{hidden} tokens and {prefix[-_SHOWN_TOKENS:]}"
        namespace = self._namespaces[node]
        where = f" in namespace {namespace!r}" if namespace else ""
        epochs = sorted({self._epochs[node], self._oldest[node]})
        when = f" under the weights of epoch {' and '.join(map(str, epochs))}" if self._newest else ""
        return f"token {token} after {after}{where}{when}"

    def _add(self, parent: int, token: int, epoch: int, namespace: str) -> int:
        self._parents.append(parent)
        self._tokens.append(token)
        self._epochs.append(epoch)
        self._oldest.append(sys.maxsize)
        self._positions.append(-1)
        self._namespaces.append(namespace)
        return len(self._parents) - 1


class Memory:
    """Physical slots of one tier, block by block.

    Attributes
    ----------
    nodes : block -> node id per slot, `NEVER_WRITTEN` at first. Freed blocks keep what they held.
    writers : block -> number of the sequence that wrote each slot, -1 at first.
    final : block -> per slot, whether it was written since the block was handed out, with a committed token.
    """

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self.nodes: defaultdict[int, list[int]] = defaultdict(lambda: [NEVER_WRITTEN] * block_size)
        self.writers: defaultdict[int, list[int]] = defaultdict(lambda: [-1] * block_size)
        self.final: defaultdict[int, list[bool]] = defaultdict(lambda: [False] * block_size)
        self._final_before: dict[int, list[bool]] = {}

    def write(self, block: int, offset: int, node: int, writer: int, final: bool) -> None:
        """Write one slot."""
        self.nodes[block][offset] = node
        self.writers[block][offset] = writer
        self.final[block][offset] = final

    def hand_out(self, block: int) -> None:
        """Note that the block has a new owner: what it holds stays, but counts as unwritten.

        Copies that still wait read it as it was before.
        """
        self._final_before.setdefault(block, self.final[block])
        self.final[block] = [False] * self._block_size

    def copied(self, block: int) -> list[bool]:
        """What `final` says for copies that are made now."""
        return list(self._final_before.get(block, self.final[block]))

    def receive(self, block: int, nodes: list[int], writers: list[int], final: list[bool]) -> None:
        """Take over the content of another block."""
        self.nodes[block], self.writers[block], self.final[block] = nodes, writers, final
        self._final_before.pop(block, None)

    def drained(self) -> None:
        """Note that no copy waits any more."""
        self._final_before.clear()


def apply_copies(memories: dict[str, Memory], copies: Iterable[BlockCopy]) -> None:
    """Copy whole blocks between tiers, in the order given; ``memories`` is keyed by tier."""
    for copy in copies:
        source, block = memories[copy.source_tier], copy.source
        memories[copy.destination_tier].receive(
            copy.destination, list(source.nodes[block]), list(source.writers[block]), source.copied(block)
        )
    for memory in memories.values():
        memory.drained()
