"""Host callbacks: what they give back, and that programs with error checks and prints run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify, io_callback

from harnesses.harness import ALL, Family, Normal, define

family = Family("callbacks")


def _double_on_host(x: Any) -> Any:
    return np.asarray(x) + np.asarray(x) if np.asarray(x).dtype != bool else ~np.asarray(x)


def _called(x: Any) -> Any:
    return jax.pure_callback(_double_on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@family.builder
def callbacks_on_every_dtype() -> None:
    """A pure and an impure callback that get and give each dtype."""
    for dtype in ALL:
        define("pure_callback", "", _called, [Normal((2, 3), dtype)], dtype=dtype)
        define(
            "io_callback",
            "",
            lambda x: io_callback(_double_on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
            [Normal((2, 3), dtype)],
            dtype=dtype,
        )


def _checked(x: Any) -> Any:
    def complain(bad: Any) -> None:
        if bad:
            raise ValueError("negative")

    jax.debug.callback(complain, jnp.any(x < -100))
    return jnp.sqrt(jnp.abs(x))


def _functionalised(x: Any) -> Any:
    def fun(x: Any) -> Any:
        checkify.check(jnp.all(x > 0), "not all of {x} are positive", x=x[0])
        return jnp.log(jnp.abs(x))

    error, result = checkify.checkify(fun)(x)
    return jnp.asarray(error.get() is not None) if not _is_traced(error) else result


def _is_traced(error: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(error))


_CASES = {
    ("pure_callback", "tree"): lambda x: jax.pure_callback(
        lambda x: (np.sum(x, axis=0), {"n": np.int32(3)}),
        (jax.ShapeDtypeStruct((3,), np.float32), {"n": jax.ShapeDtypeStruct((), np.int32)}),
        x,
    ),
    ("pure_callback", "empty"): lambda x: _called(x[:0]),
    ("pure_callback", "vmap_sequential"): lambda x: jax.vmap(
        lambda row: jax.pure_callback(
            np.sort, jax.ShapeDtypeStruct(row.shape, row.dtype), row, vmap_method="sequential"
        )
    )(x),
    # Over a batch these are one call each, and the size of the batch is the function's to find.
    **{
        ("pure_callback", f"vmap_{method}"): lambda x, method=method: jax.pure_callback(
            _double_on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method=method
        )
        for method in ("expand_dims", "broadcast_all")
    },
    ("pure_callback", "in_scan"): lambda x: jax.lax.scan(
        lambda c, row: (c + _called(row), c), x[0], x
    ),
    ("pure_callback", "in_cond"): lambda x: jax.lax.cond(x[0, 0] > 9, _called, jnp.sin, x),
    ("io_callback", "ordered"): lambda x: io_callback(
        _double_on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True
    ),
    ("debug_callback", "check"): _checked,
    ("debug_callback", "jit"): jax.jit(_checked),
    ("debug_print", ""): lambda x: (jax.debug.print("", ordered=False), x * 2)[1],
    ("checkify", "functionalised"): _functionalised,
}


@family.builder
def callbacks_in_programs() -> None:
    """Callbacks inside of transformations and control flow, error checks and prints."""
    for (primitive, case), fun in _CASES.items():
        define(primitive, case, fun, [Normal((2, 3), np.float32)], dtype=np.float32)
