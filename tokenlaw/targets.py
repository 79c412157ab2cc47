"""From what the user types to an `Implementation`: adapters by name, or ``module:attribute``."""

import functools
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from tokenlaw.checks import did_you_mean
from tokenlaw.errors import BadUse, described
from tokenlaw.guessing import guess_contract, shortcoming
from tokenlaw.spec.calling import accepts, parameters_of
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    DECODER,
    KV_STORE,
    VERIFIER,
    CacheConfig,
    ContractError,
    Implementation,
)
from tokenlaw.spec.decoders import (
    as_decoder,
    built_decoder,
    decoder_factory,
    default_config,
    takes_config,
)
from tokenlaw.spec.verifiers import as_verifier, takes_batch, verifier_factory
from tokenlaw.text import one_line

GROUP = "tokenlaw.implementations"
"""Entry-point group in which packages register adapters: ``name = "module:IMPLEMENTATION"``."""


def adapters() -> dict[str, str]:
    """Installed adapters: name -> ``module:attribute``, in the order of their names."""
    points = importlib.metadata.entry_points(group=GROUP)
    return dict(sorted((point.name, point.value) for point in points))


def resolve(target: str) -> Implementation:
    """The implementation that ``target`` names.

    Parameters
    ----------
    target : name of an installed adapter, or ``module:attribute`` where the attribute is an
        `Implementation`, a factory (``CacheConfig ->`` block manager or KV store, or a factory of a paged
        attention or a verifier without arguments, ``DecoderConfig ->`` decoder), a verifier, a plain function
        ``verify(batch, *, seed)``, or a decoder that tells its target's law, which may be a plain function
        ``decode(request, *, seed)``. The working directory is searched for the module.

    Raises
    ------
    BadUse
        The target is unknown, its module fails to import, the attribute is missing, or it is neither an
        implementation nor a factory of one.
    """
    location = adapters().get(target, target)
    found = look_up(target, location)
    return found if isinstance(found, Implementation) else from_factory(found, target)


def look_up(target: str, location: str) -> Any:
    """What stands at ``module:attribute``; messages name ``target``.

    Raises
    ------
    BadUse
        The module fails to import, or the attribute is missing.
    """
    module_name, colon, attribute = location.partition(":")
    if not colon:
        if _is_module(target):
            raise BadUse(f"{target} is a module: write {target}:ATTRIBUTE")
        suggestion = did_you_mean(target, adapters(), "give module:attribute")
        raise BadUse(f"unknown target {target!r}; {suggestion}")
    if not module_name or not attribute:
        raise BadUse(f"target {target!r}: write module:attribute, for example mycache:make_manager")
    file = Path(module_name)
    if file.suffix == ".py" or len(file.parts) > 1:
        name = f"{file.stem}:{attribute.lstrip(':')}"
        raise BadUse(
            f"target {target!r} names a file: write {name}, where {file.stem} can be imported; the working "
            "directory is searched for it"
        )
    return attribute_of(_module(target, module_name), target, attribute)


def _is_module(name: str) -> bool:
    """Whether there is such a module, found without importing anything; a mere folder is none."""
    path = [os.getcwd(), *sys.path]
    parts = name.split(".")
    found = None
    for last, part in enumerate(parts, start=1):
        found = PathFinder.find_spec(".".join(parts[:last]), path) if part.isidentifier() else None
        if found is None:
            return False
        path = list(found.submodule_search_locations or ())
    return found is not None and found.origin is not None


