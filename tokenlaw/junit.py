"""A report as JUnit XML: one test case a check, and one a control."""

import re
from xml.etree import ElementTree

from tokenlaw.controls import Control
from tokenlaw.report import Report
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line, printable

_OUTCOMES = {
    Verdict.REFUTED: "failure",
    Verdict.UNKNOWN: "error",
    Verdict.NOT_EXERCISED: "skipped",
    Verdict.NOT_SUPPORTED: "skipped",
}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def to_xml(report: Report) -> bytes:
    """The report as a JUnit document in UTF-8."""
    cases = [*map(_case, report.evidence), *map(_control, report.controls)]
    counts = {name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in _COUNTED.items()}
    totals = {"tests": str(len(cases)), **counts, "time": f"{report.seconds:.3f}"}
    name = _xml(f"tokenlaw {report.target.name}")
    suite = ElementTree.Element("testsuite", {"name": name, **totals})
    properties = ElementTree.SubElement(suite, "properties")
    known = {
        "seed": str(report.seed),
        "profile": report.profile,
        "command": report.command,
        **report.versions,
    }
    for key, value in known.items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": _xml(value)})
    suite.extend(cases)
    root = ElementTree.Element("testsuites", totals)
    root.append(suite)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(row: Evidence) -> ElementTree.Element:
    attributes = {
        "classname": row.check.contract or "target",
        "name": row.check.id,
        "time": f"{row.seconds:.3f}",
    }
    case = ElementTree.Element("testcase", attributes)
    tag = "skipped" if row.known else _OUTCOMES.get(row.verdict)
    if tag is not None:
        first = row.message.partition("\n")[0]
        outcome = ElementTree.SubElement(case, tag)
        outcome.set("message", _xml(one_line(f"{row.verdict}: {first}")))
        outcome.set("type", str(row.check.severity))
        outcome.text = _xml(row.message)
    return case


def _control(control: Control) -> ElementTree.Element:
    """An error where it failed: then the audit is void."""
    name = f"control/{str(control.kind).replace(' ', '-')}"
    attributes = {"classname": control.contract, "name": name, "time": f"{control.seconds:.3f}"}
    case = ElementTree.Element("testcase", attributes)
    tag = "skipped" if control.verdict is None else "error" if control.failed else None
    if tag is not None:
        outcome = ElementTree.SubElement(case, tag)
        outcome.set("message", _xml(("void: " if control.failed else "") + control.in_words()))
        outcome.text = _xml(control.message)
    return case


def _xml(text: str) -> str:
    """The text without what an XML document can't hold."""
    return _NOT_XML.sub("\ufffd", printable(text))
