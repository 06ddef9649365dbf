"""The vjps of harnesses that both sides are asked for, and along what.

Those of floating results with respect to floating arguments, along cotangents that differ from
element to element: where all are one, those of softmax cancel.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.harness import Harness, is_complex

# A tape watches no float8.
_WATCHED = frozenset({"bfloat16", "float16", "float32", "float64", "complex64", "complex128"})

# Rounding errors of a backward pass add up, so gradients are held against the largest of them.
GRADIENT_ULPS = {
    "bfloat16": 4,
    "float16": 4,
    "float32": 16,
    "float64": 16,
    "complex64": 16,
    "complex128": 16,
}


class Vjp(NamedTuple):
    """A harness as a function of flat arguments, the floating ones first, and where it is asked."""

    function: Callable[..., list[Any]]
    primals: Sequence[np.ndarray]
    others: Sequence[np.ndarray]
    cotangents: Sequence[np.ndarray]

    def gradients(
        self, primals: Sequence[Any], others: Sequence[Any], cotangents: Sequence[Any]
    ) -> Any:
        """JAX's gradients with respect to the floating arguments."""
        return jax.vjp(self.of_primals(others), *primals)[1](list(cotangents))

    def of_primals(self, others: Sequence[Any]) -> Callable[..., list[Any]]:
        """The function of the floating arguments alone."""
        return lambda *primals: self.function(*primals, *others)

    def tangents(self) -> list[np.ndarray]:
        """One for each of the primals."""
        return [_cotangent(primal) for primal in self.primals]


def vjp_of(harness: Harness, args: tuple) -> Vjp:
    """The harness as a function of flat arguments that gives its floating results.

    The arguments that have no gradient stay arguments: XLA would fold them as constants.
    """
    if harness.check is not None:
        raise ValueError("its results are right in more than one way, and so are its gradients")
    leaves, tree = jax.tree.flatten(args)
    floats = [i for i, leaf in enumerate(leaves) if is_differentiable(leaf)]
    if not floats:
        raise TypeError("it has no argument that TensorFlow differentiates by")
    order = [*floats, *(i for i in range(len(leaves)) if i not in floats)]

    def function(*given: Any) -> list[Any]:
        ordered = dict(zip(order, given, strict=True))
        in_place = [ordered[i] for i in range(len(leaves))]
        results = jax.tree.leaves(harness.fun(*jax.tree.unflatten(tree, in_place)))
        kept = [r for r in results if is_differentiable(r)]
        if not kept:
            raise TypeError("it has no result that TensorFlow differentiates")
        return kept

    operands = [leaves[i] for i in order]
    results = jax.eval_shape(function, *operands)
    n = len(floats)
    return Vjp(function, operands[:n], operands[n:], [_cotangent(r) for r in results])


def _cotangent(result: Any) -> np.ndarray:
    # A real one would not tell a complex gradient from its conjugate.
    turn = 1 + 0.5j if is_complex(result.dtype) else 1
    return (direction(result) * turn).astype(result.dtype)


def direction(value: Any) -> np.ndarray:
    """A tangent or cotangent of an array or tensor: real, between 0.5 and 1.5."""
    shape = tuple(value.shape)
    dtype = getattr(value.dtype, "as_numpy_dtype", value.dtype)  # a tensor's is not NumPy's
    return (1 + np.cos(np.arange(np.prod(shape))) / 2).reshape(shape).astype(dtype)


def is_inexact(value: Any) -> bool:
    """Whether JAX differentiates with respect to the array."""
    return jnp.issubdtype(value.dtype, jnp.inexact)


def is_differentiable(value: Any) -> bool:
    """Whether TensorFlow differentiates by the array or tensor."""
    return value.dtype.name in _WATCHED
