"""Files that users name: tried before a run, and written whole or not at all after it."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.errors import BadUse


def formatted(data: Any) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a neighbour that is renamed, so that nobody sees half of it.

    A stream, such as ``/dev/stdout``, is written as it is; a link keeps pointing where it does.
    """
    if _is_stream(path):
        # Through an open descriptor itself: a file behind it has one position for everybody.
        number = _descriptor(path)
        with path.open("ab") if number is None else os.fdopen(os.dup(number), "wb") as stream:
            stream.write(content)
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_to(path: Path, option: str, content: bytes) -> None:
    """As `write_whole`, but raises `BadUse` where the disk is full, or the place isn't there any more."""
    try:
        write_whole(path, content)
    except BrokenPipeError:  # the reader has seen enough, which is no mistake of the user's
        raise
    except OSError as error:
        raise BadUse(f"{option} {path}: couldn't be written: {error.strerror or error}") from None


def _descriptor(path: Path) -> int | None:
    """Number of the open descriptor that the path names, or None."""
    named = {"/dev/stdout": 1, "/dev/stderr": 2}
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    return int(number[1]) if number else named.get(str(path))


def _is_stream(path: Path) -> bool:
    """True for what must not be replaced by a file: devices, pipes, and names of open descriptors."""
    return (path.exists() and not path.is_file()) or path.absolute().parts[1:2] in (("dev",), ("proc",))


def require_writable(path: Path, option: str) -> None:
    """Raise `BadUse` unless a file can be written at ``path``; leaves nothing behind."""
    if path.is_dir():
        raise BadUse(f"{option} {path}: is a folder; name a file")
    try:
        _try_writing(path)
    except OSError as error:
        raise BadUse(f"{option} {path}: can't be written: {error.strerror}") from None


def _try_writing(path: Path) -> None:
    """Raise `OSError` where `write_whole` would, as far as that can be known before."""
    number = _descriptor(path)
    if number is not None:
        os.write(number, b"")  # fails where it is closed, or open for reading only
    elif not _is_stream(path):
        probe = path.resolve().with_name(f".{path.name}.{os.getpid()}.partial")
        probe.touch()
        probe.unlink()
    elif not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, "no such stream")
    elif path.is_file():
        path.open("ab").close()  # a file of the system: permissions don't tell what it takes
