"""The arrows between the folders, read from every import statement of the tree."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "spec": {"spec"},
    "impl": {"spec", "impl"},
    "properties": {"spec", "properties"},
    "stats": {"spec", "stats"},
}
MODULES = [path for folder in MAY_IMPORT for path in sorted((ROOT / folder).rglob("*.py"))]


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements inside a node; nothing is imported anywhere else, and most of a tree are expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.expr):
            yield from statements(child)


def imported_modules(source: str) -> Iterator[str]:
    """Absolute names of the modules that the source imports, also inside functions."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the arrows"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def forbidden(folder: str, source: str) -> list[str]:
    """Imports of ours that the folder may not make (the face counts as one more folder)."""
    ours = [name for name in imported_modules(source) if name.split(".")[0] == "tokenlaw"]
    return [name for name in ours if [*name.split("."), ""][1] not in MAY_IMPORT[folder]]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_keeps_the_arrows(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    assert forbidden(folder, path.read_text()) == []


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("spec", "from tokenlaw.impl.paged import REFERENCE"),
        ("impl", "def f():\n    from tokenlaw import properties"),
        ("properties", "import tokenlaw.impl.paged"),
        ("stats", "from tokenlaw.properties import trace"),
        ("spec", "from tokenlaw import audit"),
        ("impl", "import spec"),
    ],
)
def test_a_wrong_arrow_is_seen(folder: str, source: str) -> None:
    bare = {name.split(".")[0] for name in imported_modules(source)} & set(MAY_IMPORT)
    assert forbidden(folder, source) or bare


def test_nothing_is_imported_by_its_bare_folder_name() -> None:
    bare = set(MAY_IMPORT)
    others = [path for folder in ("tokenlaw", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in [*MODULES, *others]:
        names = {name.split(".")[0] for name in imported_modules(path.read_text())}
        assert not names & bare, path
