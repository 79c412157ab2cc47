"""Phrases about sharing: equal and nearly equal prompts, forks, divergence."""

from collections.abc import Iterator

from tokenlaw.properties.scene import VOCABULARY, Phrase, Scene, needing
from tokenlaw.properties.trace import Append, Batch, Fork, Free, New, Operation, Rollback

_CROWD = 5


def admit(scene: Scene) -> Iterator[Operation]:
    """A new sequence; some old one goes when there are many."""
    if len(scene.history.live) > _CROWD:
        yield Free(scene.pick())
    yield New(scene.prompt(), scene.namespace())


def grow(scene: Scene) -> Iterator[Operation]:
    """Append a few tokens, up to a block and one."""
    yield from scene.someone()
    yield Append(scene.pick(), scene.tokens(scene.dice.randint(1, scene.block + 1)))


def resubmit(scene: Scene) -> Iterator[Operation]:
    """Exactly the prompt of a live or released sequence, or that and one token."""
    known = scene.known()
    yield New(known.tokens + scene.tokens(scene.dice.randint(0, 1)), known.namespace)


def resubmit_freed(scene: Scene) -> Iterator[Operation]:
    """Release a sequence, then submit its tokens again (filled up to whole blocks half of the time)."""
    yield from scene.someone()
    index = scene.pick()
    if scene.dice.random() < 0.5:
        yield from scene.fill_block(index)
    freed = scene.at(index)
    yield Free(index)
    yield New(freed.tokens + scene.tokens(scene.dice.randint(0, 1)) or scene.prompt(), freed.namespace)


def differ_at_one_position(scene: Scene) -> Iterator[Operation]:
    """Share a prefix with a known sequence and differ at a single position, any one."""
    known = scene.known()
    tokens = list(known.tokens)
    place = scene.dice.randrange(len(tokens))
    tokens[place] = scene.other(tokens[place])
    yield New(tuple(tokens) + scene.tokens(scene.dice.randint(0, 2)), known.namespace)


def cross_two_prefixes(scene: Scene) -> Iterator[Operation]:
    """Cache two prompts, then ask for the first block of one followed by the rest of the other."""
    namespace = scene.namespace()
    first, second = scene.tokens(2 * scene.block), scene.tokens(2 * scene.block + 1)
    if first[: scene.block] == second[: scene.block]:
        second = (scene.other(second[0]), *second[1:])
    for prompt in (first, second):
        yield New(prompt, namespace)
        if scene.dice.random() < 0.5:
            yield Free(scene.last())
    yield New(first[: scene.block] + second[scene.block :], namespace)


def two_namespaces(scene: Scene) -> Iterator[Operation]:
    """Equal tokens in two namespaces share nothing."""
    prompt = scene.tokens(scene.block * scene.dice.randint(1, 2)) + scene.tokens(1)
    first, second = scene.two_namespaces()
    yield New(prompt, first)
    if scene.dice.random() < 0.5:
        yield Free(scene.last())
    yield New(prompt, second)
    yield New(prompt, first)


def fork_and_diverge(scene: Scene) -> Iterator[Operation]:
    """Fork, then append different tokens on both sides, in either order; sometimes several blocks of them."""
    yield from scene.someone()
    parent = scene.pick()
    yield Fork(parent)
    child = scene.last()
    token = scene.dice.randrange(VOCABULARY)
    more = scene.dice.randint(0, scene.block)
    if scene.dice.random() < 0.25:
        more = scene.dice.randint(2 * scene.block, 4 * scene.block)
    sides = [(parent, (token, *scene.tokens(more))), (child, (scene.other(token), *scene.tokens(more)))]
    if scene.dice.random() < 0.5:
        sides.reverse()
    yield Append(*sides[0])
    if scene.dice.random() < 0.85:
        yield Append(*sides[1])


def fork_many(scene: Scene) -> Iterator[Operation]:
    """One sequence and so many forks of it that counters and rings of 4 and 5 bits are too small."""
    yield from scene.someone()
    index = scene.pick()
    for _ in range(scene.dice.choice((16, 17, 33))):
        yield Fork(index)
    yield Append(index, scene.tokens(1))
    yield Free(index)


