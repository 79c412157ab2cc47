"""What two sequences may share: the identity of a block of keys and values, and the longest legal hit.

The keys and values at a position depend on every token up to it and on what computed them: the weights, an
adapter, an image behind a placeholder token. So equal tokens of one block prove nothing; the whole prefix
must agree, and so must namespace and epoch (rules K8, K9 and K10).

Source: Kwon et al. 2023 (arXiv:2309.06180), section 4.4; Zheng et al. 2024 (arXiv:2312.07104), section 3.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from tokenlaw.spec.cache import blocks_needed


@dataclass(frozen=True)
class Prompt:
    """Tokens and what else decides their keys and values.

    Parameters
    ----------
    tokens
        Token ids from position 0 on.
    namespace
        Adapter, salt, image content: whatever must be equal besides the tokens. Any hashable.
    epoch
        Version of the weights.
    """

    tokens: tuple[int, ...]
    namespace: Hashable = ""
    epoch: int = 0


@dataclass(frozen=True, eq=False)
class BlockKey:
    """Chained identity of a full block: the key of the block before it, and its own tokens.

    Two keys are equal if and only if the whole prefixes up to the end of the block, the namespaces and the
    epochs are equal. A hash of a key may stand for it only as far as it never collides.

    >>> one, other = (block_keys(Prompt(tokens), 2)[1] for tokens in [(1, 2, 3, 4), (9, 2, 3, 4)])
    >>> one.tokens == other.tokens, one == other
    (True, False)
    """

    parent: "BlockKey | None"
    tokens: tuple[int, ...]
    namespace: Hashable
    epoch: int

    def chain(self) -> tuple[tuple[tuple[int, ...], Hashable, int], ...]:
        """Tokens, namespace and epoch of every block, from this one back to the first."""
        links, key = [], self
        while True:
            links.append((key.tokens, key.namespace, key.epoch))
            if key.parent is None:
                return tuple(links)
            key = key.parent

    def __eq__(self, other: object) -> bool:
        """Equal chains."""
        return isinstance(other, BlockKey) and self.chain() == other.chain()

    def __hash__(self) -> int:
        """Hash of the chain, so that equal keys have equal hashes."""
        return hash(self.chain())


def block_keys(prompt: Prompt, block_size: int) -> tuple[BlockKey, ...]:
    """Keys of the full blocks in order; a partial tail has none.

    >>> [key.tokens for key in block_keys(Prompt((1, 2, 3, 4, 5)), 2)]
    [(1, 2), (3, 4)]
    """
    keys: list[BlockKey] = []
    for end in range(block_size, len(prompt.tokens) + 1, block_size):
        parent = keys[-1] if keys else None
        keys.append(BlockKey(parent, prompt.tokens[end - block_size : end], prompt.namespace, prompt.epoch))
    return tuple(keys)


def may_share(prompt: Prompt, cached: Prompt, num_tokens: int, block_size: int) -> bool:
    """Whether a new prompt may take its first ``num_tokens`` positions from a cached one.

    All of these must hold: whole blocks only; all of them full in the cached prompt; every token up to
    there equal; equal namespaces; equal epochs; and at least one token of the prompt is left to compute,
    since the logits of its last token are asked for. Taking nothing is always allowed.

    >>> cached = Prompt((1, 2, 3, 4))
    >>> may_share(Prompt((1, 2, 3, 4, 5)), cached, 4, block_size=2)
    True
    >>> may_share(Prompt((1, 2, 3, 4)), cached, 4, block_size=2)
    False
    >>> may_share(Prompt((1, 2, 3, 4, 5), namespace="adapter"), cached, 2, block_size=2)
    False
    """
    if num_tokens == 0:
        return True
    return (
        num_tokens % block_size == 0
        and 0 < num_tokens < len(prompt.tokens)
        and num_tokens <= len(cached.tokens)
        and prompt.tokens[:num_tokens] == cached.tokens[:num_tokens]
        and prompt.namespace == cached.namespace
        and prompt.epoch == cached.epoch
    )


def shareable_tokens(prompt: Prompt, cached_prompts: Iterable[Prompt], block_size: int) -> int:
    """Length of the longest legal hit, in tokens; a cache may find less, never more.

    A hit that takes its blocks from several cached prompts is no longer than this: the prompt that gives the
    last block agrees in the whole prefix, and so could have given all of them.

    >>> cached = [Prompt((1, 2, 3, 4)), Prompt((1, 2, 3, 4, 5, 6), epoch=1)]
    >>> shareable_tokens(Prompt((1, 2, 3, 4, 5, 6, 7)), cached, block_size=2)
    4
    >>> shareable_tokens(Prompt((1, 2, 3, 4)), cached, block_size=2)
    2
    """
    candidates = range(0, blocks_needed(len(prompt.tokens), block_size) * block_size, block_size)
    return max(
        (
            num_tokens
            for cached in cached_prompts
            for num_tokens in candidates
            if may_share(prompt, cached, num_tokens, block_size)
        ),
        default=0,
    )
