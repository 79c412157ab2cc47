"""The audits of a pytest session: told on the reports of tests, written to files, judged check by check."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tokenlaw import runner
from tokenlaw.controls import failures
from tokenlaw.counterexamples import file_name, save, told
from tokenlaw.errors import BadUse, LacksContract, ToolFault
from tokenlaw.in_process import Inconclusive, Refuted
from tokenlaw.pytest_options import asked
from tokenlaw.pytest_summary import Told, properties, tell
from tokenlaw.report import Report
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line, printable
from tokenlaw.writing import formatted, write_whole

TOLD = pytest.StashKey[list[Told]]()
"""Of an item: the audits that it has run and that its next report is to tell."""

_REPORTS = pytest.StashKey[dict[str, Report | BadUse | ToolFault]]()


def judge(item: pytest.Item, contract: str, check: str) -> None:
    """Return if the check holds for the session's target; skip what isn't supported, raise for the rest.

    Raises
    ------
    Refuted, Inconclusive
        With the complete message about this check.
    BadUse, ToolFault
        The contract can't be audited.
    """
    __tracebackhide__ = True
    report = _report(item, contract)
    if isinstance(report, LacksContract):
        pytest.skip(str(report))
    if isinstance(report, Exception):
        raise report
    if report.verdict is Verdict.VOID:
        item.user_properties += properties(report)
        lines = [*failures(report.controls), f"repeat: {report.command}"]
        raise Inconclusive(printable("\n".join(lines)), report)
    rows = {row.check.id: row for row in report.evidence}
    row = rows.get(check, report.evidence[0])
    item.user_properties += properties(report, row)
    if row.verdict is Verdict.NOT_SUPPORTED:
        pytest.skip(one_line(f"not supported: {row.message}"))
    if row.known:
        pytest.xfail(one_line(f"known deviation: {row.known}"))
    if row.verdict is not Verdict.HOLDS:
        error = Refuted if row.verdict is Verdict.REFUTED else Inconclusive
        raise error(_explanation(row, report), report)


def _explanation(row: Evidence, report: Report) -> str:
    """The complete message of a check that doesn't hold; its counterexample is saved."""
    lines = [f"{row.verdict}: {row.check.id}", row.message.rstrip()]
    lines += told(save(report).get(row.check.id), report.target.address, report.settings)
    return printable("\n".join([*lines, f"repeat: {report.command}"]))


def _report(item: pytest.Item, contract: str) -> Report | BadUse | ToolFault:
    """The audit of the contract, run once a session and worker; or why there is none."""
    reports = item.config.stash.setdefault(_REPORTS, {})
    if contract not in reports:
        try:
            reports[contract] = _audit(item, contract)
        except (BadUse, ToolFault) as error:
            reports[contract] = error
    return reports[contract]


def _audit(item: pytest.Item, contract: str) -> Report:
    wanted = asked(item.config)
    report = runner.audit(
        wanted.target,
        profile=wanted.profile,
        seed=wanted.seed,
        only=wanted.only,
        contracts=[contract],
        settings=wanted.settings,
        given=(),  # refused, if at all, for all contracts together when the session starts
        deviations=wanted.known(),
        controls=wanted.controls,
    )
    record(
        item,
        report,
        f"{report.target.address}-{contract}",
        f"{contract} of {_named(report)}",
        selected=_selected(item.session, contract),
    )
    return report


def _selected(session: pytest.Session, contract: str) -> int:
    """How many checks of the contract are tests of this session; ``-k`` and ``--lf`` leave some out."""
    parameters = (value for item in session.items for value in _parameters(item))
    return len({value for value in parameters if isinstance(value, tuple) and value[:1] == (contract,)})


def _parameters(item: pytest.Item) -> Iterable[Any]:
    callspec = getattr(item, "callspec", None)
    return () if callspec is None else (callspec.params.get("tokenlaw_check"),)


def _named(report: Report) -> str:
    return f"{report.target.name} {report.target.version}"


_COUNT = pytest.StashKey[int]()
"""Audits that a test has asked for so far."""


def record_in_test(item: pytest.Item, report: Report) -> None:
    """Tell an audit that a test of the user's has asked for, with properties for JUnit."""
    number = item.stash[_COUNT] = item.stash.get(_COUNT, 0) + 1
    contracts = ", ".join(report.target.contracts)
    again = f"-{number}" if number > 1 else ""
    record(item, report, f"{item.nodeid}{again}", f"{item.nodeid}: {contracts} {_named(report)}")
    item.user_properties += properties(report)


def record(
    item: pytest.Item, report: Report, name: str, heading: str, *, selected: int | None = None
) -> None:
    """Tell an audit on the next report of the item, and write its files.

    Parameters
    ----------
    item : that ran it.
    report : what was found.
    name : of the files, without their endings.
    heading : of what the summary says.
    selected : how many of its checks are tests of the session; None if the test is about all of them.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "") if hasattr(item.config, "workerinput") else ""
    folder = asked(item.config).report
    places = () if folder is None else _write(report, folder, f"{name}-{worker}" if worker else name)
    found = tell(report, heading, worker=worker, files=places, selected=selected)
    item.stash.setdefault(TOLD, []).append(found)


def _write(report: Report, folder: Path, name: str) -> tuple[str, ...]:
    """Write both files of a report: where they are, or why one couldn't be, which must not hide a verdict."""
    from tokenlaw.html_report import to_html

    data, places = report.to_data(), []
    for path, content in (
        (folder / f"{file_name(name)}.json", formatted(data)),
        (folder / f"{file_name(name)}.html", to_html(data)),
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            places.append(f"{path} couldn't be written: {error.strerror or error}")
        else:
            places.append(str(path))
    return tuple(places)
