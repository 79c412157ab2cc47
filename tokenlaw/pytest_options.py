"""What a pytest session asks for: the plugin's options, over ``[tool.tokenlaw]``, over the defaults."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tokenlaw.configuration import Configuration, configuration
from tokenlaw.errors import BadUse

if TYPE_CHECKING:
    from tokenlaw.deviation_files import DeviationFile
    from tokenlaw.spec.suites import Settings

NO_CONTROLS = "--tokenlaw-no-controls"
REPORT = "--tokenlaw-report"
DEVIATIONS = "--tokenlaw-deviations"
_AUDIT = (
    ("--tokenlaw-target", "TARGET", "reference", "adapter's name or module:attribute that is audited"),
    ("--tokenlaw-profile", "NAME", "dev", "how much is tried: dev, ci or deep"),
    ("--tokenlaw-seed", "N", "0", "the same seed repeats the run"),
    ("--tokenlaw-only", "GLOB", "*", "only checks whose id matches"),
    ("--tokenlaw-device", "DEVICE", "cpu", "torch device on which tensors are made"),
    ("--tokenlaw-claims", "CLAIM", "its own", "held to textbook, block, exact or approximate"),
    ("--tokenlaw-alpha", "ALPHA", "1e-9", "probability that a run of laws refutes an exact verifier"),
    ("--tokenlaw-budget", "N", "by profile", "requests that a verifier is given"),
    ("--tokenlaw-tolerance", "EPS", "0", "total variation up to which a law may differ"),
    (DEVIATIONS, "FILE.toml", "none", "known deviations, which don't count"),
)
_KINDS = {"device": str, "claims": str, "alpha": float, "budget": int, "tolerance": float}
_CONFIGURATION = pytest.StashKey[Configuration]()


@dataclass(frozen=True)
class Asked:
    """What is asked of an audit in this session.

    Attributes
    ----------
    target : name of an installed adapter, or ``module:attribute``.
    profile, seed, only, settings, controls : as `tokenlaw.runner.audit` has them.
    deviations : file of known deviations; None without.
    report : folder that takes the reports; None if none are wanted.
    """

    target: str
    profile: str
    seed: int
    only: str
    settings: "Settings"
    deviations: Path | None
    controls: bool
    report: Path | None

    def known(self) -> "DeviationFile | None":
        """The known deviations, read; raises `BadUse` where they can't be."""
        if self.deviations is None:
            return None
        from tokenlaw.deviation_files import read_deviations

        return read_deviations(self.deviations)


def add_options(parser: pytest.Parser) -> None:
    """Add the options; all of them start with ``--tokenlaw-``."""
    group = parser.getgroup("tokenlaw", "tokenlaw: is this decoding engine exact?")
    for name, metavar, default, explanation in _AUDIT:
        group.addoption(name, metavar=metavar, default=None, help=f"{explanation} (default: {default})")
    group.addoption(NO_CONTROLS, action="store_true", help="don't ask the reference and a broken wrapper")
    group.addoption(
        REPORT, metavar="DIR", default=None, help="folder for a JSON and an HTML report of every audit"
    )


def require_sound_options(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a wrong ``[tool.tokenlaw]``, and for options that can't be used.

    A target is tried only if an option was given, since that takes seconds.
    """
    try:
        config.stash[_CONFIGURATION] = configuration(config.invocation_params.dir)
        if hasattr(config, "workerinput"):
            return
        _require_folder(config.getoption(REPORT))
        if any(config.getoption(name) is not None for name, *_ in _AUDIT):
            _require_usable(asked(config), [name for name in _KINDS if _option(config, name) is not None])
    except BadUse as error:
        raise pytest.UsageError(f"tokenlaw: {error}") from None


def _require_folder(name: str | None) -> None:
    """Make the folder of the reports."""
    try:
        if name is not None:
            Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadUse(f"{REPORT} {name}: can't be made: {error.strerror}; name another folder") from None


def _require_usable(asked: Asked, given: Collection[str]) -> None:
    from tokenlaw.runner import require_usable

    # In a child process: a target that prints, hangs or exits must not do it to pytest.
    require_usable(asked.target, profile=asked.profile, only=asked.only, settings=asked.settings, given=given)
    asked.known()


def asked(config: pytest.Config) -> Asked:
    """What the options ask for; raises `pytest.UsageError` for what isn't a number but should be."""
    seed = _option(config, "seed") or "0"
    if not seed.isdecimal():
        raise pytest.UsageError(f"tokenlaw: --tokenlaw-seed {seed!r}: expected a whole number, 0 or more")
    said = config.stash[_CONFIGURATION]
    given, report = _option(config, "deviations"), config.getoption(REPORT)
    return Asked(
        target=_option(config, "target") or said.target or "reference",
        profile=_option(config, "profile") or said.profile or "dev",
        seed=int(seed),
        only=only(config),
        settings=_settings(config, said),
        deviations=said.deviations if given is None else Path(given),
        controls=not config.getoption(NO_CONTROLS),
        report=None if report is None else Path(report),
    )


def only(config: pytest.Config) -> str:
    """The glob over check ids."""
    return _option(config, "only") or "*"


def _option(config: pytest.Config, name: str) -> str | None:
    given: str | None = config.getoption(f"--tokenlaw-{name}")
    return given


def _settings(config: pytest.Config, said: Configuration) -> "Settings":
    from dataclasses import replace

    from tokenlaw.spec.suites import DEFAULTS

    chosen: dict[str, Any] = {"alpha": said.alpha, "budget": said.budget}
    for name, kind in _KINDS.items():
        given = _option(config, name)
        if given is not None:
            try:
                chosen[name] = kind(given)
            except ValueError:
                wrong = f"--tokenlaw-{name} {given!r}: expected {'a whole ' if kind is int else 'a '}number"
                raise pytest.UsageError(f"tokenlaw: {wrong}") from None
    return replace(DEFAULTS, **{name: value for name, value in chosen.items() if value is not None})
