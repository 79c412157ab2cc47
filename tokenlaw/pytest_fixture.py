"""The fixture ``tokenlaw``: the package as a test sees it, with the options of the session as defaults."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import tokenlaw as package
from tokenlaw import checks, runner
from tokenlaw.in_process import raise_unless_holds
from tokenlaw.pytest_audits import record_in_test
from tokenlaw.pytest_options import Asked, asked
from tokenlaw.report import Report
from tokenlaw.spec.contracts import BLOCK_MANAGER, DECODER, KV_STORE, PAGED_ATTENTION, VERIFIER


class SessionChecks:
    """What the package offers, for one test: ``check_*`` and ``audit`` as the session was asked to run them.

    Profile, seed, ``only``, alpha, budget, device, known deviations and controls come from the command line
    or ``[tool.tokenlaw]``, unless the call says otherwise. What was found is told in the summary and in
    JUnit, and written to ``--tokenlaw-report``. Every other name is the package's: ``tokenlaw.Refuted``.

    Parameters
    ----------
    request : of the test, or of a fixture that uses this one.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._item: pytest.Item = request.node
        self._asked: Asked = asked(request.config)

    def __getattr__(self, name: str) -> Any:
        return getattr(package, name)

    def check_block_manager(self, factory: Callable[..., Any], **options: Any) -> Report:
        """As `tokenlaw.check_block_manager`."""
        __tracebackhide__ = True
        return self._check(BLOCK_MANAGER, package.check_block_manager, factory, options)

    def check_kv_store(self, factory: Callable[..., Any], **options: Any) -> Report:
        """As `tokenlaw.check_kv_store`."""
        __tracebackhide__ = True
        return self._check(KV_STORE, package.check_kv_store, factory, options)

    def check_paged_attention(self, factory: Callable[..., Any], **options: Any) -> Report:
        """As `tokenlaw.check_paged_attention`."""
        __tracebackhide__ = True
        return self._check(PAGED_ATTENTION, package.check_paged_attention, factory, options)

    def check_verifier(self, verifier: Any, **options: Any) -> Report:
        """As `tokenlaw.check_verifier`."""
        __tracebackhide__ = True
        return self._check(VERIFIER, package.check_verifier, verifier, options)

    def check_decoder(self, decoder: Any, **options: Any) -> Report:
        """As `tokenlaw.check_decoder`."""
        __tracebackhide__ = True
        return self._check(DECODER, package.check_decoder, decoder, options)

    def audit(
        self,
        target: str | None = None,
        *,
        contracts: Sequence[str] | None = None,
        raises: bool = True,
        **options: Any,
    ) -> Report:
        """As `tokenlaw.audit`, in a child process, of the session's target if none is named.

        Unlike there `Refuted` or `Inconclusive` is raised unless everything holds, or ``raises`` is false.
        """
        __tracebackhide__ = True
        asked = self._asked
        how = {"settings": asked.settings, "deviations": asked.known(), **self._common()}
        given = None if "settings" in options else ()  # those of the session are for all of its tests
        report = runner.audit(target or asked.target, contracts=contracts, given=given, **how | options)
        return self._told(report, raises)

    def _check(
        self, contract: str, check: Callable[..., Report], offered: Any, options: dict[str, Any]
    ) -> Report:
        """Run a check of the package that doesn't raise, tell what it found, then raise."""
        __tracebackhide__ = True
        raises = options.pop("raises", True)
        defaults = self._defaults(check)
        if "only" not in options and not checks.matching(checks.load_suites()[contract], self._asked.only):
            pytest.skip(f"--tokenlaw-only selects no check of {contract}")
        return self._told(check(offered, raises=False, **defaults | options), raises)

    def _defaults(self, function: Callable[..., Report]) -> dict[str, Any]:
        """What the session says about those parameters that the check has."""
        settings = self._asked.settings
        special = {"device": settings.device, "alpha": settings.alpha, "budget": settings.budget}
        known = inspect.signature(function).parameters
        said = {name: value for name, value in special.items() if name in known}
        return {**said, **self._common(), "deviations": self._asked.deviations}

    def _common(self) -> dict[str, Any]:
        """What the session says that everything takes."""
        asked = self._asked
        return {
            "profile": asked.profile,
            "seed": asked.seed,
            "only": asked.only,
            "controls": asked.controls,
        }

    def _told(self, report: Report, raises: bool) -> Report:
        __tracebackhide__ = True
        record_in_test(self._item, report)
        if raises:
            raise_unless_holds(report)
        return report
