"""The library: audit one's own code in one's own process, with one call in a test.

>>> import tokenlaw
>>> def test_my_manager():
...     tokenlaw.check_block_manager(lambda config: MyManager(config))  # doctest: +SKIP
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tokenlaw.checks import load_suites, matching, require_match
from tokenlaw.counterexamples import FOLDER, save, told
from tokenlaw.errors import BadUse
from tokenlaw.report import FAILED, Report, Target
from tokenlaw.runner import ignore, versions
from tokenlaw.session import profile_named
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    KV_STORE,
    PAGED_ATTENTION,
    ContractError,
    Implementation,
)
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.targets import build_once


class Refuted(AssertionError):
    """A claim doesn't hold; the message is complete, ``report`` has everything.

    Attributes
    ----------
    report : the `Report` of the run.
    """

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class Inconclusive(AssertionError):
    """Nothing was refuted, but a check crashed or never saw what it is about; ``report`` has everything."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def check_block_manager(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    raises: bool = True,
) -> Report:
    """Audit a block manager (`tokenlaw.spec.contracts.BlockManager`) in this process.

    Parameters
    ----------
    factory : builds a fresh manager from a `CacheConfig`.
    capabilities : optional capabilities that are claimed; found by looking for their methods if None.
    profile : ``dev``, ``ci`` or ``deep``: how much is tried.
    seed : the same seed repeats the run.
    only : glob over check ids.
    raises : if false, the report is returned whatever it says.

    Raises
    ------
    Refuted
        A check was refuted.
    Inconclusive
        No check was refuted, but one is unknown (a crash) or was not exercised.
    BadUse
        The factory returns the wrong thing, or there is no such profile, capability or check.
    """
    __tracebackhide__ = True
    return _check(
        BLOCK_MANAGER,
        factory,
        capabilities=capabilities,
        profile=profile,
        seed=seed,
        only=only,
        raises=raises,
    )


def check_kv_store(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    raises: bool = True,
) -> Report:
    """Audit a KV store (`tokenlaw.spec.contracts.KVStore`); as `check_block_manager`."""
    __tracebackhide__ = True
    return _check(
        KV_STORE,
        factory,
        capabilities=capabilities,
        profile=profile,
        seed=seed,
        only=only,
        raises=raises,
    )


def check_paged_attention(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    raises: bool = True,
) -> Report:
    """Audit paged attention (`tokenlaw.spec.contracts.PagedAttention`); as `check_block_manager`.

    ``factory`` takes no arguments.
    """
    __tracebackhide__ = True
    return _check(
        PAGED_ATTENTION,
        factory,
        capabilities=capabilities,
        profile=profile,
        seed=seed,
        only=only,
        raises=raises,
    )


def _check(
    contract: str,
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None,
    profile: str,
    seed: int,
    only: str,
    raises: bool,
) -> Report:
    __tracebackhide__ = True
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    declared = {} if capabilities is None else {contract: frozenset(capabilities)}
    implementation = Implementation(name, "in this process", {contract: factory}, declared)
    suites = load_suites()
    suite = suites[contract]
    require_match({contract: suite}, only)
    _, found = build_once(implementation, contract)
    try:
        evidence = suite.run(
            implementation,
            profile=profile_named(profile),
            seed=seed,
            selected=matching(suite, only),
            progress=ignore,
        )
    except ContractError as error:
        raise BadUse(str(error)) from error
    claimed = "" if capabilities is None else f" capabilities={sorted(declared[contract])},"
    settings = f"{claimed} profile={profile!r}, seed={seed}, only={only!r}"
    call = f"check_{contract.replace('-', '_')}({name},{settings})"
    typed = _address(factory) if capabilities is None else ""
    target = Target(name, implementation.version, (contract,), {contract: tuple(sorted(found))}, typed)
    report = Report(target, tuple(evidence), profile, seed, versions(), f"tokenlaw.{call}")
    if raises:
        raise_unless_holds(report)
    return report


def _address(factory: Callable[..., Any]) -> str:
    """``module:attribute`` of a factory that another process can import, else an empty text."""
    module, name = getattr(factory, "__module__", "__main__"), getattr(factory, "__qualname__", "")
    return f"{module}:{name}" if name.isidentifier() and module != "__main__" else ""


def raise_unless_holds(report: Report, folder: Path = FOLDER) -> None:
    """Raise `Refuted` or `Inconclusive` with the complete message, counterexamples saved beside it."""
    __tracebackhide__ = True
    if report.verdict is Verdict.HOLDS:
        return
    saved = save(report, folder)
    parts = [report.summary()]
    for row in report.with_verdict(*FAILED):
        parts.append(f"\n{row.verdict}: {row.check.id}\n{row.message.rstrip()}")
        # A factory that only this process knows has no name that a replay could be given.
        lines = told(saved.get(row.check.id), report.target.typed)
        parts += lines if report.target.typed else lines[:1]
    parts.append(f"\nrepeat: {report.command}")
    error = Refuted if report.verdict is Verdict.REFUTED else Inconclusive
    raise error("\n".join(parts), report)
