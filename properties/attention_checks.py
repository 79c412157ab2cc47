"""The checks of paged attention: which rule is asked on which cases.

Order matters: what a check refutes is left out of the cases of the checks after it, so that one fault is
reported once, by the check that is named after it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_rules import independence, inputs, lse, merge, numerics, placement, poison
from tokenlaw.properties.attention_strategies import Scope
from tokenlaw.properties.attention_subject import Subject
from tokenlaw.spec.contracts import PAGED_ATTENTION
from tokenlaw.spec.verdicts import Check, Severity

CheckFunction = Callable[[Subject, AttentionCase], None]
SHAPES = frozenset({"gqa", "chunked-prefill"})


@dataclass(frozen=True)
class AttentionCheck:
    """A check, the cases that it is run on, and the function that runs it."""

    check: Check
    scope: Scope
    run: CheckFunction


def _check(
    name: str,
    rule: str,
    title: str,
    run: CheckFunction,
    *,
    scope: Scope,
    needs: tuple[str, ...] = (),
    exercised_by: tuple[str, ...],
) -> AttentionCheck:
    check = Check(
        f"attention/{name}",
        rule,
        title,
        PAGED_ATTENTION,
        Severity.WRONG_CONTENT,
        frozenset(needs),
        exercised_by,
    )
    return AttentionCheck(check, scope, run)


def _focused(name: str, title: str, exercised_by: str, extra: frozenset[str] = SHAPES) -> AttentionCheck:
    """A K21 check of one capability, which every case of it uses."""
    scope = Scope(focus=frozenset({name}), extra=extra)
    return _check(
        name, "K21", title, numerics, scope=scope, needs=(name,), exercised_by=("calls", exercised_by)
    )


BASIC = ("calls", "boundary lengths", "partly filled blocks", "ragged batches")

ATTENTION_CHECKS: tuple[AttentionCheck, ...] = (
    _check(
        "numerics",
        "K21",
        "Outputs equal contiguous float64 attention within the derived bound.",
        numerics,
        scope=Scope(),
        exercised_by=BASIC,
    ),
    _check(
        "inputs",
        "K11",
        "A call changes none of its arguments.",
        inputs,
        scope=Scope(),
        exercised_by=("calls", "compared arguments"),
    ),
    _check(
        "placement",
        "K19",
        "Physical block ids, row order and unused table entries don't matter.",
        placement,
        scope=Scope(moves=True),
        exercised_by=(*BASIC, "moved blocks", "permuted rows"),
    ),
    _check(
        "poison",
        "K18",
        "What stands in unreadable slots doesn't reach the output.",
        poison,
        scope=Scope(focus=frozenset({"poison"})),
        needs=("poison",),
        exercised_by=("calls", "poisoned slots"),
    ),
    _focused(
        "empty", "Rows without tokens have zero outputs and disturb no other row.", "empty rows", frozenset()
    ),
    _focused("gqa", "Query head h reads KV head h // group size.", "grouped heads", frozenset()),
    _focused(
        "chunked-prefill",
        "Query i sees its own and earlier positions, the cached prefix included.",
        "queries with cached prefix",
        frozenset({"gqa"}),
    ),
    _check(
        "layout",
        "K20",
        "Caches may be strided views.",
        numerics,
        scope=Scope(focus=frozenset({"strided"}), extra=SHAPES),
        needs=("strided",),
        exercised_by=("calls", "views"),
    ),
    _focused("softcap", "Scores are capped by c tanh(s / c) before the mask.", "softcapped"),
    _focused("sinks", "Sink logits join the denominator of every head.", "sinks"),
    _focused("alibi", "Scores get slope * (key position - query position).", "alibi rows"),
    _focused(
        "window",
        "A query sees the last W positions, its own included.",
        "windowed rows",
        SHAPES | {"softcap", "sinks"},
    ),
    _check(
        "lse",
        "K21",
        "The log-sum-exp is natural and within the derived bound.",
        lse,
        scope=Scope(extra=SHAPES | {"window", "softcap", "sinks", "empty"}),
        needs=("lse",),
        exercised_by=BASIC,
    ),
    _check(
        "merge",
        "K22",
        "Merging the states of any split equals the whole.",
        merge,
        scope=Scope(extra=frozenset({"gqa", "empty"}), merges=True),
        needs=("lse", "merge"),
        exercised_by=("calls", "merged parts", "empty parts"),
    ),
    _check(
        "independence",
        "K28",
        "The result of a call doesn't depend on earlier calls.",
        independence,
        scope=Scope(extra=SHAPES | {"window"}),
        exercised_by=(
            "calls",
            "small batch after big batch",
            "same shape, other scale",
            "repeated calls",
        ),
    ),
)
"""Every check of the contract, simple ones first."""
