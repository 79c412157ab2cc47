"""A small deterministic shrinker of attention cases: the same failing case shrinks to the same small one."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from tokenlaw.properties.attention_cases import AttentionCase, legal
from tokenlaw.properties.attention_strategies import Dimensions, Scope

MAX_TRIALS = 250
"""Cases tried at most while shrinking one failure."""


def shrink(
    case: AttentionCase, still_fails: Callable[[AttentionCase], bool], scope: Scope, dimensions: Dimensions
) -> AttentionCase:
    """The simplest case found that still fails and still belongs to the scope of its check."""
    trials = 0
    tried = {case}
    progress = True
    while progress:
        progress = False
        for candidate in simpler(case, scope, dimensions):
            if candidate in tried:
                continue
            if trials >= MAX_TRIALS:
                return case
            trials += 1
            tried.add(candidate)
            if still_fails(candidate):
                case, progress = candidate, True
                break
    return case


def simpler(case: AttentionCase, scope: Scope, dimensions: Dimensions) -> Iterator[AttentionCase]:
    """Cases that are simpler in one respect, the largest steps first."""
    for changes in (*_rows(case), *_switches(case, scope), *_sizes(case, scope, dimensions), *_splits(case)):
        candidate = legal(replace(case, **changes))
        if candidate != case and ("empty" not in scope.focus or 0 in candidate.lengths):
            yield candidate


def _rows(case: AttentionCase) -> Iterator[dict[str, Any]]:
    lengths = case.lengths
    if len(lengths) > 1:
        yield from ({"lengths": lengths[:row] + lengths[row + 1 :]} for row in range(len(lengths)))
    for row, length in enumerate(lengths):
        for shorter in (1, length // 2, length - case.block_size, length - 1):
            if 0 < shorter < length:
                yield {"lengths": (*lengths[:row], shorter, *lengths[row + 1 :])}


def _switches(case: AttentionCase, scope: Scope) -> Iterator[dict[str, Any]]:
    """Turn off what the check isn't about."""
    off = {"window": None, "softcap": None, "sinks": False, "alibi": False}
    yield from ({name: value} for name, value in off.items() if name not in scope.focus)
    yield {"data": "normal"}
    yield {"shared_blocks": 0}
    yield {"unused": "none"}
    yield {"unused": "no-block"} if case.unused == "garbage" else {}
    yield {"placement": 1 if scope.moves else 0}
    yield {"placement": min(case.placement, 1)}
    if case.poison != "none" and case.poison_in == "both":
        yield from ({"poison_in": place} for place in ("values", "keys"))
    if case.poison == "huge":
        yield {"poison": "nan"}
    yield {"seed": 0}


def _sizes(case: AttentionCase, scope: Scope, dimensions: Dimensions) -> Iterator[dict[str, Any]]:
    yield {"dtype": dimensions.dtypes[0]}
    yield {"kv_heads": 1}
    smallest_group = min((size for size in dimensions.group_sizes if size > 1), default=1)
    yield {"group_size": min(case.group_size, smallest_group if "gqa" in scope.focus else 1)}
    yield {"head_size": min(case.head_size, *dimensions.head_sizes)}
    yield {"num_queries": min(case.num_queries, 2 if "chunked-prefill" in scope.focus else 1)}
    yield from ({"block_size": size} for size in sorted(dimensions.block_sizes) if size < case.block_size)
    if case.window is not None and case.window > 1:
        yield from ({"window": size} for size in (1, case.window - 1))


def _splits(case: AttentionCase) -> Iterator[dict[str, Any]]:
    splits = case.splits
    yield from ({"splits": splits[:index] + splits[index + 1 :]} for index in range(len(splits)))
    for index, split in enumerate(splits):
        if split > 0:
            yield {"splits": (*splits[:index], split // 2, *splits[index + 1 :])}
