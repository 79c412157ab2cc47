"""The HTML page of a matrix of faults."""

import pytest

from support.html_pages import Page, assert_loads_nothing
from support.pages import MATRIX, evidence, page_of
from tokenlaw.errors import BadUse
from tokenlaw.html_report import to_html
from tokenlaw.spec.verdicts import Verdict


def test_a_matrix_of_faults_shows_what_nobody_saw_first() -> None:
    parsed = Page(to_html(MATRIX).decode())
    words = parsed.words()
    assert "1 of 2 planted faults killed silent on 1 of 1 innocents" in words
    assert "not all were audited yet" in words
    assert words.index("unseen missed") < words.index("seen killed, seen by one check alone")
    assert [
        attributes["title"] for tag, attributes in parsed.tags if tag == "td" and "title" in attributes
    ] == ["3 operations"]
    assert_loads_nothing(parsed)
    assert [tag for tag, _ in parsed.tags].count("script") == 1


def test_what_was_counted_is_named() -> None:
    both = evidence(
        "law/decoder", Verdict.HOLDS, statistics={"evidence": "sampled", "paths": 0, "samples": 900}
    )
    asked = evidence("law/probed", Verdict.HOLDS, statistics={"evidence": "probed", "evaluations": 52})
    words = Page(page_of(both, asked)).words()
    assert "sampled 900 samples" in words
    assert "probed 52 evaluations" in words


def test_a_damaged_matrix_is_bad_use() -> None:
    with pytest.raises(BadUse, match=r"here: a damaged matrix of faults: Expected `array`"):
        to_html(MATRIX | {"faults": 7}, "here")
