"""The table of mutation testing names every module that it is about, so that a new one can't be forgotten.

The script needs cosmic-ray, which tests don't, so its table is read without importing it.
"""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "mutants.py"


def table() -> dict[str, tuple[str, ...]]:
    """``TESTS`` of the script: module -> patterns of test files."""
    groups: dict[str, tuple[str, ...]] = {}
    for node in ast.parse(SCRIPT.read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "TESTS":
            assert isinstance(node.value, ast.Dict)
            keys = [ast.literal_eval(key) for key in node.value.keys if key is not None]
            values = [words(value, groups) for value in node.value.values]
            assert len(keys) == len(set(keys)), "a module stands there twice"
            return dict(zip(keys, values, strict=True))
        if isinstance(node, ast.Assign):
            names = [ast.unparse(name) for name in getattr(node.targets[0], "elts", node.targets)]
            values = [words(one, groups) for one in parts(node.value, len(names))]
            groups |= dict(zip(names, values, strict=True))
    raise AssertionError("the script has no table")


def parts(value: ast.expr, count: int) -> list[ast.expr]:
    """What each of several names is given."""
    return value.elts if count > 1 and isinstance(value, ast.Tuple) else [value]


def words(value: ast.expr, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The strings that a string, a tuple, or the name of such stands for.

    >>> words(ast.parse("('a', *B)").body[0].value, {"B": ("b", "c")})
    ('a', 'b', 'c')
    """
    match value:
        case ast.Constant(value=str(word)):
            return (word,)
        case ast.Name(id=name):
            return groups[name]
        case ast.Starred(value=inner):
            return words(inner, groups)
        case ast.Tuple(elts=members):
            return tuple(word for one in members for word in words(one, groups))
    raise TypeError(f"the table has {ast.unparse(value)}; this test reads strings, tuples and names")


@pytest.mark.parametrize("package", ["spec", "properties.rules"])
def test_every_module_of_the_specification_and_of_the_rules_is_there(package: str) -> None:
    folder = Path(str(import_module(f"tokenlaw.{package}").__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules
    assert {f"{package}.{module}" for module in modules} - set(table()) == set()


def test_every_module_of_the_table_is_one_of_the_package() -> None:
    assert [name for name in table() if find_spec(f"tokenlaw.{name}") is None] == []


def test_every_pattern_of_the_table_finds_tests() -> None:
    patterns = {pattern for those in table().values() for pattern in those}
    assert patterns
    assert [one for one in sorted(patterns) if not list(Path(__file__).parent.glob(one))] == []
