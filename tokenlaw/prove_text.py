"""A proof in words: the bound that was reached, both laws side by side, and the path to blame."""

import io
import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from tokenlaw.prove_agreement import ALPHA, Agreement
from tokenlaw.prove_blame import Blame, reads_as_step
from tokenlaw.prove_spec import tokens_of
from tokenlaw.prove_verdict import Comparison, Difference
from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.law import Law, Raised
from tokenlaw.stats.enumeration.narrative import narrate
from tokenlaw.text import one_line, without_middle

_SHOWN = 10
"""Outcomes that are shown, those that differ most."""

_LONGEST_OUTCOME = 60
_WIDTH = 110
_SUMS = 1e-12
"""Sums of probabilities have errors of this size, even if they come out equal."""
_UNSEEN = (
    "draws numbers that aren't seen (os.urandom, C++ code), or answers differently when numbers are undecided"
)
_ONE_MORE, _NEXT = "then one more token", "then token"
_MANY_PATHS = 100
"""Of fewer paths it isn't told how fast they were run."""


def _number(weight: Weight) -> str:
    """A probability for people; rational ones with few digits as they are.

    >>> _number(Fraction(1, 3)), _number(0.25), _number(3e-8)
    ('1/3', '0.25', '3e-08')
    """
    if isinstance(weight, Fraction) and weight.denominator < 100_000:
        return str(weight)
    return f"{float(weight):.4g}"


def _outcome_text(outcome: Hashable) -> str:
    """An outcome on one line; sequences of tokens as lists.

    >>> _outcome_text((0, 3)), _outcome_text((0, ...)), _outcome_text("heads")
    ('[0, 3]', '[0, ...]', "'heads'")
    """
    if isinstance(outcome, tuple):
        text = f"[{', '.join(map(_outcome_text, outcome))}]"
    elif outcome is ...:  # any further tokens
        text = "..."
    else:
        text = str(outcome) if isinstance(outcome, Raised) else repr(outcome)
    return without_middle(one_line(text), _LONGEST_OUTCOME)


def reached(comparison: Comparison, allowed: float) -> str:
    """The total variation that was found, or its bounds.

    >>> law = Law({0: 0.5, 1: 0.5}, paths=2)
    >>> reached(Comparison(law, Law({0: 0.25, 1: 0.75})), 1e-6)
    'TV = 0.25, tolerance 1e-06'
    >>> exact = Law({0: Fraction(1)})
    >>> reached(Comparison(exact, exact), 0)
    'TV = 0 exactly, in rational numbers'
    """
    lower, upper = comparison.bounds
    rational = comparison.rational and not upper
    if rational:
        return "TV = 0 exactly, in rational numbers"
    tolerance = f", tolerance {allowed:g}" if allowed else ""
    holds = comparison.verdict(allowed) is Verdict.HOLDS
    if upper - lower > (0 if comparison.rational else _SUMS) and (lower or not holds):
        return f"TV is between {_number(lower)} and {_number(upper)}{tolerance}"
    if holds:
        # Rounded up: a bound must not be less than what was found.
        return f"TV <= {rounded_up(float(max(upper, _SUMS)))}{tolerance}"
    return f"TV = {_number(upper)}{tolerance}"


def effort(law: Law) -> str:
    """How much was run, how fast, and what is left.

    >>> effort(Law({0: 1.0}, 0, 676, 14.0)), effort(Law({0: 1.0}, 0, 1, 0.1))
    ('676 paths, 14 s, 48 paths/s', '1 path')
    >>> effort(Law({0: 1.0}, paths=8, neglected=2.0**-33))
    '8 paths, guards left out that change 1.2e-10 at most'
    """
    paths = "1 path" if law.paths == 1 else f"{law.paths:,} paths"
    left = f", {_number(law.unexplored)} of the probability unexplored" if law.unexplored else ""
    if law.endless:
        left += ", which is less than rounding can tell"
    seconds = f", {law.seconds:,.0f} s" if law.seconds >= 1 else ""
    rate = f", {law.paths / law.seconds:,.0f} paths/s" if law.seconds and law.paths >= _MANY_PATHS else ""
    changed = rounded_up(float(max(law.neglected, _SUMS)))
    guards = f", guards left out that change {changed} at most" if law.neglected else ""
    return f"{paths}{seconds}{rate}{left}{guards}"


def laws_side_by_side(comparison: Comparison) -> str:
    """A table of the outcomes that differ most; of an unfinished law those that are too likely already."""
    differences = comparison.differences
    certain = comparison.program.complete and comparison.spec.complete
    shown = [each for each in differences if (each.excess if certain else each.excess > 0)][:_SHOWN]
    heading = f"outcome ({len(shown)} of {len(differences):,})"
    rows = [(each.outcome, _number(each.program), _number(each.spec), _signed(each.excess)) for each in shown]
    return _table(heading, ("program", "spec", "program - spec"), rows)


def _signed(excess: Weight) -> str:
    return f"{'+' if excess > 0 else ''}{_number(excess)}"


def law_alone(law: Law) -> str:
    """A table of the most likely outcomes of a law."""
    rows = [(outcome, _number(weight)) for outcome, weight in _likeliest(law)]
    more = len(law.probabilities) - _SHOWN
    return _table("outcome", ("probability",), rows) + (
        f"\n... and {more:,} outcomes more" if more > 0 else ""
    )


