"""Generators of ``numpy.random`` that exist, wherever they are held.

They can't be replaced where nobody finds a reference, but it can be seen afterwards that they were drawn
from. All objects of the process are looked through for that, which takes tens of milliseconds; as long as
no objects have grown old since then, only young ones are. What the program has frozen (``gc.freeze``), as
servers do, is listed nowhere: it is thawed for a look, and frozen again with all that has been made since.
"""

import gc
import sys
from itertools import compress
from typing import Any

import numpy as np

KINDS = frozenset({np.random.Generator, np.random.RandomState})
ONLY_HERE = 3
"""References to an object that is held in the list here only: the list, a variable, an argument."""

_known: list[Any] = []
_aged = [-1]
_FROZEN_BY_PYTHON = 1_000
"""At most; 375 objects in Python 3.12. A program with numpy that freezes has ten times as many."""
_latest: list[Any] = [None]
"""An object made after the last look; it is frozen itself if anything has been since."""


def living_generators() -> list[Any]:
    """All real generators, also those that the program doesn't refer to in a way that is understood."""
    _known[:] = [one for one in _known if sys.getrefcount(one) > ONLY_HERE]
    aged = sum(generation["collections"] for generation in gc.get_stats()[1:])
    # Not one list of ours: it would find and so keep itself, and with it all that others are about to finish.
    young = gc.get_objects(0) + gc.get_objects(1)
    searched = young if _aged[0] == aged else gc.get_objects()
    _aged[0] = aged
    if not _holds_the_latest(young) and gc.get_freeze_count() > _FROZEN_BY_PYTHON:
        searched = searched if _holds_the_latest(searched) else _frozen_and_others()
    _latest[0] = []
    seen = {id(one) for one in _known}
    generators = compress(searched, map(KINDS.__contains__, map(type, searched)))
    _known.extend(one for one in generators if id(one) not in seen)
    return list(_known)


def _holds_the_latest(objects: list[Any]) -> bool:
    return any(one is _latest[0] for one in objects)


def _frozen_and_others() -> list[Any]:
    gc.unfreeze()
    every = gc.get_objects()
    gc.freeze()
    return every
