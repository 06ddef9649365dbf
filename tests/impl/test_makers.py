"""Makers of ops beside TensorFlow, and the table of the ops that they get."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pathlib
import re
import types

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import ops
from jax2tf._src.ops import asked, makers
from jax2tf._src.util import dtypes

SOURCES = pathlib.Path(jax2tf.__file__).parent / "_src"
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


@dataclasses.dataclass(eq=False)
class Made:
    """A tensor of the maker below."""

    by: str
    of: dict[str, object]
    dtype: dtypes.DType = dtypes.float32


class Maker:
    """Writes down what it is asked for."""

    def op(self, name, arguments):
        return Made(name, dict(arguments), arguments.get("DstT", dtypes.float32))

    def function(self, name, args, options):
        if name == "constant":
            value, dtype = [*args, None][:2]
            return Made("Const", {"value": value}, dtype)
        return Made(f"tf.{name}", {"args": args, **options})

    def is_tensor(self, value):
        return isinstance(value, Made)


X = Made("Placeholder", {})


@pytest.mark.parametrize(
    ("make", "by", "operands"),
    [
        (lambda: ops.raw.Rsqrt(x=X), "Rsqrt", ["x"]),
        (lambda: ops.sin(X), "Sin", ["x"]),
        (lambda: ops.add(X, 1.0), "AddV2", ["x", "y"]),
        (lambda: ops.greater(X, 2), "Less", ["x", "y"]),
        (lambda: ops.where(X, X, 0.0), "SelectV2", ["condition", "t", "e"]),
        (lambda: ops.cast(X, dtypes.int32), "Cast", ["x", "DstT"]),
        (lambda: ops.reshape(X, (2, 3)), "Reshape", ["tensor", "shape"]),
        (lambda: ops.concat([X, X], 0), "ConcatV2", ["values", "axis"]),
        (lambda: ops.gather(X, X, 1), "GatherV2", None),
        (lambda: ops.reduce_sum(X, [0]), "Sum", ["input", "axis", "keep_dims"]),
        (lambda: ops.identity(X), "Identity", ["input"]),
        (lambda: ops.qr(X), "tf.linalg.qr", ["args"]),
        (lambda: ops.zeros([2], dtypes.int8), "tf.zeros", ["args"]),
        (lambda: ops.get_static_value(X), "tf.get_static_value", ["args"]),
        (lambda: ops.constant(np.ones(3)), "Const", ["value"]),
    ],
)
def test_it_gets_the_ops(make, by, operands):
    with makers.made_by(Maker()):
        made = make()
    assert made.by == by
    assert operands is None or list(made.of) == operands


def test_numbers_become_constants_of_the_other_dtype():
    with makers.made_by(Maker()):
        made = ops.add(X, 1)
    assert (made.of["y"].by, made.of["y"].dtype) == ("Const", dtypes.float32)


def test_a_cast_to_the_same_dtype_makes_no_op():
    with makers.made_by(Maker()):
        assert ops.cast(X, dtypes.float32) is X


def test_tensorflow_makes_ops_again_afterwards():
    with pytest.raises(ZeroDivisionError), makers.made_by(Maker()):
        raise ZeroDivisionError
    assert makers.current() is None
    assert ops.add(tf.constant(1), 2).numpy() == 3
    assert isinstance(ops.raw.Cos, types.FunctionType)
