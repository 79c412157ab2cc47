"""Packages under audit: their versions and modules, with a message where they aren't installed."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
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
