"""Block copies that wait for the caller, safe in any order and whatever happens before they are drained.

Reports on copies that read a block after its reuse: TensorRT-LLM #8813, vLLM #45357, SGLang #35049.
"""

from collections.abc import Mapping

from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.spec.contracts import BlockCopy

Place = tuple[str, int]
"""A tier and a block of it."""


class CopyQueue:
    """Copies from the moment when they are decided until the caller takes them.

    Three rules make one drain order-free. A source is held, so it is never a destination. A copy out of a
    place that itself waits for its content reads that content where it is now. A destination that was
    released before the drain gets no copy.
    """

    def __init__(self, pools: Mapping[str, BlockPool]) -> None:
        self._pools = pools
        self._source_of: dict[Place, Place] = {}

    def add(self, source: Place, destination: Place) -> None:
        """Decide a copy into a block that was just taken."""
        tier, block = origin = self._source_of.get(source, source)
        self._pools[tier].hold(block)
        self._source_of[destination] = origin

    def cancel(self, destination: Place) -> None:
        """Forget the copy into a block that nobody holds any more, if there is one."""
        if (source := self._source_of.pop(destination, None)) is not None:
            self._unhold(source)

    def drain(self) -> list[BlockCopy]:
        """All waiting copies; from now on their sources may be reused."""
        waiting, self._source_of = self._source_of, {}
        for source in waiting.values():
            self._unhold(source)
        return [
            BlockCopy(source, destination, source_tier, destination_tier)
            for (destination_tier, destination), (source_tier, source) in waiting.items()
        ]

    def _unhold(self, place: Place) -> None:
        tier, block = place
        self._pools[tier].unhold(block)
