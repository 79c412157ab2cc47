"""Small parts of generated pages."""

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

NOTE = "Written by `docs/generate_reference.py` from the code.\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown; bars in cells are escaped.

    >>> print(table(("option", "means"), [("`a|b`", "one of two")]))
    | option | means |
    | --- | --- |
    | `a\\|b` | one of two |
    """
    lines = [list(head), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def field_table(described: type) -> str:
    """Fields of a dataclass with their types and defaults."""
    rows = []
    for field in fields(described):
        default = "" if field.default is MISSING else f"`{field.default!r}`"
        if field.default_factory is not MISSING:
            default = "a fresh one"
        rows.append((f"`{field.name}`", f"`{type_name(field.type)}`", default))
    return table(("field", "type", "default"), rows)


def type_name(annotation: Any) -> str:
    """A type as one writes it, without its modules."""
    if (
        isinstance(annotation, type)
        and not hasattr(annotation, "__args__")
        and not hasattr(annotation, "dims")
    ):
        return annotation.__name__
    return re.sub(r"(?:<class '|'>|\b(?:\w+\.)+(?=\w))", "", str(annotation))
