"""Writes TensorFlow functions as ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import onnx_ir as ir
import tensorflow as tf

from jax2tf._src.api.shape_evaluation import eval_polymorphic_shape
from jax2tf._src.export.onnx import opsets, storage, writer
from jax2tf._src.graph.from_tensorflow import Shape, program_of
from jax2tf._src.util import option_checks
from jax2tf._src.util.option_checks import shown
from jax2tf._src.util.typing import PyTree

if TYPE_CHECKING:
    from jax2tf._src.export.signatures import Signature

OPSET = writer.OPSET


def model_of(
    concrete: PyTree, shapes: Mapping[str, Shape] | None = None, opset: int = OPSET
) -> ir.Model:
    """The model of a concrete function from named tensors to a dict of named tensors.

    Args:
      concrete: a tf.types.experimental.ConcreteFunction with an input signature.
      shapes: the shapes of arguments by name, for open sizes with names.
      opset: the version of ONNX's ops.
    """
    return writer.model_of(program_of(concrete, shapes), opset)


def file_of(tf_function: PyTree, opset: int = OPSET) -> bytes:
    """The content of an ONNX file of a TensorFlow function.

    Args:
      tf_function: a tf.function with an input signature, or a tf.types.experimental
        .ConcreteFunction, from named tensors to a dict of named tensors.
      opset: the version of ONNX's ops, from 18 to the newest of the installed ONNX Runtime.

    Raises:
      TypeError: it is not such a function.
      ValueError: there is no such opset, or a name is that of an input and of an output.
      NotImplementedError: the function has an op that no rule writes.
    """
    option_checks.one_of(opset, "jax2tf.onnx.file_of: opset", opsets.Opsets())
    if getattr(tf_function, "input_signature", None) is not None:
        tf_function = tf_function.get_concrete_function()
    if not isinstance(tf_function, tf.types.experimental.ConcreteFunction):
        raise TypeError(
            "jax2tf.onnx.file_of: tf_function should be a tf.function with an input_signature, or "
            f"a concrete function, got {shown(tf_function)}"
        )
    program = program_of(tf_function)
    both = {x.name for x in program.main.inputs} & set(program.output_names)
    if both:
        raise ValueError(
            f"jax2tf.onnx.file_of: {', '.join(sorted(both))} is the name of an input and of an "
            "output, and a file of ONNX has each name once. What to do: give the output another "
            "key in the dict that tf_function returns"
        )
    return storage.content_of(writer.model_of(program, opset))


def parts_of(concrete: PyTree, signature: Signature, params: PyTree, opset: int) -> storage.Parts:
    """The model of the function of a signature, which the strict checker accepts.

    Its inputs, and the sizes of inputs and outputs, have the names of the signature.
    """
    program = program_of(concrete)
    # TensorFlow's graph has the names of the inputs in lower case.
    specs = {spec.name.lower(): spec for spec in signature.inputs}
    for tensor in program.main.inputs:
        spec = specs[tensor.name.lower()]
        tensor.name, tensor.shape = spec.name, spec.shape
    model = writer.model_of(program, opset)
    _name_sizes(model, signature, params)
    parts = storage.parts_of(model)
    storage.check(parts)
    return parts


def _name_sizes(model: ir.Model, signature: Signature, params: PyTree) -> None:
    """Gives outputs the names of sizes that JAX has, where the graph does not tell a name."""
    is_open = any(isinstance(size, str) for spec in signature.inputs for size in spec.shape)
    unnamed = [x for x in model.graph.outputs if not _has_names(x)]
    if not is_open or not unnamed:
        return
    # JAX traces the function once more.
    shapes = _result_shapes(signature, params)
    for output in unnamed:
        shape = shapes[output.name or ""]
        known: PyTree = output.shape or [None] * len(shape)
        output.shape = ir.Shape(
            [size if _is_known(size) else name for size, name in zip(known, shape, strict=True)]
        )


def _has_names(output: ir.Value) -> bool:
    return output.shape is not None and all(map(_is_known, output.shape))


def _is_known(size: PyTree) -> bool:
    return size is not None and size != _UNKNOWN


_UNKNOWN = ir.SymbolicDim(None)


def _result_shapes(signature: Signature, params: PyTree) -> dict[str, list[int | str]]:
    """The sizes of each result, by its name, as JAX writes them."""

    def function(params: PyTree, *leaves: PyTree) -> PyTree:
        args, kwargs = signature.arguments(leaves)
        return signature.function(params, *args, **kwargs)

    shapes_of = eval_polymorphic_shape(
        function,
        polymorphic_shapes=[None, *(spec.polymorphic_shape for spec in signature.inputs)],
        polymorphic_constraints=signature.constraints,
    )
    leaves = [tf.TensorSpec(spec.spec.shape, spec.spec.dtype) for spec in signature.inputs]
    structs, _ = shapes_of(() if params is None else params, *leaves)
    sizes = [
        [d if isinstance(d, int) else str(d) for d in leaf.shape]
        for leaf in jax.tree.leaves(structs)
    ]
    return dict(zip(signature.output_names(structs), sizes, strict=True))
