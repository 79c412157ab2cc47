"""The pages about reports and exit statuses, for `generate_reference.py`.

What fields mean stands here. Which fields there are is asked of a report, so a new field without a meaning,
or a meaning without a field, stops the generator.
"""

from collections.abc import Mapping
from typing import Any

from tables import NOTE, table

from tokenlaw import cli
from tokenlaw.controls import Control, Kind
from tokenlaw.report import SCHEMA, SPEC_VERSION, Report, Target
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict, exit_status

ENVELOPE = {
    "schema": f'`"{SCHEMA}"`; grows when fields change their meaning',
    "spec_version": f'`"{SPEC_VERSION}"`; grows when a rule changes its meaning',
    "target": "`name`, `version`, `address` (what the command line called it), `contracts`, `capabilities`",
    "verdict": "the verdict of the run, see [exit statuses](exit-statuses.md)",
    "strongest_claim": "about the laws of a verifier, that which still stands; null without",
    "seed": "the same seed repeats the run",
    "profile": "`dev`, `ci` or `deep`; `prove` for a proof",
    "settings": "`device`, `claims`, `alpha`, `budget`, `tolerance`; `continued`: seeds of earlier runs",
    "versions": "of `tokenlaw`, `python`, `torch`, and the `platform`",
    "checks": "a list, one entry for each check that was asked, see below",
    "controls": "contract to kind (`reference`, `broken wrapper`) to what the control showed, see below",
    "ledger": "a list, one entry for each test of a law: `check`, `kind`, `share`, `alpha`, `observed`",
    "command": "what repeats the run",
}
CHECK = {
    "id": "such as `kv/content`; stable",
    "rule": "number of the invariant, such as `K1`, see [rules](../rules.md)",
    "contract": "of which it was asked",
    "title": "the claim in one sentence",
    "verdict": "`refuted`, `unknown`, `not exercised`, `holds` or `not supported`",
    "severity": "what a violation means, see [exit statuses](exit-statuses.md#severities)",
    "exercised": "event to how often it happened",
    "operations": "operations, calls or rows behind the verdict",
    "seconds": "of processor or wall-clock time, as the suite measures them",
    "message": "complete: place, expected, found, the trace in words; of laws that hold: what was visible",
    "counterexample": "plain data that `tokenlaw replay` runs when it is saved to a file; null without",
    "statistics": "of laws: `samples`, `power` (`tv`, `probability`), `ledger`, `evidence` (`proved`, "
    "`probed`, `sampled`), `beside` (other statistics, which decide nothing), and what a later run needs to "
    "go on; null without",
    "known": "reason and link of a known deviation, which doesn't count; else empty",
    "frames": "what the target said of itself after each operation of the counterexample, to be drawn",
}
CONTROL = {
    "verdict": "what the checks said; null if the control wasn't asked",
    "failed": "whether it makes the audit void",
    "checks": "those that refuted it, or couldn't decide",
    "message": "why it wasn't asked, or failed",
    "fault": "what the broken wrapper does",
    "tried": "operations, calls or rows",
    "seconds": "that it took",
}
VERDICTS = {
    Verdict.REFUTED: "A claim doesn't hold; there is a counterexample.",
    Verdict.VOID: "Of a whole run: a control failed, so it couldn't have failed, or it blames what is exact.",
    Verdict.UNKNOWN: "The target crashed, hung, or couldn't be decided.",
    Verdict.NOT_EXERCISED: "What the claim is about never happened, or too seldom to tell anything.",
    Verdict.HOLDS: "Nothing was refuted, and what had to happen did happen.",
    Verdict.NOT_SUPPORTED: "The target lacks a capability that the claim is about. Counts neither way.",
}


def report() -> str:
    """The JSON envelope, field by field."""
    data = _report().to_data()
    return f"""# Report format

{NOTE}
What `--json` writes. Every other view is made from it, and `tokenlaw report` makes them later. A file appears
whole or not at all; numbers are finite.

{table(("field", ""), _described(data, ENVELOPE))}

## An entry of `checks`

{table(("field", ""), _described(data["checks"][0], CHECK))}

## An entry of `controls`

{table(("field", ""), _described(data["controls"]["kv-store"]["reference"], CONTROL))}

Runs with many seeds, plans, comparisons and matrices of faults have envelopes of their own, each with its
`schema`.
"""


def exit_statuses() -> str:
    """What a verdict means, and what a command ends with."""
    verdicts = [
        (f"`{one}`", "" if one is Verdict.NOT_SUPPORTED else str(exit_status(one)), VERDICTS[one])
        for one in Verdict
    ]
    others = [
        (str(cli.BAD_USE), "bad use: an option, a target or a file that can't be used; one line says which"),
        (str(cli.TOOL_FAULT), "a fault of tokenlaw itself; the line names a file with details"),
        (str(cli.INTERRUPTED), "interrupted by Ctrl-C"),
        (str(cli.BROKEN_PIPE), "whoever read the output went away"),
    ]
    severities = "\n".join(f"{place}. {severity}" for place, severity in enumerate(Severity, start=1))
    return f"""# Verdicts and exit statuses

{NOTE}
The first that occurs among its checks is the verdict of a run. `tokenlaw audit`, `prove` and `replay` end
with its status; under pytest it is a failed test, in the library an exception. A proof without `--spec`
compares nothing and is `not exercised`; it ends with 0 if the whole law of the program is known.

{table(("verdict", "exit status", ""), verdicts)}

A run in which nothing at all was supported is `not exercised`. Further statuses, of every command:

{table(("exit status", ""), others)}

## Severities

What a violation means for the user of an engine, the worst first:

{severities}
"""


def _report() -> Report:
    """A report with one entry of everything."""
    check = Check("store/content", "K1", "", "kv-store", Severity.WRONG_CONTENT)
    control = Control("kv-store", Kind.REFERENCE, Verdict.HOLDS)
    return Report(Target("", ""), (Evidence(check, Verdict.HOLDS),), "dev", 0, {}, "", controls=(control,))


def _described(data: Mapping[str, Any], meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    if list(data) != list(meanings):
        raise SystemExit(f"a report has {list(data)}; docs/reference_report.py describes {list(meanings)}")
    return [(f"`{name}`", meanings[name]) for name in data]
