"""In which cell a token is counted: by its position, the class of the tokens before it, and what it is.

Everything that one token decides is looked up, which is several times as fast as to work it out. The hash of
a prefix is the exclusive or of a random word for each of its tokens and their positions: tabulation hashing
(Carter and Wegman 1979, *Universal classes of hash functions*).
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int32
from torch import Tensor

CLASSES = 64
"""Classes of prefixes at a position, at most: an equal number for each context, which is a power of two."""


class PrefixCells:
    """Cells ``[positions, classes, ways, groups]``, and in each class one more, where there is no token.

    Parameters
    ----------
    positions, vocabulary, contexts : of a scenario: K + 1, V, and how many contexts its tables know.
    groups : a token counts as token modulo groups.
    ends : whether tokens with which a row ends are counted apart (the second way), but at the last position,
        where every row ends.
    seed : of the hash.
    device : of what is counted.

    Attributes
    ----------
    hashes : classes of each context; class ``context * hashes + hash``.
    shape : ``(positions, classes, ways * groups + 1)``.
    """

    def __init__(
        self,
        positions: int,
        vocabulary: int,
        contexts: int,
        groups: int,
        *,
        ends: bool,
        seed: int,
        device: torch.device,
    ) -> None:
        self.hashes = 1 << max(CLASSES // contexts, 1).bit_length() - 1
        ways = 2 if ends else 1
        self.shape = (positions, contexts * self.hashes, ways * groups + 1)
        self._ends, self._several_contexts = ends, contexts > 1
        # Entry 0 of every table is for `NO_TOKEN`, which an ended row has next: its cell is the last one.
        token = np.arange(vocabulary)
        cells = np.stack([np.r_[(ways - 1) * groups, token % groups]] * positions)
        cells[-1, 0] = ways * groups
        cells += np.arange(positions)[:, None] * self.shape[1] * self.shape[2]
        words = np.random.Generator(np.random.Philox(seed)).integers(self.hashes, size=cells.shape)
        self._cells, self._words, self._contexts, self._ended = (
            torch.tensor(table, dtype=torch.int32, device=device)
            for table in (
                cells,
                words,
                np.r_[0, token % contexts * self.hashes],
                np.r_[groups, np.zeros(vocabulary)],
            )
        )

    def of(self, entries: list[Int32[Tensor, " batch"]]) -> Iterator[Int32[Tensor, " batch"]]:
        """Numbers of the cells, position by position; `tokenlaw.stats.protocol.Columns` has the entries."""
        hashes = torch.zeros_like(entries[0])
        for position, entry in enumerate(entries):
            cells = self._cells[position].index_select(0, entry)
            if position:
                before = entries[position - 1]
                hashes ^= self._words[position].index_select(0, before)
                classes = hashes
                if self._several_contexts:
                    classes = self._contexts.index_select(0, before).bitwise_or_(hashes)
                cells.add_(classes, alpha=self.shape[2])
            if self._ends and position < len(entries) - 1:
                cells += self._ended.index_select(0, entries[position + 1])
            yield cells
