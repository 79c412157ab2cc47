"""What planted faults and innocents cite, and which check a fault names: the form in which it is written."""

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tokenlaw.checks import load_suites
from tokenlaw.impl.faults import Fault
from tokenlaw.impl.faults.targets import SUSPECTS

REPORTS = {name: suspect.planted.report for name, suspect in SUSPECTS.items()}
FAULTS = {name: one.planted for name, one in SUSPECTS.items() if isinstance(one.planted, Fault)}

REPOSITORY = re.compile(r"(?<![\w./-])([\w-]+)/([\w.-]*\w)")
CITATION = re.compile(REPOSITORY.pattern + r" \d+(?:, \d+)*")
REMARK = re.compile(r"\([^()]*\)")
CHECK = re.compile(r"(\S+)(?: \([^()]+\))?")


def repositories() -> Iterator[tuple[str, str]]:
    """Owner and name of all that is cited."""
    for report in REPORTS.values():
        yield from CITATION.findall(report)


def faulty(report: str) -> list[str]:
    """Parts of a report that cite a number without owner and name; or no repository, though one is known."""
    known = not report.startswith("none known")
    return [
        part
        for part in REMARK.sub("", report).split("; ")
        if re.search(r"\b\d+\b", CITATION.sub("", part)) or (known and not REPOSITORY.search(part))
    ]


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_each_number_is_cited_with_the_owner_and_the_name_of_its_repository(report: str) -> None:
    assert faulty(report) == []


@pytest.mark.parametrize(
    ("report", "wrong"),
    [
        ("vllm-project/vllm 1, 22; ROCm/ATOM 250 (page 16)", []),
        ("none known; what happens if u < p / q is written", []),
        ("none known of this form; nearest is apache/tvm 16666", []),
        ("vllm-project/vllm, advisory GHSA-8wr5-jm2h-8r4f", []),
        ("mlx-lm 846, 1109", ["mlx-lm 846, 1109"]),
        ("ROCm/ATOM 250; ROCm ATOM 250", ["ROCm ATOM 250"]),
        ("none known of this form; nearest is SGLang 13826", ["nearest is SGLang 13826"]),
        ("a thread", ["a thread"]),
    ],
)
def test_the_form_is_told_from_others(report: str, wrong: list[str]) -> None:
    assert faulty(report) == wrong


def test_each_repository_is_spelt_one_way() -> None:
    spelt = defaultdict(set)
    for owner, name in repositories():
        spelt[name.lower()].add(f"{owner}/{name}")
    assert {name: ways for name, ways in spelt.items() if len(ways) > 1} == {}


def test_no_repository_is_cited_by_its_name_alone() -> None:
    """Nor in a remark, which may have numbers of its own."""
    names = "|".join(re.escape(name) for _, name in set(repositories()))
    alone = re.compile(rf"(?<![\w./-])(?:{names}) #?\d", re.IGNORECASE)
    assert {name: report for name, report in REPORTS.items() if alone.search(report)} == {}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_each_fault_names_a_check_of_the_suite_and_what_it_says_more_stands_in_brackets(fault: Fault) -> None:
    form = CHECK.fullmatch(fault.weakest_check)
    assert form
    assert form[1] in {check.id for check in load_suites()[SUSPECTS[fault.name].contract].checks}
