"""The one place from which rules take the ops that they make."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import jax2tf

LOWERING = Path(jax2tf.__file__).parent / "lowering"

# What rules take from TensorFlow itself: none of it makes an op.
NOT_OPS = {
    *("DType", "DeviceSpec", "Operation", "Tensor", "TensorArray", "TensorShape", "TensorSpec"),
    *("Variable", "as_dtype", "compat", "config", "control_dependencies", "custom_gradient"),
    *("executing_eagerly", "function", "get_current_name_scope", "get_static_value", "init_scope"),
    *("is_tensor", "name_scope", "nest", "types"),
    *("bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64", "int16"),
    *("int32", "int64", "int8", "string", "uint16", "uint32", "uint64", "uint8"),
}


def _from_tensorflow(source: str) -> list[str]:
    """What a module takes from `tf` and may make an op."""
    attributes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    return [
        f"line {node.lineno}: tf.{node.attr}"
        for node in attributes
        if isinstance(node.value, ast.Name) and node.value.id == "tf" and node.attr not in NOT_OPS
    ]


def _imports_of_tensorflow(source: str) -> list[str]:
    """How a module imports TensorFlow, but for the whole as `tf`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow"):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Import):
            names = [name for name in node.names if name.name.startswith("tensorflow")]
            found += [ast.unparse(node) for name in names if name.asname != "tf"]
    return found


@pytest.mark.parametrize(
    "path",
    sorted(LOWERING.rglob("*.py")),
    ids=lambda path: str(path.relative_to(LOWERING)),
)
def test_rules_make_ops_through_one_package(path):
    source = path.read_text()
    assert not _imports_of_tensorflow(source)
    assert not _from_tensorflow(source), f"take these from jax2tf.ops: {_from_tensorflow(source)}"
    assert "xla_ops" not in source


def test_what_goes_around_the_package_is_seen():
    assert _from_tensorflow("def rule(x):\n    return tf.math.real(tf.cast(x, tf.int32))") == [
        "line 2: tf.math",
        "line 2: tf.cast",
    ]
    assert _imports_of_tensorflow("import tensorflow as tf\nfrom tensorflow import raw_ops") == [
        "from tensorflow import raw_ops"
    ]
