"""``[tool.tokenlaw]`` of pyproject.toml: what `tokenlaw audit` and the pytest plugin do unless they are told.

It stands in the pyproject.toml of the current folder, or of the nearest folder above it whose pyproject.toml
has that table. The command line wins. Nothing heavy is imported: pytest reads it at every start.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokenlaw.errors import BadUse
from tokenlaw.spec.number_kinds import is_real_number, is_whole_number

FILE = "pyproject.toml"
TABLE = "[tool.tokenlaw]"
_HINT = b"tokenlaw"


@dataclass(frozen=True)
class Configuration:
    """What a project says; None where it says nothing.

    Attributes
    ----------
    target : name of an installed adapter, or ``module:attribute``.
    profile : ``dev``, ``ci`` or ``deep``.
    alpha : probability that a run of laws refutes an exact implementation.
    budget : requests in place of those of the profile.
    deviations : file of known deviations (`tokenlaw.deviation_files`); relative to the folder of ``file``.
    file : the pyproject.toml that says so.
    """

    target: str | None = None
    profile: str | None = None
    alpha: float | None = None
    budget: int | None = None
    deviations: Path | None = None
    file: Path | None = None

    def defaults(self) -> dict[str, Any]:
        """What it says, as options of a command line."""
        said = asdict(self)
        del said["file"]
        return {name: value for name, value in said.items() if value is not None}


def configuration(folder: Path) -> Configuration:
    """What ``[tool.tokenlaw]`` says for commands that are run in this folder.

    Raises
    ------
    BadUse
        A file that may have the table isn't TOML, or the table has an unknown key or a wrong value.
    """
    for above in (folder, *folder.parents):
        table = _table(above / FILE)
        if table is not None:
            return _checked(table, above / FILE)
    return Configuration()


def _table(path: Path) -> Any:
    """The table of a file; None if there is no such file, or no such table in it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if _HINT not in content:  # most files of most projects: nothing to parse
        return None
    import tomllib

    try:
        tools = tomllib.loads(content.decode()).get("tool")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadUse(f"{path}: not TOML: {error}") from None
    return tools.get("tokenlaw") if isinstance(tools, Mapping) else None


def _checked(table: Any, path: Path) -> Configuration:
    if not isinstance(table, Mapping):
        raise BadUse(f"{path}: tool.tokenlaw is {_shown(table)}: expected a table, {TABLE}")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            from tokenlaw.checks import did_you_mean

            raise BadUse(f"{path}: {TABLE} has the unknown key {key!r}; {did_you_mean(key, _KEYS)}")
        accepted, expected = _KEYS[key]
        if not accepted(value):
            raise BadUse(f"{path}: {TABLE} {key} = {_shown(value)}: expected {expected}{_close(key, value)}")
        values[key] = path.parent / value if key == "deviations" else value
    return Configuration(**values, file=path)


def _shown(value: Any) -> str:
    """A value as TOML would have it, as far as that matters to whoever wrote it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _close(key: str, value: Any) -> str:
    """A suggestion for a profile's name that is nearly right."""
    if key != "profile" or not isinstance(value, str):
        return ""
    from tokenlaw.checks import did_you_mean

    return f"; {did_you_mean(value, _profiles())}"


def _profiles() -> Mapping[str, Any]:
    from tokenlaw.spec.suites import PROFILES

    return PROFILES


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_chance(value: Any) -> bool:
    return is_real_number(value) and 0 < value < 1


def _is_count(value: Any) -> bool:
    return is_whole_number(value) and value >= 1


_KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "target": (_is_name, "a text: an adapter's name, or module:attribute"),
    "profile": (lambda value: isinstance(value, str) and value in _profiles(), "a profile's name"),
    "alpha": (_is_chance, "a number between 0 and 1"),
    "budget": (_is_count, "a whole number, 1 or more"),
    "deviations": (_is_name, "a text: the path of a file of known deviations"),
}
