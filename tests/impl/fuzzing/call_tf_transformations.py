"""Transformations of JAX as functions of functions, which nest in every order.

Each takes a function of arrays that returns a pytree and gives such a function of the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

Function = Callable[..., Any]
Transformation = Callable[[Function], Function]


def is_inexact(x: Any) -> bool:
    """Whether there are derivatives with respect to `x`."""
    return bool(jnp.issubdtype(jnp.asarray(x).dtype, np.inexact))


def _inexact(tree: Any) -> list[Any]:
    return [x for x in jax.tree.leaves(tree) if is_inexact(x)]


def _loss(tree: Any) -> Any:
    """A real number that depends on real and imaginary parts of all results."""
    return sum(
        (jnp.sum(jnp.real(x) + 0.5 * jnp.imag(x)).astype(np.float32) for x in _inexact(tree)),
        start=jnp.float32(0),
    )


def _of_inexact(f: Function, args: Sequence[Any]) -> tuple[Function, list[Any]]:
    """`f` as a function of its inexact arguments alone, and those."""

    def of_some(*some: Any) -> list[Any]:
        rest = iter(some)
        return _inexact(f(*(next(rest) if is_inexact(x) else x for x in args)))

    return of_some, [x for x in args if is_inexact(x)]


def _grad(f: Function) -> Function:
    def transformed(*args: Any) -> Any:
        of_some, some = _of_inexact(f, args)
        return jax.grad(lambda *xs: _loss(of_some(*xs)), argnums=tuple(range(len(some))))(*some)

    return transformed


def _jvp(f: Function) -> Function:
    def transformed(*args: Any) -> Any:
        of_some, some = _of_inexact(f, args)
        return jax.jvp(of_some, some, [x * 0.5 + 1 for x in some])

    return transformed


def _vjp(f: Function) -> Function:
    def transformed(*args: Any) -> Any:
        of_some, some = _of_inexact(f, args)
        results, pullback = jax.vjp(of_some, *some)
        # A result that is a captured array of NumPy's bfloat16 would become float32 by itself.
        return pullback([jnp.asarray(y) * 0.5 + 1 for y in results])

    return transformed


def _of_first(derivative: Callable[[Function], Function]) -> Transformation:
    """A matrix of derivatives by the first argument, which is real."""

    def of(f: Function) -> Function:
        def transformed(x: Any, *rest: Any) -> Any:
            def real(x: Any) -> list[Any]:
                parts = [(jnp.real(y), jnp.imag(y)) for y in _inexact(f(x, *rest))]
                # JAX asks for at least one result.
                return [p for y in parts for p in y] or [jnp.float32(0)]

            return derivative(real)(x)

        return transformed

    return of


def _vmap(in_axes: Sequence[int | None], size: int) -> Transformation:
    """Over a batch made of each argument; `in_axes` goes round the arguments."""

    def of(f: Function) -> Function:
        def transformed(*args: Any) -> Any:
            axes = [in_axes[i % len(in_axes)] for i in range(len(args))]
            batches = [
                x if axis is None else jnp.stack([_other(x, i) for i in range(size)], axis)
                for x, axis in zip(args, axes, strict=True)
            ]
            return jax.vmap(f, axes)(*batches)

        return transformed

    return of


def _other(x: Any, i: int) -> Any:
    x = jnp.asarray(x)
    x = jnp.roll(x, i, 0) if x.ndim else x
    return x * (1 - 0.25 * i) if is_inexact(x) else x


def _scan(f: Function) -> Function:
    def transformed(x: Any, *rest: Any) -> Any:
        return jax.lax.scan(lambda c, _: (c * 0.5, f(c, *rest)), jnp.asarray(x), None, length=2)

    return transformed


def _cond(f: Function) -> Function:
    def transformed(x: Any, *rest: Any) -> Any:
        return jax.lax.cond(jnp.sum(x) > 0.2, lambda x: f(x, *rest), lambda x: f(x * 2, *rest), x)

    return transformed


def _around(f: Function) -> Function:
    """Ops of JAX before and behind the call."""

    def transformed(x: Any, *rest: Any) -> Any:
        results = f(x * x, *rest)
        return jax.tree.map(lambda y: _sin(y) * x.sum() if is_inexact(y) else y, results)

    return transformed


def _sin(x: Any) -> Any:
    """Not in a short float: XLA may round between two ops of those, or not."""
    return jnp.sin(x.astype(np.float32) if x.dtype.itemsize == 2 else x)


def _custom_jvp(f: Function) -> Function:
    custom = jax.custom_jvp(f)
    custom.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return custom


def _custom_vjp(f: Function) -> Function:
    custom = jax.custom_vjp(f)
    custom.defvjp(
        lambda *args: jax.vjp(f, *args), lambda pullback, cotangents: pullback(cotangents)
    )
    return custom


ORDER: Mapping[str, int] = {
    **dict.fromkeys(("grad", "jvp", "vjp", "jacfwd", "jacrev"), 1),
    "hessian": 2,
}

TRANSFORMATIONS: Mapping[str, Transformation] = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "around": _around,
    "grad": _grad,
    "jvp": _jvp,
    "vjp": _vjp,
    "jacfwd": _of_first(jax.jacfwd),
    "jacrev": _of_first(jax.jacrev),
    "hessian": _of_first(jax.hessian),
    "vmap": _vmap((0,), 2),
    "vmap_of_one": _vmap((0,), 1),
    "vmap_of_some": _vmap((0, None), 2),
    "vmap_of_last": _vmap((-1, 0), 2),
    "scan": _scan,
    "cond": _cond,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}


def applied(names: Sequence[str], f: Function) -> Function:
    """`f` with the transformations around it, the first one outermost."""
    for name in reversed(names):
        f = TRANSFORMATIONS[name](f)
    return f


@st.composite
def pipelines(draw: Any, among: Sequence[str] = tuple(TRANSFORMATIONS)) -> tuple[str, ...]:
    """Names of one to three transformations, of second order at most together."""
    names: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        order = sum(ORDER.get(name, 0) for name in names)
        fitting = [name for name in among if order + ORDER.get(name, 0) <= 2]
        if fitting:
            names.append(draw(st.sampled_from(fitting)))
    return tuple(names)


def is_costly(names: Sequence[str]) -> bool:
    """Whether a batch of TensorFlow's own takes a minute under these: each batch of it, and each
    order of derivatives, multiplies what XLA compiles.
    """
    return sum(ORDER.get(name, 0) + name.startswith(("vmap", "jac", "hes")) for name in names) > 2
