"""The two sides of a comparison, read from what ``tokenlaw audit`` and ``tokenlaw faults`` wrote as JSON."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tokenlaw.comparing import Comparison, Side, State, compare
from tokenlaw.errors import BadUse
from tokenlaw.html_data import Row, Stored, read, stored
from tokenlaw.html_faults import SCHEMA as FAULTS
from tokenlaw.html_faults import Matrix, faults_page, matrix
from tokenlaw.report import SCHEMA as REPORT
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line

CONTROLS = "controls"
"""Stands among the checks of a contract, `void` where one of its controls failed."""

_MATRIX_VERDICTS = {"faults": ("killed", "missed"), "innocents": ("silent", "alarmed")}
_DEFAULT = "default"


def compare_files(old: Path, new: Path) -> Comparison:
    """Compare two reports, or two matrices of planted faults.

    Raises
    ------
    BadUse
        One of them can't be read, is damaged or neither; or one is a report and the other a matrix.
    """
    data = [read(path) for path in (old, new)]
    schemas = [one.get("schema") for one in data]
    for path, schema in zip((old, new), schemas, strict=True):
        if schema not in (REPORT, FAULTS):
            raise BadUse(
                f"{path}: neither a report of an audit nor a matrix of faults: schema {schema!r}, "
                f"expected {REPORT!r} or {FAULTS!r}"
            )
    if schemas[0] != schemas[1]:
        raise BadUse(f"{old} is a {schemas[0]}, {new} a {schemas[1]}: compare two of one kind")
    side = side_of_report if schemas[0] == REPORT else side_of_matrix
    return compare(side(data[0], str(old)), side(data[1], str(new)))


def side_of_report(data: Mapping[str, Any], source: str) -> Side:
    """A report of an audit; raises `BadUse` for a damaged one."""
    report = stored(data, source)
    known = {str(verdict) for verdict in Verdict}
    for row in report.checks:
        if row.verdict not in known:
            raise BadUse(f"{source}: a damaged report: {row.id} has the unknown verdict {row.verdict!r}")
    states = _unique((((row.contract, row.id), _state(row)) for row in report.checks), source)
    title = one_line(f"{report.target.name} {report.target.version}: {report.verdict}")
    return Side(source, title, dict(_facts(report)), states | _controls(report))


def side_of_matrix(data: Mapping[str, Any], source: str) -> Side:
    """A matrix of planted faults; raises `BadUse` for a damaged one."""
    found = matrix(data, source)
    states = _unique(_fates(found, source), source)
    page = faults_page(found)
    told = f"{page.killed} of {len(found.faults)} faults killed"
    told += f", silent on {page.silent} of {len(found.innocents)} innocents"
    facts = {
        "profile": found.profile,
        "seed": str(found.seed),
        "complete": "yes" if found.complete else "no",
        "selected": _selected(found.command),
    }
    return Side(source, told, facts | _told(found.versions), states)


def _unique(states: Iterable[tuple[tuple[str, str], State]], source: str) -> dict[tuple[str, str], State]:
    found: dict[tuple[str, str], State] = {}
    for name, state in states:
        if name in found:
            raise BadUse(f"{source}: damaged: {name[1]} is there twice")
        found[name] = state
    return found


def _state(row: Row) -> State:
    statistics = row.statistics
    counts = {} if statistics is None else statistics.counts()
    unit, tried = next(iter(counts.items()), ("operations", row.operations))
    verdict = row.judged
    told = "" if verdict == Verdict.HOLDS else one_line(row.message.partition("\n")[0])
    if statistics is None:
        return State(verdict, tried=tried, unit=unit, told=told)
    power = None if statistics.power is None else statistics.power.tv
    return State(verdict, statistics.evidence, power, tried, unit, told)


def _controls(report: Stored) -> dict[tuple[str, str], State]:
    """A state for each contract that has controls; to leave them out is a difference, no loss."""
    return {
        (contract, CONTROLS): State(
            Verdict.VOID if failed else Verdict.HOLDS,
            told=one_line(", ".join(failed) and f"failed: {', '.join(failed)}"),
            needed=False,
        )
        for contract, kinds in report.controls.items()
        for failed in [[kind for kind, row in kinds.items() if row.failed]]
    }


def _facts(report: Stored) -> Iterator[tuple[str, str]]:
    """What has to be the same in two runs if only their verdicts are to differ."""
    target = report.target
    yield "target", target.name
    yield "version of the target", target.version
    yield "spec version", report.spec_version
    yield "profile", report.profile
    yield "seed", str(report.seed)
    yield from _told(report.settings).items()
    yield "selected", _selected(report.command)
    yield "contracts", ", ".join(target.contracts)
    for contract, found in sorted(target.capabilities.items()):
        yield f"capabilities of {contract}", ", ".join(sorted(found)) or "none"
    yield "controls", ", ".join(sorted(report.controls)) or "none"
    yield from _told(report.versions).items()


def _told(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _DEFAULT if value in (None, [], "") else str(value) for name, value in values.items()}


def _selected(command: str) -> str:
    """The part of a command line that leaves checks or faults out.

    >>> _selected("tokenlaw audit mine:make --profile dev --only 'kv/*' --contract kv-store")
    "--only 'kv/*' --contract kv-store"
    """
    try:
        words = shlex.split(command)
    except ValueError:  # not written by us
        return ""
    options = ("--only", "--contract", "--family")
    places = [place for place, word in enumerate(words) if word in options]
    return shlex.join(word for place in places for word in words[place : place + 2])


def _fates(found: Matrix, source: str) -> Iterator[tuple[tuple[str, str], State]]:
    for kind, rows in (("faults", found.faults), ("innocents", found.innocents)):
        for row in rows:
            if row.verdict not in _MATRIX_VERDICTS[kind]:
                told = f"{row.name} has the unknown verdict {row.verdict!r}"
                raise BadUse(f"{source}: a damaged matrix of faults: {told}")
            seen = ", ".join(kill.check for kill in row.refuted)
            yield (
                (row.family, row.name),
                State(row.verdict, told=one_line(seen), tried=len(row.refuted), unit="checks see it"),
            )
