"""Equal states of torch's generators give equal undecided numbers; nothing else does."""

from collections.abc import Callable

import pytest
import torch

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

QUARTER, HALF = 0.25, 0.5
WEIGHTS = torch.tensor([0.25, 0.75], dtype=torch.float64)


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def two_generators() -> tuple[bool, bool]:
    first, second = (torch.rand(2, generator=seeded()) for _ in range(2))
    return bool(first[0] < HALF), bool(second[0] < QUARTER)


def two_seeds() -> tuple[bool, bool]:
    first, second = (torch.rand(2, generator=seeded(seed)) for seed in (1, 2))
    return bool(first[0] < HALF), bool(second[0] < QUARTER)


def one_generator() -> tuple[bool, bool]:
    generator = seeded()
    first, second = torch.rand(2, generator=generator), torch.rand(2, generator=generator)
    return bool(first[0] < HALF), bool(second[0] < QUARTER)


def second_draws() -> tuple[bool, bool]:
    pairs = []
    for _ in range(2):
        generator = seeded()
        torch.rand(2, generator=generator)
        pairs.append(torch.rand(2, generator=generator))
    return bool(pairs[0][1] < HALF), bool(pairs[1][1] < QUARTER)


def global_seed() -> tuple[bool, bool]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        first = torch.rand(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        second = torch.rand(1)
    return bool(first < HALF), bool(second < QUARTER)


def saved_state() -> tuple[bool, bool]:
    state = torch.get_rng_state()
    first = torch.rand(1)
    torch.set_rng_state(state)
    return bool(first < HALF), bool(torch.rand(1) < QUARTER)


def written_over() -> tuple[bool, bool]:
    first = torch.empty(1).uniform_(generator=seeded())
    second = torch.rand(1)
    second.uniform_(generator=seeded())
    return bool(first < HALF), bool(second < QUARTER)


def changed_in_place() -> tuple[bool, bool]:
    first = torch.rand(1, generator=seeded())
    first.mul_(2)
    return bool(first < 2 * HALF), bool(torch.rand(1, generator=seeded()) < QUARTER)


SHARED = {(True, True): 0.25, (True, False): 0.25, (False, False): 0.5}
APART = {(True, True): 0.125, (True, False): 0.375, (False, True): 0.125, (False, False): 0.375}


@pytest.mark.parametrize(
    ("program", "law"),
    [
        (two_generators, SHARED),
        (two_seeds, APART),
        (one_generator, APART),
        (second_draws, SHARED),
        (global_seed, SHARED),
        (saved_state, SHARED),
        (written_over, SHARED),
        (changed_in_place, SHARED),
    ],
)
def test_numbers_are_those_of_the_state(program: Callable[[], object], law: dict[object, float]) -> None:
    assert exact_law(program).probabilities == law


def tokens() -> tuple[int, int]:
    first, second = (torch.multinomial(WEIGHTS, 1, generator=seeded()) for _ in range(2))
    return int(first), int(second)


def races() -> tuple[int, int]:
    first, second = (torch.empty(2, dtype=torch.float64).exponential_(generator=seeded()) for _ in range(2))
    return int((WEIGHTS / first).argmax()), int((WEIGHTS / second).argmax())


@pytest.mark.parametrize("program", [tokens, races])
def test_equal_draws_of_equal_states_agree(program: Callable[[], object]) -> None:
    assert exact_law(program).probabilities == pytest.approx({(0, 0): 0.25, (1, 1): 0.75}, abs=1e-12)


def other_shape() -> bool:
    torch.rand(2, generator=seeded())
    return bool(torch.rand(3, generator=seeded())[0] < HALF)


def other_operator() -> bool:
    torch.rand(2, generator=seeded())
    return bool(torch.empty(2).exponential_(generator=seeded())[0] < HALF)


def other_weights() -> int:
    torch.multinomial(WEIGHTS, 1, generator=seeded())
    return int(torch.multinomial(1 - WEIGHTS, 1, generator=seeded()))


@pytest.mark.parametrize("program", [other_shape, other_operator, other_weights])
def test_other_draws_of_equal_states_are_refused(program: Callable[[], object]) -> None:
    with pytest.raises(UndecidableError, match="with a seed with which other numbers were drawn before"):
        exact_law(program)


def test_runs_dont_share_numbers_and_the_global_state_is_restored() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    assert exact_law(lambda: bool(torch.rand(1) < QUARTER)).probabilities == {False: 0.75, True: 0.25}
    assert torch.equal(torch.get_rng_state(), before)
