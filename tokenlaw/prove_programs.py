"""Proves, or refutes, that the law of a program is that of its spec: every path of both is run."""

import time
from dataclasses import dataclass, replace
from traceback import walk_tb
from typing import Any

from tokenlaw.prove_blame import blamed
from tokenlaw.prove_command import PROGRAM
from tokenlaw.prove_enumerated import Enumerated, Plain, plain_of
from tokenlaw.prove_enumeration import WHOLE, Bounds, Named
from tokenlaw.prove_shapes import line_of
from tokenlaw.prove_signatures import is_next_token_law, require_program
from tokenlaw.prove_spec import MOST_TEXTS, Completion, NextToken, completion_of
from tokenlaw.prove_text import (
    blame_text,
    effort,
    law_alone,
    law_rows,
    laws_side_by_side,
    outcome_rows,
    path_in_words,
    reached,
)
from tokenlaw.prove_verdict import Comparison
from tokenlaw.spec.suites import Progress, ignore
from tokenlaw.spec.verdicts import PROVED, Check, Evidence, Severity, Verdict
from tokenlaw.stats.enumeration.choices import Path
from tokenlaw.stats.enumeration.errors import EnumerationError
from tokenlaw.stats.enumeration.law import Law, Raised
from tokenlaw.stats.enumeration.retelling import retell
from tokenlaw.stats.enumeration.tape import line_outside

LAW = Check("program/law", "", "The outcome has the law of the spec.", PROGRAM, Severity.WRONG_LAW)


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


def _alone(program: Named, bounds: Bounds, progress: Progress) -> Evidence:
    found = Enumerated(program, bounds, progress)
    law = found.law
    if _only_raises(law):
        return _fails(found)
    plain = plain_of(found, Verdict.NOT_EXERCISED) if bounds.want_plain_runs(law) else Plain()
    statistics = {"outcomes": law_rows(law)} | plain.statistics
    if plain.wrong is not None:
        text = f"the law of {program.name} isn't known: {plain.wrong}"
        return _evidence(Verdict.UNKNOWN, law, text, statistics)
    message = f"the law of {program.name} ({effort(law)}); nothing was compared with it: there is no spec"
    text = "\n".join([message, law_alone(law), *plain.notes])
    return _evidence(Verdict.NOT_EXERCISED, law, text, statistics)


def _against_next_token(program: Named, spec: Named, bounds: Bounds, progress: Progress) -> Evidence:
    found = Enumerated(program, bounds, progress)
    law = found.law
    what = f"{program.name}: compared with {spec.name}"
    next_token = NextToken(spec.function, spec.name, lambda: progress(what, WHOLE, WHOLE))
    completion = completion_of(law, next_token)
    longest, compared = completion.longest, completion.length
    if not longest and not _only_raises(law):
        return _evidence(Verdict.UNKNOWN, law, f"{program.name} emits no token, so nothing was compared")
    completed = replace(law, probabilities=completion(law.probabilities.items()), examples={})
    comparison = Comparison(completed, completion.target(), whole=compared == longest)
    claim = f"{program.name}, completed to {_tokens(longest)}, has the target-only law of {spec.name}"
    judged = _Judged(claim, found, comparison, completion, bounds)
    note = None if comparison.whole else _only_beginnings(longest, compared)
    return judged.evidence({"tokens": longest, "tokens_compared": compared}, note)


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def _only_beginnings(longest: int, compared: int) -> str:
    """Why a law is known in part, and what helps."""
    return (
        f"only the first {_tokens(compared)} were compared: there are more than {MOST_TEXTS:,} texts of "
        f"{_tokens(longest)}; let the program emit fewer tokens, or over a smaller vocabulary"
    )


def _against_program(program: Named, spec: Named, bounds: Bounds, progress: Progress) -> Evidence:
    found, against = Enumerated(program, bounds, progress), Enumerated(spec, bounds.of_spec, progress)
    target = against.law
    comparison = Comparison(found.law, target)
    claim = f"{program.name} has the law of {spec.name}"
    judged = _Judged(claim, found, comparison, None, bounds, against)
    return judged.evidence({"spec_paths": target.paths, "spec_unexplored": float(target.unexplored)})


