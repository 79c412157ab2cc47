"""The rules of block managers: one small checker per invariant of ``docs/rules.md``."""

from collections.abc import Mapping

from tokenlaw.properties.rules import accounting, content, lifecycle, prefix, sharing
from tokenlaw.properties.rules.rule import Rule
from tokenlaw.properties.step import Moment
from tokenlaw.properties.world import Judge
from tokenlaw.spec.verdicts import Check

RULES: tuple[Rule, ...] = (
    *content.RULES,
    *accounting.RULES,
    *sharing.RULES,
    *prefix.RULES,
    *lifecycle.RULES,
)
"""All rules, in the order of reports."""

BLOCK_MANAGER_CHECKS: tuple[Check, ...] = tuple(rule.check for rule in RULES)
"""The checks of all rules, in the order of reports."""

JUDGES: Mapping[Moment, tuple[Judge, ...]] = {
    moment: tuple(rule.judges[moment] for rule in RULES if moment in rule.judges) for moment in Moment
}
"""Moment -> functions to call then."""
