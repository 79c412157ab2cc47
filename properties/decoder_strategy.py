"""Sessions, and the hypothesis strategy for them.

hypothesis or plain dice decide the configuration, the length, and for each operation which one and the seed
of its dice; `tokenlaw.properties.decoder_scene` makes it up.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tokenlaw.properties.decoder_features import request_for
from tokenlaw.properties.decoder_scene import DRAFT_LENGTHS, NUMBERS_OF_TOKENS, Scene
from tokenlaw.properties.drawing import Pick, one_of, picking
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionOperation, Step, Submit

MAX_OPERATIONS = 16
"""Operations of a session before its last move, which may add a few."""

_DICE = 2**24 - 1
_TOO_LARGE = 4  # times the pool
_CERTAIN = 0.8

_SIZES = (2, 3, 3, 3, 4, 5) * 2 + (40,)
"""Numbers of tokens; a mask of forty takes more than one word of 32 bits."""

_BLOCK_SIZES = (1, 2, 2, 3, 4, 4) * 2 + (8, 8, 16)

_CROWDED = 16

Move = Callable[[Scene], Sequence[SessionOperation]]


def _new(scene: Scene) -> Sequence[SessionOperation]:
    return (Submit(request_for(scene, scene.new_prompt()), scene.dice.randrange(_DICE)),)


def _kindred(scene: Scene) -> Sequence[SessionOperation]:
    return (Submit(request_for(scene, scene.kindred_prompt()), scene.dice.randrange(_DICE)),)


def _twins(scene: Scene) -> Sequence[SessionOperation]:
    """One prompt twice at the same time, which each goes on with in its own way."""
    prompt = scene.kindred_prompt()
    return tuple(Submit(request_for(scene, prompt), scene.dice.randrange(_DICE)) for _ in range(2))


def _long(scene: Scene) -> Sequence[SessionOperation]:
    """A request of certain tokens with as many drafts as can be, of which any may be the rejected one."""
    request = scene.plain_request(max(NUMBERS_OF_TOKENS), max(DRAFT_LENGTHS))
    return (Submit(request, scene.dice.randrange(_DICE)),)


def _crowd(scene: Scene) -> Sequence[SessionOperation]:
    """More small requests than most tables of a batch have rows, each with parameters of its own."""
    submitted: list[SessionOperation] = []
    for _ in range(scene.any_of(9, 10, 12)):
        small = {"num_tokens": scene.any_of(1, 2, 3), "draft_length": scene.any_of(0, 0, 1), "samples": 1}
        request = replace(request_for(scene, scene.tokens(scene.any_of(1, 2, 3))), **small)
        scene.requests[-1] = request
        scene.crowd.append(request)
        submitted.append(Submit(request, scene.dice.randrange(_DICE)))
    return submitted


def _long_history(scene: Scene) -> Sequence[SessionOperation]:
    """Penalties that see much; models of a decoder's own may not have as many positions."""
    if scene.target is None:
        return _new(scene)
    requests = (scene.far_sighted_request(), scene.counting_request())
    return tuple(Submit(request, scene.dice.randrange(_DICE)) for request in requests)


def _steps(scene: Scene) -> Sequence[SessionOperation]:
    return (Step(),) * int(scene.any_of(1, 1, 2, 3))


def _many_steps(scene: Scene) -> Sequence[SessionOperation]:
    """Enough for most requests to end, so that later ones find what they left behind."""
    return (Step(),) * max(NUMBERS_OF_TOKENS)


def _fork(scene: Scene) -> Sequence[SessionOperation]:
    """Some steps, so that there is something to fork."""
    steps = (Step(),) * scene.any_of(0, 1, 1, 2)
    return (*steps, Fork(scene.dice.randrange(8), scene.dice.randrange(_DICE)))


def _fork_of_new(scene: Scene) -> Sequence[SessionOperation]:
    """A request that surely lives when it is forked."""
    request = DecodeRequest(
        scene.kindred_prompt(),
        max(NUMBERS_OF_TOKENS),
        draft_length=scene.dice.choice(DRAFT_LENGTHS),
        sampling=request_for(scene, (0,)).sampling,
    )
    scene.requests[-1] = request
    return (Submit(request, scene.dice.randrange(_DICE)), Step(), Fork(-1, scene.dice.randrange(_DICE)))


def _random_samples(scene: Scene) -> Sequence[SessionOperation]:
    """Samples that differ behind a prompt whose last block has room for some of their tokens."""
    request = scene.diverging_request(samples=scene.any_of(2, 2, 3))
    return (Submit(request, scene.dice.randrange(_DICE)), *(Step(),) * 3)


def _random_fork(scene: Scene) -> Sequence[SessionOperation]:
    """The same by a fork."""
    submitted = Submit(scene.diverging_request(), scene.dice.randrange(_DICE))
    return (submitted, Step(), Fork(-1, scene.dice.randrange(_DICE)), *(Step(),) * 3)


def _abort(scene: Scene) -> Sequence[SessionOperation]:
    return (Abort(scene.dice.randrange(8)),)


