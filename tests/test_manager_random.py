"""The reference block manager: all operations at random, on symbolic memory."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from support.managers import SIZE, manager
from support.symbolic_cache import Shadow, SymbolicCache
from tokenlaw.spec.contracts import OutOfBlocks


class Driver:
    """Random operations on a `SymbolicCache`; each leaves everything written and committed."""

    def __init__(self, seed: int, window: int | None) -> None:
        self.random = random.Random(seed)
        self.num_blocks = self.random.choice([5, 9, 14])
        self.paged = manager(self.num_blocks, window, lookahead=self.random.choice([0, 3]))
        self.cache = SymbolicCache(self.paged, self.num_blocks, window, self.random)
        self.done: Counter[str] = Counter()
        self.prompts: list[list[int]] = [[]]

    def prompt(self) -> list[int]:
        """Nearly all of them start as an earlier one did."""
        earlier = self.random.choice(self.prompts)
        prompt = earlier[: self.random.randint(0, 12)] + self.tokens(5)
        self.prompts.append(prompt)
        return prompt

    def tokens(self, most: int) -> list[int]:
        return [self.random.randrange(2) for _ in range(self.random.randint(1, most))]

    def step(self) -> None:
        names = [name for name in dir(self) if name.startswith("do_")]
        name = self.random.choice([*names, "do_new", "do_new", "do_free", "do_free"])
        sequence = self.random.choice(list(self.cache.live)) if self.cache.live else None
        if sequence is None and name != "do_new":
            return
        try:
            getattr(self, name)(sequence)
        except OutOfBlocks:
            assert self.paged.pending_copies() == []
            self.done["out of blocks"] += 1
        self.done[name] += 1
        self.cache.check()

    def _settle(self, sequence: int) -> None:
        self.cache.land(sequence)
        self.paged.commit(sequence, self.paged.num_tokens(sequence))

    def do_new(self, _: int | None) -> None:
        sequence = self.cache.admit(self.prompt(), self.random.choice(["", "", "adapter"]))
        self.done["hit"] += self.paged.num_cached_tokens(sequence) > 0
        self._settle(sequence)

    def do_append(self, sequence: int) -> None:
        self.cache.extend(sequence, self.tokens(6))
        self._settle(sequence)

    def do_fork(self, sequence: int) -> None:
        shadow = self.cache.live[sequence]
        child = self.paged.fork(sequence)
        self.cache.live[child] = Shadow(
            shadow.namespace, [*shadow.tokens], [*shadow.payloads], shadow.written
        )

    def do_speculate(self, sequence: int) -> None:
        drafts = self.tokens(6)
        length = self.paged.num_tokens(sequence)
        self.cache.extend(sequence, drafts, "speculate")
        self.cache.land(sequence)
        accepted = self.random.randint(0, len(drafts))
        self.paged.accept(sequence, accepted)
        self.cache.cut(sequence, length + accepted)
        self.paged.commit(sequence, length + accepted)

    def do_rollback(self, sequence: int) -> None:
        length = self.random.randint(0, self.paged.num_tokens(sequence))
        try:
            self.paged.rollback(sequence, self.paged.num_tokens(sequence) - length)
        except ValueError:
            assert self.cache.window is not None
            return
        self.cache.cut(sequence, length)

    def do_free(self, sequence: int) -> None:
        self.paged.free(sequence)
        del self.cache.live[sequence]

    def do_abort(self, sequence: int) -> None:
        self.cache.extend(sequence, self.tokens(6))
        self.do_free(sequence)

    def do_abort_new(self, _: int) -> None:
        self.do_free(self.cache.admit(self.prompt(), ""))

    def do_diverge_before_a_drain(self, sequence: int) -> None:
        first = self.cache.admit(self.tokens(7), "")
        self._settle(first)
        second = self.paged.fork(first)
        shadow = self.cache.live[first]
        self.cache.live[second] = Shadow("", [*shadow.tokens], [*shadow.payloads], shadow.written)
        try:
            self.cache.extend(first, [0])
            self.cache.extend(second, [1])
            self.do_free(self.random.choice([first, second, sequence]))
        except OutOfBlocks:
            self.done["out of blocks"] += 1
        self.cache.land(-1)
        for handle in {first, second} & set(self.cache.live):
            self._settle(handle)

    def do_swap_out(self, sequence: int) -> None:
        self.cache.call("swap_out", sequence)
        self.cache.swapped[sequence] = self.cache.live.pop(sequence)
        self.cache.land(-1)

    def do_swap_in(self, _: int) -> None:
        if self.cache.swapped:
            sequence = self.random.choice(list(self.cache.swapped))
            self.cache.call("swap_in", sequence)
            self.cache.live[sequence] = self.cache.swapped.pop(sequence)
            self.cache.land(sequence)

    def do_late_write(self, sequence: int) -> None:
        self.paged.begin_step()
        try:
            self.cache.extend(sequence, self.tokens(6))
            self.cache.land(-1)
            shadow, table = self.cache.live[sequence], self.paged.block_table(sequence)
            self.do_free(sequence)
            self._settle(self.cache.admit(self.prompt(), ""))
            for position in range(shadow.written, len(shadow.tokens)):
                self.cache.memory["device", table[position // SIZE], position % SIZE] = "late"
        finally:
            self.paged.end_step()

    def do_evict(self, _: int) -> None:
        self.paged.evict(self.random.randint(0, 3))

    def do_new_epoch(self, _: int) -> None:
        if self.random.random() < 0.2:
            self.paged.new_epoch()
            self.cache.epoch += 1
            self.done["epoch"] += 1


@given(seed=st.integers(0, 2**32 - 1), window=st.sampled_from([None, None, 1, 3, 4, 6]))
def test_random_operations_keep_content_and_accounts(seed: int, window: int | None) -> None:
    driver = Driver(seed, window)
    for _ in range(150):
        driver.step()


def test_random_operations_reach_everything() -> None:
    done: Counter[str] = Counter()
    for seed in range(20):
        driver = Driver(seed, None)
        for _ in range(150):
            driver.step()
        done += driver.done
    wanted = [name for name in dir(Driver) if name.startswith("do_")] + ["hit", "epoch", "out of blocks"]
    assert {name: done[name] for name in wanted if done[name] < 10} == {}
