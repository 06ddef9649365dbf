"""Edits of a source file: nodes of its syntax tree, each with the text that replaces it.

One list of edits gives both the text that is shipped and the tree that an import hook compiles.
Lines never move: a replacement that is shorter than what it replaces keeps its line breaks. In the
tree columns do not move either, since what replaces a node takes the node's position.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Edit:
    """A node and the source that replaces it: statements for a statement, else an expression."""

    node: ast.stmt | ast.expr
    text: str


@dataclasses.dataclass(frozen=True)
class Wrap:
    """An expression, and the name of a function that is called with it in its place."""

    node: ast.expr
    function: str


@dataclasses.dataclass(frozen=True)
class Import:
    """An import that a file gets, on the line of its first statement that has no block."""

    text: str


@dataclasses.dataclass(frozen=True)
class Ending:
    """Statements that a file gets behind its last line."""

    text: str


Change = Edit | Wrap | Import | Ending


def as_text(source: str, edits: Sequence[Change]) -> str:
    """The source with every edit made, of as many lines as before."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = b"".join(lines)

    def span(node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        # The offsets of syntax trees count bytes of UTF-8.
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    # (start, end, what stands there); where two start together, the longer node's comes first.
    pieces: list[tuple[int, int, int, str]] = []
    for edit in edits:
        if isinstance(edit, Ending):
            break_before = "" if source.endswith("\n") else "\n"
            pieces.append((len(data), 1, len(data), f"{break_before}{edit.text}\n"))
            continue
        if isinstance(edit, Import):
            at, text = _place_in_text(edit, source, span)
            pieces.append((at, -len(data), at, text))
            continue
        start, end = span(edit.node)
        if isinstance(edit, Wrap):
            pieces += [(start, start - end, start, edit.function + "("), (end, -1, end, ")")]
        else:
            breaks = data[start:end].count(b"\n") - edit.text.count("\n")
            pieces.append((start, start - end, end, _with_breaks(edit, breaks)))
    for start, _, end, text in sorted(pieces, reverse=True):
        data = data[:start] + text.encode() + data[end:]
    return data.decode()


def _place_in_text(edit: Import, source: str, span: Callable) -> tuple[int, str]:
    body = ast.parse(source).body
    index = _place(body)
    if index < len(body) and not _has_block(body[index]):
        return span(body[index])[0], edit.text + "; "
    if _must_be_first(body[index - 1]):
        return span(body[index - 1])[1], "; " + edit.text
    return len(source.encode()), ("" if source.endswith("\n") else "\n") + edit.text + "\n"


def _place(body: list[ast.stmt]) -> int:
    """Before which statement an import stands: one that needs a line, else behind what must be
    first, else at the end, where it is read before any function runs."""
    first = next((i for i, node in enumerate(body) if not _must_be_first(node)), len(body))
    simple = next((i for i, node in enumerate(body[first:], first) if not _has_block(node)), None)
    return simple if simple is not None else first or len(body)


def _must_be_first(node: ast.stmt) -> bool:
    """A docstring, or `from __future__`."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )


def _has_block(node: ast.stmt) -> bool:
    return hasattr(node, "body") or isinstance(node, ast.Match)


def _with_breaks(edit: Edit, breaks: int) -> str:
    if breaks <= 0:
        return edit.text
    if isinstance(edit.node, ast.stmt):
        # Line breaks after a statement would end it too early: they go in brackets.
        return edit.text + "; (" + "\n" * breaks + ")"
    return "(" + edit.text + "\n" * breaks + ")"


def as_tree(source: str, edits: Sequence[Change], filename: str = "<unknown>") -> ast.Module:
    """The tree of the source with every edit made, every position where the author has it.

    The edits' nodes may be of another parse of the same source: they are found by position.
    """
    tree = ast.parse(source, filename)
    places = [(_place(tree.body), edit) for edit in edits if isinstance(edit, Import)]
    by_position = {_position(e.node): e for e in edits if isinstance(e, (Edit, Wrap))}
    for index, edit in places:
        beside = tree.body[min(index, len(tree.body) - 1)]
        (made,) = ast.parse(edit.text).body
        tree.body.insert(index, ast.copy_location(made, beside))
    _Replacer(by_position).generic_visit(tree)
    for ending in (edit for edit in edits if isinstance(edit, Ending)):
        tree.body += [ast.copy_location(s, tree.body[-1]) for s in ast.parse(ending.text).body]
    return ast.fix_missing_locations(tree)


def _position(node: ast.AST) -> tuple:
    return (
        type(node).__name__,
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0),
        getattr(node, "end_col_offset", 0),
    )


class _Replacer(ast.NodeTransformer):
    def __init__(self, edits: dict[tuple, Edit | Wrap]):
        self.edits = edits

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        edit = self.edits.get(_position(node)) if isinstance(node, (ast.stmt, ast.expr)) else None
        if edit is None:
            return self.generic_visit(node)
        if isinstance(edit, Wrap):
            inner = self.generic_visit(node)
            assert isinstance(inner, ast.expr)
            name = ast.copy_location(ast.Name(edit.function, ast.Load()), node)
            return ast.copy_location(ast.Call(name, [inner], []), node)
        made = ast.parse(edit.text).body
        for statement in made:
            for inner in ast.walk(statement):
                if isinstance(inner, (ast.stmt, ast.expr)):
                    ast.copy_location(inner, node)
        if isinstance(node, ast.stmt):
            return made
        (expression,) = made
        assert isinstance(expression, ast.Expr)
        return expression.value
