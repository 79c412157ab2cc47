"""JSON without a silent choice between two values of one key."""

import json
from typing import Any

import msgspec


def decode(raw: bytes) -> Any:
    """Decode JSON to plain data.

    >>> decode(b'{"op": "fork", "op": "free"}')
    Traceback (most recent call last):
    msgspec.DecodeError: the key 'op' stands twice in one object

    Raises
    ------
    msgspec.DecodeError, RecursionError
        It is damaged, a key stands twice in one object, or it is nested too deeply.
    """
    data = msgspec.json.decode(raw)
    json.loads(raw, object_pairs_hook=_refuse_repeated)
    return data


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise msgspec.DecodeError(f"the key {twice!r} stands twice in one object")
