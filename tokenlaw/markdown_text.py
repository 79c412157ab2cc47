"""Strangers' text in Markdown: shown as it is, and never taken for Markdown or HTML.

The flavour is that of step summaries and merge requests (CommonMark with tables).
"""

import re
from collections.abc import Iterable, Sequence

from tokenlaw.text import one_line, printable, without_middle

LIMIT = 900_000
"""Bytes of a document at most: step summaries of more than a mebibyte are dropped."""

_LONGEST_CELL, _LONGEST_BLOCK = 300, 6_000
"""Characters of a cell, and of a block, that are kept."""

# What begins something in Markdown, HTML, or in the additions of those who show it: $ is mathematics, @ a
# person, :// and www. are links, and :name: is a picture. Links with words need brackets.
_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~@&$]|:(?! )|(?<=[wW])\.")


def plain(text: str) -> str:
    """The text on one line; characters that mean something as character references.

    >>> plain("a|b <script> `x`")
    'a&#124;b &#60;script&#62; &#96;x&#96;'
    """
    short = without_middle(one_line(text), _LONGEST_CELL)
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", short)


def code(text: str) -> str:
    """As `plain`, in the type of code; nothing for an empty text.

    >>> code("kv/content")
    '<code>kv/content</code>'
    """
    shown = plain(text)
    return f"<code>{shown}</code>" if shown else ""


def block(text: str, language: str = "text") -> str:
    """The text between two fences that are longer than any run of their sign in it.

    >>> print(block("`x`"))
    ```text
    `x`
    ```
    """
    shown = without_middle(printable(text).rstrip(), _LONGEST_BLOCK)
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already.

    >>> print(table(["check", "verdict"], [["a", "holds"]]))
    | check | verdict |
    | --- | --- |
    | a | holds |
    """
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folded(summary: str, content: str) -> str:
    """Content behind a line that opens it; both are Markdown or HTML already."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def document(parts: Iterable[str], limit: int = LIMIT) -> bytes:
    """The parts that aren't empty, one under the other, in UTF-8; those that no longer fit are left out.

    >>> document(["one", "", "two"])
    b'one\\n\\ntwo\\n'
    """
    wanted = [part.encode() for part in parts if part]
    kept = list[bytes]()
    for part in wanted:
        if sum(map(len, kept)) + len(part) > limit:
            kept.append(
                f"{len(wanted) - len(kept)} more parts are left out; the JSON report has them.".encode()
            )
            break
        kept.append(part)
    return b"\n\n".join(kept) + b"\n"
