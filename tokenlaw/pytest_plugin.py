"""The pytest plugin: ``pytest --pyargs tokenlaw.properties tokenlaw.stats --tokenlaw-target TARGET``.

pytest loads it in every session of every project, so nothing heavy is imported before a test asks for the
fixture `tokenlaw_check`. One item a check; the checks of a contract are run together, once a session (once a
worker under xdist), in a child process.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

# ruff: noqa: PLC0415 - see above

if TYPE_CHECKING:
    from tokenlaw.report import Report
    from tokenlaw.spec.suites import Settings
    from tokenlaw.spec.verdicts import Evidence

FIXTURE = "tokenlaw_check"
MARKER = "tokenlaw_contract"
NO_CONTROLS = "--tokenlaw-no-controls"
_OPTIONS = (
    ("--tokenlaw-target", "TARGET", "reference", "adapter's name or module:attribute that is audited"),
    ("--tokenlaw-profile", "NAME", "dev", "how much is tried: dev, ci or deep"),
    ("--tokenlaw-seed", "N", "0", "the same seed repeats the run"),
    ("--tokenlaw-only", "GLOB", "*", "only checks whose id matches"),
    ("--tokenlaw-device", "DEVICE", "cpu", "torch device on which tensors are made"),
    ("--tokenlaw-claims", "CLAIM", "its own", "held to textbook, block, exact or approximate"),
    ("--tokenlaw-alpha", "ALPHA", "1e-9", "probability that a run of laws refutes an exact verifier"),
    ("--tokenlaw-budget", "N", "by profile", "requests that a verifier is given"),
    ("--tokenlaw-tolerance", "EPS", "0", "total variation up to which a law may differ"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; all of them start with ``--tokenlaw-``."""
    group = parser.getgroup("tokenlaw", "tokenlaw: is this decoding engine exact?")
    for name, metavar, default, explanation in _OPTIONS:
        group.addoption(name, metavar=metavar, default=None, help=f"{explanation} (default: {default})")
    group.addoption(NO_CONTROLS, action="store_true", help="don't ask the reference and a broken wrapper")


def _option(config: pytest.Config, name: str) -> str:
    """The value of an option, or its default."""
    given: str | None = config.getoption(name)
    return next(default for known, _, default, _ in _OPTIONS if known == name) if given is None else given


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and refuse bad options before anything is collected."""
    config.addinivalue_line("markers", f"{MARKER}(contract): the contract whose checks {FIXTURE} stands for")
    for foreign in ("xdist_group(name): for pytest-xdist", "timeout(seconds): for pytest-timeout"):
        config.addinivalue_line("markers", foreign)
    given = [name for name, *_ in _OPTIONS if config.getoption(name) is not None]
    if given and not hasattr(config, "workerinput"):
        _refuse_bad_options(config)


def _refuse_bad_options(config: pytest.Config) -> None:
    from tokenlaw.errors import BadUse
    from tokenlaw.runner import require_usable

    seed = _option(config, "--tokenlaw-seed")
    if not seed.isdecimal():
        raise pytest.UsageError(f"tokenlaw: --tokenlaw-seed {seed!r}: expected a whole number, 0 or more")
    try:
        # In a child process: a target that prints, hangs or exits must not do it to pytest.
        require_usable(
            _option(config, "--tokenlaw-target"),
            profile=_option(config, "--tokenlaw-profile"),
            only=_option(config, "--tokenlaw-only"),
            settings=_settings(config),
        )
    except BadUse as error:
        raise pytest.UsageError(f"tokenlaw: {error}") from None


def _settings(config: pytest.Config) -> "Settings":
    """The settings that the options give."""
    from dataclasses import replace

    from tokenlaw.spec.suites import DEFAULTS

    kinds = {"device": str, "claims": str, "alpha": float, "budget": int, "tolerance": float}
    settings = DEFAULTS
    for name, kind in kinds.items():
        given = config.getoption(f"--tokenlaw-{name}")
        if given is not None:
            try:
                settings = replace(settings, **{name: kind(given)})
            except ValueError:
                wrong = f"--tokenlaw-{name} {given!r}: expected {'a whole ' if kind is int else 'a '}number"
                raise pytest.UsageError(f"tokenlaw: {wrong}") from None
    return settings


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each selected check of the contract that the test names with its marker."""
    if FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        where = metafunc.definition.nodeid
        raise pytest.UsageError(f"{where}: {FIXTURE} needs @pytest.mark.{MARKER}(contract)")
    from tokenlaw.checks import load_suites, matching

    contract = str(marker.args[0])
    suite = load_suites()[contract]
    selected = matching(suite, _option(metafunc.config, "--tokenlaw-only"))
    # The first item of a contract waits for the whole audit, which has limits of its own.
    marks = (pytest.mark.xdist_group(f"tokenlaw {contract}"), pytest.mark.timeout(0))
    ids = [check.id for check in suite.checks if check.id in selected]
    parameters = [pytest.param((contract, check), id=check, marks=marks) for check in ids]
    if not parameters:
        nothing = pytest.mark.skip(reason=f"--tokenlaw-only selects no check of {contract}")
        parameters = [pytest.param((contract, ""), id="none selected", marks=nothing)]
    metafunc.parametrize(FIXTURE, parameters, indirect=True)


