"""Text of strangers (names, messages, tracebacks of implementations), made safe to print and to store."""

_LONGEST_LINE, _LONGEST = 1_000, 20_000
"""Characters of a stranger's text that are kept."""


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 can't hold, as escapes.

    >>> encodable("\\ud800")
    '\\\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(text: str) -> str:
    """The text without what is too long for anybody to read: the middle of lines, and of the whole."""
    lines = (without_middle(line, _LONGEST_LINE) for line in text.split("\n"))
    return without_middle("\n".join(lines), _LONGEST)


def without_middle(text: str, longest: int) -> str:
    """The text, or its two ends if it has more than so many characters.

    >>> without_middle("0123456789", 4)
    '01 ... (6 characters left out) ... 89'
    """
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    half = longest // 2
    return f"{text[:half]} ... ({left_out:,} characters left out) ... {text[len(text) - half :]}"


def printable(text: str) -> str:
    """The text with everything that isn't printable shown as escapes; spaces, newlines and tabs stay.

    >>> printable("red \\x1b[31m, surrogate \\ud800")
    'red \\\\x1b[31m, surrogate \\\\ud800'
    """
    return "".join(found if found in "\n\t" or found.isprintable() else _escape(found) for found in text)


def one_line(text: str) -> str:
    """The printable text with every run of white space as one space.

    >>> one_line("two\\n  lines")
    'two lines'
    """
    return " ".join(printable(text).split())


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
