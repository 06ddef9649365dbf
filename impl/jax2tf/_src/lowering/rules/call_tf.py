"""call_tf: a TensorFlow function that JAX calls; its ops become ordinary ops of the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

from jax2tf._src import compat, dims, ops
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import embedding
from jax2tf._src.call_tf.derived import Batched, Derivative, innermost
from jax2tf._src.call_tf.functions import Function
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.gradients.in_graph import in_this_graph
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import surroundings
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Operation, Tensor
from jax2tf._src.util.typing import Dim


@register(call_tf_p)
def _call_tf(ctx: Context, *operands: Tensor, function: Function) -> list[Tensor]:
    with contextlib.ExitStack() as around:
        if surroundings.in_compiled_function():
            _choose_a_way(ctx, function)
            around.enter_context(compat.functions.traced_anew_for_xla())
        around.enter_context(compat.tapes.recorded_again())  # derivatives have their own tapes
        results = function.run(in_this_graph(operands))
    static_too = _has_trial_shapes(ctx, function)
    checks = [
        check
        for result, aval in zip(results, ctx.avals_out, strict=True)
        for check in _shape_checks(ctx, function.name, result, aval.shape, static_too)
    ]
    if not checks:
        return results
    with ops.control_dependencies(checks):
        return [ops.identity(result) for result in results]


def _choose_a_way(ctx: Context, function: Function) -> None:
    """Chooses a way to run a batch that XLA compiles; only a trial compilation shows which."""
    if not isinstance(function, Batched) or not all(dims.is_static(a.shape) for a in ctx.avals_in):
        return
    platform = jax.default_backend()
    # If none compiles, TensorFlow raises the error when it compiles the whole function.
    with contextlib.suppress(CallTfError):
        ctx.cached(
            "way of a call_tf",
            lambda: embedding.compile_with_fallbacks(function, ctx.avals_in, platform),
            Identity(function),
            str(ctx.avals_in),
        )


def _has_trial_shapes(ctx: Context, function: Function) -> bool:
    """Whether static shapes of the results come from a trial run with other sizes."""
    if isinstance(innermost(function), Derivative):
        return False  # its shapes are those of arguments and of a checked call
    return function.signature(ctx.avals_in).has_trial_shapes


def _shape_checks(
    ctx: Context, name: str, result: Tensor, shape: tuple[Dim, ...], static_too: bool
) -> Iterator[Operation]:
    """Yields checks of the dimensions that the user declared or call_tf inferred from examples."""
    for axis, dim in enumerate(shape):
        if isinstance(dim, int) and (not static_too or result.shape[axis] == dim):
            continue
        expected, actual = dim if isinstance(dim, int) else ctx.dim(dim), result.shape[axis]
        if isinstance(expected, int) and actual == expected:
            continue
        yield ops.assert_equal(
            ops.shape(result)[axis],
            expected,
            message=f"jax2tf.call_tf({name}): dimension {axis} of a result is not {dim}",
        )
