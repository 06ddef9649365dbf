"""Our graphs have every function and op that rules may ask for."""

from __future__ import annotations

import ast
import inspect
import pathlib
from collections.abc import Iterator

import pytest

import jax2tf
from jax2tf._src import ops as tensorflow_ops
from jax2tf._src.graph import ops as our_ops
from jax2tf._src.graph import shapes, signatures
from jax2tf._src.ops import asked

SOURCES = pathlib.Path(jax2tf.__file__).parent / "_src"
# Functions of `ops` that no graph of ours needs.
WITHOUT = {
    "assert_equal": "only call_tf checks sizes when a graph runs, and it calls TensorFlow",
    "computation": "an argument of XLA's ops",
    "xla": "XLA's ops, for targets that compile with XLA",
}


def _functions_of_tensorflow() -> set[str]:
    tree = ast.parse(pathlib.Path(tensorflow_ops.__file__).read_text())
    targets = [x.targets[0] for x in tree.body if isinstance(x, ast.Assign)]
    return {x.id for x in targets if isinstance(x, ast.Name)}


def test_every_function_is_in_our_graphs_or_needs_none():
    asked_for = _functions_of_tensorflow()
    assert len(asked_for) > 100
    ours = {name for name in asked_for if hasattr(our_ops, name)}
    assert asked_for - ours == WITHOUT.keys()


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """The calls of functions of `ops` in the lowering, with their places."""
    for path in sorted((SOURCES / "lowering").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "ops":
                assert isinstance(node, ast.Call)
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", node


def test_our_functions_take_the_arguments_of_every_call():
    calls = [(place, x) for place, x in _calls() if ast.unparse(x.func)[4:] not in WITHOUT]
    assert len(calls) > 500
    for place, call in calls:
        function = getattr(our_ops, ast.unparse(call.func)[4:])
        positional = [x for x in call.args if not isinstance(x, ast.Starred)]
        named = {x.arg: x.value for x in call.keywords if x.arg}
        try:
            inspect.signature(function).bind_partial(*positional, **named)
        except TypeError as error:
            pytest.fail(f"{place}: {ast.unparse(call)}: {error}")


@pytest.mark.parametrize("op", asked.OPS)
def test_our_graphs_have_the_single_ops(op):
    assert op in signatures.known_ops()
    assert op in shapes.known_ops()
    assert callable(getattr(our_ops.raw, op))
