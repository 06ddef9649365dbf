"""Calls: the primitives that hold a jaxpr and run it once.

What happens inside belongs to other families; here a call has to bring in what it is given, in
the order in which it is given, and bring out what comes of it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core.primitives import closed_call_p

from harnesses.harness import ALL, FLOATS, INTS, Family, Normal, define

family = Family("calls")

_MATRIX = (2, 3)


@jax.jit
def _double(x: Any) -> Any:
    return x + x


@functools.partial(jax.jit, static_argnames="times")
def _repeated(x: Any, times: int) -> Any:
    return functools.reduce(lambda y, _: jnp.tanh(y), range(times), x)


@jax.custom_jvp
def _scaled(x: Any, scale: Any) -> Any:
    return jnp.tanh(x) * scale


@_scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    (x, scale), (dx, dscale) = primals, tangents
    # Twice the true derivative: a lowering that differentiates by itself is found out.
    return _scaled(x, scale), 2 * (1 - jnp.tanh(x) ** 2) * scale * dx + jnp.tanh(x) * dscale


@jax.custom_vjp
def _clipped(x: Any) -> Any:
    return jnp.clip(x, -1, 1), {"sum": x.sum()}


def _clipped_forward(x: Any) -> Any:
    return _clipped(x), jnp.abs(x) < 2


def _clipped_backward(near: Any, cotangents: Any) -> Any:
    return (jnp.where(near, cotangents[0] + cotangents[1]["sum"], 0),)


_clipped.defvjp(_clipped_forward, _clipped_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _applied(function: Any, x: Any) -> Any:
    return function(x)


_applied.defvjp(
    lambda function, x: (function(x), x),
    lambda function, x, cotangent: (cotangent * function(x) * 3,),
)


def _sum_of_gradient(function: Any) -> Any:
    return jax.grad(lambda *args: function(*args).sum())


@family.builder
def calls_on_every_dtype() -> None:
    """`jit` of every dtype, and calls that have derivatives of every float dtype."""
    for dtype in ALL:
        define(
            "jit", "", lambda x: jax.jit(jnp.transpose)(x), [Normal(_MATRIX, dtype)], dtype=dtype
        )

    for dtype in (*FLOATS, *INTS):
        define("jit", "twice", lambda x: _double(_double(x)), [Normal(_MATRIX, dtype)], dtype=dtype)

    for dtype in FLOATS:
        define("remat2", "", jax.checkpoint(jnp.sin), [Normal(_MATRIX, dtype)], dtype=dtype)
        define(
            "remat2",
            "gradient",
            _sum_of_gradient(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))),
            [Normal(_MATRIX, dtype)],
            dtype=dtype,
        )
        define("custom_jvp_call", "", jax.nn.relu, [Normal(_MATRIX, dtype)], dtype=dtype)
        define("custom_vjp_call", "", _clipped, [Normal(_MATRIX, dtype)], dtype=dtype)


def _structure(
    case: str, function: Any, *shapes: tuple, primitive: str = "jit", **rest: Any
) -> None:
    """A harness about what goes in and out of a call; one dtype tells it."""
    args = [Normal(shape, "float32") for shape in shapes]
    define(primitive, case, function, args, dtype="float32", **rest)


@family.builder
def calls_of_jitted_functions() -> None:
    """Jitted functions at the outermost level, nested, and called several times."""
    # A function that is itself jitted is compiled by itself, whatever the mode.
    _structure("outermost", jax.jit(lambda x: x + x), _MATRIX)
    _structure("exact", lambda x: jax.jit(lambda y: y)(x), _MATRIX, ulps=0)
    _structure("nested", jax.jit(lambda x: _double(jax.jit(_double)(x))), _MATRIX)
    _structure("shared", lambda x, y: _double(x) + _double(y) + _double(x), _MATRIX, _MATRIX)
    _structure("two_shapes", lambda x, y: (_double(x), _double(y)), _MATRIX, (4,))


@family.builder
def arguments_and_results_of_jit() -> None:
    """What goes into a jitted function and comes out of it, and options of jit."""
    _structure("order", jax.jit(lambda x, y: (y, x - y, x)), (3,), (3,))
    _structure("same_result_twice", jax.jit(lambda x: (x, x)), (3,))
    _structure("unused_argument", jax.jit(lambda x, y: x), (3,), (4,))
    _structure("no_argument", lambda: jax.jit(lambda: jnp.arange(3.0))())
    _structure("no_result", jax.jit(lambda x: ()), (3,))
    _structure("captured_value", lambda x, y: jax.jit(lambda z: z * y)(x), (3,), (3,))
    _structure("captured_constant", jax.jit(lambda x: x * jnp.array([1.0, 2.0, 3.0])), (3,))
    _structure("static_argument", lambda x: _repeated(x, 1) + _repeated(x, times=3), (3,))
    _structure("keywords", lambda x, y: jax.jit(lambda *, b, a: a - 2 * b)(a=x, b=y), (3,), (3,))
    _structure("inline", jax.jit(jnp.tanh, inline=True), (3,))
    _structure("donated", jax.jit(lambda x: x + 1, donate_argnums=0), (3,))
    _structure("empty", jax.jit(lambda x: x + x), (0, 3))
    _structure("scalar", jax.jit(lambda x: x + x), ())
    _structure("literal_result", jax.jit(lambda x: (x, 1.0, True)), (3,))
    _structure("named_scope", jax.named_call(jax.jit(lambda x: x + x), name="a scope"), (3,))
    _structure(
        "gradient_through", _sum_of_gradient(lambda x, y: _double(x) * _double(y)), (3,), (3,)
    )


@family.builder
def trees_and_mixed_dtypes_of_jit() -> None:
    """Arguments that are trees, and arguments of several dtypes."""
    define(
        "jit",
        "tree",
        jax.jit(lambda tree, z: {"first": [tree["a"] + z, None], "second": (tree["b"],)}),
        [{"b": Normal((3,), "float32"), "a": Normal((2, 3), "float32")}, Normal((3,), "float32")],
        dtype="float32",
    )
    define(
        "jit",
        "mixed_dtypes",
        jax.jit(lambda x, y, z: (x * y, z)),
        [Normal((3,), "float32"), Normal((3,), "int32"), Normal((3,), bool)],
        dtype="float32",
    )


@family.builder
def checkpoints() -> None:
    """`jax.checkpoint` that is nested, has a policy, or lets XLA share subexpressions."""
    _structure(
        "nested",
        jax.checkpoint(lambda x: jax.checkpoint(jnp.sin)(jnp.cos(x))),
        _MATRIX,
        primitive="remat2",
    )
    _structure(
        "policy",
        _sum_of_gradient(
            jax.checkpoint(
                lambda x: jnp.sin(checkpoint_name(jnp.cos(x), "kept")),
                policy=jax.checkpoint_policies.save_only_these_names("kept"),
            )
        ),
        _MATRIX,
        primitive="remat2",
        params={"policy": "save_only_these_names"},
    )
    _structure(
        "prevent_cse",
        _sum_of_gradient(jax.checkpoint(jnp.sin, prevent_cse=False)),
        _MATRIX,
        primitive="remat2",
        params={"prevent_cse": False},
    )


@family.builder
def functions_with_jvp_rules() -> None:
    """`jax.custom_jvp`: its rule is what derivatives come from."""
    _structure("two_arguments", _scaled, (3,), (), primitive="custom_jvp_call")
    _structure("gradient", _sum_of_gradient(_scaled), (3,), (), primitive="custom_jvp_call")
    _structure(
        "tangent",
        lambda x, s: jax.jvp(_scaled, (x, s), (jnp.ones_like(x), s)),
        (3,),
        (),
        primitive="custom_jvp_call",
    )
    _structure(
        "batched", jax.vmap(_scaled, in_axes=(0, None)), (4, 3), (), primitive="custom_jvp_call"
    )


@family.builder
def functions_with_vjp_rules() -> None:
    """`jax.custom_vjp`: its rule is what gradients come from."""
    _structure(
        "gradient",
        _sum_of_gradient(lambda x: _clipped(x)[0] + _clipped(x)[1]["sum"]),
        (3,),
        primitive="custom_vjp_call",
    )
    _structure("batched", jax.vmap(_clipped), (4, 3), primitive="custom_vjp_call")
    _structure("function", lambda x: _applied(jnp.cos, x), (3,), primitive="custom_vjp_call")
    _structure(
        "function_gradient",
        _sum_of_gradient(lambda x: _applied(jnp.cos, x)),
        (3,),
        primitive="custom_vjp_call",
    )


@family.builder
def composites() -> None:
    """A composite of every float dtype."""
    scaled = jax.lax.composite(lambda x, *, scale: jnp.tanh(x) * scale, "my.scaled", version=2)
    for dtype in FLOATS:
        define(
            "composite",
            "",
            lambda x: scaled(x, scale=3),
            [Normal(_MATRIX, dtype)],
            dtype=dtype,
        )


@family.builder
def sinks_and_closed_calls() -> None:
    """`dce_sink`, whose operand has no other use, and a closed call that is bound by hand."""
    _structure("", lambda x: (jax.lax.dce_sink(x), x + x)[1], (3,), primitive="dce_sink")
    _structure(
        "",
        lambda x: closed_call_p.bind(x, call_jaxpr=jax.make_jaxpr(lambda y: (y + y, -y))(x)),
        (3,),
        primitive="eval_jaxpr",
        jax_versions=">=0.12",  # before, binding it takes internal functions
    )
