"""``generate`` of transformers, proved: the smallest cases of examples/audits/transformers_generate.py.

Skipped where transformers isn't installed. The others take minutes; docs/audits/transformers-generate.md has
their verdicts.
"""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenlaw
from tokenlaw.spec.verdicts import Verdict

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def audit() -> Any:
    """The module of the audit."""
    reason = "transformers isn't installed: see examples/audits/README.md"
    pytest.importorskip("transformers", reason=reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1])
        return importlib.import_module("examples.audits.transformers_generate")


@pytest.mark.parametrize(
    "name", ["llama_3_1_2", "gpt2_3_1_2", "mistral_3_1_3", "llama_top_k", "llama_lookup_stop"]
)
def test_drafts_leave_the_law_alone(audit: Any, name: str) -> None:
    case = audit.CASES[name]
    [found] = tokenlaw.prove(case, spec=case.target_only).evidence
    assert found.statistics is not None
    assert found.statistics["tv_at_most"] < 1e-6


def test_what_relaxes_the_law_is_refuted(audit: Any) -> None:
    case = replace(audit.relaxed, new_tokens=2)
    [found] = tokenlaw.prove(case, spec=case.target_only, raises=False).evidence
    assert found.verdict is Verdict.REFUTED
    assert found.statistics is not None
    assert found.statistics["tv_at_least"] > 0.01


def test_what_is_kept_between_calls_is_noticed(audit: Any) -> None:
    """The number of drafts of the schedule ``heuristic`` stays in the assistant unless it is set anew."""
    case = audit.CASES["llama_fewer_drafts"]
    options = case._sampling() | case._drafting()
    tokens = audit.torch.tensor([case.prompt])
    report = tokenlaw.prove(
        lambda: case.target.generate(tokens, attention_mask=audit.torch.ones_like(tokens), **options),
        spec=case.target_only,
        raises=False,
        max_paths=40,
    )
    assert report.verdict is Verdict.UNKNOWN
    assert "can't be enumerated" in report.evidence[0].message
    assert "all before were the same" in report.evidence[0].message


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "lfm2"])
def test_earlier_tokens_count_in_the_laws(audit: Any, kind: str) -> None:
    """A cache with the keys of another token would be seen."""
    case = audit.drafted(kind)
    law = np.array(case.next_token((1,)))
    for place in (1, 2):
        moved = [
            np.array(
                replace(case, prompt=(*case.prompt[:place], token, *case.prompt[place + 1 :])).next_token(
                    (1,)
                )
            )
            for token in range(3)
        ]
        assert max(abs(other - law).max() for other in moved) > 0.05
