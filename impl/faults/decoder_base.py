"""What faulty decoders are made from: the reference decoder with one part in another's place."""

from typing import Any

from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import Processors
from tokenlaw.impl.engine.runner import TableRunner
from tokenlaw.impl.engine.samples import SampleNumbers
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.impl.engine.verification import Verification
from tokenlaw.impl.paged.manager import PagedBlockManager

_PLACES: tuple[tuple[type[Any], str], ...] = (
    (Processors, "processors_class"),
    (Drafter, "drafter_class"),
    (Verification, "verification_class"),
    (SequenceCache, "cache_class"),
    (Scheduler, "scheduler_class"),
    (SampleNumbers, "numbers_class"),
    (TableRunner, "runner_class"),
)


def decoder_with(part: type[Any]) -> type[Any]:
    """The reference decoder with a part of its own, which also describes it; a decoder is returned as it is.

    Parameters
    ----------
    part : a subclass of a part of `ReferenceDecoder`, or of the block manager in its cache.
    """
    if issubclass(part, ReferenceDecoder):
        return part
    described = {"__doc__": part.__doc__, "__module__": part.__module__}
    if issubclass(part, PagedBlockManager):
        cache = type(f"{part.__name__}InCache", (SequenceCache,), {**described, "manager_class": part})
        return type(part.__name__, (ReferenceDecoder,), {**described, "cache_class": cache})
    place = next(place for kind, place in _PLACES if issubclass(part, kind))
    return type(part.__name__, (ReferenceDecoder,), {**described, place: part})
