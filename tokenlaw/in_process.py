"""Runs one suite on an object of this process, and raises what it found."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenlaw.arguments import names_of, profile_named, require_bool, require_glob, seed_of
from tokenlaw.checks import load_suites, matching, require_match
from tokenlaw.controlling import Audited, control
from tokenlaw.controls import failures
from tokenlaw.counterexamples import FOLDER, save, told
from tokenlaw.deviation_files import read_deviations
from tokenlaw.deviations import evidence_of, with_filed
from tokenlaw.earlier import Earlier, require_continuable
from tokenlaw.errors import BadUse
from tokenlaw.report import FAILED, Report, Target
from tokenlaw.runner import versions
from tokenlaw.settings import as_data, plain_settings, require_usable_settings
from tokenlaw.spec.contracts import ContractError, Implementation
from tokenlaw.spec.suites import DEFAULTS, Settings, ignore
from tokenlaw.spec.tensor_checks import kind_of
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.targets import build_once
from tokenlaw.text import one_line, printable

IN_THIS_PROCESS = "in this process"


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


@dataclass(frozen=True)
class How:
    """How a suite is asked here: the options that all of the library's checks have, as they were given."""

    profile: str
    seed: int
    only: str
    deviations: Path | str | None
    controls: bool
    raises: bool


def check_here(
    contract: str,
    factory: Callable[..., Any],
    *,
    offered: Any = None,
    capabilities: Iterable[str] | None,
    settings: Settings = DEFAULTS,
    earlier: Earlier | None = None,
    how: How,
) -> Report:
    """Run one suite; ``offered`` is what the caller gave, where that isn't the factory."""
    __tracebackhide__ = True
    _require_usable(contract, factory, how)
    seed, settings, profile = seed_of(how.seed), plain_settings(settings), profile_named(how.profile)
    offered = factory if offered is None else offered
    name = getattr(offered, "__qualname__", type(offered).__qualname__)
    declared = {}
    if capabilities is not None:
        declared[contract] = frozenset(names_of("capabilities", capabilities, "['fork']"))
    implementation = Implementation(name, IN_THIS_PROCESS, {contract: factory}, declared)
    require_usable_settings(settings)
    chosen, seeds = _with_earlier(settings, earlier, name, contract, seed)
    suite = load_suites()[contract]
    require_match({contract: suite}, how.only)
    _, found = build_once(implementation, contract)
    implementation = _with_known(implementation, offered, how.deviations)
    asked = _run(Audited(suite, implementation, found, profile, seed, chosen, (), 0.0), how.only)
    told = tuple(control(asked, ignore)) if how.controls else ()
    claimed = {} if capabilities is None else {"capabilities": sorted(declared[contract])}
    words = claimed | _changed(settings) | {"profile": profile.name, "seed": seed, "only": how.only}
    command = _call(contract, name, words, how)
    typed = _address(offered) if capabilities is None else ""
    target = Target(name, implementation.version, (contract,), {contract: tuple(sorted(found))}, typed)
    report = Report(
        target,
        tuple(asked.evidence),
        profile.name,
        seed,
        versions(),
        command,
        settings=settings,
        continued=seeds,
        controls=told,
    )
    if how.raises:
        raise_unless_holds(report)
    return report


def _require_usable(contract: str, factory: object, how: How) -> None:
    """Raise `BadUse` for what is no factory, no glob, or neither on nor off."""
    require_glob(how.only)
    require_bool("controls", how.controls)
    require_bool("raises", how.raises)
    if not callable(factory):
        raise BadUse(
            f"{kind_of(factory)} is no factory of a {contract}: give a function or a class that builds one"
        )


def _run(asked: Audited, only: str) -> Audited:
    """The same with the evidence of the selected checks, and the time that it took."""
    started = time.monotonic()
    try:
        evidence = evidence_of(
            asked.suite,
            asked.implementation,
            profile=asked.profile,
            seed=asked.seed,
            selected=matching(asked.suite, only),
            progress=ignore,
            settings=asked.settings,
        )
    except ContractError as error:
        raise BadUse(one_line(str(error))) from error
    return replace(asked, evidence=evidence, seconds=time.monotonic() - started)


def _with_known(
    implementation: Implementation, offered: Any, deviations: Path | str | None
) -> Implementation:
    """The implementation with the known deviations of a file, if there is one."""
    if deviations is None:
        return implementation
    return with_filed(implementation, _address(offered), read_deviations(Path(deviations)), load_suites())


def _call(contract: str, name: str, words: dict[str, Any], how: How) -> str:
    """The call that repeats the run."""
    words = words | ({} if how.deviations is None else {"deviations": str(how.deviations)})
    words |= {} if how.controls else {"controls": False}
    options = ", ".join(f"{option}={value!r}" for option, value in words.items())
    return f"tokenlaw.check_{contract.replace('-', '_')}({name}, {options})"


def _with_earlier(
    settings: Settings, earlier: Earlier | None, name: str, contract: str, seed: int
) -> tuple[Settings, tuple[int, ...]]:
    """The settings with the evidence of an earlier report, and the seeds of that."""
    if earlier is None:
        return settings, ()
    require_continuable(
        earlier, name=name, version=IN_THIS_PROCESS, contracts=(contract,), seed=seed, settings=settings
    )
    return replace(settings, continued=earlier.statistics), earlier.seeds


def _changed(settings: Settings) -> dict[str, Any]:
    """The settings that aren't the defaults."""
    default = as_data(DEFAULTS)
    return {name: value for name, value in as_data(settings).items() if value != default[name]}


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
    parts = [line for line in (report.summary(), report.standing()) if line]
    for row in report.with_verdict(*FAILED):
        parts.append(f"\n{row.verdict}: {row.check.id}\n{row.message.rstrip()}")
        # A factory that only this process knows has no name that a replay could be given.
        lines = told(saved.get(row.check.id), report.target.typed, report.settings)
        parts += lines if report.target.typed else lines[:1]
    parts += [f"\n{line}" for line in failures(report.controls)]
    parts.append(f"\nrepeat: {report.command}")
    error = Refuted if report.verdict is Verdict.REFUTED else Inconclusive
    raise error(printable("\n".join(parts)), report)
