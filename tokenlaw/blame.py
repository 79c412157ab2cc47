"""Whose fault an exception is: the implementation's, or that of tokenlaw itself."""

import traceback

from tokenlaw.spec.contracts import Implementation

_OWN_IMPLEMENTATIONS = "tokenlaw.impl"


def is_implementations(error: BaseException, implementation: Implementation, built: object) -> bool:
    """True if the traceback passes through code of the package that holds the implementation.

    ``SystemExit`` and its like are always the implementation's: tokenlaw raises none.
    """
    if not isinstance(error, Exception):
        return True
    objects = [*implementation.factories.values(), type(built)]
    owners = {_owner(str(getattr(found, "__module__", ""))) for found in objects}
    owners.discard("tokenlaw")
    frames = traceback.walk_tb(error.__traceback__)
    return any(_owner(str(frame.f_globals.get("__name__", ""))) in owners for frame, _ in frames)


def _owner(module: str) -> str:
    """The package that a module belongs to; ours is divided, since it holds implementations as well."""
    if module == _OWN_IMPLEMENTATIONS or module.startswith(f"{_OWN_IMPLEMENTATIONS}."):
        return _OWN_IMPLEMENTATIONS
    return module.partition(".")[0]
