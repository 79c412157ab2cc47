"""Traces of block managers, and the hypothesis strategy for them.

hypothesis or plain dice decide the configuration, the length, and for each phrase which one and the seed of
its dice: two integers for several operations. That keeps drawing cheap and lets `hypothesis.target` change
one phrase of a trace and leave the others alone. Smallness is the shrinker's business
(`tokenlaw.properties.shrink`).
"""

import random
from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from tokenlaw.properties.drawing import Pick, one_of, picking
from tokenlaw.properties.phrases import PHRASES
from tokenlaw.properties.pressure_phrases import FULL
from tokenlaw.properties.scene import VOCABULARY, Phrase, Scene
from tokenlaw.properties.simpler import with_tokens
from tokenlaw.properties.trace import Operation, Tokens, Trace
from tokenlaw.spec.contracts import CacheConfig
from tokenlaw.spec.suites import Profile

_BLOCK_SIZES = (4, 4, 4, 4, 4, 3, 2, 1)
# Small pools first: pressure and reuse come from them. Large ones hide nothing that small ones show, except
# what depends on many live sequences, or on ids beyond 7 bits.
_POOLS = (3, 4, 5, 6, 8, 10, 12, 14, 16, 24, 32, 64, 160)
# A larger pool is filled at first, since its last ids are what it is there for; blocks of one token keep
# that cheap.
_MANY = 128
# Without a window in two traces of five: under one a sequence never fills the pool.
_WINDOWS = (*[None] * 6, 1, 2, 3, 4, 5, 6, 8, 9, 12)
# Ids in place of the tokens 0, 1, 2. In a third of the traces they are equal in their low 8, 16 or 30 bits
# or as 32-bit floats, or are read in two ways if their digits are joined.
_SMALL = tuple(range(VOCABULARY))
_LARGE = (
    (0, 65536, 2**30),
    (255, 65535, 2**31 - 1),
    (2**24, 2**24 + 1, 2**31 - 1),
    (1, 11, 111),
)
VOCABULARIES = (*[_SMALL] * 9, *_LARGE)
"""What the tokens of a trace are drawn from; each entry as often as any other."""

_DICE = 2**24 - 1


def supported_phrases(capabilities: frozenset[str]) -> tuple[Phrase, ...]:
    """The phrases whose operations these capabilities allow."""
    return tuple(phrase for phrase in PHRASES if phrase.needs <= capabilities)


def traces(
    capabilities: frozenset[str], profile: Profile, phrases: Sequence[Phrase] | None = None
) -> st.SearchStrategy[Trace]:
    """Traces that a block manager with these capabilities can run.

    Parameters
    ----------
    capabilities : effective capabilities of the target; no other operation is drawn.
    profile : bounds the operations of a trace.
    phrases : the deliberate rules to draw from; default: all that the capabilities allow.
    """
    chosen = supported_phrases(capabilities) if phrases is None else tuple(phrases)

    @st.composite
    def draw_trace(draw: st.DrawFn) -> Trace:
        return _trace(capabilities, profile, chosen, picking(draw))

    return draw_trace()


def rolled_trace(capabilities: frozenset[str], profile: Profile, number: int, dice: random.Random) -> Trace:
    """A trace without hypothesis, which spreads phrases unevenly: it repeats parts of what it drew.

    Phrase ``number`` opens it, counted round and round: in an empty pool it does what it is meant to do. The
    largest pools are filled first.
    """
    chosen = supported_phrases(capabilities)
    return _trace(capabilities, profile, chosen, dice.randint, chosen[number % len(chosen)])


def _trace(
    capabilities: frozenset[str],
    profile: Profile,
    phrases: Sequence[Phrase],
    pick: Pick,
    opening: Phrase | None = None,
) -> Trace:
    deck = [phrase for phrase in phrases for _ in range(phrase.weight)]
    scene = Scene(_configuration(pick, "window" in capabilities), capabilities)
    wanted = pick(max(1, profile.max_operations // 4), profile.max_operations)
    operations: list[Operation] = []
    if FULL in phrases and scene.config.num_blocks > _MANY:
        opening = FULL
    while len(operations) < wanted:
        phrase = one_of(pick, deck) if operations or opening is None else opening
        scene.dice = random.Random(pick(0, _DICE))
        operations += perform(phrase, scene)
    made = Trace(tuple(operations[: profile.max_operations]), scene.config)
    ids = one_of(pick, VOCABULARIES)
    return made if ids == _SMALL else with_tokens(made, partial(_spread, ids))


def _configuration(pick: Pick, windowed: bool) -> CacheConfig:
    windows = _WINDOWS if windowed else (None,)
    shape = pick(0, len(_BLOCK_SIZES) * len(_POOLS) * len(windows) - 1)
    shape, pool = divmod(shape, len(_POOLS))
    window, block = divmod(shape, len(_BLOCK_SIZES))
    blocks = _POOLS[pool]
    size = _BLOCK_SIZES[block] if blocks <= _MANY else 1
    return CacheConfig(num_blocks=blocks, block_size=size, window=windows[window])


def _spread(ids: Tokens, tokens: Tokens) -> Tokens:
    return tuple(ids[token] for token in tokens)


def perform(phrase: Phrase, scene: Scene) -> list[Operation]:
    """The operations of a phrase, each applied to the history of the scene before the next is made."""
    operations = []
    for operation in phrase.script(scene):
        scene.history.apply(operation)
        operations.append(operation)
    return operations
