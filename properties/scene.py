"""What a deliberate phrase of operations is, and what it sees while it is made.

A phrase is a generator of operations. It looks at the `Scene` between them: what it has yielded has been
applied to the history by then. Indices name live sequences in order of creation.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tokenlaw.properties.history import History, LiveSequence
from tokenlaw.properties.trace import Append, Free, New, Operation, SwapIn, Tokens
from tokenlaw.spec.contracts import CacheConfig

VOCABULARY = 3
"""Tokens 0, 1, 2: few enough that equal prefixes and equal blocks come by themselves."""

NAMESPACES = ("", "a", "b", "adapter-of-tenant-000001", "adapter-of-tenant-000002")
"""The long ones are equal but for their end: names may be cut, or hashed in part."""


@dataclass
class Scene:
    """What a phrase sees: the history, the configuration, and dice that decide its details."""

    config: CacheConfig
    capabilities: frozenset[str]
    history: History = field(default_factory=History)
    dice: random.Random = field(default_factory=random.Random)

    @property
    def block(self) -> int:
        """Block size in tokens."""
        return self.config.block_size

    def tokens(self, count: int) -> Tokens:
        """So many random tokens."""
        return tuple(self.dice.choices(range(VOCABULARY), k=count))

    def other(self, token: int) -> int:
        """A different token."""
        return (token + self.dice.randint(1, VOCABULARY - 1)) % VOCABULARY

    def prompt(self) -> Tokens:
        """A prompt of up to three blocks; often one that fills its blocks exactly."""
        length = self.block * self.dice.randint(1, 3)
        return self.tokens(length if self.dice.random() < 0.4 else self.dice.randint(1, length))

    def namespace(self) -> str:
        """Mostly the default one."""
        if "namespaces" not in self.capabilities or self.dice.random() < 0.8:
            return ""
        return self.dice.choice(NAMESPACES)

    def two_namespaces(self) -> tuple[str, str]:
        """Two different short ones, or two long ones, in any order."""
        alike = NAMESPACES[-2:] if self.dice.random() < 0.25 else NAMESPACES[:-2]
        first, second = self.dice.sample(alike, 2)
        return first, second

    def last(self) -> int:
        """Index of the newest live sequence."""
        return len(self.history.live) - 1

    def someone(self) -> Iterator[Operation]:
        """Admit a sequence if there is none to act on."""
        if not self.history.live:
            yield New(self.prompt(), self.namespace())

    def drain(self) -> Iterator[Operation]:
        """Release every sequence, those on the host after they came back."""
        while self.history.swapped:
            yield SwapIn(0)
        while self.history.live:
            yield Free(0)

    def pick(self) -> int:
        """Index of a live sequence; 0 if there is none."""
        return self.dice.randrange(max(1, len(self.history.live)))

    def at(self, index: int) -> LiveSequence:
        """The live sequence with this index (an empty one if there is none)."""
        live = self.history.live
        return live[index] if index < len(live) else LiveSequence(-1, ())

    def known(self) -> LiveSequence:
        """A live or released sequence with tokens, mostly with a full block; or a made-up one."""
        known = self.history.known()
        full = [sequence for sequence in known if len(sequence.tokens) >= self.block]
        if full and self.dice.random() < 0.8:
            return self.dice.choice(full)
        return self.dice.choice(known) if known else LiveSequence(-1, self.prompt())

    def fill_block(self, index: int) -> Iterator[Operation]:
        """Append until the last block of the sequence is full."""
        missing = -len(self.at(index).tokens) % self.block
        if missing:
            yield Append(index, self.tokens(missing))


Script = Callable[[Scene], Iterator[Operation]]


@dataclass(frozen=True)
class Phrase:
    """A phrase with the capabilities that its operations need, and how often it is chosen."""

    name: str
    script: Script
    needs: frozenset[str] = frozenset()
    weight: int = 2


def needing(*capabilities: str) -> frozenset[str]:
    """Capabilities, as a phrase names them."""
    return frozenset(capabilities)
