"""Host callbacks: pure_callback, io_callback, debug.callback, debug.print, as tf.numpy_function.

They run in the Python process that converted the function. XLA cannot compile them, so conversion
refuses them in compiled code. A SavedModel cannot contain the Python function: saving warns, and a
call in the loading process fails with the function's name.

`convert(..., debug_callbacks=False)` drops callbacks without results, and `convert(...,
value_checks="drop")` drops callbacks that check values.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat, dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import surroundings
from jax2tf._src.tracing.traits import CALLBACKS, DEBUG_CALLBACKS
from jax2tf._src.util import dtypes
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.tf_decorators import custom_gradient
from jax2tf._src.util.typing import Param


@register(*CALLBACKS)
def _callback(ctx: Context, *operands: Tensor, **params: Param) -> list[Tensor]:
    primitive = ctx.eqn.primitive
    is_for_debugging = primitive in DEBUG_CALLBACKS
    # A graph of ours becomes a file, which shows its results and nothing else.
    is_left_out = not ctx.trace.debug_callbacks or not surroundings.calls_python()
    if is_for_debugging and is_left_out:
        return []
    if surroundings.in_compiled_function():
        raise ctx.unsupported("XLA cannot compile a call back into Python", _remedy(primitive))
    if not surroundings.calls_python():
        raise ctx.unsupported("a file of an engine cannot call Python", _OUT_OF_GRAPHS)
    x64 = jax.config.read("jax_enable_x64")
    count = len(operands)
    sizes = _open_sizes(ctx)

    def on_host(*arrays: np.ndarray) -> list[np.ndarray]:
        known = _with_sizes(params, dict(zip(sizes, arrays[count:], strict=True)))
        # TensorFlow calls this from its own thread, which has JAX's default configuration.
        with jax.enable_x64(x64):
            return [np.asarray(r) for r in primitive.bind(*arrays[:count], **known)]

    name = compat.jaxprs.callback_name(params) or primitive.name
    if not ops.executing_eagerly():
        _warn_when_saved(name, compat.jaxprs.user_source(ctx.eqn))
    results = ops.numpy_function(
        on_host,
        [*operands, *sizes.values()],
        [dtypes.to_tf(aval.dtype) for aval in ctx.avals_out],
        # Also for a pure one: TensorFlow's optimiser would run a stateless op on constants, even in
        # branches that are never taken, and an error check would then raise.
        stateful=True,
        # A process without the function raises an error with the name of the op.
        name=identifier(f"{name}_is_a_function_of_the_process_that_converted_it"),
    )
    results = results if isinstance(results, list | tuple) else [results]
    return [
        ops.ensure_shape(r, ctx.static_shape(aval.shape))
        for r, aval in zip(results, ctx.avals_out, strict=False)
    ]


def _open_sizes(ctx: Context) -> dict[int, Tensor]:
    """The shapes of the results with open dimensions, by the index of the result."""
    return {
        i: ctx.vector(aval.shape)
        for i, aval in enumerate(ctx.avals_out)
        if not dims.is_static(aval.shape)
    }


def _with_sizes(params: dict[str, Param], shapes: dict[int, np.ndarray]) -> dict[str, Param]:
    """The params with the shapes of this call, with which JAX compares the function's results."""
    if not shapes:
        return params
    avals = list(params["result_avals"])
    for i, shape in shapes.items():
        avals[i] = avals[i].update(shape=tuple(map(int, shape)))
    return {**params, "result_avals": tuple(avals)}


_OUT_OF_GRAPHS = (
    "take the callback out, or give what it returns as an input. If it checks values, as "
    "equinox.error_if does: value_checks='drop' leaves out a check whose value is used only where "
    "it fails, and 'nan' makes NaN of what it refuses"
)


def _remedy(primitive: jex_core.Primitive) -> str:
    if primitive in DEBUG_CALLBACKS:
        return (
            "convert with debug_callbacks=False, which leaves it out, or without jit_compile=True"
        )
    return (
        "convert without jit_compile=True, or take the callback out. If it checks values, as "
        "equinox.error_if does: value_checks='drop' leaves out a check whose value is used only "
        "where it fails, and 'nan' makes NaN of what it refuses; a check of "
        "jax.experimental.checkify is compiled as part of checkify.checkify(f)"
    )


def _warn_when_saved(name: str, source: str) -> None:
    """Adds an op whose gradient warns when TensorFlow traces it for saving.

    TensorFlow traces the gradients of everything that it saves, and offers no other hook.
    """

    @custom_gradient
    def marked(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
        return ops.identity(x), functools.partial(_warning_when_saved, name, source)

    marked(ops.constant(0.0))


def _warning_when_saved(name: str, source: str, cotangent: Tensor) -> Tensor:
    if compat.graphs.in_save_context():
        warnings.warn(
            f"jax2tf.convert: the SavedModel calls {name}, a Python function of this process, by a "
            f"host callback{source and f' ({source})'}: another process that loads it cannot run "
            "that. Take the callback out before saving; debug_callbacks=False does so for those "
            "that give no values",
            stacklevel=2,
        )
    return cotangent
