"""Which attention cases are tried: a fixed grid of boundary cases first, then hypothesis.

The values are deliberate (``docs/rules.md``, rules K18 to K22): faults of paged attention sit at the
boundaries of blocks, windows and a kernel's own tiles, at sizes that aren't powers of two, and in rows of
unequal length.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from tokenlaw.properties.attention_cases import AttentionCase, DType, legal
from tokenlaw.properties.drawing import any_of, evenly

OPTIONS = ("window", "softcap", "sinks", "alibi")

LONG_ROWS = (513, 65, 33)
"""Rows whose last tile holds one key, for tiles of 512, 256, 128, 64 and 32."""

LONG_CHUNK = 33
"""Queries of a chunk that is more than one tile, where tiles hold 16 or 32 queries."""

SELDOM_TAKEN = {"block_sizes": (32, 64), "head_sizes": (80, 96, 192)}
"""Sizes that are left out where a kernel refuses them."""


@dataclass(frozen=True)
class Dimensions:
    """Sizes that an implementation takes; the defaults suit one that takes any."""

    block_sizes: tuple[int, ...] = (4, 1, 3, 16, 32, 64)
    head_sizes: tuple[int, ...] = (4, 8, 8, 16, 16, 64, 128, 80, 96, 192)
    group_sizes: tuple[int, ...] = (1, 4, 7)
    dtypes: tuple[DType, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Scope:
    """What the cases of one check vary.

    ``focus``: capabilities that every case uses. ``extra``: capabilities that some cases use where the target
    has them; ``merges``: cases carry split positions; ``moves``: cases always have a random placement.
    """

    focus: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    merges: bool = False
    moves: bool = False


def boundary_lengths(block_size: int) -> tuple[int, ...]:
    """Lengths around which block arithmetic goes wrong, without 0, each once.

    >>> boundary_lengths(4)
    (1, 3, 4, 5, 8, 11)
    """
    bs = block_size
    return tuple(sorted({n for n in (1, bs - 1, bs, bs + 1, 2 * bs, 3 * bs - 1) if n > 0}))


def basic_cases(
    scope: Scope, dimensions: Dimensions, available: frozenset[str] = frozenset()
) -> Iterator[AttentionCase]:
    """The grid that comes first: every boundary length in one ragged batch.

    The first block size in every dtype comes first; then, in the first dtype, long rows, the focus beside
    each of the ``available`` capabilities that some cases use, seldom head sizes, and other block sizes.
    """
    first, *others = dimensions.block_sizes
    for dtype in dimensions.dtypes:
        yield from _changed(_plain_case(scope, dimensions, first, dtype), _grid(scope, first))
    case = _plain_case(scope, dimensions, first, dimensions.dtypes[0])
    focus = _focused(scope, first)
    once = [_long(scope), *_beside(scope, dimensions, available, case), *_seldom_heads(dimensions, case)]
    yield from _changed(case, ({**focus, **more} for more in once))
    for block_size in others:
        case = _plain_case(scope, dimensions, block_size, dimensions.dtypes[0])
        seldom = block_size in SELDOM_TAKEN["block_sizes"]
        yield from _changed(case, [_focused(scope, block_size)] if seldom else _grid(scope, block_size))


def _changed(case: AttentionCase, grid: Iterable[dict[str, Any]]) -> Iterator[AttentionCase]:
    return (legal(msgspec.structs.replace(case, **changes)) for changes in grid)


def _plain_case(scope: Scope, dimensions: Dimensions, block_size: int, dtype: DType) -> AttentionCase:
    """Boundary lengths, and what the focus asks of sizes."""
    lengths = tuple(reversed(boundary_lengths(block_size)))
    if "empty" in scope.focus:
        lengths = (*lengths[:2], 0, *lengths[2:], 0)
    return AttentionCase(
        lengths=lengths,
        block_size=block_size,
        kv_heads=2,
        head_size=dimensions.head_sizes[0],
        dtype=dtype,
        placement=1,
        unused="garbage",
        shared_blocks=1,
        num_queries=3 if "chunked-prefill" in scope.focus else 1,
        group_size=max(dimensions.group_sizes) if "gqa" in scope.focus else 1,
    )


def _long(scope: Scope) -> dict[str, Any]:
    """Changes to the plain case that make its rows long."""
    lengths = (*LONG_ROWS, 0) if "empty" in scope.focus else LONG_ROWS
    chunk = {"num_queries": LONG_CHUNK} if "chunked-prefill" in scope.focus else {}
    return {"lengths": lengths, "kv_heads": 1, **chunk}


def _beside(
    scope: Scope, dimensions: Dimensions, available: frozenset[str], case: AttentionCase
) -> Iterator[dict[str, Any]]:
    """Changes to the plain case, each of which uses one more capability."""
    changes: dict[str, dict[str, Any]] = {
        **_with_options(case.block_size),
        "gqa": {"group_size": max(dimensions.group_sizes)},
        "chunked-prefill": {"num_queries": 3},
        "empty": {"lengths": (*case.lengths, 0)},
    }
    return (changes[name] for name in sorted(scope.extra & available))


def _seldom_heads(dimensions: Dimensions, case: AttentionCase) -> Iterator[dict[str, Any]]:
    """Changes to the plain case: fewer rows, and a head size that isn't a power of two, or a large one."""
    seldom = (size for size in dimensions.head_sizes if size in SELDOM_TAKEN["head_sizes"])
    return ({"head_size": size, "lengths": case.lengths[:3]} for size in seldom)


