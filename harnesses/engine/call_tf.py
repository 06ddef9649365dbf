"""The judge of the other direction: TensorFlow functions inside JAX.

TensorFlow's own eager result is the law. A mode is what JAX does with the function:

    op_by_op   calls it
    jit        calls it inside jax.jit, as all that follow
    grad       its vjp; TensorFlow's is a GradientTape
    jvp        its jvp; TensorFlow's is a ForwardAccumulator
    vmap       maps it over two examples; TensorFlow is called for each

Derivatives and their directions are those of `harnesses.engine.derivatives`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from harnesses.cell.cells import Cell
from harnesses.engine import derivatives
from harnesses.engine.derivatives import Function
from harnesses.engine.judge import Judge, phase
from harnesses.engine.vjps import direction, is_differentiable, is_inexact

tf.get_logger().setLevel("ERROR")


class CallTfJudge(Judge):
    """Runs cells of the direction call_tf."""

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        args = cell.harness.make_args()
        if cell.mode == "vmap":
            args = tuple(np.stack([x, np.flip(x) if is_inexact(x) else x]) for x in args)
        try:
            with tf.device(f"/{cell.device.upper()}:0"):
                return args, _arrays(LAWS[cell.mode](cell.harness.fun, args))
        except Exception as error:
            return args, error

    def _run(self, cell: Cell, args: tuple) -> Any:
        device = jax.default_device(jax.devices(cell.device)[0])
        with jax.enable_x64(cell.harness.x64), device:
            function = MODES[cell.mode](self._adapter.call_tf(cell.harness.fun))
            if cell.mode != "op_by_op":
                with phase("lower"):
                    function = jax.jit(function).lower(*args).compile()
            with phase("run"):
                return jax.tree.map(np.asarray, function(*args))


# --- What JAX makes of a function ------------------------------------------------------------


def _vjp(function: Function) -> Function:
    def along(*args: Any) -> Any:
        results, pullback = jax.vjp(function, *args)
        gradients = pullback(jax.tree.map(_tangent, results))
        return [g for g, x in zip(gradients, args, strict=True) if is_inexact(x)]

    return along


def _jvp(function: Function) -> Function:
    def along(*args: Any) -> Any:
        results, tangents = jax.jvp(function, args, tuple(map(_tangent, args)))
        pairs = zip(jax.tree.leaves(results), jax.tree.leaves(tangents), strict=True)
        return [t for r, t in pairs if is_inexact(r)]

    return along


def _as_it_is(function: Function) -> Function:
    return function


MODES: Mapping[str, Callable[[Function], Function]] = {
    "op_by_op": _as_it_is,
    "jit": _as_it_is,
    "grad": _vjp,
    "jvp": _jvp,
    "vmap": jax.vmap,
}


# --- What TensorFlow makes of it -------------------------------------------------------------


def _called(function: Function, args: tuple) -> Any:
    return function(*map(tf.constant, args))


def _gradients(function: Function, args: tuple) -> list[tf.Tensor]:
    tensors = list(map(tf.constant, args))
    return derivatives.gradients(function, tensors, _floats(tensors, args))


def _tangents(function: Function, args: tuple) -> list[tf.Tensor]:
    tensors = list(map(tf.constant, args))
    wrt = _floats(tensors, args)
    tangents = [tf.constant(direction(t)) for t in wrt]
    with tf.autodiff.ForwardAccumulator(wrt, tangents) as accumulator:
        results = [r for r in tf.nest.flatten(function(*tensors)) if is_differentiable(r)]
    return [
        tf.convert_to_tensor(t)
        for t in accumulator.jvp(results, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    ]


def _mapped(function: Function, args: tuple) -> Any:
    examples = [_called(function, tuple(x[i] for x in args)) for i in range(2)]
    # As tensors first: of small integers that are NumPy's arrays TensorFlow would stack int32.
    return jax.tree.map(lambda *each: tf.stack(list(map(tf.convert_to_tensor, each))), *examples)


LAWS: Mapping[str, Callable[[Function, tuple], Any]] = {
    "op_by_op": _called,
    "jit": _called,
    "grad": _gradients,
    "jvp": _tangents,
    "vmap": _mapped,
}


def _arrays(results: Any) -> Any:
    return jax.tree.map(lambda result: np.asarray(result.numpy()), results)


def _floats(tensors: list[tf.Tensor], args: tuple) -> list[tf.Tensor]:
    return [t for t, x in zip(tensors, args, strict=True) if is_inexact(x)]


def _tangent(value: Any) -> Any:
    if is_inexact(value):
        return direction(value)
    return np.zeros(value.shape, jax.dtypes.float0)
