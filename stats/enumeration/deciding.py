"""Choices among weighted outcomes, whatever draws them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenlaw.stats.enumeration.choices import Draw, Weight
from tokenlaw.stats.enumeration.tape import Tape


@dataclass(frozen=True, slots=True)
class Among:
    """One of several values, of which only those with a probability above zero are listed.

    Attributes
    ----------
    source : the function that was called.
    values : what each outcome stands for.
    """

    source: str
    values: Sequence[object]

    def words(self, taken: int, weight: Weight) -> str:
        """
        >>> Among("torch.multinomial", [0, 3]).words(1, 0.25)
        'torch.multinomial: 3 (probability 0.25)'
        """
        return Draw(self.source).words(self.values[taken], weight)


def decide(
    tape: Tape,
    weights: Sequence[Weight],
    source: str,
    row: int = 0,
    values: Sequence[object] | None = None,
) -> int:
    """Index of one of the outcomes; no choice is taken down where only one is possible.

    Parameters
    ----------
    tape : decides.
    weights : above or equal to zero; their sum needn't be one.
    source : the function that draws, for people.
    row : the row of a batch that the draw belongs to.
    values : what the outcomes are called, if not by their index.
    """
    possible = [index for index, weight in enumerate(weights) if weight > 0]
    if len(possible) == 1:
        return possible[0]
    total = sum(weights[index] for index in possible)
    if len(possible) == len(weights) and (values is None or list(values) == possible):
        return tape.choose([weight / total for weight in weights], Draw(source), row)
    names = possible if values is None else [values[index] for index in possible]
    return possible[tape.choose([weights[index] / total for index in possible], Among(source, names), row)]