@dataclass(frozen=True)
class _Judged:
    """A claim, and what the laws say about it."""

    claim: str
    found: Enumerated
    comparison: Comparison
    completion: Completion | None
    bounds: Bounds
    against: Enumerated | None = None

    def evidence(self, further: dict[str, Any], note: str | None = None) -> Evidence:
        """The verdict with everything behind it; ``further`` goes into the statistics.

        A ``note`` says why part of the laws wasn't compared.
        """
        law, allowed = self.comparison.program, self.comparison.allowed(self.bounds.tolerance)
        if _only_raises(law):
            return _fails(self.found)
        verdict = self.comparison.verdict(self.bounds.tolerance)
        plain = self._plain(verdict)
        statistics = further | self._statistics(allowed) | plain.statistics
        if plain.wrong is not None:
            statistics |= {"tv_at_least": 0.0, "tv_at_most": 1.0}
            text = f"{_OPENINGS[Verdict.UNKNOWN]}{self.claim}: {plain.wrong}"
            return _evidence(Verdict.UNKNOWN, law, text, statistics)
        parts = [f"{_OPENINGS[verdict]}{self.claim}: {reached(self.comparison, allowed)} ({effort(law)})"]
        if note is not None:
            parts.append(note)
        elif verdict is Verdict.UNKNOWN:
            parts.append(self._remedy())
        if verdict is Verdict.REFUTED:
            path, told = self._fault(allowed)
            statistics["path"] = path
            parts += told
        return _evidence(verdict, law, "\n".join([*parts, *plain.notes]), statistics)

    def _statistics(self, allowed: float) -> dict[str, Any]:
        lower, upper = self.comparison.bounds
        return {
            "tv_at_least": float(lower),
            "tv_at_most": float(upper),
            "tolerance": allowed,
            "rational": self.comparison.rational,
            "outcomes": outcome_rows(self.comparison.differences),
        }

    def _plain(self, verdict: Verdict) -> Plain:
        """What plain runs say, of the spec as well if it is a program."""
        if verdict is Verdict.UNKNOWN or not self.bounds.want_plain_runs(self.comparison.program):
            return Plain()
        seen = plain_of(self.found, verdict)
        if seen.wrong is not None or self.against is None:
            return seen
        return seen.beside(plain_of(self.against, verdict))

    def _remedy(self) -> str:
        laws = self.comparison.program, self.comparison.spec
        if all(law.complete or law.endless for law in laws):
            return GUARDED if all(law.complete for law in laws) else ENDLESS
        return STOPPED if self.bounds.stopped() else MORE

    def _fault(self, allowed: float) -> tuple[list[str], list[str]]:
        """The choices of the path to blame, and everything there is to say about it."""
        table = laws_side_by_side(self.comparison)
        blame = blamed(self.found.shaped, self.comparison, self.completion)
        if blame is None:
            return [], ["", table]
        enumeration = self.found.enumeration
        retell(enumeration.program, Path(blame.line), enumeration.sources)
        words = path_in_words(blame, as_tokens=self.completion is not None)
        return words, ["", blame_text(blame, words, self.comparison, allowed), "", table]


MORE = "run more paths (--max-paths, --seconds), or make the program smaller"
GUARDED = "add smaller constants to random numbers, or allow a larger --tolerance"
ENDLESS = "what is left may have no end; allow a --tolerance of 1e-12, say"
STOPPED = "it was stopped (Ctrl-C); run it again, for longer"

_OPENINGS = {
    Verdict.HOLDS: "proved: ",
    Verdict.REFUTED: "refuted: ",
    Verdict.UNKNOWN: "not decided: ",
}


def _evidence(verdict: Verdict, law: Law, message: str, statistics: dict[str, Any] | None = None) -> Evidence:
    data = _effort(law) | (statistics or {})
    return Evidence(LAW, verdict, {"paths": law.paths}, law.paths, message=message, statistics=data)


def _fails(found: Enumerated) -> Evidence:
    """Nothing but exceptions: more likely a mistake in the program than its law."""
    law, enumeration = found.law, found.enumeration
    outcome, example = next(iter(law.examples.items()))
    error = retell(enumeration.program, Path(line_of(example)), enumeration.sources)
    frames = [] if error is None else [frame for frame, _ in walk_tb(error.__traceback__)][::-1]
    place = f", {line_outside(frames)}" if frames else ""
    return _evidence(Verdict.UNKNOWN, law, f"the program {outcome}{place}; all of its paths fail")


def _effort(law: Law) -> dict[str, Any]:
    found = {"evidence": PROVED, "paths": law.paths, "unexplored": float(law.unexplored)}
    if law.seconds:
        found |= {"seconds": law.seconds, "paths_a_second": law.paths / law.seconds}
    return found | ({"neglected": float(law.neglected)} if law.neglected else {})


def _only_raises(law: Law) -> bool:
    outcomes = law.probabilities
    return bool(outcomes) and all(isinstance(outcome, Raised) for outcome in outcomes)
