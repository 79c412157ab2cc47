"""Counterexamples as files: saved by an audit, read by a replay."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.errors import BadUse
from tokenlaw.reading import json_of
from tokenlaw.report import FAILED, Report, replay_command
from tokenlaw.spec.suites import DEFAULTS, Settings
from tokenlaw.writing import formatted, write_whole

FOLDER = Path(".tokenlaw/counterexamples")
SCHEMAS = (
    "tokenlaw.trace/",
    "tokenlaw.attention/",
    "tokenlaw.law/",
    "tokenlaw.session/",
    "tokenlaw.decoder-law/",
)
"""What the schema of a counterexample starts with; its version follows."""


Saved = Path | OSError
"""Where a counterexample was saved, or why it couldn't be: a full disk must not hide a verdict."""


def save(report: Report, folder: Path = FOLDER) -> dict[str, Saved]:
    """Write the counterexamples of a report to ``folder/<target>/<check>.json``; by check id."""
    saved: dict[str, Saved] = {}
    for row in report.with_verdict(*FAILED):
        if row.counterexample is not None:
            path = folder / file_name(report.target.name) / f"{file_name(row.check.id)}.json"
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, formatted(row.counterexample))
            except OSError as error:
                saved[row.check.id] = error
            else:
                saved[row.check.id] = path
    return saved


def told(saved: Saved | None, target: str, settings: Settings = DEFAULTS) -> list[str]:
    """Lines that say where the counterexample is and how to run it; none if there is none.

    >>> told(Path("kv-content.json"), "mine:make")
    ['saved:  kv-content.json', 'replay: tokenlaw replay kv-content.json --target mine:make']
    """
    if saved is None:
        return []
    if isinstance(saved, OSError):
        return [f"the counterexample couldn't be saved: {saved}"]
    return [f"saved:  {saved}", f"replay: {replay_command(saved, target, settings)}"]


def file_name(name: str) -> str:
    """The name with everything that a file system or a shell might take amiss as ``-``.

    >>> file_name("mine:make"), file_name("kv/content"), file_name("..")
    ('mine-make', 'kv-content', '--')
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return plain if plain.strip(".") else "-" * len(plain)


def require_folder(folder: Path) -> None:
    """Raise `BadUse` unless files can be saved in the folder, which need not exist yet.

    It is tried, since permissions don't tell: some file systems take no files, whoever asks. Nothing is left.
    """
    made: list[Path] = []
    failed = "can't be made"
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir()
            made.append(path)
        failed = "can't be written"
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = f"{failed}: {error.strerror}; name another folder"
        raise BadUse(f"--counterexamples {folder}: {reason}") from None
    finally:
        for path in reversed(made):
            path.rmdir()


def load(path: Path) -> dict[str, Any]:
    """Read a counterexample.

    Raises
    ------
    BadUse
        The file can't be read, isn't JSON, or doesn't say that it is a counterexample.
    """
    data = json_of(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or not schema.startswith(SCHEMAS):
        expected = " or ".join(SCHEMAS)
        raise BadUse(f"{path}: not a counterexample: schema {schema!r}, expected {expected}...")
    found: dict[str, Any] = data
    return found


def in_words(data: Mapping[str, Any]) -> str:
    """What a counterexample does, for people. Imports torch, but for laws."""
    schema = str(data.get("schema"))
    if schema.startswith("tokenlaw.session/"):
        from tokenlaw.properties import decoder_words
        from tokenlaw.spec.sessions import session_of

        return decoder_words.tell(session_of(data))
    if schema.startswith(("tokenlaw.law/", "tokenlaw.decoder-law/")):
        left_out = ("schema", "contract", "asked", "session")
        words = [f"{name} {value}" for name, value in data.items() if name not in left_out and value != ""]
        return f"part of a run: {', '.join(words)}"
    if schema.startswith("tokenlaw.attention/"):
        from tokenlaw.properties.attention_cases import describe, from_data

        return f"case: {describe(from_data(data))}"
    from tokenlaw.properties.trace import Trace
    from tokenlaw.properties.words import tell

    return tell(msgspec.convert(data, Trace))
