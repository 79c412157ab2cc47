"""Which samples run: they join when they fit, leave when they end, and make room for older ones."""

from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.samples import Sample
from tokenlaw.spec.contracts import OutOfBlocks


class Scheduler:
    """First come, first served. Where running samples outgrow the pool, the youngest one waits again.

    The oldest one always grows: alone it fits, or it wouldn't have been taken.

    Parameters
    ----------
    cache : holds the KV of running samples.
    max_sequences : samples that run at one time, at most.
    """

    def __init__(self, cache: SequenceCache, max_sequences: int) -> None:
        self._cache, self._max_sequences = cache, max_sequences
        self.running: list[Sample] = []
        self.waiting: list[Sample] = []

    def schedule(self) -> list[Sample]:
        """The samples of the next step, each with a slot for its last token."""
        self._extend(list(self.running))
        self._extend(self._join())
        return list(self.running)

    def add(self, sample: Sample) -> None:
        """A new sample waits behind all others."""
        self.waiting.append(sample)

    def fork(self, parent: Sample, child: Sample) -> None:
        """The child runs at once on the parent's blocks if both can; else it waits."""
        if parent.blocks is None or len(self.running) >= self._max_sequences:
            self.add(child)
            return
        self._cache.share(parent, child)
        self.running.append(child)

    def remove(self, sample: Sample) -> None:
        """The sample has ended, or was aborted."""
        if sample in self.running:
            self.running.remove(sample)
            self._cache.release(sample)
        elif sample in self.waiting:
            self.waiting.remove(sample)

    def preempt(self, sample: Sample) -> None:
        """Take its blocks from a running sample. When it runs again, its KV is computed from its tokens."""
        self.running.remove(sample)
        self._cache.release(sample)
        self.waiting.insert(0, sample)

    def _join(self) -> list[Sample]:
        """Samples that start to run; they share the blocks of a sample that starts with the same prompt."""
        joined: list[Sample] = []
        while self.waiting and len(self.running) < self._max_sequences:
            sample = self.waiting[0]
            sibling = next((other for other in joined if _equal(other, sample)), None)
            try:
                if sibling is None:
                    self._cache.admit(sample)
                else:
                    self._cache.share(sibling, sample)
            except OutOfBlocks:
                break
            joined.append(self.waiting.pop(0))
            self.running.append(sample)
        return joined

    def _extend(self, samples: list[Sample]) -> None:
        """Make a slot for the last token of each; samples that were preempted meanwhile get none."""
        for sample in samples:
            while sample in self.running:
                try:
                    self._cache.extend(sample)
                    break
                except OutOfBlocks:
                    self.preempt(self.running[-1])


def _equal(one: Sample, other: Sample) -> bool:
    return one.request is other.request and one.tokens == other.tokens
