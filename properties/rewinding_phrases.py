"""Phrases about what is scheduled and then forgotten: drafts, rollbacks, aborts, late writes, windows."""

from collections.abc import Iterator

from tokenlaw.properties.scene import Phrase, Scene, needing
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Chunked,
    Fork,
    FreeAgain,
    LateWrite,
    New,
    Operation,
    Rollback,
    Speculate,
    SpeculateBatch,
)


def speculate(scene: Scene) -> Iterator[Operation]:
    """Any (length mod block, drafts, accepted) triple, then other tokens where drafts were rejected."""
    yield from scene.someone()
    index = scene.pick()
    fill = scene.dice.randrange(scene.block)
    if fill:
        yield Append(index, scene.tokens(fill))
    if "fork" in scene.capabilities and scene.dice.random() < 0.2:
        yield Fork(index)
    before = scene.at(index)
    prefix, namespace = before.tokens, before.namespace
    drafts = scene.tokens(scene.dice.randint(0, scene.block + 2))
    accepted = len(drafts) if scene.dice.random() < 0.3 else scene.dice.randint(0, len(drafts))
    yield Speculate(index, drafts, accepted)
    if accepted < len(drafts) and scene.dice.random() < 0.7:
        yield Append(
            index, (scene.other(drafts[accepted]), *scene.tokens(scene.dice.randint(0, scene.block)))
        )
    if scene.dice.random() < 0.4:
        yield New(prefix + drafts + scene.tokens(1), namespace)


def speculate_in_a_batch(scene: Scene) -> Iterator[Operation]:
    """Two or three sequences, perhaps a fork among them, get drafts in one step, then each its verdict."""
    for _ in range(scene.dice.randint(1, 2)):
        yield New(scene.prompt(), scene.namespace())
    index = scene.last()
    if "fork" in scene.capabilities and scene.dice.random() < 0.6:
        yield Fork(index)
    most = min(3, len(scene.history.live))
    chosen = [scene.last() - place for place in range(most)]
    lengths = tuple(scene.dice.randint(1, scene.block + 2) for _ in chosen)
    kept = tuple(scene.dice.randint(-1, length) for length in lengths)
    scene.dice.shuffle(chosen)
    yield SpeculateBatch(tuple(chosen), scene.tokens(max(lengths)), lengths, kept)
    yield from scene.someone()
    yield Append(scene.pick(), scene.tokens(scene.dice.randint(1, scene.block)))


