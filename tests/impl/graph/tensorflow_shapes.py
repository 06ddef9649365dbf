"""The types that TensorFlow and our functions infer for the results of one op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jax2tf._src.graph import inference, shapes, signatures
from jax2tf._src.graph.graph import Node, Tensor

AttrValue = tf.compat.v1.AttrValue


class S:
    """The type of an operand that is not known, such as S("b", 3, dtype="int32").

    A name is an open size. Without sizes it is a scalar; S(None) is of unknown rank.
    """

    def __init__(self, *shape: Any, dtype: str = "float32"):
        self.shape = None if shape == (None,) else shape
        self.dtype = dtype


def our_types(op: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Dtypes and shapes of the results, with names."""
    node = _node(op, operands, attributes)
    inference.infer_node(node)
    return [(x.dtype, x.shape) for x in node.outputs]


def tensorflow_types(op: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Dtypes and shapes of the results, None for open sizes."""
    node = _node(op, operands, attributes)
    kinds = {name: x.kind for name, x in signatures.signature_of(op).attributes.items()}
    attrs = {name: _message(kinds[name], value) for name, value in node.attributes.items()}
    with tf.Graph().as_default() as graph:
        tensors = [_tensor(x) for x in operands]
        results = graph.create_op(op, tensors, dtypes=None, attrs=attrs).outputs
    return [(_numpy(x.dtype), None if x.shape.rank is None else tuple(x.shape)) for x in results]


def _node(op: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Node:
    tensors = [_operand(f"x{i}", x) for i, x in enumerate(operands)]
    node = Node(op, "node", tensors, shapes.completed(op, tensors, attributes))
    n = len(shapes.result_dtypes(op, node.attributes))
    node.outputs += [Tensor(f"y{i}", None, None, node, i) for i in range(n)]
    return node


def _operand(name: str, x: Any) -> Tensor:
    if isinstance(x, S):
        return Tensor(name, signatures.dtype_of(x.dtype), x.shape)
    array = np.asarray(x)
    constant = Node("Const", name, [], {"value": array})
    return Tensor(name, array.dtype, array.shape, constant)


def _tensor(x: Any) -> tf.Tensor:
    if not isinstance(x, S):
        return tf.constant(x)
    open_shape = x.shape and [size if isinstance(size, int) else None for size in x.shape]
    return tf.compat.v1.placeholder(x.dtype, open_shape if x.shape else x.shape)


def _numpy(dtype: tf.DType) -> np.dtype | None:
    return None if dtype in (tf.resource, tf.variant) else np.dtype(dtype.as_numpy_dtype)


def _message(kind: str, value: Any) -> tf.compat.v1.AttrValue:
    if kind.startswith("list("):
        field = {"int": "i", "type": "type", "float": "f", "bool": "b"}[kind[5:-1]]
        values = [tf.as_dtype(x).as_datatype_enum for x in value] if field == "type" else value
        return AttrValue(list=AttrValue.ListValue(**{field: values}))
    if kind == "type":
        dtype = tf.variant if value is None else tf.as_dtype(value)
        return AttrValue(type=dtype.as_datatype_enum)
    if kind == "shape":
        return AttrValue(shape=tf.TensorShape(value).as_proto())
    if kind == "tensor":
        return AttrValue(tensor=tf.make_tensor_proto(value))
    if kind == "string":
        return AttrValue(s=value.encode())
    return AttrValue(**{{"int": "i", "float": "f", "bool": "b"}[kind]: value})
