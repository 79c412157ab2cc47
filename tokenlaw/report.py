"""What an audit showed, and its JSON form: one versioned envelope that every other view reads."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenlaw.controls import Control, void_contracts
from tokenlaw.controls import as_data as controls_data
from tokenlaw.prove_command import PROFILE as PROOF
from tokenlaw.settings import as_data, as_options
from tokenlaw.spec.suites import DEFAULTS, Settings
from tokenlaw.spec.verdicts import Evidence, Verdict, exit_status, overall
from tokenlaw.standing import sentence, standing
from tokenlaw.text import encodable
from tokenlaw.writing import formatted, write_whole

SCHEMA = "tokenlaw.report/1"
SPEC_VERSION = "1"
"""Grows when a rule changes its meaning, so that verdicts of different releases can be told apart."""

FAILED = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.NOT_EXERCISED)
"""Verdicts that keep a run from passing."""


@dataclass(frozen=True)
class Target:
    """What was audited: its contracts, and the capabilities of those that were run.

    ``typed`` is how the user called it: an adapter's name or ``module:attribute``; empty where another
    process couldn't find it.
    """

    name: str
    version: str
    contracts: tuple[str, ...] = ()
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    typed: str = ""

    @property
    def address(self) -> str:
        """What a command line calls the target."""
        return self.typed or self.name


@dataclass(frozen=True)
class Report:
    """The outcome of an audit.

    Attributes
    ----------
    target : what was audited.
    evidence : one entry a check, in the order of contracts and checks.
    profile, seed : how much was tried, and from which seed.
    versions : ``python``, ``torch``, ``tokenlaw``, ``platform``.
    command : how to repeat the run.
    seconds : wall-clock time of the whole run.
    settings : device, claims, and what tests of laws may spend.
    continued : seeds of the earlier runs whose evidence counts along.
    controls : what the controls showed; none where they were turned off, or the process ended before them.
    """

    target: Target
    evidence: tuple[Evidence, ...]
    profile: str
    seed: int
    versions: Mapping[str, str]
    command: str
    seconds: float = 0.0
    settings: Settings = DEFAULTS
    continued: tuple[int, ...] = ()
    controls: tuple[Control, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """All verdicts joined (`tokenlaw.spec.verdicts.overall`); known deviations don't count.

        Those of a contract whose controls failed count as ``void``.
        """
        void = void_contracts(self.controls)
        counted = (row for row in self.evidence if not row.known)
        return overall(Verdict.VOID if row.check.contract in void else row.verdict for row in counted)

    @property
    def status(self) -> int:
        """Exit status: 0 holds, 1 refuted, 2 void, unknown or not exercised."""
        return exit_status(self.verdict)

    def with_verdict(self, *verdicts: Verdict) -> list[Evidence]:
        """The evidence that has one of these verdicts, without known deviations."""
        return [row for row in self.evidence if row.verdict in verdicts and not row.known]

    def known(self) -> list[Evidence]:
        """The evidence of known deviations that still stand."""
        return [row for row in self.evidence if row.known]

    def standing(self) -> str:
        """The strongest claim about the laws of a verifier that still stands, in words; empty without."""
        return sentence(self._of_sound_contracts())

    def ledger(self) -> list[dict[str, Any]]:
        """What each test of a law was allotted and showed: check, kind, share, alpha, observed."""
        rows = ((row.check.id, row.statistics) for row in self.evidence if row.statistics)
        return [{"check": check, **entry} for check, found in rows for entry in found.get("ledger", ())]

    def lacking(self) -> list[str]:
        """Capabilities for lack of which checks aren't supported, sorted."""
        offered, lacking = self.target.capabilities, set[str]()
        for row in self.with_verdict(Verdict.NOT_SUPPORTED):
            lacking |= row.check.needs.difference(offered.get(row.check.contract, ()))
        return sorted(lacking)

    def summary(self) -> str:
        """One line: target, verdict, and how many checks had which verdict, or a known deviation.

        >>> Report(Target("mine", "1"), (), "dev", 0, {}, "").summary()
        'mine 1: not exercised (no checks), profile dev, seed 0'
        """
        counts = [f"{len(rows)} {verdict}" for verdict in Verdict if (rows := self.with_verdict(verdict))]
        if known := len(self.known()):
            counts.append(f"{known} known deviation{'s' if known > 1 else ''}")
        told = ", ".join(counts) or "no checks"
        target = f"{self.target.name} {self.target.version}"
        how = "" if self.profile == PROOF else f", profile {self.profile}, seed {self.seed}"
        return f"{target}: {self.verdict} ({told}){how}"

    def _of_sound_contracts(self) -> list[Evidence]:
        void = void_contracts(self.controls)
        return [row for row in self.evidence if row.check.contract not in void]

    def to_data(self) -> dict[str, Any]:
        """The JSON envelope as plain data."""
        return {
            "schema": SCHEMA,
            "spec_version": SPEC_VERSION,
            "target": {
                "name": self.target.name,
                "version": self.target.version,
                "address": self.target.typed,
                "contracts": list(self.target.contracts),
                "capabilities": {name: list(found) for name, found in self.target.capabilities.items()},
            },
            "verdict": str(self.verdict),
            "strongest_claim": standing(self._of_sound_contracts()),
            "seed": self.seed,
            "profile": self.profile,
            "settings": as_data(self.settings) | {"continued": list(self.continued)},
            "versions": dict(self.versions),
            "checks": [_row(evidence) for evidence in self.evidence],
            "controls": controls_data(self.controls),
            "ledger": self.ledger(),
            "command": self.command,
        }

    def write_json(self, path: Path) -> None:
        """Write the JSON envelope; the file appears whole or not at all."""
        write_whole(path, formatted(self.to_data()))


def _row(evidence: Evidence) -> dict[str, Any]:
    check = evidence.check
    return {
        "id": check.id,
        "rule": check.rule,
        "contract": check.contract,
        "title": check.title,
        "verdict": str(evidence.verdict),
        "severity": str(check.severity),
        "exercised": dict(evidence.exercised),
        "operations": evidence.operations,
        "seconds": round(evidence.seconds, 3),
        "message": encodable(evidence.message),
        "counterexample": evidence.counterexample,
        "statistics": evidence.statistics,
        "known": encodable(evidence.known),
        "frames": list(evidence.frames),
    }


def replay_command(file: Path | str, target: str, settings: Settings = DEFAULTS) -> str:
    """The command line that runs a saved counterexample; of the settings only the device matters."""
    device = as_options(Settings(device=settings.device))
    return shlex.join(["tokenlaw", "replay", str(file), "--target", target, *device])


def audit_command(
    target: str,
    profile: str,
    seed: int,
    only: str,
    contracts: tuple[str, ...],
    settings: Settings = DEFAULTS,
    earlier: str = "",
    deviations: str = "",
    *,
    given: Collection[str] = (),
    controls: bool = True,
) -> str:
    """The command line that repeats an audit.

    ``given`` names the settings that were chosen for this run, which stay even where they are the defaults:
    ``[tool.tokenlaw]`` may say otherwise.

    >>> audit_command("a:b", "dev", 3, "kv/*", ())
    "tokenlaw audit a:b --profile dev --seed 3 --only 'kv/*'"
    """
    words = ["tokenlaw", "audit", target, "--profile", profile, "--seed", str(seed)]
    if only != "*":
        words += ["--only", only]
    for contract in contracts:
        words += ["--contract", contract]
    words += as_options(settings, given)
    if earlier:
        words += ["--continue", earlier]
    if deviations:
        words += ["--deviations", deviations]
    if not controls:
        words.append("--no-controls")
    return shlex.join(words)
