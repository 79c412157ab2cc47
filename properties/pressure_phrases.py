"""Phrases about the pool and the cache: releases, full pools, eviction, resets, new weights, swapping."""

from collections.abc import Iterator

from tokenlaw.properties.scene import Phrase, Scene, needing
from tokenlaw.properties.trace import (
    Append,
    Evict,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Reset,
    Speculate,
    SwapIn,
    SwapOut,
    Weights,
)


def free_some(scene: Scene) -> Iterator[Operation]:
    """Release one sequence, or all: then every block must be free."""
    yield from scene.someone()
    if scene.dice.random() < 0.7:
        yield Free(scene.pick())
    else:
        yield from scene.drain()


def free_again(scene: Scene) -> Iterator[Operation]:
    """Release twice, at once or after somebody else took the blocks."""
    yield from scene.someone()
    yield Free(scene.pick())
    if scene.dice.random() < 0.4:
        yield New(scene.prompt(), scene.namespace())
    yield FreeAgain()


def fill_exactly(scene: Scene) -> Iterator[Operation]:
    """Fill an empty pool to the last slot; one token more doesn't fit."""
    yield from scene.drain()
    capacity = scene.config.num_blocks * scene.block
    head = scene.dice.randint(0, min(scene.block + 1, capacity))
    yield New(scene.tokens(capacity - head))
    if head:
        yield Append(scene.last(), scene.tokens(head))
    if "fork" in scene.capabilities and scene.dice.random() < 0.5:
        yield Fork(scene.last())
    if scene.dice.random() < 0.3 and "speculate" in scene.capabilities:
        yield Speculate(0, scene.tokens(2), 1)
    yield Append(0, scene.tokens(1))
    yield Free(0)


def one_block_short(scene: Scene) -> Iterator[Operation]:
    """Leave one block less than the next prompt needs, or than a divergence needs to copy into."""
    yield from scene.drain()
    capacity = scene.config.num_blocks * scene.block
    needed = scene.dice.randint(1, min(2, scene.config.num_blocks))
    if scene.dice.random() < 0.5:
        yield New(scene.tokens(capacity - needed * scene.block + 1))
        yield New(scene.tokens(needed * scene.block))
    else:
        yield New(scene.tokens(capacity - scene.dice.randrange(scene.block)))
        yield Fork(0) if "fork" in scene.capabilities else Append(0, scene.tokens(scene.block))
        yield Append(scene.last(), scene.tokens(1))
    yield New(scene.tokens(capacity + 1))
    if scene.dice.random() < 0.5:
        yield from scene.drain()


def hit_under_pressure(scene: Scene) -> Iterator[Operation]:
    """A prompt whose head is cached and unreferenced and whose tail needs all the other blocks."""
    yield from scene.drain()
    blocks = scene.config.num_blocks
    cached = scene.dice.randint(1, max(1, min(blocks - 1, 3)))
    prompt = scene.tokens(cached * scene.block)
    yield New(prompt)
    yield Free(scene.last())
    if scene.dice.random() < 0.5:
        yield New(scene.tokens(scene.block * scene.dice.randint(1, blocks)))
        yield Free(scene.last())
    tail = max(1, (blocks - cached) * scene.block + scene.dice.randint(-scene.block, 1))
    yield New(prompt + scene.tokens(tail))
    yield Free(scene.last())
    yield New(prompt[: scene.dice.randint(1, len(prompt))] + scene.tokens(scene.block))


def churn(scene: Scene) -> Iterator[Operation]:
    """Short-lived prompts that push cached blocks out, then an old prompt again."""
    known = scene.known()
    for _ in range(scene.dice.randint(1, 3)):
        yield New(scene.tokens(scene.block * scene.dice.randint(1, max(1, scene.config.num_blocks // 2))))
        yield Free(scene.last())
    yield New(known.tokens, known.namespace)


def evict(scene: Scene) -> Iterator[Operation]:
    """Look up, evict, look up again: blocks that are released, or on their way to the host, may go."""
    known = scene.known()
    yield New(known.tokens, known.namespace)
    yield Append(scene.last(), scene.tokens(scene.block))
    tokens = scene.at(scene.last()).tokens
    yield from _leave(scene, scene.last(), 0.7)
    yield Evict(scene.dice.choice((1, 1, 2, scene.config.num_blocks)))
    yield New(tokens, known.namespace)


def reset(scene: Scene) -> Iterator[Operation]:
    """Empty the cache under sequences, live or on their way to the host, then submit a known prompt."""
    yield from scene.someone()
    index = scene.pick()
    yield from scene.fill_block(index)
    known = scene.known() if scene.dice.random() < 0.5 else scene.at(index)
    yield from _leave(scene, index, 0.4)
    yield Reset()
    yield New(known.tokens + scene.tokens(1), known.namespace)


def _leave(scene: Scene, index: int, share: float) -> Iterator[Operation]:
    """Release the sequence with this probability, or send it to the host in half of the other cases."""
    if scene.dice.random() < share:
        yield Free(index)
    elif {"swap", "copies"} <= scene.capabilities and scene.dice.random() < 0.5:
        yield SwapOut(index)


def change_weights(scene: Scene) -> Iterator[Operation]:
    """New weights under a live or swapped-out sequence; it or a fork fills a block: none of it may be hit."""
    yield from scene.someone()
    index = scene.pick()
    if scene.dice.random() < 0.6:
        yield from scene.fill_block(index)
    old = scene.at(index).tokens
    if {"swap", "copies"} <= scene.capabilities and scene.dice.random() < 0.25:
        # Live sequences stay in order of creation, so it comes back to its index.
        away = sum(one.number < scene.at(index).number for one in scene.history.swapped)
        yield SwapOut(index)
        yield Weights()
        yield SwapIn(away)
    else:
        yield Weights()
    if "fork" in scene.capabilities and scene.dice.random() < 0.25:
        yield Fork(index)
        index = scene.last()
    yield Append(index, scene.tokens(scene.dice.randint(1, scene.block + 1)))
    new, namespace = scene.at(index).tokens, scene.at(index).namespace
    if scene.dice.random() < 0.6:
        yield Free(index)
    yield New(scene.dice.choice((old, new)) + scene.tokens(1), namespace)


FULL = Phrase("fill exactly", fill_exactly, weight=1)
"""The one that fills the pool to the last slot."""

PHRASES: tuple[Phrase, ...] = (
    Phrase("free some", free_some),
    Phrase("free again", free_again, weight=1),
    FULL,
    Phrase("one block short", one_block_short, weight=1),
    Phrase("hit under pressure", hit_under_pressure),
    Phrase("churn", churn),
    Phrase("evict", evict, needing("evict")),
    Phrase("reset", reset, needing("reset")),
    Phrase("change weights", change_weights, needing("epochs")),
)
