"""Faults of the keys of cached prefixes, unseen by traces when they were thought up."""

from typing import Any

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.prefix_cache import BlockKey, PrefixCache


class _Digits(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Any, index: int) -> BlockKey:
        own = tokens[index * self._block_size : (index + 1) * self._block_size]
        return BlockKey(parent, "".join(map(str, own)), self._hash_function)


class KeyOfDigits(FaultyManager):
    """A key joins the ids of its tokens in decimal, with nothing between them."""

    prefix_cache = _Digits


class _EighteenBits(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Any, index: int) -> BlockKey:
        own = tokens[index * self._block_size : (index + 1) * self._block_size]
        return BlockKey(parent, tuple(token % 2**18 for token in own), self._hash_function)


class KeyOfEighteenBits(FaultyManager):
    """A key keeps 18 bits of a token."""

    prefix_cache = _EighteenBits


class _Flat(BlockKey):
    """Equal to others by what it is given, whatever its ancestors are."""

    def __init__(self, parent: BlockKey, content: Any, flat: Any) -> None:
        self.parent, self.content, self.flat = parent, content, flat
        self.chain_hash = hash(flat)

    def __hash__(self) -> int:
        return self.chain_hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flat) and self.flat == other.flat


class _FewAncestors(PrefixCache):
    seen = 16

    def _child(self, parent: BlockKey, tokens: Any, index: int) -> BlockKey:
        own = tuple(tokens[index * self._block_size : (index + 1) * self._block_size])
        ancestors, one = [], parent
        while one.parent is not None:
            ancestors.append(one.content)
            one = one.parent
        return _Flat(parent, own, (own, *ancestors[: self.seen], one.content, min(index, self.seen)))


class KeyOfSixteenAncestors(FaultyManager):
    """A key sees the sixteen blocks before its own."""

    prefix_cache = _FewAncestors


class _OneAncestor(_FewAncestors):
    seen = 1


class KeyOfOneAncestor(FaultyManager):
    """A key sees the one block before its own."""

    prefix_cache = _OneAncestor


class _ShortRoot(PrefixCache):
    def root(self, namespace: str, epoch: int) -> BlockKey:
        return super().root(namespace[:8], epoch)


class NamespaceOfEightCharacters(FaultyManager):
    """A key keeps eight characters of the namespace."""

    prefix_cache = _ShortRoot


class KeepsKeysOfNothing(FaultyManager):
    """A rollback to nothing forgets the tokens and keeps their keys."""

    def rollback(self, sequence: int, count: int) -> None:
        record = self._usable(sequence)
        keys = record.keys.copy()
        super().rollback(sequence, count)
        if not record.tokens:
            record.keys = keys


class ForkRenewsTheEpoch(FaultyManager):
    """A fork belongs to the weights of now, whatever its parent was written with."""

    def fork(self, sequence: int) -> int:
        child = super().fork(sequence)
        self._record(child).epoch = self._epoch
        return child
