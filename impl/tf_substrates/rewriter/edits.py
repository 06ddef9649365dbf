"""Edits of a source file: nodes of its syntax tree, each with the text that replaces it.

One list of edits gives both the text that is shipped and the tree that an import hook compiles.
Lines never move: a replacement that is shorter than what it replaces keeps its line breaks. In the
tree columns do not move either, since what replaces a node takes the node's position.
"""

from __future__ import annotations

import ast
import dataclasses


@dataclasses.dataclass(frozen=True)
class Edit:
    """A node and the source that replaces it: statements for a statement, else an expression."""

    node: ast.stmt | ast.expr
    text: str


def as_text(source: str, edits: list[Edit]) -> str:
    """The source with every edit made, of as many lines as before."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = b"".join(lines)
    for edit in sorted(edits, key=lambda e: (e.node.lineno, e.node.col_offset), reverse=True):
        node = edit.node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        # The offsets of syntax trees count bytes of UTF-8.
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        breaks = data[start:end].count(b"\n") - edit.text.count("\n")
        data = data[:start] + _with_breaks(edit, breaks).encode() + data[end:]
    return data.decode()


def _with_breaks(edit: Edit, breaks: int) -> str:
    if breaks <= 0:
        return edit.text
    if isinstance(edit.node, ast.stmt):
        # Line breaks after a statement would end it too early: they go in brackets.
        return edit.text + "; (" + "\n" * breaks + ")"
    return "(" + edit.text + "\n" * breaks + ")"


def as_tree(source: str, edits: list[Edit], filename: str = "<unknown>") -> ast.Module:
    """The tree of the source with every edit made, every position where the author has it.

    The edits' nodes may be of another parse of the same source: they are found by position.
    """
    tree = ast.parse(source, filename)
    by_position = {_position(edit.node): edit for edit in edits}
    _Replacer(by_position).generic_visit(tree)
    return ast.fix_missing_locations(tree)


def _position(node: ast.AST) -> tuple:
    return (
        isinstance(node, ast.stmt),
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0),
        getattr(node, "end_col_offset", 0),
    )


class _Replacer(ast.NodeTransformer):
    def __init__(self, edits: dict[tuple, Edit]):
        self.edits = edits

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        edit = self.edits.get(_position(node)) if isinstance(node, (ast.stmt, ast.expr)) else None
        if edit is None:
            return self.generic_visit(node)
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
