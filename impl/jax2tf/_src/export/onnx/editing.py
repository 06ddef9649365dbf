"""Questions about a written model, and changes to it, that passes share."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.util.typing import PyTree


def made_by(value: ir.Value | None, op: str) -> ir.Node | None:
    """The node that makes a value, if it is of this op of ONNX; None otherwise."""
    node = None if value is None else value.producer()
    return node if node is not None and (node.domain, node.op_type) == ("", op) else None


def known(value: ir.Value | None) -> np.ndarray | None:
    """The array of an initialiser; None for a value that is computed or given."""
    if value is None or value.const_value is None or value.producer() is not None:
        return None
    return value.const_value.numpy()


def scalar(value: ir.Value | None, beside: ir.Value | None = None) -> float | None:
    """The number that an initialiser of one element holds; None for other values.

    Args:
      value: the initialiser.
      beside: the other operand; a number that would give it more dimensions is none.
    """
    array = known(value)
    if array is None or array.size != 1 or array.ndim > (rank_of(beside) or 0):
        return None
    return float(array.reshape(()))


def axes_of(node: ir.Node) -> list[int] | None:
    """The axes of a reduction, from the front; None if they are not known."""
    rank = rank_of(node.inputs[0])
    axes = known(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if axes is None or rank is None else [int(a) % rank for a in axes.reshape(-1)]


def rank_of(value: ir.Value | None) -> int | None:
    """The number of dimensions, if the model says it."""
    return None if value is None or value.shape is None else len(value.shape)


def sizes_of(value: ir.Value | None) -> list[int | None] | None:
    """The sizes of the dimensions, None for an open one; None if even the rank is unknown."""
    if value is None or value.shape is None:
        return None
    return [size if isinstance(size, int) else None for size in value.shape]


def reader_of(value: ir.Value) -> ir.Node | None:
    """The node that alone reads a value; None if there are others, or if it is a result."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


def inside(value: ir.Value | None, op: str) -> ir.Value | None:
    """The operand of an op that makes a value which is read once; None if none does."""
    node = made_by(value, op)
    return None if node is None or reader_of(node.outputs[0]) is None else node.inputs[0]


def is_float32(value: ir.Value | None) -> bool:
    """Whether the model says that the numbers are float32."""
    return value is not None and value.type == ir.TensorType(ir.DataType.FLOAT)


def constant(model: ir.Model, name: str, array: np.ndarray) -> ir.Value:
    """The initialiser of a model that has this name, which tells its array."""
    made = model.graph.initializers.get(name)
    if made is None:
        made = ir.Value(
            name=name,
            const_value=ir.tensor(array, name=name),
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
        )
        model.graph.register_initializer(made)
    return made


def become(node: ir.Node, op: str, *operands: ir.Value | None, **attributes: PyTree) -> None:
    """Makes a node one of another op; its result stays."""
    node.op_type = op
    node.resize_inputs(len(operands))
    for i, operand in enumerate(operands):
        node.replace_input_with(i, operand)
    node.attributes.clear()
    for key, value in attributes.items():
        node.attributes[key] = ir.convenience.convert_attribute(key, value)
