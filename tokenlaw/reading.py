"""JSON files that users name."""

from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.errors import BadUse
from tokenlaw.properties import strict_json


def json_of(path: Path) -> Any:
    """What a file holds, as plain data.

    Raises
    ------
    BadUse
        It can't be read, or isn't JSON.
    """
    try:
        return strict_json.decode(path.read_bytes())
    except OSError as error:
        raise BadUse(f"{path}: can't be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadUse(f"{path}: damaged, not JSON: {error}") from None
