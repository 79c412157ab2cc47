"""hypothesis as the guide of a search: it chooses the pairs of laws, and climbs towards large e-values."""

from collections.abc import Callable
from random import Random

import hypothesis
from hypothesis import HealthCheck, Phase, strategies
from hypothesis.errors import Flaky


def climb(ask: Callable[[Random], float | None], examples: int, seed: int) -> None:
    """Let hypothesis choose the random choices of so many examples.

    Parameters
    ----------
    ask : makes an example out of a source of choices, and tries it; returns a size that should get large, or
        None if there is nothing left to look for. Its exceptions are passed on.
    examples : how many at most.
    seed : the same seed gives the same choices.
    """
    over: list[Exception | None] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def example(choices: Random) -> None:
        if over:
            return
        try:
            size = ask(choices)
        except Exception as error:
            over.append(error)
            return
        if size is None:
            over.append(None)
        else:
            hypothesis.target(size)

    try:
        example()
    except Flaky:
        # An example that is left draws nothing any more, which hypothesis may notice.
        if not over:
            raise
    for error in filter(None, over):
        raise error
