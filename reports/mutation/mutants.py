"""Mutants: the modules of the implementation, each with one small fault. cosmic-ray makes them.

A mutant is named by what it changes, not by where it stands, so that it keeps its name (and its
place in a sample) while the code around it changes.
"""

from __future__ import annotations

import ast
import collections
import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import mutating
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.plugins import get_operator

PACKAGE = Path(__file__).parents[2] / "impl" / "jax2tf"

_REPLACED_COMPARISONS = (
    "Eq_NotEq",
    "NotEq_Eq",
    "Lt_LtE",
    "Lt_GtE",
    "LtE_Lt",
    "LtE_Gt",
    "Gt_GtE",
    "Gt_LtE",
    "GtE_Gt",
    "GtE_Lt",
    "Is_IsNot",
    "IsNot_Is",
)
_REPLACED_ARITHMETIC = (
    "Add_Sub",
    "Sub_Add",
    "Mul_Add",
    "Div_Mul",
    "FloorDiv_Mul",
    "Mod_FloorDiv",
    "Pow_Mul",
    "RShift_LShift",
    "LShift_RShift",
    "BitOr_BitAnd",
    "BitAnd_BitOr",
    "BitXor_BitAnd",
)
# Of cosmic-ray's operators those whose faults people make. Left out are comparisons of identity for
# equality, every other pair of arithmetic operators, and variables replaced by chance.
OPERATORS = (
    "NumberReplacer",
    *(f"ReplaceComparisonOperator_{pair}" for pair in _REPLACED_COMPARISONS),
    *(f"ReplaceBinaryOperator_{pair}" for pair in _REPLACED_ARITHMETIC),
    "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "RemoveDecorator",
    "ZeroIterationForLoop",
)
# Without these a program takes longer and does the same.
_CACHES = ("@functools.cache", "@functools.lru_cache", "@cached")
# What zip(strict=True) guards against does not happen: it says so to the reader.
_GUARD = "strict="
# The bare * and / of a signature count as operators of arithmetic.
_SIGNATURES = frozenset({"parameters", "lambdef"})


@dataclass(frozen=True)
class Mutant:
    """One fault: the `occurrence`-th place of a module at which an operator applies."""

    module: str  # relative to the package: "_src/lowering/rules/arrays.py"
    function: str  # its qualified name; "" at the level of the module
    operator: str
    line: int
    before: str  # the line without its indentation
    nth: int  # among the places of the same operator, function and line of text
    occurrence: int

    @property
    def name(self) -> str:
        """The same while the line and its function stay, wherever they stand."""
        said = f"{self.function}:{self.operator}:{self.before}:{self.nth}"
        return f"{self.module}:{hashlib.sha256(said.encode()).hexdigest()[:10]}"


def modules() -> list[str]:
    """The modules of the implementation."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def mutants(module: str, source: str | None = None) -> list[Mutant]:
    """The mutants of a module, in the order of the operators. Annotations are left as they are."""
    source = source_of(module) if source is None else source
    nodes = list(ast_nodes(get_ast(source)))
    lines = source.splitlines()
    scopes = _Scopes(ast.parse(source))
    found = []
    for operator in OPERATORS:
        plugin = get_operator(f"core/{operator}")()
        positions = [
            (node, start) for node in nodes for start, _ in plugin.mutation_positions(node)
        ]
        seen: collections.Counter[tuple[str, str]] = collections.Counter()
        for occurrence, (node, (line, column)) in enumerate(positions):
            text = lines[line - 1].strip()
            function = scopes.function(line)
            if (
                text.startswith(_CACHES)
                or lines[line - 1][:column].endswith(_GUARD)
                or (node.parent is not None and node.parent.type in _SIGNATURES)
                or scopes.is_annotation(line, column)
            ):
                continue
            nth = seen[function, text]
            seen[function, text] += 1
            found.append(Mutant(module, function, operator, line, text, nth, occurrence))
    return found


def source_of(module: str) -> str:
    """The source of a module as it stands."""
    return (PACKAGE / module).read_text(encoding="utf-8")


def mutate(mutant: Mutant, source: str | None = None) -> str:
    """The source with the fault."""
    source = source_of(mutant.module) if source is None else source
    plugin = get_operator(f"core/{mutant.operator}")()
    return mutating.mutate_code(source, plugin, mutant.occurrence)


def diff(mutant: Mutant, mutated: str, source: str | None = None) -> list[str]:
    """The lines that differ, each with - or + before it."""
    source = source_of(mutant.module) if source is None else source
    compared = difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0, lineterm="")
    return [line for line in compared if line[0] in "-+" and line[:3] not in ("---", "+++")]


def sample(by_module: Mapping[str, Sequence[Mutant]], count: int, seed: int) -> list[Mutant]:
    """`count` of the mutants: of each module its share, and at least one of each that has any.

    Hashes of the names decide, and the order is theirs: a change of the code changes little of the
    sample, a larger one contains (but for rounding) a smaller, and the first of one are another.
    """
    total = sum(map(len, by_module.values()))
    count = min(count, total)
    chosen: list[Mutant] = []
    for module, size in _shares(by_module, count, total).items():
        ranked = sorted(by_module[module], key=lambda mutant: _rank(mutant, seed))
        chosen += ranked[:size]
    return sorted(chosen, key=lambda mutant: _rank(mutant, seed))


def _shares(by_module: Mapping[str, Sequence[Mutant]], count: int, total: int) -> Mapping[str, int]:
    exact = {module: len(found) * count / total for module, found in by_module.items() if found}
    shares = {module: max(1, int(share)) for module, share in exact.items()}
    by_remainder = sorted(exact, key=lambda module: int(exact[module]) - exact[module])
    for module in by_remainder[: max(0, count - sum(shares.values()))]:
        shares[module] += 1
    return shares


def _rank(mutant: Mutant, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{mutant.name}".encode()).hexdigest()


class _Scopes:
    """Which function a line belongs to, and which places are annotations."""

    def __init__(self, tree: ast.Module):
        self._functions: list[tuple[int, int, str]] = []
        self._annotations: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._visit(tree, ())

    def function(self, line: int) -> str:
        """The innermost function or class around a line; the outer ones come before it."""
        around = [name for start, end, name in self._functions if start <= line <= end]
        return around[-1] if around else ""

    def is_annotation(self, line: int, column: int) -> bool:
        return any(start <= (line, column) < end for start, end in self._annotations)

    def _visit(self, node: ast.AST, names: tuple[str, ...]) -> None:
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                assert annotation.end_lineno is not None
                assert annotation.end_col_offset is not None
                start = annotation.lineno, annotation.col_offset
                self._annotations.append(
                    (start, (annotation.end_lineno, annotation.end_col_offset))
                )
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = (*names, node.name)
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            assert node.end_lineno is not None
            self._functions.append((first, node.end_lineno, ".".join(names)))
        for child in ast.iter_child_nodes(node):
            self._visit(child, names)
