"""Mutants of a module, by the operators of cosmic-ray."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.operators.provider import OperatorProvider

BINARY = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "FloorDiv": "Mul",
    "Mod": "FloorDiv",
    "Pow": "Mul",
    "RShift": "LShift",
    "LShift": "RShift",
    "BitOr": "BitAnd",
    "BitAnd": "BitOr",
    "BitXor": "BitOr",
}
"""One replacement for each arithmetic operator; cosmic-ray knows eleven, and most only raise TypeError."""

COMPARISONS = {
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
"""The neighbour and the opposite of each comparison."""

OPERATORS = (
    *(f"ReplaceBinaryOperator_{one}_{other}" for one, other in BINARY.items()),
    *(f"ReplaceComparisonOperator_{one}_{other}" for one, others in COMPARISONS.items() for other in others),
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
"""Names of the operators in cosmic-ray."""

Node = Any
"""A node of parso's tree."""

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """A module with one small change.

    Attributes
    ----------
    module : dotted name.
    operator : cosmic-ray's name of the change.
    line : number of the changed line, from 1.
    before, after : the changed line, stripped.
    source : text of the changed module.
    """

    module: str
    operator: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> str:
        """What tells the mutant from all others."""
        return f"{self.module}:{self.line}: {self.before} -> {self.after}"


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """All mutants of a module that compile, each once; annotations and names of types are left alone."""
    tree, spans, found = get_ast(source), _annotations(source), set()
    provider = OperatorProvider()
    operators = [(name, provider[name]()) for name in OPERATORS]
    for node in list(ast_nodes(tree)):
        if node.type == "name" or getattr(node.parent, "type", "") == "parameters":  # a bare * is no product
            continue
        for name, operator in operators:
            for index, (start, _) in enumerate(operator.mutation_positions(node)):
                if any(first <= start < last for first, last in spans):
                    continue
                mutant = _mutant(module, name, source, _mutated(tree, node, operator, index))
                if mutant is not None and mutant.key not in found and _compiles(mutant.source):
                    found.add(mutant.key)
                    yield mutant


def _mutated(tree: Node, node: Node, operator: Any, index: int) -> str:
    """Text of the tree with one change, which is undone."""
    with _undone(node):
        changed = operator.mutate(node, index)
        if changed is node:
            return str(tree.get_code())
        siblings = node.parent.children
        at = next(i for i, one in enumerate(siblings) if one is node)
        siblings[at] = changed
        text = str(tree.get_code())
        siblings[at] = node
        return text


@contextmanager
def _undone(node: Node) -> Iterator[None]:
    """Operators change the tree in place; put everything back."""
    inside = list(ast_nodes(node))
    values = [(one, one.value) for one in inside if hasattr(one, "value")]
    children = [(one, list(one.children)) for one in inside if hasattr(one, "children")]
    yield
    for leaf, value in values:
        leaf.value = value
    for parent, those in children:
        parent.children = those


def _mutant(module: str, operator: str, source: str, changed: str) -> Mutant | None:
    old, new = source.splitlines(), changed.splitlines()
    line = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    if line is None:
        return None
    return Mutant(module, operator, line + 1, old[line].strip(), new[line].strip(), changed)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _annotations(source: str) -> list[tuple[Position, Position]]:
    """Where annotations stand: ``int | None`` is no arithmetic."""
    nodes: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            nodes.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            nodes.append(node.returns)
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
        for one in nodes
        if one is not None
    ]