@pytest.fixture
def tokenlaw_check(request: pytest.FixtureRequest) -> Callable[[], None]:
    """Call it: returns if the check holds, skips if it isn't supported, else fails with the message."""
    contract, check = request.param
    return lambda: _judge(request.config, contract, check)


_REPORTS = pytest.StashKey[dict[str, "Report | Exception"]]()


def _judge(config: pytest.Config, contract: str, check: str) -> None:
    __tracebackhide__ = True
    from tokenlaw.controls import failures
    from tokenlaw.errors import LacksContract
    from tokenlaw.spec.verdicts import Verdict
    from tokenlaw.text import printable

    report = _report(config, contract)
    if isinstance(report, LacksContract):
        pytest.skip(str(report))
    if isinstance(report, Exception):
        pytest.fail(f"{type(report).__name__}: {report}", pytrace=False)
    if report.verdict is Verdict.VOID:
        pytest.fail(
            printable("\n".join([*failures(report.controls), f"repeat: {report.command}"])), pytrace=False
        )
    rows = {row.check.id: row for row in report.evidence}
    row = rows.get(check, report.evidence[0])
    if row.verdict is Verdict.NOT_SUPPORTED:
        pytest.skip(f"not supported: {row.message}")
    if row.known:
        pytest.xfail(f"known deviation: {row.known}")
    if row.verdict is not Verdict.HOLDS:
        pytest.fail(_explanation(row, report), pytrace=False)


def _explanation(row: "Evidence", report: "Report") -> str:
    """The complete message of a check that doesn't hold; its counterexample is saved."""
    from tokenlaw.counterexamples import save, told
    from tokenlaw.text import printable

    lines = [f"{row.verdict}: {row.check.id}", row.message.rstrip()]
    lines += told(save(report).get(row.check.id), report.target.address, report.settings)
    return printable("\n".join([*lines, f"repeat: {report.command}"]))


def _report(config: pytest.Config, contract: str) -> "Report | Exception":
    """The audit of the contract, run once a session; or why there is none."""
    reports = config.stash.setdefault(_REPORTS, {})
    if contract not in reports:
        from tokenlaw.errors import BadUse, ToolFault
        from tokenlaw.runner import audit

        try:
            reports[contract] = audit(
                _option(config, "--tokenlaw-target"),
                profile=_option(config, "--tokenlaw-profile"),
                seed=int(_option(config, "--tokenlaw-seed")),
                only=_option(config, "--tokenlaw-only"),
                contracts=[contract],
                settings=_settings(config),
                controls=not config.getoption(NO_CONTROLS),
            )
        except (BadUse, ToolFault) as error:
            reports[contract] = error
    return reports[contract]
