"""What two sequences may share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.prefix import Prompt, block_keys, may_share, shareable_tokens

# A vocabulary of two and short prompts, so that prefixes agree often and at every length.
TOKENS = st.lists(st.integers(0, 1), max_size=9).map(tuple)
PROMPTS = st.builds(Prompt, TOKENS, st.sampled_from(["", "adapter"]), st.integers(0, 1))
BLOCK_SIZES = st.integers(1, 4)


@st.composite
def related(draw: st.DrawFn) -> tuple[Prompt, Prompt]:
    """A prompt, and one that begins like it, most often with equal namespace and epoch."""
    prompt, other = draw(PROMPTS), draw(PROMPTS)
    shared = prompt.tokens[: draw(st.integers(0, 9))]
    namespace, epoch = draw(st.sampled_from([(prompt.namespace, prompt.epoch)] * 3 + [(other.namespace, 0)]))
    return prompt, Prompt(shared + other.tokens, namespace, epoch)


def legal_hit(prompt: Prompt, cached: Prompt, count: int, block_size: int) -> bool:
    """The rule again, position by position."""
    same_computation = (prompt.namespace, prompt.epoch) == (cached.namespace, cached.epoch)
    covered = count < len(prompt.tokens) and count <= len(cached.tokens)
    whole_blocks = count // block_size * block_size == count
    return (count == 0) or (
        same_computation
        and covered
        and whole_blocks
        and all(prompt.tokens[i] == cached.tokens[i] for i in range(count))
    )


@given(related(), BLOCK_SIZES)
def test_may_share_is_the_rule(pair: tuple[Prompt, Prompt], block_size: int) -> None:
    prompt, cached = pair
    for count in range(12):
        assert may_share(prompt, cached, count, block_size) == legal_hit(prompt, cached, count, block_size)
    assert not may_share(prompt, cached, -block_size, block_size)


@given(PROMPTS, st.lists(PROMPTS, max_size=4), BLOCK_SIZES)
def test_the_longest_hit_is_legal_and_the_next_block_is_not(
    prompt: Prompt, cached: list[Prompt], block_size: int
) -> None:
    hit = shareable_tokens(prompt, cached, block_size)
    assert hit == 0 or any(legal_hit(prompt, other, hit, block_size) for other in cached)
    assert not any(
        legal_hit(prompt, other, longer, block_size) for other in cached for longer in range(hit + 1, 10)
    )


@given(PROMPTS, st.lists(PROMPTS, max_size=4), BLOCK_SIZES)
def test_a_lookup_by_keys_finds_the_longest_hit(
    prompt: Prompt, cached: list[Prompt], block_size: int
) -> None:
    """What engines do: walk the keys until one isn't in the table, and leave one token to compute."""
    table = {key for other in cached for key in block_keys(other, block_size)}
    usable = block_keys(Prompt(prompt.tokens[:-1], prompt.namespace, prompt.epoch), block_size)
    hits = 0
    for key in usable:
        if key not in table:
            break
        hits += 1
    assert hits * block_size == shareable_tokens(prompt, cached, block_size)


@given(related(), BLOCK_SIZES)
def test_keys_are_equal_exactly_when_whole_prefixes_are(pair: tuple[Prompt, Prompt], block_size: int) -> None:
    one, other = pair
    for index, (key, other_key) in enumerate(
        zip(block_keys(one, block_size), block_keys(other, block_size), strict=False)
    ):
        end = (index + 1) * block_size
        same = one.tokens[:end] == other.tokens[:end] and key.namespace == other_key.namespace
        same = same and key.epoch == other_key.epoch
        assert (key == other_key) == same
        assert not same or hash(key) == hash(other_key)


@pytest.mark.parametrize("changed", range(8))
def test_one_different_token_ends_the_hit_at_its_block(changed: int) -> None:
    tokens = tuple(range(8))
    other = (*tokens[:changed], 99, *tokens[changed + 1 :])
    assert shareable_tokens(Prompt((*tokens, 8)), [Prompt(other)], 2) == changed // 2 * 2


@pytest.mark.parametrize(("length", "hit"), [(0, 0), (1, 0), (4, 0), (5, 4), (8, 4), (9, 8)])
def test_one_token_is_always_left_to_compute(length: int, hit: int) -> None:
    prompt = Prompt(tuple(range(length)))
    assert shareable_tokens(prompt, [prompt], 4) == hit
    assert not may_share(prompt, prompt, length, max(1, length)) or length == 0


def test_keys_of_long_prompts_compare() -> None:
    """Longer than Python's recursion limit."""
    one, other = (block_keys(Prompt((first, *range(2999))), 1)[-1] for first in (0, 0))
    assert one == other
    assert hash(one) == hash(other)
    assert one != block_keys(Prompt((1, *range(2999))), 1)[-1]
