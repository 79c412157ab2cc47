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
