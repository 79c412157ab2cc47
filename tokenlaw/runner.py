"""Runs an audit: each contract of the target in its own child process, within limits."""

import platform
import time
from collections.abc import Callable, Collection, Sequence
from importlib import metadata
from typing import Any

import msgspec

from tokenlaw import __version__
from tokenlaw.arguments import names_of, profile_named, require_bool, require_glob, seed_of
from tokenlaw.checks import REGISTRY
from tokenlaw.conversation import Conversation, nothing
from tokenlaw.deviation_files import DeviationFile
from tokenlaw.earlier import Earlier
from tokenlaw.errors import BadUse
from tokenlaw.protocol import LIMITS, Described, Limits, Request
from tokenlaw.prove_command import proof_command
from tokenlaw.report import Report, Target, audit_command, replay_command
from tokenlaw.settings import changed, plain_settings, used_by
from tokenlaw.spec.suites import DEFAULTS, Progress, Settings, ignore


def audit(
    target: str,
    *,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    contracts: Sequence[str] | None = None,
    settings: Settings = DEFAULTS,
    given: Collection[str] | None = None,
    earlier: Earlier | None = None,
    deviations: DeviationFile | None = None,
    controls: bool = True,
    progress: Progress = ignore,
    resolved: Callable[[], Any] = nothing,
    limits: Limits = LIMITS,
    registry: str = REGISTRY,
) -> Report:
    """Audit a target; its code runs in child processes only.

    Parameters
    ----------
    target : name of an installed adapter, or ``module:attribute``.
    profile, seed : ``dev``, ``ci`` or ``deep``: how much is tried; the same seed repeats the run.
    only : glob over check ids.
    contracts : those to audit; all that the target fulfils by default.
    settings : device, claims, and what tests of laws may spend.
    given : settings that are refused if no contract looks at them; if None, all that aren't the defaults.
    earlier : report whose evidence about laws counts along (`tokenlaw.earlier.read_earlier`).
    deviations : known ones, beside those of the target (`tokenlaw.deviation_files.read_deviations`).
    controls : whether the reference, and the target in a broken wrapper, are asked too (`tokenlaw.controls`).
    progress : called as ``progress(what, done, total)``.
    resolved : called once the target is loaded and built, before its first check.
    limits : when a child process is given up.
    registry : ``module:callable`` that returns the suites.

    Raises
    ------
    BadUse
        The target can't be loaded or isn't a name, or nothing matches what was asked for.
    ToolFault
        tokenlaw itself failed.
    """
    _require_name(target, "audit")
    require_glob(only)
    require_bool("controls", controls)
    request = Request(
        target,
        profile=profile_named(profile).name,
        seed=seed_of(seed),
        only=only,
        contracts=None if contracts is None else names_of("contracts", contracts, "['verifier']"),
        settings=plain_settings(settings),
        given=changed(settings) if given is None else tuple(given),
        earlier=earlier,
        deviations=deviations,
        controls=controls,
        limits=limits,
        registry=registry,
    )
    return report_of(request, progress, resolved)


def _require_name(target: object, function: str) -> None:
    """Raise `BadUse` for an object: a child process couldn't find it."""
    if isinstance(target, str):
        return
    found = f"the class {target.__name__}" if isinstance(target, type) else f"a {type(target).__name__}"
    raise BadUse(
        f"{function} takes the name of a target ('reference', 'module:attribute'), not {found}; "
        "for an object use check_block_manager, check_kv_store, check_paged_attention, check_verifier or "
        "check_decoder"
    )


def require_usable(
    target: str,
    *,
    profile: str,
    only: str,
    settings: Settings = DEFAULTS,
    given: Collection[str] | None = None,
    registry: str = REGISTRY,
) -> None:
    """Raise `BadUse` if an audit with these arguments would; a target that dies is left to the audit."""
    request = Request(
        target,
        profile=profile,
        only=only,
        settings=plain_settings(settings),
        given=changed(settings) if given is None else tuple(given),
        load_only=True,
        registry=registry,
    )
    Conversation(ignore).hold(request)


def replay(
    data: dict[str, Any],
    target: str,
    *,
    source: str = "counterexample",
    settings: Settings = DEFAULTS,
    limits: Limits = LIMITS,
    registry: str = REGISTRY,
) -> Report:
    """Run one saved counterexample (plain JSON data from the file ``source``) on a target.

    Of the settings only the device matters, and only to those that don't name one themselves.

    Raises
    ------
    BadUse
        It isn't a counterexample, or it needs something that the target lacks.
    ToolFault
        tokenlaw itself failed.
    """
    _require_name(target, "replay")
    request = Request(
        target,
        replay=data,
        replay_source=source,
        settings=plain_settings(settings),
        limits=limits,
        registry=registry,
    )
    return report_of(request, ignore)


def report_of(request: Request, progress: Progress, resolved: Callable[[], Any] = nothing) -> Report:
    """Hold the conversations that a request takes, one for each contract, and report on them."""
    started = time.monotonic()
    first = Conversation(progress, resolved).hold(request)
    conversations = [first]
    if first.described is not None:
        for contract in first.described.to_run[1:]:
            following = msgspec.structs.replace(request, contract=contract)
            conversations.append(Conversation(progress).hold(following))
    planned = [conversation.planned for conversation in conversations if conversation.planned]
    described = first.described or Described(request.target, "unknown", (), ())
    return Report(
        target=Target(
            described.name,
            described.version,
            described.contracts,
            {plan.contract: plan.capabilities for plan in planned},
            typed=request.target,
        ),
        evidence=tuple(row for conversation in conversations for row in conversation.evidence),
        profile=request.profile,
        seed=request.seed,
        versions=versions(),
        command=_command(request, described.to_run),
        seconds=time.monotonic() - started,
        settings=request.settings,
        continued=request.earlier.seeds if request.earlier else (),
        controls=tuple(row for conversation in conversations for row in conversation.controls),
    )


def versions() -> dict[str, str]:
    """Versions that a report names, without importing anything heavy."""
    return {
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "tokenlaw": __version__,
        "platform": platform.platform(),
    }


def _command(request: Request, contracts: Collection[str]) -> str:
    """How to repeat it; what none of the contracts looks at is left out, for it would be refused."""
    if request.proof is not None:
        return proof_command(request.target, request.proof, request.limits, request.settings.claims)
    if request.replay is not None:
        return replay_command(request.replay_source, request.target, request.settings)
    return audit_command(
        request.target,
        request.profile,
        request.seed,
        request.only,
        request.contracts or (),
        used_by(contracts, request.settings) if contracts else request.settings,
        request.earlier.source if request.earlier else "",
        request.deviations.source if request.deviations else "",
        given=request.given,
        controls=request.controls,
    )
