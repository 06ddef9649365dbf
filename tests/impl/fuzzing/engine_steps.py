"""What random programs for engines are made of: functions of arrays of float32, int32 and bool.

The kinds of operands and of the result are letters: "f" float32, "i" int32, "b" bool; an upper-case
letter is an array that has a dimension. Floats stay small, so that errors of rounding stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

DTYPES = {"f": np.float32, "i": np.int32, "b": np.bool_}
Steps = dict[str, tuple[str, str, Callable[..., Any]]]


def _of(module: Any, kinds: str, result: str, names: str, **arguments: Any) -> Steps:
    """Functions of a module that take these kinds, by their names."""
    return {
        f"{name} of {kinds}": (kinds, result, _bound(getattr(module, name), arguments))
        for name in names.split()
    }


def _bound(function: Callable[..., Any], arguments: dict[str, Any]) -> Callable[..., Any]:
    return (lambda *args: function(*args, **arguments)) if arguments else function


def _along(module: Any, kinds: str, result: str, names: str) -> Steps:
    """The same along the first axis, the last, and all or with the dimension kept."""
    steps: Steps = {}
    for name in names.split():
        function = getattr(module, name)
        steps[f"{name} of {kinds} along 0"] = kinds, result, _bound(function, {"axis": 0})
        steps[f"{name} of {kinds} along -1"] = kinds, result, _bound(function, {"axis": -1})
    return steps


def _fraction(x: Any) -> Any:
    return x - jnp.floor(x)


def _inside(x: Any) -> Any:
    return x / (1 + jnp.abs(x))


def _square(x: Any, n: int) -> Any:
    """A matrix of small numbers."""
    return jnp.resize(_inside(x).reshape(-1), (n, n))


def _positive(x: Any) -> Any:
    return jnp.abs(x) + 0.3


def _image(x: Any) -> Any:
    """An image of two rows or more and two channels."""
    flat = x.reshape(-1)
    return jnp.resize(flat, (1, 4, 5, 2))


def _convolved(x: Any, **arguments: Any) -> Any:
    kernel = (np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) - 11) / 16
    numbers = ("NHWC", "HWIO", "NHWC")
    given = {"window_strides": (1, 1), "padding": "SAME", **arguments}
    return lax.conv_general_dilated(_image(x), kernel, dimension_numbers=numbers, **given)


def _depthwise(x: Any) -> Any:
    kernel = (np.arange(16, dtype=np.float32).reshape(2, 2, 1, 4) - 7) / 8
    return _convolved_by(x, kernel, feature_group_count=2)


def _convolved_by(x: Any, kernel: Any, **arguments: Any) -> Any:
    return lax.conv_general_dilated(
        _image(x), kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), **arguments
    )


def _transposed(x: Any) -> Any:
    kernel = (np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) - 11) / 16
    return lax.conv_transpose(_image(x), kernel, (2, 1), "SAME")


def _pooled(x: Any, reducer: Any, start: float, padding: str, dilation: int = 1) -> Any:
    window, strides, dilations = (1, 2, 2, 1), (1, 2, 1, 1), (1, 1, dilation, 1)
    return lax.reduce_window(
        _image(x), start, reducer, window, strides, padding, window_dilation=dilations
    )


def _normalised(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-3) * 0.5 + 0.25


def _attended(x: Any) -> Any:
    q = jnp.resize(x.reshape(-1), (2, 3, 4))
    scores = jnp.einsum("hqd,hkd->hqk", q, q) / 2
    mask = jnp.tril(jnp.ones((3, 3), bool))
    return jnp.einsum("hqk,hkd->qhd", nn.softmax(jnp.where(mask, scores, -1e9)), q)


def _rotated(x: Any) -> Any:
    x = jnp.resize(x.reshape(-1), (3, 4))
    angles = jnp.arange(3.0)[:, None] * jnp.array([1.0, 0.1])
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate(
        [a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1
    )


def _scanned(x: Any, **arguments: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return jnp.tanh(c + y), c * 0.5 + y

    return lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x, **arguments)


def _gated(x: Any) -> Any:
    """A GRU of two units over the rows."""
    rows = jnp.resize(x.reshape(-1), (4, 2))
    w = (np.arange(12, dtype=np.float32).reshape(2, 6) - 5) / 8

    def step(h: Any, row: Any) -> Any:
        r, z, n = jnp.split(row @ w + h @ w[::-1], 3)
        new = jnp.tanh(n * nn.sigmoid(r))
        h = h + nn.sigmoid(z) * (new - h)
        return h, h

    return lax.scan(step, jnp.zeros(2, x.dtype), rows)[1]


def _collatz(i: Any) -> Any:
    def step(c: Any) -> Any:
        n, steps = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    start = jnp.abs(i.sum()) % 50 + 1
    return lax.while_loop(lambda c: (c[0] > 1) & (c[1] < 40), step, (start, 0))[1]


def _switched(i: Any, x: Any) -> Any:
    branches = [jnp.sin, lambda x: x * 0 + 1.5, lambda x: -x, jnp.tanh]
    return lax.switch(jnp.abs(i.sum()) % 5 - 1, branches, x)


def _cached(x: Any, i: Any) -> Any:
    cache = jnp.zeros((6, 3), x.dtype)
    row = jnp.resize(x.reshape(-1), (1, 3))
    return lax.dynamic_update_slice(cache, row, (jnp.abs(i.sum()) % 9 - 1, 0))


def _indices(i: Any) -> Any:
    return jnp.abs(i.reshape(-1)) % 7


STEPS: Steps = {
    **_of(jnp, "f", "f", "sin cos tanh arctan floor ceil trunc rint abs negative sign square cbrt"),
    **_of(jnp, "f", "f", "deg2rad nan_to_num expm1 sinc exp2 sinh conj positive fabs sinh cosh"),
    **_of(jnp, "f", "b", "isnan isinf isfinite signbit isposinf isneginf"),
    **_of(nn, "f", "f", "relu relu6 sigmoid softplus silu gelu elu selu celu leaky_relu soft_sign"),
    **_of(nn, "f", "f", "hard_swish hard_sigmoid hard_tanh log_sigmoid mish squareplus tanh"),
    **_of(nn, "F", "f", "softmax log_softmax standardize logsumexp"),
    **_of(jax.scipy.special, "f", "f", "erf erfc expit entr i0e i1e ndtr log_ndtr"),
    **_of(jnp, "ff", "f", "add subtract multiply maximum minimum fmax fmin hypot arctan2 copysign"),
    **_of(jnp, "ff", "f", "logaddexp heaviside"),
    **_of(jnp, "ff", "b", "greater less_equal equal not_equal isclose"),
    **_of(jnp, "ii", "i", "add subtract maximum minimum floor_divide remainder fmod gcd lcm"),
    **_of(jnp, "ii", "i", "bitwise_and bitwise_or bitwise_xor"),
    **_of(jnp, "ii", "b", "greater less equal not_equal less_equal"),
    **_of(jnp, "i", "i", "abs negative sign invert square bitwise_count"),
    **_of(jnp, "bb", "b", "logical_and logical_or logical_xor not_equal equal less"),
    **_of(jnp, "b", "b", "logical_not ravel transpose"),
    **_of(jnp, "f", "f", "ravel transpose atleast_1d atleast_2d atleast_3d"),
    **_of(jnp, "i", "i", "ravel transpose atleast_2d"),
    **_along(jnp, "F", "f", "sum mean max min prod std var cumsum cumprod ptp flip sort median"),
    **_along(jnp, "F", "i", "argmax argmin argsort count_nonzero"),
    **_along(jnp, "F", "f", "diff nansum nanmax nanmean nancumsum unwrap trapezoid"),
    **_along(jnp, "F", "b", "any all"),
    **_along(jnp, "I", "i", "sum max min prod cumsum flip sort argmax argsort"),
    **_along(jnp, "B", "b", "any all flip sort"),
    **_along(jnp, "B", "i", "sum cumsum argmax argmin count_nonzero"),
    **_of(jnp, "ff", "f", "matmul dot inner outer kron vdot"),
    **_of(jnp, "ii", "i", "matmul dot outer"),
    **_of(jnp, "FF", "f", "append convolve correlate"),
    "arcsin": ("f", "f", lambda x: jnp.arcsin(_inside(x))),
    "arctanh": ("f", "f", lambda x: jnp.arctanh(_inside(x) * 0.9)),
    "arcsinh": ("f", "f", jnp.arcsinh),
    "arccosh": ("f", "f", lambda x: jnp.arccosh(1.5 + jnp.abs(x))),
    "arccos": ("f", "f", lambda x: jnp.arccos(_inside(x))),
    "exp": ("f", "f", lambda x: jnp.exp(-jnp.abs(x))),
    "log": ("f", "f", lambda x: jnp.log(_positive(x))),
    "log of any": ("f", "f", jnp.log),
    "log1p": ("f", "f", lambda x: jnp.log1p(jnp.abs(x))),
    "sqrt": ("f", "f", lambda x: jnp.sqrt(_positive(x))),
    "sqrt of any": ("f", "f", jnp.sqrt),
    "rsqrt": ("f", "f", lambda x: lax.rsqrt(_positive(x))),
    "reciprocal": ("f", "f", lambda x: 1 / x),
    "tan": ("f", "f", lambda x: jnp.tan(_inside(x))),
    "lgamma": ("f", "f", lambda x: lax.lgamma(_positive(x) + 1)),
    "digamma": ("f", "f", lambda x: lax.digamma(_positive(x) + 1)),
    "erf_inv": ("f", "f", lambda x: lax.erf_inv(_inside(x) * 0.9)),
    "betainc": ("f", "f", lambda x: jax.scipy.special.betainc(2.0, 3.0, _fraction(x))),
    "power": ("ff", "f", lambda x, y: _positive(x) ** _inside(y)),
    "cube": ("f", "f", lambda x: x**3),
    "to the -2": ("f", "f", lambda x: _positive(x) ** -2),
    "quotient": ("ff", "f", lambda x, y: x / _positive(y)),
    "quotient of any": ("ff", "f", lambda x, y: x / y),
    "remainder": ("ff", "f", lambda x, y: jnp.remainder(x, _positive(y))),
    "fmod": ("f", "f", lambda x: jnp.fmod(x, 0.7)),
    "floor_divide": ("f", "f", lambda x: x // 0.7),
    "divmod": ("f", "f", lambda x: jnp.divmod(x, -0.7)[1]),
    "modf": ("f", "f", lambda x: jnp.modf(x)[0]),
    "frexp": ("f", "i", lambda x: jnp.frexp(x)[1]),
    "ldexp": ("fi", "f", lambda x, i: jnp.ldexp(x, i % 5 - 2)),
    "clip": ("f", "f", lambda x: jnp.clip(x, -0.4, 0.8)),
    "clip between": ("fff", "f", lambda x, y, z: lax.clamp(jnp.minimum(y, z), x, y)),
    "round": ("f", "f", lambda x: jnp.round(x, 1)),
    "glu": ("f", "f", lambda x: nn.glu(jnp.resize(x.reshape(-1), (2, 4)))),
    "exact gelu": ("f", "f", lambda x: nn.gelu(x, approximate=False)),
    "one_hot": ("i", "f", lambda i: nn.one_hot(i, 5)),
    "normalised": ("F", "f", _normalised),
    "logsumexp": ("F", "f", lambda x: nn.logsumexp(x, axis=0)),
    "softmax along 0": ("F", "f", lambda x: nn.softmax(x, axis=0)),
    "masked softmax": ("FB", "f", lambda x, b: nn.softmax(x, where=b, axis=-1)),
    "to int": ("f", "i", lambda x: jnp.floor(x * 4 + 0.37).astype(np.int32)),
    "to int, cut": ("f", "i", lambda x: (x * 8).astype(np.int32)),
    "int of bool": ("b", "i", lambda b: b.astype(np.int32) * 3 - 1),
    "float of int": ("i", "f", lambda i: (i % 11).astype(np.float32) / 4),
    "float of bool": ("b", "f", lambda b: b.astype(np.float32)),
    "bool of float": ("f", "b", lambda x: x.astype(bool)),
    "bool of int": ("i", "b", lambda i: (i % 3).astype(bool)),
    "through uint8": ("i", "i", lambda i: i.astype(np.uint8).astype(np.int32)),
    "through int8": ("f", "f", lambda x: (x * 9).astype(np.int8).astype(np.float32)),
    "through float16": ("f", "f", lambda x: x.astype(np.float16).astype(np.float32)),
    "through bfloat16": ("f", "f", lambda x: x.astype(jnp.bfloat16).astype(np.float32)),
    "bits": ("f", "i", lambda x: lax.bitcast_convert_type(x, np.int32) >> 20),
    "product": ("ii", "i", lambda i, j: (i % 1000) * (j % 1000)),
    "wide product": ("ii", "i", lambda i, j: i * j),
    "left": ("ii", "i", lambda i, j: i << (j % 9)),
    "right": ("ii", "i", lambda i, j: i >> (j % 9)),
    "right of bits": ("ii", "i", lambda i, j: lax.shift_right_logical(i, j % 9 + 1)),
    "power of ints": ("i", "i", lambda i: (i % 5) ** 3),
    "clz": ("i", "i", lax.clz),
    "where": ("bff", "f", jnp.where),
    "where of ints": ("bii", "i", jnp.where),
    "where of bools": ("bbb", "b", jnp.where),
    "where of a scalar": ("bf", "f", lambda b, x: jnp.where(b, x, -1.0)),
    "select_n": ("bff", "f", lambda b, x, y: lax.select_n(b.any(), x, y)),
    "choose": ("iff", "f", lambda i, x, y: jnp.choose(i % 2, [x, y])),
    "selected": ("fbb", "f", lambda x, b, c: jnp.select([b, c], [x, x * 2], 0.5)),
    "piecewise": (
        "f",
        "f",
        lambda x: jnp.piecewise(x, [x < 0.1, x > 0.9], [jnp.sin, 2.0, jnp.cos]),
    ),
    "reshape": ("F", "f", lambda x: x.reshape(-1, x.shape[-1])),
    "newaxis": ("f", "f", lambda x: x[..., None]),
    "in front": ("f", "f", lambda x: x[None]),
    "squeeze": ("f", "f", jnp.squeeze),
    "swapaxes": ("F", "f", lambda x: jnp.swapaxes(x, 0, -1)),
    "moveaxis": ("F", "f", lambda x: jnp.moveaxis(x, 0, -1)),
    "every second": ("F", "f", lambda x: x[..., ::2]),
    "in reverse": ("F", "f", lambda x: x[::-1]),
    "from the end": ("F", "f", lambda x: x[..., -1:]),
    "first": ("F", "f", lambda x: x[0]),
    "last of ints": ("I", "i", lambda x: x[..., -1]),
    "from the second": ("F", "f", lambda x: x[1:]),
    "no rows": ("F", "f", lambda x: x[:0]),
    "no rows of ints": ("I", "i", lambda x: x[..., :0]),
    "pad": ("F", "f", lambda x: jnp.pad(x, [(1, 0)] * x.ndim, constant_values=0.5)),
    "pad with edges": ("F", "f", lambda x: jnp.pad(x, 1, mode="edge")),
    "pad with mirrors": ("F", "f", lambda x: jnp.pad(x, 1, mode="reflect")),
    "pad with turns": ("F", "f", lambda x: jnp.pad(x, 2, mode="wrap")),
    "pad inside": ("F", "f", lambda x: lax.pad(x, np.float32(1), [(-1, 2, 1)] * x.ndim)),
    "pad of bools": ("B", "b", lambda b: jnp.pad(b, [(0, 1)] * b.ndim)),
    "pad of ints": ("I", "i", lambda i: jnp.pad(i, [(2, 0)] * i.ndim, constant_values=-7)),
    "stack": ("ff", "f", lambda x, y: jnp.stack(jnp.broadcast_arrays(x, y), -1)),
    "concatenate": ("FF", "f", lambda x, y: jnp.concatenate([x, y, x], 0)),
    "concatenate bools": ("BB", "b", lambda x, y: jnp.concatenate([x, y], -1)),
    "tile": ("F", "f", lambda x: jnp.tile(x, 2)),
    "repeat": ("F", "f", lambda x: jnp.repeat(x, 2, -1)),
    "repeat each": (
        "F",
        "f",
        lambda x: jnp.repeat(x, jnp.arange(x.shape[0]), 0, total_repeat_length=4),
    ),
    "roll": ("F", "f", lambda x: jnp.roll(x, 1, 0)),
    "roll by a number": ("Fi", "f", lambda x, i: jnp.roll(x, i.sum() % 5, -1)),
    "rot90": ("F", "f", lambda x: jnp.rot90(jnp.atleast_2d(x))),
    "split": ("F", "f", lambda x: jnp.array_split(x, 2, -1)[1]),
    "broadcast": ("f", "f", lambda x: jnp.broadcast_to(x, (2, *x.shape))),
    "tril": ("F", "f", lambda x: jnp.tril(jnp.atleast_2d(x))),
    "triu": ("F", "f", lambda x: jnp.triu(jnp.atleast_2d(x), 1)),
    "diag": ("F", "f", lambda x: jnp.diag(x.reshape(-1)[:3])),
    "diagonal": ("F", "f", lambda x: jnp.diagonal(jnp.atleast_2d(x))),
    "trace": ("F", "f", lambda x: jnp.trace(jnp.atleast_2d(x))),
    "iota": ("F", "f", lambda x: x + jnp.arange(x.shape[-1])),
    "linspace": ("f", "f", lambda x: jnp.linspace(x, x + 1, 3)),
    "meshgrid": ("FF", "f", lambda x, y: jnp.meshgrid(x.reshape(-1)[:3], y.reshape(-1)[:3])[0]),
    "take": ("FI", "f", lambda x, i: x[i % 9 - 4]),
    "take, clipped": ("FI", "f", lambda x, i: jnp.take(x, i % 9, axis=0, mode="clip")),
    "take, filled": ("FI", "f", lambda x, i: jnp.take(x, i % 9, axis=-1, mode="fill")),
    "take, wrapped": ("FI", "f", lambda x, i: jnp.take(x, i, axis=0, mode="wrap")),
    "take of bools": ("BI", "b", lambda b, i: b[i % 3]),
    "take of ints": ("II", "i", lambda x, i: x[..., i % 5]),
    "take_along_axis": ("F", "f", lambda x: jnp.take_along_axis(x, jnp.argsort(x, -1), -1)),
    "pairs": ("FI", "f", lambda x, i: jnp.atleast_2d(x)[i % 3, i % 2]),
    "slice at": ("Fi", "f", lambda x, i: lax.dynamic_slice_in_dim(x, i.sum() % 7, 1, -1)),
    "row at": ("Fi", "f", lambda x, i: x[i.sum() % 5]),
    "updated at": (
        "Fi",
        "f",
        lambda x, i: lax.dynamic_update_slice_in_dim(x, x[:1] + 1, i.sum() % 7, 0),
    ),
    "cache": ("fi", "f", _cached),
    "set": ("FI", "f", lambda x, i: x.at[i.reshape(-1)[0] % 9 - 3].set(1.5)),
    "set of ints": ("II", "i", lambda x, i: x.at[..., i.reshape(-1)[0] % 3].set(-5)),
    "set a row": ("F", "f", lambda x: x.at[0].set(x[-1])),
    "add at": ("FI", "f", lambda x, i: x.at[i.reshape(-1) % 5].add(0.25)),
    "add ints at": ("II", "i", lambda x, i: x.at[i.reshape(-1) % 5].add(3)),
    "max at": ("FI", "f", lambda x, i: x.at[i.reshape(-1) % 4].max(0.75)),
    "min ints at": ("II", "i", lambda x, i: x.at[i.reshape(-1) % 4].min(1)),
    "times at": ("FI", "f", lambda x, i: x.at[..., i.reshape(-1)[:1] % 4].multiply(0.5)),
    "segment_sum": (
        "fI",
        "f",
        lambda x, i: jax.ops.segment_sum(
            jnp.resize(x.reshape(-1), i.reshape(-1).shape), _indices(i), 7
        ),
    ),
    "segment_max": (
        "fI",
        "f",
        lambda x, i: jax.ops.segment_max(
            jnp.resize(x.reshape(-1), i.reshape(-1).shape), _indices(i), 7
        ),
    ),
    "bincount": ("i", "i", lambda i: jnp.bincount(_indices(i), length=7)),
    "histogram": (
        "f",
        "f",
        lambda x: jnp.histogram(x, bins=4, range=(-1.03, 2.07))[0].astype(np.float32),
    ),
    "searchsorted": ("Ff", "i", lambda x, y: jnp.searchsorted(jnp.sort(x.reshape(-1)), y)),
    "digitize": ("f", "i", lambda x: jnp.digitize(x, np.array([-0.51, 0.13, 1.21], np.float32))),
    "interp": (
        "f",
        "f",
        lambda x: jnp.interp(x, np.array([-1.0, 0.1, 2.0]), np.array([1.0, -1.0, 3.0])),
    ),
    "nonzero": ("B", "i", lambda b: jnp.nonzero(b, size=4, fill_value=-1)[0]),
    "argwhere": ("B", "i", lambda b: jnp.argwhere(b, size=3, fill_value=9)),
    "unique": ("i", "i", lambda i: jnp.unique(i, size=4, fill_value=-1)),
    "unravel": ("i", "i", lambda i: jnp.unravel_index(jnp.abs(i) % 12, (3, 4))[1]),
    # It goes by the sign of a NaN, which depends on the processor.
    "top_k": ("F", "f", lambda x: lax.top_k(jnp.nan_to_num(x), 2)[0]),
    "top_k's places": ("F", "i", lambda x: lax.top_k(jnp.nan_to_num(x), 2)[1]),
    "sorted together": (
        "FI",
        "i",
        lambda x, i: lax.sort((x.reshape(-1), jnp.resize(i.reshape(-1), x.size)), num_keys=1)[1],
    ),
    "lexsort": ("I", "i", lambda i: jnp.lexsort((i, i % 3))),
    "cummax": ("F", "f", lambda x: lax.cummax(x, x.ndim - 1, reverse=True)),
    "cumlogsumexp": ("F", "f", lambda x: lax.cumlogsumexp(x, 0)),
    "cumsum in reverse": ("I", "i", lambda i: lax.cumsum(i, i.ndim - 1, reverse=True)),
    "associative": ("F", "f", lambda x: lax.associative_scan(jnp.add, x)),
    "percentile": ("F", "f", lambda x: jnp.percentile(x, 30.0, axis=-1)),
    "norm": ("F", "f", lambda x: jnp.linalg.norm(x, axis=-1, keepdims=True)),
    "matrix": (
        "F",
        "f",
        lambda x: x @ (np.arange(x.shape[-1] * 3, dtype=np.float32).reshape(-1, 3) / 16),
    ),
    "transposed product": ("F", "f", lambda x: jnp.atleast_2d(x).mT @ jnp.atleast_2d(x)),
    "batched": ("F", "f", lambda x: jnp.einsum("...i,...j->...ij", x, x) / 2),
    "einsum": ("F", "f", lambda x: jnp.einsum("ab,cb->ca", *[jnp.atleast_2d(x)] * 2)),
    "general product": ("F", "f", lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ())))),
    "inverse": (
        "f",
        "f",
        lambda x: jnp.linalg.inv(jnp.eye(2) * 4 + _square(x, 2)),
    ),
    "solve": (
        "f",
        "f",
        lambda x: jnp.linalg.solve(jnp.eye(3) * 4 + _square(x, 3), jnp.ones(3)),
    ),
    "det": (
        "f",
        "f",
        lambda x: jnp.linalg.det(jnp.eye(3) * 2 + _square(x, 3)),
    ),
    "cholesky": (
        "f",
        "f",
        lambda x: jnp.linalg.cholesky((lambda a: a @ a.T + jnp.eye(3))(_square(x, 3))),
    ),
    "spectrum": ("F", "f", lambda x: jnp.abs(jnp.fft.rfft(x)) / 2),
    "convolution": ("F", "f", _convolved),
    "convolution with strides": (
        "F",
        "f",
        lambda x: _convolved(x, window_strides=(2, 1), padding="VALID"),
    ),
    "convolution, dilated": ("F", "f", lambda x: _convolved(x, rhs_dilation=(1, 2))),
    "convolution, padded": ("F", "f", lambda x: _convolved(x, padding=[(2, 0), (0, 1)])),
    "depthwise": ("F", "f", _depthwise),
    "transposed convolution": ("F", "f", _transposed),
    "convolve": (
        "F",
        "f",
        lambda x: jnp.convolve(x.reshape(-1), np.array([0.5, -1.0, 0.25], np.float32), "same"),
    ),
    "max pooling": ("F", "f", lambda x: _pooled(x, lax.max, -np.inf, "SAME")),
    "min pooling": ("F", "f", lambda x: _pooled(x, lax.min, np.inf, "VALID")),
    "sum pooling": ("F", "f", lambda x: _pooled(x, lax.add, 0.0, "SAME")),
    "dilated pooling": ("F", "f", lambda x: _pooled(x, lax.max, -np.inf, "VALID", 2)),
    "resize": ("F", "f", lambda x: jax.image.resize(_image(x), (1, 6, 3, 2), "bilinear")),
    "nearest": ("F", "f", lambda x: jax.image.resize(_image(x), (1, 8, 10, 2), "nearest")),
    "attention": ("F", "f", _attended),
    "rotary": ("F", "f", _rotated),
    "scan": ("F", "f", lambda x: _scanned(x)[1]),
    "scan in reverse": ("F", "f", lambda x: _scanned(x, reverse=True)[1]),
    "last of a scan": ("F", "f", lambda x: _scanned(x)[0]),
    "gru": ("F", "f", _gated),
    "map": ("F", "f", lambda x: lax.map(lambda r: jnp.sort(r, -1) if r.ndim else r * 2, x)),
    "vmap": ("F", "f", lambda x: jax.vmap(lambda r: r * r.sum())(x)),
    "fori": (
        "fi",
        "f",
        lambda x, i: lax.fori_loop(0, jnp.abs(i.sum()) % 4, lambda k, y: y * 0.5 + k, x),
    ),
    "unread carry": (
        "fi",
        "f",
        lambda x, i: lax.fori_loop(0, i.sum() % 2, lambda k, y: jnp.zeros_like(y), x),
    ),
    "while": (
        "f",
        "f",
        lambda x: lax.while_loop(lambda y: jnp.abs(y).sum() > 2.13, lambda y: y * 0.4, x),
    ),
    "collatz": ("i", "i", _collatz),
    "cond": ("bf", "f", lambda b, x: lax.cond(b.all(), jnp.sin, lambda x: x * 0.5 - 1, x)),
    "cond of constants": (
        "bf",
        "f",
        lambda b, x: lax.cond(b.any(), lambda x: jnp.ones_like(x), lambda x: x, x),
    ),
    "switch": ("if", "f", _switched),
    "key": ("f", "f", lambda x: x + jax.random.uniform(jax.random.key(3), x.shape)),
    "key of ints": (
        "if",
        "f",
        lambda i, x: x * jax.random.uniform(jax.random.key(jnp.abs(i.sum()) % 9), (3,))[1],
    ),
    "gradient": ("f", "f", lambda x: jax.grad(lambda y: jnp.sum(jnp.tanh(y) ** 2 / 2))(x)),
    "stop": ("f", "f", lambda x: lax.stop_gradient(x) * 2),
    "jit": ("ff", "f", lambda x, y: jax.jit(lambda a, b: (b * 2, a + b))(x, y)[1]),
    "complex": ("f", "f", lambda x: jnp.real(jnp.exp(1j * x) * (x + 2j))),
    "argmax of all": ("F", "i", jnp.argmax),
    "max of all": ("F", "f", jnp.max),
    "mean of all": ("F", "f", lambda x: jnp.mean(x, keepdims=True)),
    "sum where": ("FB", "f", lambda x, b: jnp.sum(x, where=b)),
    "max where": ("FB", "f", lambda x, b: jnp.max(x, where=b, initial=-2.0, axis=-1)),
    "logical sum": ("B", "f", lambda b: jnp.mean(b, -1)),
    "isin": ("i", "b", lambda i: jnp.isin(i, np.array([1, 3, -2]))),
    "allclose": ("ff", "b", lambda x, y: jnp.allclose(x, y)),
    "ints equal": ("ii", "b", jnp.array_equal),
    "average": (
        "F",
        "f",
        lambda x: jnp.average(x, axis=0, weights=jnp.arange(1.0, x.shape[0] + 1)),
    ),
    "cov": ("F", "f", lambda x: jnp.cov(jnp.atleast_2d(x))),
    "gradient of an array": ("F", "f", lambda x: jnp.gradient(jnp.resize(x.reshape(-1), (4,)))),
    "vander": ("f", "f", lambda x: jnp.vander(x.reshape(-1)[:3], 3)),
    "polyval": ("f", "f", lambda x: jnp.polyval(jnp.array([0.5, -1.0, 0.25]), x)),
    "block": ("F", "f", lambda x: jnp.block([[jnp.atleast_2d(x), jnp.atleast_2d(x)]])),
}