def _module(target: str, name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadUse(f"target {target!r}: importing {name} failed: {described(error)}") from error


def attribute_of(module: Any, target: str, path: str) -> Any:
    """The attribute of a module, whose path may have dots; messages name ``target``.

    Raises
    ------
    BadUse
        It is missing, or looking for it raises.
    """
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            public = [other for other in dir(found) if not other.startswith("_")]
            hint = did_you_mean(name, public) if public else "it has no public names"
            raise BadUse(f"target {target!r}: {module.__name__} has no attribute {path!r}; {hint}") from None
        except Exception as error:
            raise BadUse(f"target {target!r}: looking for {path} raised {described(error)}") from error
    return found


def from_factory(factory: Any, target: str) -> Implementation:
    """Wrap a plain factory, a verifier or a decoder; the contract is the first of which it has the members.

    Raises
    ------
    BadUse
        It is neither callable nor a verifier or a decoder, raises, or builds what fulfils no contract.
    """
    it = f"target {target!r}: it"
    verifiers = asked(it, lambda: verifier_factory(factory))
    if verifiers is not None:
        return Implementation(target, _version(factory), {VERIFIER: verifiers}, summary=f"verifier {target}")
    decoders = asked(it, lambda: decoder_factory(factory))
    if decoders is not None:
        return Implementation(target, _version(factory), {DECODER: decoders}, summary=f"decoder {target}")
    if not callable(factory):
        kind = type(factory).__name__
        raise BadUse(
            f"target {target!r} is a {kind}; expected an Implementation or a factory of one contract, or a "
            "verifier or a decoder: an object with verify or decode, or a function of (batch, *, seed) or of "
            "(request, *, seed)"
        )
    _require_call(factory, target, "a cache's configuration, or without arguments", (CacheConfig(),), ())
    built, contract = _built_for_something(factory, target)
    if contract == DECODER:
        make = functools.partial(built_decoder, factory, target)
        return Implementation(target, _version(factory), {DECODER: make}, summary=f"factory {target}")
    if contract is None:
        raise BadUse(
            f"target {target!r}: the factory returned {type(built).__name__}, which fulfils no contract "
            f"({shortcoming(built)})"
        )

    def build(*config: CacheConfig) -> Any:
        return factory(*(config or _arguments(factory)))

    return Implementation(target, _version(factory), {contract: build}, summary=f"factory {target}")


def _built_for_something(factory: Callable[..., Any], target: str) -> tuple[Any, str | None]:
    """What the factory builds from a cache's configuration, or else from a decoder's, and its contract."""
    try:
        built = asked(f"target {target!r}: its factory", lambda: factory(*_arguments(factory)))
    except BadUse as error:
        if not isinstance(error.__cause__, AttributeError) or not _arguments(factory):
            raise
        try:
            built = factory(default_config())
        except Exception:
            raise error from error.__cause__
    return built, asked(f"target {target!r}: {_BUILT}", lambda: guess_contract(built))


def _version(found: Any) -> str:
    """The version that the module of a class, a function or an object states."""
    module = sys.modules.get(getattr(found, "__module__", ""))
    return str(getattr(module, "__version__", "(no version)"))


def _arguments(factory: Callable[..., Any]) -> tuple[CacheConfig, ...]:
    """What to call the factory with: a configuration, or nothing if it can't take one."""
    return (CacheConfig(),) if accepts(factory, CacheConfig()) else ()


def _require_call(factory: Any, target: str, way: str, *calls: tuple[Any, ...]) -> None:
    """Raise `BadUse` unless a factory can be called in one of these ways, which are put in words."""
    if takes_batch(factory):
        raise BadUse(f"target {target!r} takes a batch but no keyword seed; write verify(batch, *, seed)")
    if not any(accepts(factory, *arguments) for arguments in calls):
        raise BadUse(
            f"target {target!r} takes {parameters_of(factory)}, but a factory is called with {way}; a "
            "verifier is verify(batch, *, seed), a decoder decode(request, *, seed)"
        )


_BUILT = "what its factory built"


def asked(who: str, build: Callable[[], Any]) -> Any:
    """What ``build()`` returns, which asks a stranger's object; `BadUse` that names it if that raises."""
    try:
        return build()
    except ContractError as error:
        raise BadUse(one_line(str(error))) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadUse(f"{who} raised {described(error)}") from error


def build_once(implementation: Implementation, contract: str) -> tuple[Any, frozenset[str]]:
    """Build the contract's object once with the default configuration: the object, and its capabilities.

    Raises
    ------
    BadUse
        The factory raises, or returns something that isn't what the contract asks for.
    """
    factory = implementation.factories[contract]
    arguments: tuple[Any, ...] = (CacheConfig(),) if contract in (BLOCK_MANAGER, KV_STORE) else ()
    if contract == DECODER and takes_config(factory):
        arguments = (default_config(),)
    way = f"a {type(arguments[0]).__name__}" if arguments else "no arguments"
    name = implementation.name
    _require_call(factory, name, way, arguments)
    built = asked(f"target {name!r}: its factory", lambda: factory(*arguments))
    makers = {VERIFIER: as_verifier, DECODER: as_decoder}
    if contract in makers:
        built = asked(f"target {name!r}: {_BUILT}", lambda: makers[contract](built, name))
    return built, asked(
        f"target {name!r}: {_BUILT}", lambda: effective_capabilities(implementation, contract, built)
    )
