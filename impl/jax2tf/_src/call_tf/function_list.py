"""Calls of TensorFlow's graphs from the module of an XlaCallModule op.

The op has a list of TensorFlow functions, and its module calls them by their index in the list.
TensorFlow compiles the function when it compiles the module, so its shapes and its platform need
not be known before.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jax2tf._src import dims
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf.functions import Function, Signature
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Aval, MlirValue

# The custom call's target and its attribute; TensorFlow defines both names.
TARGET = "tf.call_tf_function"
_ATTRIBUTE = "tf.backend_config"

_current: contextvars.ContextVar[list[tf.types.experimental.ConcreteFunction] | None] = (
    contextvars.ContextVar("_current", default=None)
)


@contextlib.contextmanager
def collecting() -> Iterator[list[tf.types.experimental.ConcreteFunction]]:
    """A context in which modules may call graphs; it yields the list that gets these graphs."""
    functions: list[tf.types.experimental.ConcreteFunction] = []
    token = _current.set(functions)
    try:
        yield functions
    finally:
        _current.reset(token)


def is_collecting() -> bool:
    """Whether the module under construction may call graphs."""
    return _current.get() is not None


def avals_in(ctx: mlir.LoweringRuleContext) -> Sequence[Aval]:
    """The avals of the operands, all of which are arrays."""
    return cast("Sequence[Aval]", ctx.avals_in)


def call(
    ctx: mlir.LoweringRuleContext, operands: Sequence[MlirValue], function: Function
) -> list[MlirValue]:
    """The results of a call of the function, by its index in the collected list.

    Args:
      ctx: JAX's context of the lowering.
      operands: the values of the arguments in the module.
      function: the called function.

    Raises:
      CallTfError: the function captures a variable, whose value the module does not have.
    """
    functions = _current.get()
    assert functions is not None
    signature = function.signature(avals_in(ctx))
    captured = [mlir.ir_constant(value) for value in _constants(signature)]
    if signature.concrete not in functions:
        functions.append(signature.concrete)
    shapes = _shape_operands(ctx)
    inputs = [*operands[: len(signature.specs)], *captured]
    config = {
        "called_index": ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), functions.index(signature.concrete)
        ),
        "has_token_input_output": ir.BoolAttr.get(False),
    }
    attributes = {
        "call_target_name": ir.StringAttr.get(TARGET),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
        "has_side_effect": ir.BoolAttr.get(signature.has_effects),
        _ATTRIBUTE: ir.DictAttr.get(config),
    }
    if shapes:
        i64 = ir.IntegerType.get_signless(64)
        indices = [ir.IntegerAttr.get(i64, len(inputs) + i) for i in range(len(shapes))]
        kind = ir.RankedTensorType.get([len(indices)], i64)
        attributes["indices_of_shape_operands"] = ir.DenseIntElementsAttr.get(indices, type=kind)
    call = ir.Operation.create(
        "stablehlo.custom_call",
        results=[mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out],
        operands=[*inputs, *shapes],
        attributes=attributes,
    )
    return list(call.results)


def _constants(signature: Signature) -> list[np.ndarray]:
    captured = signature.captured()
    for value in captured:
        if isinstance(value, tf.Variable):
            raise CallTfError(
                f"jax2tf.call_tf({signature.function.name}): it captures the variable {value.name},"
                " and a native module passes values to TensorFlow's graphs, not variables: "
                "pass it as an argument"
            )
    return [value for value in captured if isinstance(value, np.ndarray)]


def _shape_operands(ctx: mlir.LoweringRuleContext) -> Sequence[MlirValue]:
    """A vector of the sizes of each result, where one of them is symbolic."""
    shapes = [aval.shape for aval in cast("Sequence[Aval]", ctx.avals_out)]
    if all(map(dims.is_static, shapes)):
        return []

    def vectors() -> list[jax.Array]:
        return [jnp.stack([jnp.asarray(d).astype(np.int32) for d in s]) for s in shapes]

    return values_in_module(ctx, vectors)


def values_in_module(
    ctx: mlir.LoweringRuleContext, function: Callable[[], list[jax.Array]]
) -> Sequence[MlirValue]:
    """The results of a JAX function without arguments, as values of the module."""
    without_arguments = ctx.replace(avals_in=[], avals_out=None, primitive=None)
    return list(mlir.lower_fun(function)(without_arguments))
