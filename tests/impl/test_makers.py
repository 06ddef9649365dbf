"""Ops that go into graphs of our own, and the table of those that rules make."""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import types

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import ops
from jax2tf._src.graph import ops as own
from jax2tf._src.graph.make import is_making, making
from jax2tf._src.graph.signatures import signature_of
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.ops import asked, surroundings
from jax2tf._src.util import dtypes

SOURCES = pathlib.Path(jax2tf.__file__).parent / "_src"
# Functions of `ops` that graphs made without TensorFlow do not have.
LACKING = {
    "assert_equal",  # Checks at run time are left out.
    "computation",  # Only ops of XLA's take one.
}
# Chosen by name in a table of emit/scatter_kernels.py.
BY_NAME = {
    *("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin"),
    *("TensorScatterMax", "UnsortedSegmentMin", "UnsortedSegmentMax"),
}


def _asked_for() -> dict[str, set[str]]:
    """The ops that rules make, with the arguments that they give by name."""
    found: dict[str, set[str]] = {name: set() for name in BY_NAME}
    functions = SOURCES / "ops/functions.py"
    for path in (*(SOURCES / "lowering").rglob("*.py"), functions):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_raw(node.value):
                found.setdefault(node.attr, set())
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and _is_raw(called.value):
                names = {keyword.arg for keyword in node.keywords if keyword.arg}
                found.setdefault(called.attr, set()).update(names)
    made = re.findall(r'_(?:unary|binary|reduction)\("[\w.]+", "(\w+)"', functions.read_text())
    return found | {name: found.get(name, set()) for name in made}


def _is_raw(node: ast.expr) -> bool:
    return "raw" in (getattr(node, "id", None), getattr(node, "attr", None))


def test_the_table_has_what_rules_ask_for():
    found = _asked_for()
    assert sorted(found) == sorted(asked.OPS)
    for name, arguments in found.items():
        assert arguments <= set(asked.OPS[name].split()), name


@pytest.mark.parametrize("name", asked.OPS)
def test_tensorflow_has_the_arguments(name):
    parameters = [*inspect.signature(getattr(tf.raw_ops, name)).parameters]
    arguments = asked.OPS[name].split()
    assert arguments == [p for p in parameters if p in arguments]
    assert arguments


X = ("x", np.float32, (2, 3))
PLACES = ("i", np.int32, (2,))


@pytest.mark.parametrize(
    ("make", "by", "dtype", "shape"),
    [
        (lambda x, i: ops.raw.Rsqrt(x=x), "Rsqrt", "float32", [2, 3]),
        (lambda x, i: ops.sin(x), "Sin", "float32", [2, 3]),
        (lambda x, i: ops.add(x, 1.0), "AddV2", "float32", [2, 3]),
        (lambda x, i: ops.greater(i, 2), "Less", "bool", [2]),
        (lambda x, i: ops.where(ops.less(x, 1.0), x, 0.0), "SelectV2", "float32", [2, 3]),
        (lambda x, i: ops.cast(x, dtypes.int32), "Cast", "int32", [2, 3]),
        (lambda x, i: ops.reshape(x, (3, -1)), "Reshape", "float32", [3, 2]),
        (lambda x, i: ops.concat([x, x], 0), "ConcatV2", "float32", [4, 3]),
        (lambda x, i: ops.gather(x, i, 1), "GatherV2", "float32", [2, 2]),
        (lambda x, i: ops.reduce_sum(x, [0]), "Sum", "float32", [3]),
        (lambda x, i: ops.identity(x), "Identity", "float32", [2, 3]),
        (lambda x, i: ops.matrix_transpose(x), "Transpose", "float32", [3, 2]),
        (lambda x, i: ops.zeros([2], dtypes.int8), "Const", "int8", [2]),
        (lambda x, i: ops.constant(np.ones(3)), "Const", "float64", [3]),
        (lambda x, i: x[0] * 2, "Mul", "float32", [3]),
    ],
)
def test_ops_go_into_our_graph(make, by, dtype, shape):
    with making() as maker:
        made = make(*(Symbol(maker.argument(*argument), maker) for argument in (X, PLACES)))
    assert (made.op.type, made.dtype.name, made.shape.as_list()) == (by, dtype, shape)
    assert made.tensor.node in maker.nodes


def test_numbers_become_constants_of_the_other_dtype():
    with making() as maker:
        made = ops.add(Symbol(maker.argument(*X), maker), 1)
    _, one = made.op.inputs
    assert (one.op.type, one.dtype) == ("Const", dtypes.float32)


def test_a_cast_to_the_same_dtype_makes_no_op():
    with making() as maker:
        x = Symbol(maker.argument(*X), maker)
        assert ops.cast(x, dtypes.float32).tensor is x.tensor


def test_tensorflow_makes_ops_again_afterwards():
    with pytest.raises(ZeroDivisionError), making():
        raise ZeroDivisionError
    assert not is_making()
    assert ops.add(tf.constant(1), 2).numpy() == 3
    assert isinstance(ops.raw.Cos, types.FunctionType)


def test_every_op_of_the_table_has_a_signature():
    for name in asked.OPS:
        operands = {x.name for x in signature_of(name).operands}
        renamed = {"reduction_indices", "split_dim", "concat_dim", "dim"}
        assert operands - renamed <= set(asked.OPS[name].split()), name


def test_functions_that_our_graphs_lack():
    """The list is exact: a function that graph/ops has by now goes from it."""
    functions = {name for name, value in vars(ops).items() if inspect.isfunction(value)}
    assert sorted(functions - {"by_tensorflow"} - set(vars(own))) == sorted(LACKING)


def test_a_function_that_our_graphs_lack_says_so():
    with making(), pytest.raises(NotImplementedError, match="have no assert_equal yet"):
        ops.assert_equal(1, 1)


def test_what_is_around_our_graph():
    with making() as maker:
        x = Symbol(maker.argument(*X), maker)
        with surroundings.named_in(maker, "Block"), surroundings.called_from_here():
            y = ops.sin(x)
        with maker.as_default(), ops.name_scope("dims/"):
            z = ops.cos(x)
        assert [y.op.name, z.op.name] == ["Block/Sin", "dims/Cos"]
        assert surroundings.operations_of(maker) == [x.op, y.op, z.op]
        assert not surroundings.in_compiled_function()
        assert not surroundings.has_functions()
    assert surroundings.has_functions()


def test_ops_are_compared_by_their_nodes():
    with making() as maker:
        x, i = (Symbol(maker.argument(*argument), maker) for argument in (X, PLACES))
        y = ops.sin(x)
        assert len({x.op, i.op, y.op, Symbol(y.tensor, maker).op}) == 3
