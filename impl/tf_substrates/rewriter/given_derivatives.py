"""Where a library uses `jax.custom_jvp` and its kin, whose functions gradient tapes must see.

A library for TensorFlow has such functions where its `JAX_MODE` is true. A tape that looked into
one would record what the function computes, and miss the derivative that its author gives. So
`as_recorded` stands around the decorators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tf_substrates.rewriter.edits import Wrap

_DECORATORS = frozenset({"custom_gradient", "custom_jvp", "custom_vjp"})
_AS_RECORDED = "_as_recorded"


def wraps(nodes: Sequence[ast.AST]) -> Iterator[Wrap]:
    """Wraps around `jax.custom_jvp`, and around `custom_jvp` that is imported from JAX.

    Args:
      nodes: all of a file's.
    """
    modules, names = _imported(nodes)
    # Before Python 3.12 what is inside a formatted string has no positions. A class that
    # isinstance asks for is JAX's own.
    left = {
        id(inner)
        for node in nodes
        for outer in _outside(node)
        for inner in ast.walk(outer)
        if inner is not node
    }
    for node in nodes:
        if id(node) in left:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if node.attr in _DECORATORS and _root(node) in modules:
                yield Wrap(node, _AS_RECORDED)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield Wrap(node, _AS_RECORDED)


def _imported(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    """The names of JAX's modules in a file, and those of the decorators."""
    modules: set[str] = set()
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "jax":
                    modules.add(alias.asname or "jax")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jax":
            for alias in node.names:
                found = names if alias.name in _DECORATORS else modules
                found.add(alias.asname or alias.name)
    return modules, names


def _outside(node: ast.AST) -> list[ast.AST]:
    """Below which nodes nothing is wrapped."""
    if isinstance(node, ast.JoinedStr):
        return [node]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return list(node.args[1:]) if node.func.id in ("isinstance", "issubclass") else []
    return []


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
