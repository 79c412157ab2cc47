"""The only place where the harness calls the manager under test.

Failures are sorted here: `OutOfBlocks` from a scheduling call goes on to the caller, who judges it; anything
else that a legal call raises becomes `CrashedError`. Errors of the harness itself are never caught.
"""

import traceback
from collections.abc import Callable, Hashable, Iterable
from operator import index
from typing import Any, NoReturn

from tokenlaw.properties.full_pool import hint
from tokenlaw.spec.contracts import DEVICE, HOST, BlockCopy, OutOfBlocks

_SHOWN_LINES = 20


class CrashedError(Exception):
    """The manager raised, or returned, what its contract doesn't allow; the message is the traceback."""


def _crash(error: Exception) -> NoReturn:
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    raise CrashedError("\n".join(lines[-_SHOWN_LINES:])) from error


def _checked(copy: Any) -> BlockCopy:
    """The copy with plain integers; raises if it names no blocks, or no tiers."""
    tiers = copy.source_tier, copy.destination_tier
    if not set(tiers) <= {DEVICE, HOST}:
        raise ValueError(f"pending_copies() returned {copy}: a tier is {DEVICE!r} or {HOST!r}")
    return BlockCopy(index(copy.source), index(copy.destination), *tiers)


class Door:
    """A manager under test and what it can do.

    Attributes
    ----------
    lookahead : slots beyond the length that may stay allocated after a rejection, in tokens.
    window : the sliding window W in tokens, None for full attention.
    calls : how many calls that may change something were made.
    """

    def __init__(self, manager_factory: Callable[[], Any], capabilities: frozenset[str]) -> None:
        try:
            manager = self.manager = manager_factory()
        except Exception as error:
            _crash(error)
        self.calls = 0
        self.capabilities = capabilities
        self.commits = "commit" in capabilities
        self.counts_references = "ref-counts" in capabilities
        self.shows_keys = "cached-keys" in capabilities
        self.shows_lengths = "lengths" in capabilities
        self.lookahead: int = getattr(manager, "lookahead", 0)
        self.window: int | None = manager.window if "window" in capabilities else None
        self.copies_in_order: bool = getattr(manager, "copies_in_order", False)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method that must not fail."""
        self.calls += 1
        try:
            return getattr(self.manager, method)(*arguments)
        except Exception as error:
            _crash(error)

    def schedule(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """Call a method that may raise `OutOfBlocks`."""
        self.calls += 1
        try:
            return getattr(self.manager, method)(*arguments, **keywords)
        except OutOfBlocks:
            raise
        except Exception as error:
            hint(error)
            _crash(error)

    def raises(self, method: str, *arguments: Any) -> bool:
        """Whether a call that is illegal, or optional, raises; any exception will do."""
        self.calls += 1
        try:
            getattr(self.manager, method)(*arguments)
        except Exception:
            return True
        return False

    def is_among(self, handle: Any, handles: Iterable[Any]) -> bool:
        """Whether the manager calls another sequence like this one."""
        try:
            return any(handle is other or bool(handle == other) for other in handles)
        except Exception as error:
            _crash(error)

    def block_table(self, handle: Any) -> list[int]:
        """Physical block ids in logical order."""
        try:
            return list(map(index, self.manager.block_table(handle)))
        except Exception as error:
            _crash(error)

    def num_free_blocks(self) -> int:
        """The free counter."""
        return self._integer("num_free_blocks")

    def num_tokens(self, handle: Any) -> int:
        """Length in tokens; needs ``lengths``."""
        return self._integer("num_tokens", handle)

    def num_cached_tokens(self, handle: Any) -> int:
        """Tokens found in the cache at admission; 0 without ``prefix-cache``."""
        if "prefix-cache" not in self.capabilities:
            return 0
        return self._integer("num_cached_tokens", handle)

    def ref_counts(self, blocks: Iterable[int]) -> list[int]:
        """For each block, how many live tables hold it; needs ``ref-counts``."""
        try:
            return list(map(index, map(self.manager.ref_count, blocks)))
        except Exception as error:
            _crash(error)

    def evict(self, count: int) -> int:
        """Cached blocks that were dropped; needs ``evict``."""
        self.calls += 1
        return self._integer("evict", count)

    def cached_keys(self, blocks: Iterable[int]) -> list[Hashable | None]:
        """For each block, the key under which it can be hit, or None; needs ``cached-keys``."""
        try:
            return list(map(self.manager.cached_key, blocks))
        except Exception as error:
            _crash(error)

    def cached_key(self, block: int) -> Hashable | None:
        """The key of one block."""
        return self.cached_keys((block,))[0]

    def pending_copies(self) -> list[BlockCopy]:
        """Drained copies; none without ``copies``."""
        if "copies" not in self.capabilities:
            return []
        try:
            copies = [_checked(copy) for copy in self.manager.pending_copies()]
        except Exception as error:
            _crash(error)
        return copies

    def _integer(self, method: str, *arguments: Any) -> int:
        try:
            return index(getattr(self.manager, method)(*arguments))
        except Exception as error:
            _crash(error)
