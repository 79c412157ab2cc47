"""Packages under audit: their versions and modules, with a message where they aren't installed."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from tokenlaw.spec.contracts import ContractError

NOT_INSTALLED = "not installed"


def installed_version(package: str) -> str:
    """Version of an installed distribution, or `NOT_INSTALLED`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def package_module(name: str, package: str) -> Any:
    """Import a module of a distribution; `ContractError` if that isn't possible here."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ContractError(
            f"{package}: {error}; examples/audits/README.md says how to set up its environment"
        ) from error


def package_file(file: str, package: str) -> Any:
    """One file of a distribution as a module of its own; `ContractError` if that isn't possible here."""
    try:
        path = distribution(package).locate_file(file)
    except PackageNotFoundError as error:
        raise ContractError(
            f"{package} isn't installed; examples/audits/README.md says how to set up its environment"
        ) from error
    spec = spec_from_file_location(f"{package}_{file}".replace("/", "_").removesuffix(".py"), str(path))
    if spec is None or spec.loader is None:
        raise ContractError(f"{package} has no {file}; this adapter was written for another version")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as error:
        raise ContractError(
            f"{package} has no {file}; this adapter was written for another version"
        ) from error
    return module
