"""Files of known deviations: TOML that a project keeps beside its code (``docs/known-deviations.md``).

One table ``[[deviation]]`` an entry, with the fields of `tokenlaw.KnownDeviation`; ``counterexample`` is the
path of what an audit saved, relative to the file, and ``target`` narrows an entry to some targets.
"""

import fnmatch
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.checks import did_you_mean
from tokenlaw.errors import BadUse
from tokenlaw.spec.deviations import KnownDeviation

TABLE = "deviation"
_TEXTS = ("check", "counterexample", "reason", "link")
_KEYS = (*_TEXTS, "expires", "target")


class Filed(msgspec.Struct, frozen=True):
    """An entry of a file, and a glob over the names of the targets that it is about."""

    target: str
    entry: KnownDeviation


class DeviationFile(msgspec.Struct, frozen=True):
    """A file of known deviations: its path, as the user wrote it, and its entries."""

    source: str
    filed: tuple[Filed, ...]

    def about(self, *names: str) -> tuple[KnownDeviation, ...]:
        """The entries about a target that has these names."""
        return tuple(
            filed.entry
            for filed in self.filed
            if any(fnmatch.fnmatchcase(name, filed.target) for name in names)
        )


def read_deviations(path: Path) -> DeviationFile:
    """Read a file of known deviations and all counterexamples that it names.

    Raises
    ------
    BadUse
        Something can't be read, isn't TOML, or isn't an entry; the message says where and what.
    """
    import tomllib

    try:
        data = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise BadUse(f"{path}: can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadUse(f"{path}: not a file of known deviations, which is TOML: {error}") from None
    _refuse_unknown(data, (TABLE,), str(path))
    tables = data.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadUse(f"{path}: write each known deviation below a line [[{TABLE}]]")
    filed = (_filed(table, path, f"{path}: {TABLE} {number}") for number, table in enumerate(tables, 1))
    return DeviationFile(str(path), tuple(filed))


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise BadUse(f"{where}: unknown key {key!r}; {did_you_mean(key, known)}")


def _filed(table: Mapping[str, Any], path: Path, where: str) -> Filed:
    from tokenlaw.counterexamples import load

    _refuse_unknown(table, _KEYS, where)
    for key in _TEXTS:
        if key not in table:
            raise BadUse(f"{where}: lacks {key!r}")
    texts = {key: _text(table[key], f"{where}: {key}") for key in _TEXTS}
    target = _text(table.get("target", "*"), f"{where}: target")
    try:
        counterexample = load(path.parent / texts.pop("counterexample"))
    except BadUse as error:
        raise BadUse(f"{where}: {error}") from None
    entry = KnownDeviation(**texts, counterexample=counterexample, expires=_day(table.get("expires"), where))
    return Filed(target, entry)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadUse(f"{where} = {value!r}: expected a text")
    return value


def _day(value: Any, where: str) -> date | None:
    if value is not None and (not isinstance(value, date) or isinstance(value, datetime)):
        raise BadUse(f"{where}: expires = {value!r}: expected a day, such as 2027-03-31 without quotes")
    return value