_SERVER = frozenset({"requests"})
MOVES: tuple[tuple[frozenset[str], Move, int], ...] = (
    (frozenset(), _new, 2),
    (frozenset(), _kindred, 5),
    (frozenset(), _twins, 2),
    (_SERVER, _long, 2),
    (_SERVER, _steps, 5),
    (_SERVER, _many_steps, 1),
    (_SERVER | {"fork"}, _fork, 2),
    (_SERVER | {"fork"}, _fork_of_new, 2),
    (_SERVER | {"sampling", "samples"}, _random_samples, 2),
    (_SERVER | {"sampling", "fork"}, _random_fork, 1),
    (_SERVER | {"abort"}, _abort, 2),
    (_SERVER, _crowd, 0),
    (frozenset({"sampling", "penalties"}), _long_history, 0),
)
"""What a session is made of: the capabilities that a move takes, the move, and how often it comes.

What comes 0 times only opens sessions without hypothesis: it takes long."""


def sessions(
    capabilities: frozenset[str], *, vocabulary_size: int | None = None, max_operations: int = MAX_OPERATIONS
) -> st.SearchStrategy[Session]:
    """Sessions that a decoder with these capabilities can be asked.

    Parameters
    ----------
    vocabulary_size : of a decoder that has models of its own; None for one that is given models.
    """

    @st.composite
    def draw_session(draw: st.DrawFn) -> Session:
        return _session(capabilities, vocabulary_size, max_operations, picking(draw))

    return draw_session()


def rolled_session(
    capabilities: frozenset[str],
    vocabulary_size: int | None,
    max_operations: int,
    number: int,
    dice: random.Random,
) -> Session:
    """A session without hypothesis, of moves that are as frequent as `MOVES` says, but for the first.

    Move ``number`` comes first, after a request for it, counted round and round.
    """
    return _session(capabilities, vocabulary_size, max_operations, dice.randint, number)


def _session(
    capabilities: frozenset[str],
    vocabulary_size: int | None,
    max_operations: int,
    pick: Pick,
    number: int | None = None,
) -> Session:
    possible = [(move, weight) for needs, move, weight in MOVES if needs <= capabilities]
    deck = [move for move, weight in possible for _ in range(weight)]
    opening = None if number is None else possible[number % len(possible)][0]
    scene = _scene(random.Random(pick(0, _DICE)), capabilities, vocabulary_size)
    draft = _draft(scene)
    wanted = pick(min(4, max_operations), max_operations)
    operations: list[SessionOperation] = []
    while len(operations) < wanted:
        move: Move = _new
        if scene.requests:
            move, opening = opening or one_of(pick, deck), None
        scene.dice = random.Random(pick(0, _DICE))
        operations += move(scene)
    return _on_a_small_pool(operations, scene, draft)


def _scene(dice: random.Random, capabilities: frozenset[str], vocabulary_size: int | None) -> Scene:
    """A target that looks at every token; where greedy decoding can't be asked for, mostly a certain one."""
    size = vocabulary_size or dice.choice(_SIZES)
    certain = "sampling" not in capabilities and dice.random() < _CERTAIN
    target = Hashed(size, dice.randrange(_DICE), certain=certain) if vocabulary_size is None else None
    return Scene(capabilities, size, dice.choice(_BLOCK_SIZES), target, dice)


def _draft(scene: Scene) -> Hashed | None:
    """The target itself, another model, or mostly one that now and then says something else.

    Certain tokens would leave a draft model nothing where a grammar forbids them, so they come only where
    drafts can't be greedy.
    """
    if scene.target is None:
        return None
    other = scene.dice.randrange(_DICE)
    seed, stray_seed = scene.any_of(
        (scene.target.seed, None), (other, None), *((scene.target.seed, other),) * 6
    )
    certain = "sampling" not in scene.can and scene.any_of(True, True, False)
    return Hashed(scene.vocabulary_size, seed, certain, stray_seed)


def _on_a_small_pool(operations: list[SessionOperation], scene: Scene, draft: Hashed | None) -> Session:
    """A pool that holds the largest request, and little more, so that others wait or are pushed out."""
    requests = [operation.request for operation in operations if isinstance(operation, Submit)]
    longest = [len(one.prompt) + one.num_tokens + one.draft_length for one in requests]
    needed = [
        one.samples * (-(-length // scene.block_size) + 1)
        for one, length in zip(requests, longest, strict=True)
    ]
    together = [need for one, need in zip(requests, needed, strict=True) if one in scene.crowd]
    room = max(*needed, sum(together)) + scene.any_of(0, 1, 2, 4, 8, 16)
    if scene.any_of(*(False,) * 9, True):
        prompt = scene.tokens(_TOO_LARGE * room * scene.block_size)
        operations.append(Submit(DecodeRequest(prompt, 1, sampling=SamplingParameters())))
    most = _CROWDED if scene.crowd else scene.any_of(2, 3, 4, 8)
    return Session(
        tuple(operations),
        scene.vocabulary_size,
        scene.target,
        draft,
        num_blocks=room,
        block_size=scene.block_size,
        max_sequences=max(most, *(one.samples for one in requests)),
    )
