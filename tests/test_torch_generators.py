"""Generators of torch are afterwards what they were before, and draws past the kernels are noticed."""

import pytest
import torch

from support.torch_laws import check_law
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

ADVANCED = torch.Generator().manual_seed(3)
torch.rand(1, generator=ADVANCED)


@pytest.mark.parametrize("draws_again", [True, False])
def test_draws_past_the_kernels_are_noticed(draws_again):
    """What another operator leaves behind in the generator's state, a real draw stands for here."""

    def program() -> bool:
        torch.default_generator.set_state(ADVANCED.get_state())
        return bool(torch.rand(1) < 0.5) if draws_again else True

    with pytest.raises(UndecidableError, match="isn't seen here"):
        exact_law(program)


def test_real_randomness_is_back_afterwards():
    torch.manual_seed(11)
    expected = (
        torch.rand(3),
        torch.empty(3).exponential_(),
        torch.randn(2),
        torch.multinomial(torch.ones(9), 4),
    )
    torch.manual_seed(11)

    def program() -> bool:
        torch.manual_seed(0)
        torch.randint(3, (1,))
        if torch.rand(1) < 0.5:
            raise ValueError("as programs do")
        return True

    law = exact_law(program)
    assert sorted(map(str, law.probabilities)) == ["True", "raises ValueError: as programs do"]
    with pytest.raises(UndecidableError):
        exact_law(lambda: torch.randn(1))
    real = torch.rand(3), torch.empty(3).exponential_(), torch.randn(2), torch.multinomial(torch.ones(9), 4)
    assert all(torch.equal(one, other) for one, other in zip(real, expected, strict=True))


def test_generators_of_the_program_keep_their_state():
    generator = torch.Generator().manual_seed(5)
    before = generator.get_state()
    check_law(lambda: torch.rand(1, generator=generator) < 0.5, {(True,): 0.5, (False,): 0.5})
    assert torch.equal(generator.get_state(), before)
