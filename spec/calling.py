"""Can something be called in a given way? Found by its signature, without calling it."""

import inspect
from typing import Any


def accepts(function: Any, /, *arguments: object, **keywords: object) -> bool:
    """Whether a call with these arguments fits; true for what has no signature, such as some builtins.

    >>> accepts(lambda batch, *, seed: 0, None, seed=0), accepts(lambda batch: 0, None, seed=0), accepts(3)
    (True, False, False)
    """
    try:
        inspect.signature(function).bind(*arguments, **keywords)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def parameters_of(function: Any) -> str:
    """The parameters of a function or a class that has a signature, without annotations.

    >>> parameters_of(parameters_of)
    '(function)'
    """
    signature = inspect.signature(function)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
