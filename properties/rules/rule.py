"""What a rule is: a check and the functions that judge it, each at its moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokenlaw.properties.step import Moment
from tokenlaw.properties.world import Judge
from tokenlaw.spec.contracts import BLOCK_MANAGER
from tokenlaw.spec.verdicts import Check, Severity


@dataclass(frozen=True)
class Rule:
    """One invariant of block managers; ``judges`` maps a moment to the function to call then."""

    check: Check
    judges: Mapping[Moment, Judge]


def block_manager_check(
    name: str,
    rule: str,
    title: str,
    severity: Severity,
    *exercised_by: str,
    needs: frozenset[str] = frozenset(),
    exercised_with: tuple[tuple[frozenset[str], str], ...] = (),
) -> Check:
    """A `Check` of the block-manager contract with id ``kv/<name>``."""
    return Check(f"kv/{name}", rule, title, BLOCK_MANAGER, severity, needs, exercised_by, exercised_with)
