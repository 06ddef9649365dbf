"""Control flow: branches, loops, scans, implicit functions.

Each dtype is carried through each construct; what can go wrong besides (an index out of range, no
iteration, members of a batch that stop at different times, constants from outside) has a case.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    ALL,
    FLOATS,
    INT4,
    Bools,
    Family,
    Fill,
    Integers,
    Normal,
    Values,
    define,
)

family = Family("control_flow")

_VECTOR = (4,)
_TABLE = np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4)


def _twice(x: Any) -> Any:
    return x + x if jnp.issubdtype(x.dtype, jnp.number) else jnp.logical_not(x)


def _switch(index: Any, x: Any) -> Any:
    return lax.switch(index, [lambda x: x, _twice, lambda x: jnp.zeros_like(x)], x)


def _loop(x: Any, n: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, _twice(c[1])), (0, x))


def _running(x: Any, **options: Any) -> Any:
    zero = jnp.zeros((), x.dtype)

    def step(carry: Any, element: Any) -> Any:
        return jnp.where(element == zero, carry, element), (carry, element)

    return lax.scan(step, zero, x, **options)


@family.builder
def constructs_on_every_dtype() -> None:
    """A branch, a loop and scans that carry values of every dtype."""
    for dtype in ALL + INT4:
        define(
            "cond",
            "",
            lambda p, x: lax.cond(p, _twice, lambda x: x, x),
            [Fill((), np.bool_, True), Normal(_VECTOR, dtype)],
            dtype=dtype,
        )
        define("while", "", _loop, [Normal(_VECTOR, dtype), Fill((), np.int32, 3)], dtype=dtype)
        define("scan", "", _running, [Normal(_VECTOR, dtype)], dtype=dtype)
        define(
            "scan",
            "reverse",
            lambda x: _running(x, reverse=True),
            [Normal(_VECTOR, dtype)],
            dtype=dtype,
            params={"reverse": True},
        )


@family.builder
def rows_of_every_dtype() -> None:
    """Scans that read and write rows of every dtype, which engines gather and keep in lists."""
    for dtype in ALL:
        define(
            "scan",
            "rows",
            lambda x: lax.scan(lambda c, row: (c + 1, (row, _twice(row)[::-1])), 0, x),
            [Normal((3, 4), dtype)],
            dtype=dtype,
        )


@family.builder
def branches_by_index() -> None:
    """`switch` by indices inside and outside of the range of branches."""
    for index in (-3, 0, 1, 2, 7):
        define(
            "cond",
            f"index={index}",
            _switch,
            [Fill((), np.int32, index), Normal(_VECTOR, np.float32)],
            dtype=np.float32,
            params={"index": index},
        )


_CONDS = {
    "false": (lambda p, x: lax.cond(p, _twice, lambda x: x, x), [Fill((), np.bool_, False)]),
    "index_of_floats": (
        lambda p, x: lax.cond(p > 0.5, lambda: x, lambda: x * 2),
        [Fill((), np.float32, 0.25)],
    ),
    "no_operands": (lambda p, x: lax.cond(p, lambda: x, lambda: 1 - x), [Bools(())]),
    "constants": (
        lambda p, x: lax.cond(p, lambda: x + _TABLE[3], lambda: x @ _TABLE.T @ _TABLE),
        [Bools(())],
    ),
    "tree": (
        lambda p, x: lax.cond(p, lambda: {"a": x, "b": (x[0],)}, lambda: {"a": -x, "b": (x[1],)}),
        [Bools(())],
    ),
    "nested": (
        lambda p, x: lax.cond(p, lambda: lax.cond(x[0] > 0, lambda: x, lambda: -x), lambda: x * 3),
        [Fill((), np.bool_, True)],
    ),
    "nothing": (lambda p, x: lax.cond(p, lambda: (), lambda: ()), [Bools(())]),
    "platform_dependent": (
        lambda p, x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1),
        [Bools(())],
    ),
    "vmap_of_predicate": (
        lambda p, x: jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(p, x),
        [Bools(_VECTOR)],
    ),
    "vmap_of_index": (
        lambda i, x: jax.vmap(_switch)(i, x),
        [Values([0, 1, 2, 5], np.int32)],
    ),
}


@family.builder
def branches() -> None:
    """`cond` with each kind of predicate, operand, capture and batch."""
    for case, (fun, args) in _CONDS.items():
        define("cond", case, fun, [*args, Normal(_VECTOR, np.float32)], dtype=np.float32)


def _collatz(n: Any) -> Any:
    def step(c: Any) -> Any:
        n, steps = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))


_WHILES = {
    "no_iteration": (lambda x: lax.while_loop(lambda x: x[0] > 9, lambda x: x * 2, x)),
    "constants": lambda x: lax.while_loop(
        lambda x: jnp.sum(x) < _TABLE[9].sum() * 9, lambda x: x + _TABLE[8] + 1, jnp.abs(x)
    ),
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) * i, x),
    "fori_from_negative": lambda x: lax.fori_loop(-3, 2, lambda i, x: x + i, x),
    "fori_bounds_traced": lambda x: lax.fori_loop(
        x[0].astype(int), x[0].astype(int) + 4, lambda i, x: x * 0.5 + i, x
    ),
    "fori_unrolled": lambda x: lax.fori_loop(0, 6, lambda i, x: x * 1.5 + i, x, unroll=3),
    "nested": lambda x: lax.fori_loop(
        0, 3, lambda i, x: lax.while_loop(lambda y: y[0] < i, lambda y: y + 1, x), x
    ),
    "vmap": lambda x: jax.vmap(
        lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 0.7, c[1] + 1), (x, 0))
    )(x),
    "vmap_of_matrix": lambda x: jax.vmap(
        lambda x: lax.while_loop(lambda y: y[0, 0] < 2, lambda y: y * 1.5 + 1, jnp.outer(x, x))
    )(jnp.stack([x, x * 3])),
    "vmap_from_infinity": lambda x: jax.vmap(
        lambda x: lax.while_loop(lambda c: c[0] > 1, lambda c: (1 / c[1], c[1] + x), (jnp.inf, x))
    )(jnp.abs(x) + 0.1),
    "vmap_of_constant": lambda x: jax.vmap(
        lambda limit: lax.while_loop(lambda y: y < limit, lambda y: y + 0.3, jnp.float32(0))
    )(x),
}


@family.builder
def loops() -> None:
    """`while_loop` and `fori_loop`, nested, with captured arrays, and over batches."""
    for case, fun in _WHILES.items():
        define("while", case, fun, [Normal(_VECTOR, np.float32)], dtype=np.float32)


_MOVES = {
    "exchanged": lambda x: lax.fori_loop(0, 5, lambda _, c: (c[1], c[0]), (x, x[::-1])),
    "turned": lambda x: lax.fori_loop(
        0, 4, lambda _, c: (c[2], c[0], c[1]), (x, x[::-1], jnp.stack([x[1], x[0], x[2]]))
    ),
    "exchanged_as_columns": lambda x: lax.fori_loop(
        0, 5, lambda _, c: (c[1][:, None], c[0][:, 0]), (x[:, None], x[::-1])
    ),
    "exchanged_by_a_call": lambda x: lax.fori_loop(
        0, 5, lambda _, c: jax.jit(lambda a, b: (b, a))(*c), (x, x[::-1])
    ),
}

_MOVES_OF_NUMBERS = {
    "fibonacci": lambda x: lax.fori_loop(0, 7, lambda _, c: (c[0] + c[1], c[0]), (x, x + 1)),
    "fibonacci_by_scan": lambda x: lax.scan(
        lambda c, _: ((c[0] + c[1], c[0]), c[1]), (x, x + 1), None, length=7
    ),
    "moved_around_a_loop": lambda x: lax.fori_loop(
        0, 3, lambda _, c: lax.fori_loop(0, 2, lambda _, e: (e[0] + 1, e[1]), c[::-1]), (x, x * 2)
    ),
}


@family.builder
def loops_that_move_their_carry() -> None:
    """Loops whose step puts a carried value into the place of another."""
    for case, fun in _MOVES.items():
        for dtype in (np.float32, np.int32, np.bool_):
            define("while", case, fun, [Values([1, 0, 3], dtype)], dtype=dtype)
    for case, fun in _MOVES_OF_NUMBERS.items():
        for dtype in (np.float32, np.int32):
            define("while", case, fun, [Values([1, 2, 3], dtype)], dtype=dtype)


@family.builder
def collatz_sequences() -> None:
    """Loops whose members of a batch stop at different times."""
    for dtype in (np.int32, np.int64):
        define("while", "collatz", _collatz, [Fill((), dtype, 27)], dtype=dtype)
        define(
            "while", "collatz_vmap", jax.vmap(_collatz), [Integers((5,), dtype, 1, 30)], dtype=dtype
        )


def _matrix_scan(x: Any, **options: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return jnp.tanh(carry + row * 0.5), {"out": carry * row, "sum": row.sum()}

    return lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x, **options)


_SCANS = {
    "two_dimensions": _matrix_scan,
    "unroll": lambda x: _matrix_scan(x, unroll=2),
    "unroll_all": lambda x: _matrix_scan(x, unroll=True),
    "reverse_two_dimensions": lambda x: _matrix_scan(x, reverse=True),
    "no_xs": lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=4),
    "no_carry": lambda x: lax.scan(lambda c, row: (c, row * 2), None, x),
    "no_ys": lambda x: lax.scan(lambda c, row: (c + row, None), x[0], x),
    "length_0": lambda x: _matrix_scan(x[:0]),
    "length_0_no_xs": lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=0),
    "length_1": lambda x: _matrix_scan(x[:1]),
    "length_1_reverse": lambda x: _matrix_scan(x[:1], reverse=True),
    "empty_elements": lambda x: lax.scan(lambda c, row: (c + 1, row), 0, x[:, :0]),
    "constants": lambda x: lax.scan(lambda c, row: (c @ _TABLE.T @ _TABLE * 0.1, row), x[0], x),
    "tree": lambda x: lax.scan(
        lambda c, xs: ({"n": c["n"] + 1, "s": c["s"] + xs[0]}, xs[1]),
        {"n": 0, "s": jnp.zeros(x.shape[1])},
        (x, x > 0),
    ),
    "nested": lambda x: lax.scan(
        lambda c, row: lax.scan(lambda d, e: (d * 0.5 + e, d), c, row), jnp.float32(0), x
    ),
    "cond_inside": lambda x: lax.scan(
        lambda c, row: (lax.cond(row[0] > 0, jnp.sin, jnp.cos, c + row), c), x[0], x
    ),
    "map": lambda x: lax.map(lambda row: row / row.sum(), x),
    "map_batched": lambda x: lax.map(jnp.sin, x, batch_size=2),
    "vmap": lambda x: jax.vmap(_running)(x),
    "gradient": lambda x: jax.grad(lambda x: _matrix_scan(x)[0].sum())(x),
    "jvp": lambda x: jax.jvp(_matrix_scan, (x,), (x,)),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
    "associative_scan_reverse": lambda x: lax.associative_scan(jnp.maximum, x, reverse=True),
    "associative_scan_axis": lambda x: lax.associative_scan(jnp.multiply, x, axis=1),
    "rnn": lambda x: lax.scan(
        lambda h, row: ((n := jnp.tanh(h @ jnp.ones((4, 4)) * 0.1 + row)), n), jnp.zeros(4), x
    ),
}


@family.builder
def scans() -> None:
    """`scan` with each option and edge case, and the functions over it."""
    for case, fun in _SCANS.items():
        define(
            "scan", case, fun, [Normal((3, 4), np.float32)], dtype=np.float32, ulps=8, scale="array"
        )


def _solve(x: Any, *, symmetric: bool = False) -> Any:
    matrix = jnp.eye(4, dtype=x.dtype) * 2 + 0.1
    return lax.custom_linear_solve(
        lambda v: matrix @ v,
        x,
        lambda _, b: b / 2,
        None if symmetric else lambda _, b: b * 3,
        symmetric=symmetric,
    )


def _square_root(x: Any) -> Any:
    def newton(f: Any, start: Any) -> Any:
        return lax.fori_loop(0, 12, lambda _, y: y - f(y) / (2 * y), start)

    return lax.custom_root(lambda y: y * y - x, jnp.ones_like(x), newton, lambda g, y: y / g(1.0))


_POSITIVE = Values([0.25, 1, 2, 9], np.float32)


@family.builder
def linear_solves() -> None:
    """`custom_linear_solve`: plain, symmetric, transposed, over a batch."""
    for dtype in FLOATS:
        define("custom_linear_solve", "", _solve, [Normal(_VECTOR, dtype)], dtype=dtype)
    define(
        "custom_linear_solve",
        "symmetric",
        lambda x: _solve(x, symmetric=True),
        [Normal(_VECTOR, np.float32)],
        dtype=np.float32,
        params={"symmetric": True},
    )
    define(
        "custom_linear_solve",
        "transposed",
        lambda x: jax.grad(lambda x: _solve(x)[1])(x),
        [Normal(_VECTOR, np.float32)],
        dtype=np.float32,
    )
    define(
        "custom_linear_solve",
        "vmap",
        lambda x: jax.vmap(_solve)(jnp.stack([x, x])),
        [Normal(_VECTOR, np.float32)],
        dtype=np.float32,
    )


@family.builder
def roots() -> None:
    """`custom_root` and its gradient."""
    define("custom_root", "", lambda x: jax.vmap(_square_root)(x), [_POSITIVE], dtype=np.float32)
    define(
        "custom_root",
        "gradient",
        lambda x: jax.vmap(jax.grad(_square_root))(x),
        [_POSITIVE],
        dtype=np.float32,
    )


@family.builder
def branches_by_platform() -> None:
    """`platform_dependent`, whose index of the platform is a primitive."""
    define(
        "platform_index",
        "",
        lambda x: lax.platform_dependent(
            x, tpu=jnp.sin, cpu=jnp.cos, cuda=jnp.tan, default=jnp.exp
        ),
        [Normal(_VECTOR, np.float32)],
        dtype=np.float32,
    )
