"""The judge of the other direction: TensorFlow functions inside JAX.

TensorFlow's own eager result is the law. A mode is what JAX does with the function:

    op_by_op   calls it
    jit        calls it inside jax.jit, as all that follow
    grad       its vjp; TensorFlow's is a GradientTape
    jvp        its jvp; TensorFlow's is a ForwardAccumulator
    vmap       maps it over two examples; TensorFlow is called for each

Derivatives are those of floating results with respect to floating arguments, for cotangents and
tangents that differ from element to element: where all are one, those of softmax cancel.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.engine.cells import Cell
from harnesses.engine.judge import Judge, phase

tf.get_logger().setLevel("ERROR")

Function = Callable[..., Any]


class CallTfJudge(Judge):
    """Runs cells of the direction call_tf."""

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        args = cell.harness.make_args()
        if cell.mode == "vmap":
            args = tuple(np.stack([x, np.flip(x) if _is_inexact(x) else x]) for x in args)
        try:
            with tf.device(f"/{cell.device.upper()}:0"):
                return args, _arrays(_LAWS[cell.mode](cell.harness.fun, args))
        except Exception as error:
            return args, error

    def _run(self, cell: Cell, args: tuple) -> Any:
        device = jax.default_device(jax.devices(cell.device)[0])
        with jax.enable_x64(cell.harness.x64), device:
            function = _MODES[cell.mode](self._adapter.call_tf(cell.harness.fun))
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
        return [g for g, x in zip(gradients, args, strict=True) if _is_inexact(x)]

    return along


def _jvp(function: Function) -> Function:
    def along(*args: Any) -> Any:
        results, tangents = jax.jvp(function, args, tuple(map(_tangent, args)))
        pairs = zip(jax.tree.leaves(results), jax.tree.leaves(tangents), strict=True)
        return [t for r, t in pairs if _is_inexact(r)]

    return along


def _as_it_is(function: Function) -> Function:
    return function


_MODES: Mapping[str, Callable[[Function], Function]] = {
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
    wrt = [t for t, x in zip(tensors, args, strict=True) if _is_inexact(x)]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(wrt)
        results = [r for r in tf.nest.flatten(function(*tensors)) if _is_differentiable(r)]
    gradients = tape.gradient(
        results,
        wrt,
        output_gradients=[tf.constant(_direction(r)) for r in results],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return [tf.math.conj(tf.convert_to_tensor(g)) for g in gradients]


def _tangents(function: Function, args: tuple) -> list[tf.Tensor]:
    tensors = list(map(tf.constant, args))
    wrt = [t for t, x in zip(tensors, args, strict=True) if _is_inexact(x)]
    tangents = [tf.constant(_direction(t)) for t in wrt]
    with tf.autodiff.ForwardAccumulator(wrt, tangents) as accumulator:
        results = [r for r in tf.nest.flatten(function(*tensors)) if _is_differentiable(r)]
    return [
        tf.convert_to_tensor(t)
        for t in accumulator.jvp(results, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    ]


def _mapped(function: Function, args: tuple) -> Any:
    examples = [_called(function, tuple(x[i] for x in args)) for i in range(2)]
    return jax.tree.map(lambda *each: tf.stack(each), *examples)


_LAWS: Mapping[str, Callable[[Function, tuple], Any]] = {
    "op_by_op": _called,
    "jit": _called,
    "grad": _gradients,
    "jvp": _tangents,
    "vmap": _mapped,
}


def _arrays(results: Any) -> Any:
    return jax.tree.map(lambda result: np.asarray(result.numpy()), results)


def _is_inexact(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jnp.inexact)


def _is_differentiable(tensor: tf.Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _tangent(value: Any) -> Any:
    if _is_inexact(value):
        return _direction(value)
    return np.zeros(value.shape, jax.dtypes.float0)


def _direction(value: Any) -> np.ndarray:
    """The tangent or cotangent of a value: real, between 0.5 and 1.5."""
    shape = tuple(value.shape)
    dtype = value.dtype.as_numpy_dtype if isinstance(value, tf.Tensor) else value.dtype
    return (1 + np.cos(np.arange(np.prod(shape))) / 2).reshape(shape).astype(dtype)