def _with_options(block_size: int) -> dict[str, dict[str, Any]]:
    """For each of `OPTIONS`, changes to the plain case that use it."""
    return {
        "softcap": {"softcap": 1.5},
        "sinks": {"sinks": True},
        "alibi": {"alibi": True},
        "window": {"window": block_size},
    }


def _focused(scope: Scope, block_size: int) -> dict[str, Any]:
    """Changes to the plain case that exercise the focus of the scope, once."""
    options: dict[str, dict[str, Any]] = {
        **_with_options(block_size),
        "poison": {"poison": "nan"},
        "strided": {"layout": "interleaved"},
    }
    found: dict[str, Any] = {"splits": (0, 1, block_size, block_size + 1)} if scope.merges else {}
    for name in sorted(scope.focus & options.keys()):
        found |= options[name]
    return found


def _grid(scope: Scope, block_size: int) -> Iterator[dict[str, Any]]:
    """Changes to the plain case that exercise the focus of the scope in every way."""
    options = _focused(scope, block_size)
    if "window" in scope.focus:
        yield from ({**options, "window": window} for window in sorted({1, block_size, block_size + 1}))
    elif "poison" in scope.focus:
        for poison in ("nan", "infinity", "huge"):
            yield from ({"poison": poison, "poison_in": place} for place in ("values", "keys", "both"))
    elif "strided" in scope.focus:
        yield from ({"layout": layout} for layout in ("interleaved", "head-major", "padded"))
    else:
        yield options
        yield {**options, "data": "direction", "unused": "no-block"}


@st.composite
def cases(draw: st.DrawFn, scope: Scope, available: frozenset[str], dimensions: Dimensions) -> AttentionCase:
    """Cases of the scope that a target with the ``available`` capabilities can be asked."""
    used = scope.focus | (scope.extra & available)
    block_size = draw(any_of(_common("block_sizes", dimensions)))
    lengths = draw(_lengths(block_size, "empty" in scope.focus, "empty" in used))
    case = AttentionCase(
        lengths=lengths,
        block_size=block_size,
        num_queries=draw(_among("chunked-prefill", scope, used, (1,), (3, block_size + 1, 2))),
        group_size=draw(_among("gqa", scope, used, (1,), _groups(dimensions))),
        kv_heads=draw(any_of((2, 1, 3))),
        head_size=draw(any_of(_common("head_sizes", dimensions))),
        dtype=draw(any_of(dimensions.dtypes)),
        data=draw(any_of(("normal", "direction", "mean", "spikes"))),
        placement=draw(evenly(1 if scope.moves else 0, 2**16)),
        shared_blocks=draw(any_of((0, 1, 2))),
        unused=draw(any_of(("none", "no-block", "garbage"))),
        seed=draw(evenly(0, 2**16)),
    )
    return legal(msgspec.structs.replace(case, **draw(_options(scope, used, case))))


def _common(name: str, dimensions: Dimensions) -> tuple[int, ...]:
    """Sizes to draw from; the seldom ones are large, and stand in the grid."""
    sizes: tuple[int, ...] = getattr(dimensions, name)
    return tuple(size for size in sizes if size not in SELDOM_TAKEN[name]) or sizes


def _groups(dimensions: Dimensions) -> tuple[int, ...]:
    return tuple(size for size in dimensions.group_sizes if size > 1) or (1,)


def _among(
    capability: str, scope: Scope, used: frozenset[str], without: tuple[int, ...], within: tuple[int, ...]
) -> st.SearchStrategy[int]:
    """A size: of ``within`` when the capability is the focus, of both when it is only used."""
    if capability in scope.focus:
        return any_of(within)
    return any_of((*without, *within) if capability in used else without)


@st.composite
def _lengths(draw: st.DrawFn, block_size: int, some_empty: bool, may_be_empty: bool) -> tuple[int, ...]:
    values = boundary_lengths(block_size)
    element = any_of((*values, 0) if may_be_empty else values)
    lengths = draw(st.lists(element, min_size=1, max_size=4))
    if some_empty and 0 not in lengths:
        lengths[draw(evenly(0, len(lengths) - 1))] = 0
    return tuple(lengths)


@st.composite
def _options(draw: st.DrawFn, scope: Scope, used: frozenset[str], case: AttentionCase) -> dict[str, Any]:
    """Window, softcap, sinks, ALiBi, poison, layout and splits of a case."""
    on = {name for name in OPTIONS if name in scope.focus or (name in used and draw(evenly(0, 3)) == 0)}
    if {"alibi", "softcap"} <= on:
        # No engine says in which order the two apply.
        on.remove("softcap" if "alibi" in scope.focus else "alibi")
    options: dict[str, Any] = dict.fromkeys(on & {"sinks", "alibi"}, True)
    if "window" in on:
        longest = max(case.lengths)
        near = {1, 2, case.block_size, case.block_size + 1, longest - 1, longest, longest + 1}
        options["window"] = draw(any_of(sorted(size for size in near if size > 0)))
    if "softcap" in on:
        options["softcap"] = draw(any_of((0.5, 2.0, 30.0)))
    if "poison" in scope.focus:
        options["poison"] = draw(any_of(("nan", "infinity", "huge")))
        options["poison_in"] = draw(any_of(("values", "keys", "both")))
    if "strided" in scope.focus:
        options["layout"] = draw(any_of(("interleaved", "head-major", "padded")))
    if scope.merges:
        options["splits"] = tuple(draw(st.lists(evenly(0, 3 * case.block_size), max_size=3)))
    return options