def plain_table(found: Agreement) -> str:
    """A table of the outcomes of plain runs whose frequencies are farthest from the law."""
    runs, law = sum(found.counts.values()), found.law.probabilities
    expected = {outcome: runs * float(weight) for outcome, weight in law.items()}

    def distance(outcome: Hashable) -> float:
        seen, mean = found.counts.get(outcome, 0), expected.get(outcome, 0.0)
        return (seen - mean) ** 2 / mean if mean else math.inf

    outcomes = sorted({**found.counts, **expected}, key=distance, reverse=True)
    rows = [
        (outcome, f"{found.counts.get(outcome, 0):,}", f"{expected.get(outcome, 0):,.4g}")
        for outcome in outcomes[:_SHOWN]
    ]
    heading = f"outcome ({len(rows)} of {len(outcomes):,})"
    return _table(heading, ("plain runs", "expected by the law"), rows)


def plain_words(found: Agreement, name: str) -> str:
    """What plain runs of a program of this name say: that they agree with its law, or why not.

    >>> law = Law({0: 0.5, 1: 0.5})
    >>> plain_words(Agreement(2000, law, {0: 1000, 1: 1000}, p_value=1.0), "step")
    '2,000 plain runs of step agree with its law (chi-square and binomial tests, false alarm 1e-09)'
    """
    runs = "1 plain run" if found.runs == 1 else f"{found.runs:,} plain runs"
    if found.impossible:
        which = f"{found.strays:,} of {runs}" if found.runs > 1 else runs
        return (
            f"a plain run of {name} gave {_outcome_text(found.stray)}, which the enumerated law says can't "
            f"happen ({which} gave such an outcome): the program keeps state, {_UNSEEN}"
        )
    if found.unlikely:
        return (
            f"{runs} of {name} don't have the frequencies of the enumerated law (false alarm {ALPHA:g}): the "
            f"program keeps state, sets the same seed for some of its draws, {_UNSEEN}"
        )
    if found.alike:
        return (
            f"but {runs} of {name} all had the same outcome, which has a probability below {ALPHA:g} if each "
            "draws anew: it sets the same seed, and the proof is over all seeds; or it answers differently "
            "when numbers are undecided"
        )
    agree = "agrees" if found.runs == 1 else "agree"
    tests = f" (chi-square and binomial tests, false alarm {ALPHA:g})" if found.tested else ""
    return f"{runs} of {name} {agree} with its law{tests}"


def law_rows(law: Law) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [
        {"outcome": _outcome_text(outcome), "program": float(weight)} for outcome, weight in _likeliest(law)
    ]


def _likeliest(law: Law) -> list[tuple[Hashable, Weight]]:
    return sorted(law.probabilities.items(), key=lambda each: each[1], reverse=True)[:_SHOWN]


def _table(heading: str, numbers: Sequence[str], rows: Iterable[tuple[Hashable, *tuple[str, ...]]]) -> str:
    """Outcomes and their numbers under these headings, as plain lines."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(heading)
    for each in numbers:
        table.add_column(each, justify="right")
    for outcome, *cells in rows:
        table.add_row(*map(Text, (_outcome_text(outcome), *cells)))
    stream = io.StringIO()
    Console(file=stream, width=_WIDTH, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines() if line.strip())


def path_in_words(blame: Blame, *, as_tokens: bool) -> list[str]:
    """What happened on a path; ``as_tokens`` if its outcome is what it emitted."""
    as_tokens = as_tokens and not isinstance(blame.outcome, Raised)
    told = narrate(blame.line, tokens_of(blame.outcome) if as_tokens else blame.outcome)
    if not blame.at_last:
        # The next step's own token, perhaps: only where leaving it out helps it is one too many.
        told = [
            words.replace(_ONE_MORE, _NEXT, 1) if words.startswith(_ONE_MORE) else words for words in told
        ]
    return [one_line(words) for words in (told if reads_as_step(told) else told[:-1])]


def _places(blame: Blame, words: Sequence[str]) -> list[str]:
    """The program's lines that made the choices, unless the words have them."""
    places = dict.fromkeys(node.place for node, _ in blame.line if node.place)
    return [place for place in places if not any(place in told for told in words)]


def blame_text(blame: Blame, words: Sequence[str], comparison: Comparison, allowed: float) -> str:
    """The path that shows the fault, numbered."""
    lines = [f"a path that shows it (outcome {_outcome_text(blame.outcome)}, {_chance(blame, comparison)}):"]
    lines += [f"  {step}. {text}" for step, text in enumerate(words, start=1)]
    lines += [f"  at {place}" for place in map(one_line, _places(blame, words))]
    if blame.last_token is not None:
        left = blame.last_token
        without = "the law would be exact" if left <= max(allowed, _SUMS) else f"TV would be {_number(left)}"
        lines.append(f"without the last token of such paths {without}")
    return "\n".join(lines)


def _chance(blame: Blame, comparison: Comparison) -> str:
    """How likely it is, and whether the spec has it at all."""
    never = any(each.outcome == blame.outcome for each in comparison.impossible)
    return f"probability {_number(blame.probability)}" + ("; impossible under the spec" if never else "")


def outcome_rows(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """The rows of both laws as plain data."""
    return [
        {"outcome": _outcome_text(each.outcome), "program": float(each.program), "spec": float(each.spec)}
        for each in differences[:_SHOWN]
    ]