def fork_behind_a_rejection(scene: Scene) -> Iterator[Operation]:
    """Reject drafts, whose blocks may stay as look-ahead; fork; let both sides grow into those blocks."""
    yield from scene.someone()
    index = scene.pick()
    drafts = scene.tokens(scene.dice.randint(1, 2 * scene.block))
    yield Speculate(index, drafts, scene.dice.randint(0, len(drafts) // 2))
    yield Fork(index)
    sides = [index, scene.last()]
    scene.dice.shuffle(sides)
    for side in sides:
        yield Append(side, scene.tokens(scene.dice.randint(1, scene.block + 1)))


def roll_back_into_a_full_block(scene: Scene) -> Iterator[Operation]:
    """Fill a block, roll back into it, append another token; then ask for what the block held before."""
    yield from scene.someone()
    index = scene.pick()
    yield Append(index, scene.tokens(-len(scene.at(index).tokens) % scene.block or scene.block))
    tokens, namespace = scene.at(index).tokens, scene.at(index).namespace
    if not tokens:
        return
    count = scene.dice.randint(1, min(scene.block, len(tokens)))
    yield Rollback(index, count)
    if scene.dice.random() < 0.8:
        yield Append(index, (scene.other(tokens[-count]),))
    if scene.dice.random() < 0.6:
        yield New(tokens + scene.tokens(1), namespace)


def replace_a_cached_block(scene: Scene) -> Iterator[Operation]:
    """Take cached blocks back, or all, put others there; then ask for the old ones and what came later."""
    namespace = scene.namespace()
    old = scene.tokens(scene.block * scene.dice.randint(2, 3))
    yield New(old, namespace)
    index = scene.last()
    count = len(old) if scene.dice.random() < 0.3 else scene.dice.randint(1, len(old) - scene.block)
    yield Rollback(index, count)
    yield Append(index, (scene.other(old[-count]), *scene.tokens(count - 1 + scene.block)))
    yield New(old + scene.at(index).tokens[len(old) :] + scene.tokens(1), namespace)


def roll_back(scene: Scene) -> Iterator[Operation]:
    """Roll back by nothing, a little, over several blocks, or everything."""
    yield from scene.someone()
    index = scene.pick()
    length = len(scene.at(index).tokens)
    yield Rollback(index, scene.dice.choice((0, length, scene.dice.randint(0, length))))
    if scene.dice.random() < 0.5:
        yield Append(index, scene.tokens(scene.dice.randint(1, scene.block + 1)))


def roll_back_too_far(scene: Scene) -> Iterator[Operation]:
    """More than there is, or a negative count: must raise and change nothing."""
    yield from scene.someone()
    index = scene.pick()
    beyond = len(scene.at(index).tokens) + scene.dice.choice((1, 1, scene.block))
    yield Rollback(index, scene.dice.choice((beyond, -1)))


def abort(scene: Scene) -> Iterator[Operation]:
    """Release between scheduling and writing, perhaps twice; then ask for tokens that were never written."""
    prompt, namespace = scene.prompt() + scene.tokens(scene.block), scene.namespace()
    if scene.history.live and scene.dice.random() < 0.5:
        index = scene.pick()
        prompt, namespace = scene.at(index).tokens, scene.at(index).namespace
        more = scene.tokens(scene.dice.randint(1, 2 * scene.block))
        yield Abort(more, index)
        prompt += more
    else:
        yield Abort(prompt, None, namespace)
    if scene.dice.random() < 0.25:
        yield FreeAgain()
    if scene.dice.random() < 0.8:
        yield New(prompt + scene.tokens(1), namespace)


def write_in_chunks(scene: Scene) -> Iterator[Operation]:
    """Commit a part of what is scheduled, then the rest or an abort; then ask for all that was scheduled.

    Before it, a full block may be taken back in part: then it isn't committed any more.
    """
    back, aborted = 0, scene.dice.random() < 0.5
    index, namespace = None, scene.namespace()
    if scene.history.live and scene.dice.random() < 0.75:
        index = scene.pick()
        if "rollback" in scene.capabilities and scene.dice.random() < 0.7:
            yield from scene.fill_block(index)
            back = scene.dice.randint(1, scene.block)
            yield Rollback(index, back)
        namespace = scene.at(index).namespace
    more = scene.tokens(scene.dice.randint(max(2, back), back + scene.block + 1))
    written = 1 if scene.dice.random() < 0.5 else scene.dice.randrange(1, len(more))
    prompt = more if index is None else scene.at(index).tokens + more
    yield Chunked(more, written, index, namespace if index is None else "", aborted)
    if scene.dice.random() < 0.7:
        yield New(prompt + scene.tokens(1), namespace)


def write_late(scene: Scene) -> Iterator[Operation]:
    """A released sequence's last step still writes while another prompt takes blocks, or hits the same ones.

    What is free behind the step is taken then.
    """
    yield from scene.someone()
    index = scene.pick()
    tokens = scene.tokens(scene.dice.randint(1, scene.block + 1))
    again = scene.at(index).tokens + scene.tokens(1)
    yield LateWrite(index, tokens, again if scene.dice.random() < 0.5 else scene.prompt())
    if scene.dice.random() < 0.5:
        yield New(scene.tokens(scene.block * scene.dice.randint(1, scene.config.num_blocks)))


def cross_the_window(scene: Scene) -> Iterator[Operation]:
    """Lengths around the window, one call longer than it, and a rollback right after blocks were dropped."""
    window = scene.config.window or scene.block
    yield New(scene.tokens(max(1, window + scene.dice.randint(-1, 1))))
    index = scene.last()
    for _ in range(scene.dice.randint(1, 2)):
        yield Append(index, scene.tokens(scene.dice.choice((1, scene.block, window + scene.block))))
    if "rollback" in scene.capabilities and scene.dice.random() < 0.5:
        yield Rollback(index, 1)
    if "speculate" in scene.capabilities and scene.dice.random() < 0.5:
        yield Speculate(index, scene.tokens(scene.block + 1), scene.dice.randint(0, 1))
    yield Append(index, scene.tokens(1))


PHRASES: tuple[Phrase, ...] = (
    Phrase("speculate", speculate, needing("speculate"), weight=4),
    Phrase("speculate in a batch", speculate_in_a_batch, needing("speculate", "commit"), weight=3),
    Phrase("fork behind a rejection", fork_behind_a_rejection, needing("speculate", "fork")),
    Phrase("roll back into a full block", roll_back_into_a_full_block, needing("rollback")),
    Phrase("replace a cached block", replace_a_cached_block, needing("rollback", "prefix-cache")),
    Phrase("roll back", roll_back, needing("rollback")),
    Phrase("roll back too far", roll_back_too_far, needing("rollback"), weight=1),
    Phrase("abort", abort),
    Phrase("write in chunks", write_in_chunks, needing("commit"), weight=5),
    Phrase("write late", write_late, needing("in-flight", "commit")),
    Phrase("cross the window", cross_the_window, needing("window"), weight=3),
)
