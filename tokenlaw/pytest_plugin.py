"""The pytest plugin: ``pytest --pyargs tokenlaw.properties tokenlaw.stats --tokenlaw-target TARGET``.

pytest loads it in every session of every project, so nothing heavy is imported before a test asks for one of
its fixtures. `tokenlaw_check` makes one item a check; the checks of a contract are run together, once a
session (once a worker under xdist), in a child process. `tokenlaw` is for tests of one's own.
"""

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from tokenlaw.errors import BadUse, ToolFault
from tokenlaw.pytest_options import add_options, only, require_sound_options
from tokenlaw.pytest_summary import ATTRIBUTE, SummarySection

if TYPE_CHECKING:
    from tokenlaw.pytest_fixture import SessionChecks

FIXTURE = "tokenlaw_check"
MARKER = "tokenlaw_contract"
_WITH_TRACEBACK = ("long", "native")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; all of them start with ``--tokenlaw-``."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and the summary, and refuse bad options before anything is collected."""
    config.addinivalue_line("markers", f"{MARKER}(contract): the contract whose checks {FIXTURE} stands for")
    for foreign in ("xdist_group(name): for pytest-xdist", "timeout(seconds): for pytest-timeout"):
        config.addinivalue_line("markers", foreign)
    config.pluginmanager.register(SummarySection(), "tokenlaw-summary")
    require_sound_options(config)


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
    selected = matching(suite, only(metafunc.config))
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
    """Call it: returns if the check holds, skips if it isn't supported, else raises the whole message."""
    from tokenlaw.pytest_audits import judge

    contract, check = request.param
    return lambda: judge(request.node, contract, check)


@pytest.fixture
def tokenlaw(request: pytest.FixtureRequest) -> "SessionChecks":
    """The package, with the options of the session; what its checks find is told in the summary."""
    from tokenlaw.pytest_fixture import SessionChecks

    return SessionChecks(request)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what the test audited, and let what tokenlaw raised speak for itself, without a traceback."""
    report = yield
    if "tokenlaw.pytest_audits" in sys.modules:
        from tokenlaw.pytest_audits import TOLD

        setattr(report, ATTRIBUTE, item.stash.get(TOLD, []))
        item.stash[TOLD] = []
    brief = item.config.getoption("tbstyle", "auto") not in _WITH_TRACEBACK
    if brief and report.failed and call.excinfo is not None and isinstance(call.excinfo.value, _errors()):
        report.longrepr = _message(call.excinfo)
    return report


def _errors() -> tuple[type[BaseException], ...]:
    """What tokenlaw raises with a message that needs no traceback."""
    in_process = sys.modules.get("tokenlaw.in_process")
    found = () if in_process is None else (in_process.Refuted, in_process.Inconclusive)
    return (BadUse, ToolFault, *found)


def _message(excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """The message alone, which may quote strangers; of its lines the first is what short summaries show."""
    from tokenlaw.text import printable

    error = excinfo.value
    name = f"{type(error).__name__}: " if isinstance(error, BadUse | ToolFault) else ""
    message = printable(f"{name}{error}")
    plain = pytest.ExceptionInfo.from_exc_info((AssertionError, AssertionError(message), excinfo.tb))
    shown = plain.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        shown.reprcrash.message = message.partition("\n")[0]
    return shown