def begin_differently(scene: Scene) -> Iterator[Operation]:
    """Two prompts, half as long as the pool, that differ in their first token only; then the second again."""
    yield from scene.drain()
    rest = scene.tokens(max(1, scene.block * (scene.config.num_blocks // 2) - 2))
    token = scene.dice.randrange(VOCABULARY)
    second = (scene.other(token), *rest)
    yield from (New((token, *rest)), New(second), New(second + scene.tokens(1)))


def batch_of_sharers(scene: Scene) -> Iterator[Operation]:
    """Two or all of three sequences with one partial tail go on in one step, in which one may leave."""
    yield New(scene.tokens(scene.dice.randint(1, 2 * scene.block - 1)))
    parent = scene.last()
    yield from (Fork(parent), Fork(parent))
    sharers = [parent, scene.last() - 1, scene.last()]
    leaving = scene.dice.choice((None, *sharers))
    yield Batch(tuple(scene.dice.sample(sharers, scene.dice.randint(2, 3))), scene.tokens(3), leaving)


def batch_step(scene: Scene) -> Iterator[Operation]:
    """Two forked pairs; one side of each goes on in one step, in which another sequence may leave."""
    sides = []
    for _ in range(2):
        yield New(scene.tokens(scene.dice.randint(1, 2 * scene.block - 1)))
        parent = scene.last()
        yield Fork(parent)
        sides.append(scene.dice.sample((parent, scene.last()), 2))
    leaving = scene.dice.choice((None, sides[0][0], sides[0][1], sides[0][1], scene.pick()))
    yield Batch((sides[0][0], sides[1][0]), scene.tokens(2), leaving)


def fork_and_rewind(scene: Scene) -> Iterator[Operation]:
    """Fork, then roll one side back into what is shared and give it another token."""
    yield from scene.someone()
    parent = scene.pick()
    yield Fork(parent)
    acting, tokens = scene.dice.choice((parent, scene.last())), scene.at(parent).tokens
    if tokens:
        count = scene.dice.randint(1, min(len(tokens), scene.block + 1))
        yield Rollback(acting, count)
        yield Append(acting, (scene.other(tokens[-count]),))


def fork_in_a_namespace(scene: Scene) -> Iterator[Operation]:
    """A fork stays in its parent's namespace: fill a block of it, then ask for that in another one."""
    first, second = scene.two_namespaces()
    yield New(scene.tokens(scene.dice.randint(1, 2 * scene.block)), first)
    yield Fork(scene.last())
    child = scene.last()
    yield Append(child, scene.tokens(-len(scene.at(child).tokens) % scene.block or scene.block))
    yield New(scene.at(child).tokens + scene.tokens(1), second)


def share_all_and_free_one(scene: Scene) -> Iterator[Operation]:
    """Two sequences with the same blocks, one goes, the other goes on, somebody takes what became free."""
    yield from scene.someone()
    index = scene.pick()
    if "fork" in scene.capabilities and scene.dice.random() < 0.6:
        yield Fork(index)
    else:
        yield New(scene.at(index).tokens or scene.prompt(), scene.at(index).namespace)
    yield Free(scene.dice.choice((index, scene.last())))
    yield New(scene.prompt(), scene.namespace())
    yield Append(scene.pick(), scene.tokens(1))


PHRASES: tuple[Phrase, ...] = (
    Phrase("admit", admit),
    Phrase("grow", grow, weight=4),
    Phrase("resubmit", resubmit),
    Phrase("resubmit freed", resubmit_freed),
    Phrase("differ at one position", differ_at_one_position),
    Phrase("cross two prefixes", cross_two_prefixes),
    Phrase("two namespaces", two_namespaces, needing("namespaces")),
    Phrase("fork and diverge", fork_and_diverge, needing("fork"), weight=4),
    Phrase("fork many", fork_many, needing("fork"), weight=1),
    Phrase("begin differently", begin_differently, needing("prefix-cache"), weight=3),
    Phrase("batch of sharers", batch_of_sharers, needing("fork", "commit")),
    Phrase("batch step", batch_step, needing("fork", "commit"), weight=4),
    Phrase("fork and rewind", fork_and_rewind, needing("fork", "rollback")),
    Phrase("fork in a namespace", fork_in_a_namespace, needing("fork", "namespaces"), weight=3),
    Phrase("share all and free one", share_all_and_free_one),
)
