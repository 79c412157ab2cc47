"""Text of strangers (names, messages, tracebacks of implementations), made safe to print and to store."""


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 can't hold, as escapes.

    >>> encodable("\\ud800")
    '\\\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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
