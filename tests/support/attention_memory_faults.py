"""Kernels that read, keep or write what they must not, and the check that must refute it."""

import torch

from support.attention_kernels import Kernel


class TailByProduct(Kernel):
    """Masks weights but multiplies the whole last page: 0 * NaN is NaN."""

    def gather(self, cache, table, length):
        return cache[table[: -(-length // cache.shape[1])].long()].reshape(-1, *cache.shape[2:])

    def scores(self, query, keys, scale, softcap):
        self.slots = len(keys)
        return super().scores(query, keys, scale, softcap)

    def masked(self, scores, visible, softcap):
        tail = torch.zeros(visible.shape[0], self.slots - visible.shape[1], dtype=torch.bool)
        return super().masked(scores, torch.cat((visible, tail), 1), softcap)

    def alibi(self, slopes, distance):
        return torch.nn.functional.pad(slopes * distance, (0, self.slots - distance.shape[1]))


class KeepsLengths(Kernel):
    """Plans once for the largest batch and keeps that plan."""

    def __init__(self):
        self.longest = 0

    def distance(self, num_queries, length):
        self.longest = max(self.longest, length)
        return super().distance(num_queries, length)

    def visible(self, distance, window):
        visible = super().visible(distance, window)
        if self.longest > distance.shape[1] + 16:
            visible[:, :1] = distance.shape[1] == 1
        return visible


class RightOnce(Kernel):
    """Leaves something behind in its first call that spoils every other."""

    calls = 0

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale if self.calls == 1 else 2 * scale, softcap)

    def lengths(self, lengths):
        self.calls += 1
        return super().lengths(lengths)


class KeepsScale(Kernel):
    """Caches its graph by shape, without the scale."""

    def __init__(self):
        self.graphs = {}

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        scale = self.graphs.setdefault((query.shape, tuple(lengths.tolist())), scale)
        self.graphs[(query.shape, tuple(lengths.tolist()))] = scale if len(self.graphs) < 2 else 2 * scale
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class IgnoresStrides(Kernel):
    """Reads a view as if it were contiguous."""

    def gather(self, cache, table, length):
        flat = torch.as_strided(cache, cache.shape, torch.empty(cache.shape).stride())
        return super().gather(flat, table, length)


class LogicalIsPhysical(Kernel):
    """Uses the logical block index as the physical one."""

    def gather(self, cache, table, length):
        return super().gather(cache, torch.arange(len(table)) % len(cache), length)


class RowOrder(Kernel):
    """Takes the page table of the row before it."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        if len(lengths) > 1 and lengths[0] < lengths[1]:
            block_tables = block_tables.clone()
            block_tables[0] = block_tables[1]
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class UnusedEntries(Kernel):
    """Lets the table entry after the last block choose the order of the sums."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale * (1 + self.tilt), softcap)

    def gather(self, cache, table, length):
        used = -(-length // cache.shape[1])
        self.tilt = 1e-6 * float(table[used:].clamp(min=0).sum())
        return super().gather(cache, table, length)


class ScalesQueryInPlace(Kernel):
    """Scales the query where it stands."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        query *= scale
        return super().attend(query, key_cache, value_cache, block_tables, lengths, 1.0, **options)


class ZeroesTail(Kernel):
    """Clears the rest of the last page in the caller's cache, NaN or not."""

    def gather(self, cache, table, length):
        if length % cache.shape[1]:
            cache[table[length // cache.shape[1]].long(), length % cache.shape[1] :] = 0
        return super().gather(cache, table, length)


MEMORY_FAULTS = [
    (TailByProduct, "attention/poison"),
    (KeepsLengths, "attention/independence"),
    (RightOnce, "attention/independence"),
    (KeepsScale, "attention/independence"),
    (IgnoresStrides, "attention/layout"),
    (LogicalIsPhysical, "attention/placement"),
    (RowOrder, "attention/placement"),
    (UnusedEntries, "attention/placement"),
    (ScalesQueryInPlace, "attention/inputs"),
    (ZeroesTail, "attention/inputs"),
]
