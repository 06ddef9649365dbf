"""Host callbacks: pure_callback, io_callback, debug.callback, debug.print, as tf.numpy_function.

They run in the Python process that converted the function. XLA cannot compile them: there they are
refused at conversion. A SavedModel holds no more than a call of something that the loading process
does not have: saving warns, and loading and calling it names the function.

`convert(..., debug_callbacks=False)` leaves those out that give no values, and
`convert(..., value_checks="drop")` those that check values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import jax
import numpy as np
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src import compat, dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import register
from jax2tf._src.tracing.traits import CALLBACKS, DEBUG_CALLBACKS
from jax2tf._src.util import dtypes
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.tf_decorators import custom_gradient
from jax2tf._src.util.typing import Param


@register(*CALLBACKS)
def _callback(ctx: Context, *operands: tf.Tensor, **params: Param) -> list[tf.Tensor]:
    primitive = ctx.eqn.primitive
    if primitive in DEBUG_CALLBACKS and not ctx.trace.debug_callbacks:
        return []
    if compat.functions.in_compiled_function():
        raise ctx.unsupported("XLA cannot compile a call back into Python", _remedy(primitive))
    x64 = jax.config.read("jax_enable_x64")
    count = len(operands)
    sizes = _open_sizes(ctx)

    def on_host(*arrays: np.ndarray) -> list[np.ndarray]:
        known = _with_sizes(params, dict(zip(sizes, arrays[count:], strict=True)))
        # TensorFlow calls from a thread of its own, which has the default configuration of JAX.
        with jax.enable_x64(x64):
            return [np.asarray(r) for r in primitive.bind(*arrays[:count], **known)]

    name = compat.jaxprs.callback_name(params) or primitive.name
    if not tf.executing_eagerly():
        _warn_when_saved(name, compat.jaxprs.user_source(ctx.eqn))
    results = ops.numpy_function(
        on_host,
        [*operands, *sizes.values()],
        [dtypes.to_tf(aval.dtype) for aval in ctx.avals_out],
        # A pure one too: TensorFlow folds a stateless op on constants while it optimises the graph,
        # in branches that are never taken, and an error check would complain.
        stateful=True,
        # A process that has not got the function complains of the op by its name.
        name=identifier(f"{name}_is_a_function_of_the_process_that_converted_it"),
    )
    results = results if isinstance(results, list | tuple) else [results]
    return [
        ops.ensure_shape(r, ctx.static_shape(aval.shape))
        for r, aval in zip(results, ctx.avals_out, strict=False)
    ]


def _open_sizes(ctx: Context) -> dict[int, tf.Tensor]:
    """The shapes of the results that have open dimensions, by the place of the result."""
    return {
        i: ctx.vector(aval.shape)
        for i, aval in enumerate(ctx.avals_out)
        if not dims.is_static(aval.shape)
    }


def _with_sizes(params: dict[str, Param], shapes: dict[int, np.ndarray]) -> dict[str, Param]:
    """The params with the shapes that the results have in this call: JAX holds them against what
    the function gives.
    """
    if not shapes:
        return params
    avals = list(params["result_avals"])
    for i, shape in shapes.items():
        avals[i] = avals[i].update(shape=tuple(map(int, shape)))
    return {**params, "result_avals": tuple(avals)}


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
    """Puts an op into the graph whose gradient warns where it is traced to be saved.

    TensorFlow traces the gradients of all that it saves, and tells nobody else what it saves.
    """

    @custom_gradient
    def marked(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tf.Tensor]]:
        def gradient(cotangent: tf.Tensor) -> tf.Tensor:
            if compat.graphs.in_save_context():
                warnings.warn(
                    f"jax2tf.convert: the SavedModel calls {name}, a Python function of this "
                    f"process, by a host callback{source and f' ({source})'}: another process "
                    "that loads it cannot run that. Take the callback out before saving; "
                    "debug_callbacks=False does so for those that give no values",
                    stacklevel=2,
                )
            return cotangent

        return ops.identity(x), gradient

    marked(ops.constant(0.0))
