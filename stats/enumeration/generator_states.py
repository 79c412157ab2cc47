"""States of torch's generators while a law is enumerated: they show draws that nobody has seen.

Replaced kernels seed a generator anew after each draw, and programs seed them; so a generator that is neither
as it was, nor freshly seeded, was drawn from by an operator that isn't replaced.
"""

import torch

CPU_STATE = 5056
"""Bytes of a Mersenne twister's state in torch: the seed, how many numbers are left, where it stands, ..."""
SEED = 8
"""Bytes of the seed, with which every state begins."""
FRESH = bytes([1, 0, 0, 0, 1, *[0] * 11])
"""What of it follows the seed after a seeding: one number left, seeded, at place zero."""


class GeneratorStates:
    """What the generators of torch were like before the enumeration, and before the run."""

    def __init__(self) -> None:
        self._before: list[tuple[torch.Generator, torch.Tensor]] = []
        self._run: dict[int, tuple[torch.Generator, torch.Tensor]] = {}
        self._unseen = False

    def enter(self) -> None:
        """Take down the states of the global generators."""
        self._unseen = False
        self._before = [(one, one.get_state()) for one in _global_generators()]

    def state(self, generator: torch.Generator) -> tuple[bytes, bool]:
        """A generator's state (its seed, if that says all), and whether it was drawn from unseen."""
        state = generator.get_state()
        known = self._run.get(id(generator))
        if known is None:
            # A generator of the program may come in any state.
            earlier = next((before for one, before in self._before if one is generator), state)
            known = self._run[id(generator)] = generator, state
        else:
            earlier = known[1]
        head = _head(state)
        if _is_fresh(head, len(state)):
            return head[:SEED], False
        return state.numpy().tobytes(), not torch.equal(state, earlier)

    def end_run(self) -> None:
        """Give generators back the states from before the run: the next one begins as this one has."""
        self._unseen = self._unseen or self._drawn_unseen()
        for generator, state in self._run.values():
            generator.set_state(state)
        self._run.clear()

    def exit(self) -> bool:
        """Give all generators their states back; whether a global one was drawn from unseen."""
        self.end_run()
        for generator, state in self._before:
            generator.set_state(state)
        return self._unseen

    def _drawn_unseen(self) -> bool:
        before = {id(one): state for one, state in self._before}
        # Those of CUDA may have come into use meanwhile.
        states = [(one.get_state(), before.get(id(one))) for one in _global_generators()]
        return any(
            not (_is_fresh(_head(now), len(now)) or (old is not None and torch.equal(now, old)))
            for now, old in states
        )


def _global_generators() -> list[torch.Generator]:
    # There are none of CUDA before it is used.
    return [torch.default_generator, *torch.cuda.default_generators]


def _is_fresh(head: bytes, size: int) -> bool:
    """Whether a generator with a state of this size was seeded and not drawn from since."""
    counters = head[SEED:]
    # A Mersenne twister has one number left then and is at place 0; CUDA's generators have an offset.
    return counters == FRESH if size == CPU_STATE else not any(counters)


def _head(state: torch.Tensor) -> bytes:
    """The seed of a state and the counters behind it."""
    # Once as an array: slices of tensors cost more than all else that is done here.
    found: bytes = state.numpy()[: SEED + len(FRESH)].tobytes()
    return found
