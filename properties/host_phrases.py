"""Phrases about the host tier: sequences that are preempted, come back, or are aborted there."""

from collections.abc import Iterator

from tokenlaw.properties.scene import Phrase, Scene, needing
from tokenlaw.properties.trace import (
    Append,
    Evict,
    Fork,
    Free,
    FreeAgain,
    FreeSwapped,
    New,
    Operation,
    Reset,
    Rollback,
    Speculate,
    SwapIn,
    SwapOut,
    Tokens,
    Weights,
)

_MOST_ABORTS = 10
"""Three operations each: more wouldn't fit into a trace."""


def swap(scene: Scene) -> Iterator[Operation]:
    """Out to the host, somebody else takes the blocks, and back."""
    yield from scene.someone()
    index = scene.pick()
    if "fork" in scene.capabilities and scene.dice.random() < 0.3:
        yield Fork(index)
    yield SwapOut(index)
    if scene.history.live:
        yield scene.dice.choice(_acts(scene, scene.pick()))
    for _ in range(scene.dice.randint(0, 2)):
        yield New(scene.prompt(), scene.namespace())
    if scene.history.live and scene.dice.random() < 0.6:
        yield Free(scene.last())
    if scene.dice.random() < 0.9:
        yield SwapIn(scene.dice.randrange(max(1, len(scene.history.swapped))))
    yield from scene.someone()
    yield Append(scene.pick(), scene.tokens(1))


def _acts(scene: Scene, index: int) -> list[Operation]:
    """What another sequence may do while copies to the host wait."""
    acts: list[Operation] = [Append(index, scene.tokens(scene.dice.randint(1, scene.block + 1)))]
    if "fork" in scene.capabilities:
        acts.append(Fork(index))
    if "rollback" in scene.capabilities:
        acts.append(Rollback(index, min(1, len(scene.at(index).tokens))))
    if "speculate" in scene.capabilities:
        acts.append(Speculate(index, scene.tokens(scene.block + 1), 1))
    return acts


def swap_all_again(scene: Scene) -> Iterator[Operation]:
    """A sequence that fills the pool goes to the host, perhaps somebody else runs, it comes back; twice.

    If it comes back at once, its blocks are still to be copied out when they are to be copied in.
    """
    yield from scene.drain()
    yield New(scene.tokens(scene.config.num_blocks * scene.block))
    for _ in range(2):
        yield SwapOut(0)
        if scene.dice.random() < 0.5:
            yield New(scene.tokens(1))
            yield Free(0)
        yield SwapIn(0)


def abort_on_the_host(scene: Scene) -> Iterator[Operation]:
    """Sequences go to the host and are aborted there, until more went than fit into the pool."""
    yield from scene.drain()
    held = _held_at_most(scene)
    for _ in range(min(scene.config.num_blocks // held + 1, _MOST_ABORTS)):
        yield New(scene.tokens(held * scene.block))
        yield SwapOut(0)
        if scene.dice.random() < 0.2:
            yield New(scene.tokens(1))
            yield Free(0)
        yield FreeSwapped(0)


def preempt_several(scene: Scene) -> Iterator[Operation]:
    """Sequences, equal ones or a fork among them, go to the host in one step: their copies wait together.

    Something happens to the cache or to one of them before the next step; then all that are out come back.
    """
    yield from scene.drain()
    prompt = scene.tokens(scene.block * scene.dice.randint(1, 2))
    yield New(prompt)
    if "fork" in scene.capabilities and scene.dice.random() < 0.5:
        yield Fork(0)
    else:
        yield New(prompt if scene.dice.random() < 0.5 else scene.prompt())
    yield SwapOut(scene.pick())
    yield SwapOut(0)
    yield from _meanwhile(scene, prompt)
    while scene.history.swapped:
        yield SwapIn(scene.dice.randrange(len(scene.history.swapped)))


def _meanwhile(scene: Scene, prompt: Tokens) -> Iterator[Operation]:
    """What may happen while copies to the host wait."""
    again: list[Operation] = [New(prompt + scene.tokens(1)), Free(0)]
    whole: list[Operation] = [New(scene.tokens(scene.config.num_blocks * scene.block)), Free(0)]
    two: list[Operation] = [New(scene.prompt()), New(scene.prompt()), SwapOut(0), SwapOut(0)]
    choices: list[list[Operation]] = [[], again, whole, [FreeSwapped(0)], [FreeSwapped(0), FreeAgain(), *two]]
    if scene.dice.random() < 0.4:
        cache = (("evict", Evict(2)), ("reset", Reset()), ("epochs", Weights()))
        choices = [[one, *again] for capability, one in cache if capability in scene.capabilities] or choices
    yield from scene.dice.choice(choices)


def host_too_small(scene: Scene) -> Iterator[Operation]:
    """Most of the host is taken, so that a whole pool is refused there; once it is empty it takes as much."""
    yield from scene.drain()
    whole, one = (scene.tokens(length * scene.block) for length in (_held_at_most(scene), 1))
    next_step = (New(one), Free(0))
    yield from (New(whole), SwapOut(0), *next_step, FreeSwapped(0))
    yield from (New(one), SwapOut(0), *next_step, New(whole), SwapOut(0))
    # Refused, it is still live, and the other one alone is out.
    yield from (FreeSwapped(0), Free(0), FreeSwapped(0), *next_step)
    yield from (New(whole), SwapOut(0), SwapIn(0))


def _held_at_most(scene: Scene) -> int:
    """Blocks that one sequence can hold."""
    blocks, window = scene.config.num_blocks, scene.config.window
    return blocks if window is None else min(blocks, -(-window // scene.block))


PHRASES: tuple[Phrase, ...] = (
    Phrase("swap", swap, needing("swap", "copies")),
    Phrase("swap all again", swap_all_again, needing("swap", "copies"), weight=1),
    Phrase("abort on the host", abort_on_the_host, needing("swap", "copies"), weight=1),
    Phrase("preempt several", preempt_several, needing("swap", "copies"), weight=4),
    Phrase("host too small", host_too_small, needing("swap", "copies"), weight=1),
)
