"""One alpha for the whole run, split by weights over its claims, and what became of it.

The probability that a run refutes anything at all of an exact implementation is at most alpha, whatever the
dependence between its claims:

- p-values: a claim refutes when its p-value is at most its own part of alpha (Bonferroni).
- gates: the weighted average of their e-values is an e-value again, and refutes when it reaches 1 / (the part
  of alpha that all gates have together), at any time (Ville's inequality). A claim whose term of the average
  alone reaches that is the one refuted; this costs no further alpha, as the average refutes then too. It is
  the same as "e is at least 1 / (the claim's own part of alpha)". What becomes of the average:
  `tokenlaw.stats.together`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tokenlaw.stats.counts import SUM_TOLERANCE, check_inside_unit
from tokenlaw.stats.e_values import average_log_e


class Kind(StrEnum):
    """What a claim is decided by."""

    GATE = "gate"
    P_VALUE = "p-value"


@dataclass(frozen=True)
class Stake:
    """A claim that wants a part of alpha: its name, what decides it, and its weight beside the others."""

    name: str
    kind: Kind
    weight: float = 1.0


@dataclass(frozen=True)
class Entry:
    """A claim and its part of alpha.

    Attributes
    ----------
    name, kind : as in `Stake`.
    share : part of the run's alpha, above 0, at most 1.
    observed : natural logarithm of the e-value or of the p-value; None before the first look.
    """

    name: str
    kind: Kind
    share: float
    observed: float | None = None


@dataclass(frozen=True)
class Ledger:
    """All claims of a run. Made by `allot` before the first draw; `record` gives a new ledger.

    Attributes
    ----------
    alpha : probability that the run may refute an exact implementation.
    entries : the claims, with distinct names and shares that sum to at most one.

    Raises
    ------
    ValueError
        Alpha or a share is out of range, two claims have one name, or more than alpha is spent.

    Examples
    --------
    >>> ledger = Ledger.allot(1e-9, [Stake("marginal", Kind.GATE, 3.0), Stake("chi-square", Kind.P_VALUE)])
    >>> ledger = ledger.record("marginal", 40.0).record("chi-square", math.log(0.3))
    >>> ledger.refuted_names(), ledger.refuted
    (('marginal',), True)
    """

    alpha: float
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        check_inside_unit(self.alpha, "alpha")
        names = [entry.name for entry in self.entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"every claim needs a name of its own, but these occur twice: {', '.join(twice)}"
            )
        for entry in self.entries:
            if not 0 < entry.share <= 1:
                raise ValueError(f"the share of {entry.name} must be above 0 and at most 1: {entry.share}")
        spent = math.fsum(entry.share for entry in self.entries)
        if spent > 1 + SUM_TOLERANCE:
            raise ValueError(f"the shares sum to {spent}; they can't be more than one alpha")

    @classmethod
    def allot(cls, alpha: float, stakes: Iterable[Stake]) -> "Ledger":
        """Split alpha over claims in proportion to their weights.

        Parameters
        ----------
        alpha : above 0 and below 1.
        stakes : one or more; weights finite and above 0, chosen without a look at the data.

        Raises
        ------
        ValueError
            There is no claim, or a weight is out of range.
        """
        claims = list(stakes)
        if not claims:
            raise ValueError("there is no claim to give a part of alpha to")
        for claim in claims:
            if not 0 < claim.weight < math.inf:
                raise ValueError(
                    f"the weight of {claim.name} must be finite and above 0, but is {claim.weight}"
                )
        total = math.fsum(claim.weight for claim in claims)
        return cls(alpha, tuple(Entry(claim.name, claim.kind, claim.weight / total) for claim in claims))

    def entry(self, name: str) -> Entry:
        """The claim of this name.

        Raises
        ------
        ValueError
            There is none.
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise ValueError(f"no part of alpha was given to {name!r} before the run")

    def alpha_of(self, name: str) -> float:
        """The claim's own part of alpha."""
        return self.alpha * self.entry(name).share

    def record(self, name: str, observed: float) -> "Ledger":
        """The ledger after a look at a claim.

        Parameters
        ----------
        name : of the claim.
        observed : natural logarithm of an e-value of all data so far, which may be recorded again and again
            and replaces the earlier one, or of a p-value, which may be recorded once.

        Raises
        ------
        ValueError
            An unknown claim, NaN, a p-value above one, or a second p-value for one claim.
        """
        found = self.entry(name)
        if math.isnan(observed):
            raise ValueError(f"the evidence on {name} is NaN")
        if found.kind is Kind.P_VALUE and found.observed is not None:
            raise ValueError(
                f"the p-value of {name} is recorded already; a second look needs alpha of its own"
            )
        if found.kind is Kind.P_VALUE and observed > 0:
            raise ValueError(f"the p-value of {name} is above one: its logarithm is {observed}")
        changed = replace(found, observed=observed)
        return replace(self, entries=tuple(changed if entry is found else entry for entry in self.entries))

    def refutes(self, name: str) -> bool:
        """Whether what was recorded refutes the claim at its own part of alpha."""
        entry = self.entry(name)
        if entry.observed is None:
            return False
        evidence = entry.observed if entry.kind is Kind.GATE else -entry.observed
        return evidence >= -math.log(self.alpha_of(name))

    def refuted_names(self) -> tuple[str, ...]:
        """The claims that are refuted one by one."""
        return tuple(entry.name for entry in self.entries if self.refutes(entry.name))

    def gates(self) -> tuple[Entry, ...]:
        """The claims that are decided by e-values."""
        return tuple(entry for entry in self.entries if entry.kind is Kind.GATE)

    @property
    def gates_alpha(self) -> float:
        """The part of alpha that all gates have together; 0 without any."""
        return self.alpha * math.fsum(entry.share for entry in self.gates())

    @property
    def gates_log_e(self) -> float:
        """Logarithm of the weighted average of all gates' e-values; one not yet looked at counts as e = 1."""
        gates = self.gates()
        if not gates:
            return 0.0
        total = math.fsum(entry.share for entry in gates)
        return average_log_e(
            [entry.observed or 0.0 for entry in gates], [entry.share / total for entry in gates]
        )

    @property
    def gates_refuted(self) -> bool:
        """Whether the gates together refute; possible without any single claim that does."""
        return bool(self.gates()) and self.gates_log_e >= -math.log(self.gates_alpha)

    @property
    def refuted(self) -> bool:
        """Whether anything in the run is refuted."""
        return self.gates_refuted or bool(self.refuted_names())
