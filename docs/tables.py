"""Small parts of generated pages."""

from collections.abc import Iterable

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
