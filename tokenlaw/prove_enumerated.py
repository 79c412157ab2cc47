"""A program with its enumerated law, and what its plain runs say about that law."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tokenlaw.prove_agreement import Agreement, agreement
from tokenlaw.prove_enumeration import Bounds, Enumeration, Named
from tokenlaw.prove_shapes import outcome_of
from tokenlaw.prove_text import plain_table, plain_words
from tokenlaw.spec.suites import Progress
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration.law import Law


class Enumerated:
    """A program whose paths were run.

    Parameters
    ----------
    named, bounds, progress : as of `tokenlaw.prove_enumeration.Enumeration`.

    Attributes
    ----------
    shaped : its law, with `tokenlaw.prove_shapes.Shaped` outcomes.
    """

    def __init__(self, named: Named, bounds: Bounds, progress: Progress) -> None:
        self.enumeration = Enumeration(named, bounds, progress)
        self.shaped = self.enumeration.law()

    @cached_property
    def law(self) -> Law:
        """Of what the program returns, nothing completed."""
        return self.shaped.map(outcome_of)

    def plain(self) -> Agreement:
        """Compare plain runs with the law, and then run a path or two of it once more.

        Raises
        ------
        NotRepeatableError
            They lead to something else by now.
        """
        found = agreement(self.enumeration.plain_runs(self.shaped), self.law)
        if not found.impossible:
            self.enumeration.run_again(self.shaped)
        return found


@dataclass(frozen=True)
class Plain:
    """What plain runs say about a verdict.

    Attributes
    ----------
    wrong : why there is none; None if they don't object.
    notes : for the message of the verdict.
    statistics : for the report.
    """

    wrong: str | None = None
    notes: tuple[str, ...] = ()
    statistics: dict[str, Any] = field(default_factory=dict)

    def beside(self, spec: "Plain") -> "Plain":
        """The same of a program that is the spec added."""
        statistics = {f"spec_{key}": value for key, value in spec.statistics.items()}
        return Plain(spec.wrong, self.notes + spec.notes, self.statistics | statistics)


def plain_of(found: Enumerated, verdict: Verdict) -> Plain:
    """What plain runs of a program say about a verdict on its enumerated law.

    Frequencies alone don't undo a refutation: a program that sets the same seed for some of its draws has
    others than over all seeds.
    """
    seen, name = found.plain(), found.enumeration.named.name
    words = plain_words(seen, name)
    if seen.impossible or seen.unlikely:
        words += f"\n\n{plain_table(seen)}"
    if seen.impossible or (seen.unlikely and verdict is not Verdict.REFUTED):
        return Plain(words, (), seen.statistics)
    told = seen.runs and (verdict is not Verdict.REFUTED or seen.unlikely)
    return Plain(None, (words,) if told else (), seen.statistics)
