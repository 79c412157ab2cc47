"""Proves, or refutes, that the law of a program is that of its spec: every path of both is run."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tokenlaw.conversation import ignore
from tokenlaw.prove_blame import blamed
from tokenlaw.prove_command import MAX_PATHS, PROGRAM
from tokenlaw.prove_shapes import line_of, outcome_of, retell, with_shapes
from tokenlaw.prove_signatures import is_next_token_law, require_program
from tokenlaw.prove_spec import NextToken, completed
from tokenlaw.prove_text import (
    blame_text,
    effort,
    law_alone,
    law_rows,
    laws_side_by_side,
    outcome_rows,
    path_in_words,
    place_of,
    reached,
)
from tokenlaw.prove_verdict import Comparison
from tokenlaw.spec.suites import Progress
from tokenlaw.spec.verdicts import PROVED, Check, Evidence, Severity, Verdict
from tokenlaw.stats.enumeration.errors import EnumerationError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Law, Raised
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.tape import Source, Tape

LAW = Check("program/law", "", "The outcome has the law of the spec.", PROGRAM, Severity.WRONG_LAW)

WHOLE = 1_000_000
"""Progress counts the explored probability in millionths."""

_TELL_SECONDS = 0.1


@dataclass(frozen=True)
class Bounds:
    """How far programs are followed, and how close laws must be.

    Attributes
    ----------
    max_paths : of each law that is enumerated.
    seconds : of the enumeration of each law; None for no limit.
    tolerance : total variation up to which laws count as equal; see `Comparison.allowed`.
    """

    max_paths: int = MAX_PATHS
    seconds: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Named:
    """A function, and what reports call it."""

    function: Callable[..., Any]
    name: str


def prove_program(
    program: Named, spec: Named | None, bounds: Bounds, progress: Progress = ignore
) -> Evidence:
    """Whether a program has the law of its spec; without a spec the law alone (``not exercised``).

    Raises
    ------
    BadUse
        The functions need other arguments, or a law of the next token isn't one.
    """
    require_program(program.function, program.name)
    next_token = spec is not None and is_next_token_law(spec.function, spec.name)
    started = time.perf_counter()
    try:
        if spec is None:
            found = _alone(program, bounds, progress)
        elif next_token:
            found = _against_next_token(program, spec, bounds, progress)
        else:
            found = _against_program(program, spec, bounds, progress)
    except EnumerationError as error:
        message = f"the law of {program.name} can't be enumerated: {error}"
        found = Evidence(LAW, Verdict.UNKNOWN, message=message)
    return replace(found, seconds=time.perf_counter() - started)


class _Enumeration:
    """The law of a program with the shapes of its paths."""

    def __init__(self, named: Named, bounds: Bounds, progress: Progress) -> None:
        self._named, self._bounds, self._progress = named, bounds, progress
        self._tape = Tape()
        self._told = self._started = time.perf_counter()
        self.program = with_shapes(named.function, lambda: self._tape)

    def law(self) -> Law:
        """Run every path, or as many as the bounds allow."""
        bounds = self._bounds
        return exact_law(
            self.program,
            max_paths=bounds.max_paths,
            seconds=bounds.seconds,
            progress=self._tell,
            sources=self.sources,
        )

    def sources(self, tape: Tape) -> Iterable[Source]:
        """Random numbers are decided by this tape from now on."""
        self._tape = tape
        return default_sources(tape)

    def _tell(self, paths: int, explored: float) -> None:
        now = time.perf_counter()
        if now - self._told >= _TELL_SECONDS and paths > 1:
            self._told = now
            rate = paths / max(now - self._started, 1e-9)
            what = f"{self._named.name}: paths {paths:,}, {rate:,.0f} a second"
            self._progress(what, int(explored * WHOLE), WHOLE)


def _alone(program: Named, bounds: Bounds, progress: Progress) -> Evidence:
    enumeration = _Enumeration(program, bounds, progress)
    law = enumeration.law().map(outcome_of)
    if _only_raises(law):
        return _fails(enumeration, law)
    message = f"the law of {program.name} ({effort(law)}); nothing was compared with it: there is no spec"
    rows = {"outcomes": law_rows(law)}
    return _evidence(Verdict.NOT_EXERCISED, law, f"{message}\n{law_alone(law)}", rows)


def _against_next_token(program: Named, spec: Named, bounds: Bounds, progress: Progress) -> Evidence:
    enumeration = _Enumeration(program, bounds, progress)
    shaped = enumeration.law()
    what = f"{program.name}: compared with {spec.name}"
    next_token = NextToken(spec.function, spec.name, lambda: progress(what, WHOLE, WHOLE))
    law = shaped.map(outcome_of)
    whole, target, length = completed(law, next_token)
    tokens = "1 token" if length == 1 else f"{length} tokens"
    claim = f"{program.name}, completed to {tokens}, has the target-only law of {spec.name}"
    if not length and not _only_raises(law):
        return _evidence(Verdict.UNKNOWN, law, f"{program.name} emits no token, so nothing was compared")
    judged = _Judged(claim, enumeration, shaped, Comparison(whole, target), next_token, bounds.tolerance)
    return judged.evidence({"tokens": length})


def _against_program(program: Named, spec: Named, bounds: Bounds, progress: Progress) -> Evidence:
    enumeration = _Enumeration(program, bounds, progress)
    shaped = enumeration.law()
    target = _Enumeration(spec, bounds, progress).law().map(outcome_of)
    comparison = Comparison(shaped.map(outcome_of), target)
    claim = f"{program.name} has the law of {spec.name}"
    judged = _Judged(claim, enumeration, shaped, comparison, None, bounds.tolerance)
    return judged.evidence({"spec_paths": target.paths, "spec_unexplored": float(target.unexplored)})


@dataclass(frozen=True)
class _Judged:
    """A claim, and what the laws say about it."""

    claim: str
    enumeration: _Enumeration
    shaped: Law
    comparison: Comparison
    next_token: NextToken | None
    tolerance: float | None

    def evidence(self, further: dict[str, Any]) -> Evidence:
        """The verdict with everything behind it; ``further`` goes into the statistics."""
        law, allowed = self.comparison.program, self.comparison.allowed(self.tolerance)
        if _only_raises(law):
            return _fails(self.enumeration, self.shaped)
        verdict = self.comparison.verdict(self.tolerance)
        lower, upper = self.comparison.bounds
        statistics = further | {
            "tv_at_least": float(lower),
            "tv_at_most": float(upper),
            "tolerance": allowed,
            "rational": self.comparison.rational,
            "outcomes": outcome_rows(self.comparison.differences()),
        }
        parts = [f"{_OPENINGS[verdict]}{self.claim}: {reached(self.comparison, allowed)} ({effort(law)})"]
        if verdict is Verdict.UNKNOWN:
            parts.append("run more paths (--max-paths, --seconds), or make the program smaller")
        if verdict is Verdict.REFUTED:
            path, told = self._fault(allowed)
            statistics["path"] = path
            parts += told
        return _evidence(verdict, law, "\n".join(parts), statistics)

    def _fault(self, allowed: float) -> tuple[list[str], list[str]]:
        """The choices of the path to blame, and everything there is to say about it."""
        table = laws_side_by_side(self.comparison)
        blame = blamed(self.shaped, self.comparison, self.next_token)
        if blame is None:
            return [], ["", table]
        retell(self.enumeration.program, blame.line, self.enumeration.sources)
        words = path_in_words(blame, as_tokens=self.next_token is not None)
        return words, ["", blame_text(blame, words, self.comparison, allowed), "", table]


_OPENINGS = {
    Verdict.HOLDS: "proved: ",
    Verdict.REFUTED: "refuted: ",
    Verdict.UNKNOWN: "not decided: ",
}


def _evidence(verdict: Verdict, law: Law, message: str, statistics: dict[str, Any] | None = None) -> Evidence:
    data = _effort(law) | (statistics or {})
    return Evidence(LAW, verdict, {"paths": law.paths}, law.paths, message=message, statistics=data)


def _fails(enumeration: _Enumeration, law: Law) -> Evidence:
    """Nothing but exceptions: more likely a mistake in the program than its law."""
    outcome, example = next(iter(law.examples.items()))
    error = retell(enumeration.program, line_of(example), enumeration.sources)
    place = "" if error is None else f", {place_of(error)}"
    return _evidence(Verdict.UNKNOWN, law, f"the program {outcome}{place}; all of its paths fail")


def _effort(law: Law) -> dict[str, Any]:
    return {"evidence": PROVED, "paths": law.paths, "unexplored": float(law.unexplored)}


def _only_raises(law: Law) -> bool:
    outcomes = law.probabilities
    return bool(outcomes) and all(isinstance(outcome, Raised) for outcome in outcomes)
