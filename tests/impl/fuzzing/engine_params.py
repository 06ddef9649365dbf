"""Steps with random parameters: of convolutions, windows, products, gathers, slices and the like.

Each is made for a random shape, which its operand is brought to first. Small numbers stay small.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Rng = np.random.Generator


@dataclasses.dataclass(frozen=True)
class Made:
    """A function of one array of floats, and its parameters in words."""

    words: str
    function: Callable[[Any], Any]


def _sizes(rng: Rng, rank: int, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(least, most + 1, rank))


def _brought_to(shape: tuple[int, ...], function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: function(jnp.resize(x.reshape(-1), shape))


def _weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(rng.integers(-8, 9, shape) / 8).astype(np.float32)


def _convolution(rng: Rng) -> Made:
    n = int(rng.choice([1, 2, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    channels, features = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    space = tuple(int(s) for s in rng.integers(3, 7, n))
    kernel = tuple(int(s) for s in rng.integers(1, 4, n))
    strides = tuple(int(s) for s in rng.integers(1, 3, n))
    dilation = tuple(int(s) for s in rng.choice([1, 1, 2], n))
    lhs_dilation = tuple(int(s) for s in rng.choice([1, 1, 1, 2], n))
    pads = [(int(a), int(b)) for a, b in rng.integers(0, 3, (n, 2))]
    padding: Any = [pads, "SAME", "VALID"][rng.integers(0, 3)]
    letters = "DHW"[3 - n :]
    layout = str(rng.choice([f"N{letters}C", f"NC{letters}"]))
    rhs_layout = str(rng.choice([f"{letters}IO", f"OI{letters}"]))
    sizes = dict(zip(letters, space, strict=True)) | {"N": 2, "C": channels}
    of_kernel = dict(zip(letters, kernel, strict=True)) | {"I": channels // groups, "O": features}
    weights = _weights(rng, tuple(of_kernel[c] for c in rhs_layout))
    params = {
        "window_strides": strides,
        "padding": padding,
        "rhs_dilation": dilation,
        "lhs_dilation": lhs_dilation,
        "feature_group_count": groups,
        "dimension_numbers": (layout, rhs_layout, layout),
    }

    def function(x: Any) -> Any:
        return lax.conv_general_dilated(x, weights, **params) / math.prod(kernel)

    shape = tuple(sizes[c] for c in layout)
    return Made(f"conv of {shape} by {weights.shape} {params}", _brought_to(shape, function))


def _window(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 5)), 2, 5)
    window = tuple(int(rng.integers(1, min(n, 3) + 1)) for n in shape)
    strides = tuple(int(s) for s in rng.integers(1, 3, len(shape)))
    dilation = tuple(int(s) for s in rng.choice([1, 1, 1, 2], len(shape)))
    pads = [(int(a), int(b)) for a, b in rng.integers(0, 2, (len(shape), 2))]
    padding: Any = [pads, "SAME", "VALID"][rng.integers(0, 3)]
    start, reducer = [(-np.inf, lax.max), (np.inf, lax.min), (0.0, lax.add)][rng.integers(0, 3)]
    words = f"window {window} {strides} {dilation} {padding} {reducer.__name__} of {shape}"
    return Made(
        words,
        _brought_to(
            shape,
            lambda x: lax.reduce_window(
                x, start, reducer, window, strides, padding, window_dilation=dilation
            ),
        ),
    )


def _product(rng: Rng) -> Made:
    letters = list("abcdef")
    left = [str(c) for c in rng.choice(letters, int(rng.integers(1, 4)), replace=False)]
    right = [str(c) for c in rng.choice(letters, int(rng.integers(1, 4)), replace=False)]
    sizes = dict(zip(letters, _sizes(rng, 6), strict=True))
    every = sorted({*left, *right})
    kept = [c for c in every if rng.integers(0, 3)]
    rng.shuffle(kept)
    text = f"{''.join(left)},{''.join(right)}->{''.join(kept)}"
    weights = _weights(rng, tuple(sizes[c] for c in right))
    return Made(
        f"einsum {text} {sizes}",
        _brought_to(tuple(sizes[c] for c in left), lambda x: jnp.einsum(text, x, weights) / 4),
    )


def _reduction(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 5)))
    axes = tuple(int(a) for a in range(len(shape)) if rng.integers(0, 2))
    name = str(rng.choice(["sum", "mean", "max", "min", "prod", "any", "var"]))
    keepdims = bool(rng.integers(0, 2))
    reduce = getattr(jnp, name)
    return Made(
        f"{name} of {shape} along {axes} {keepdims}",
        _brought_to(
            shape, lambda x: jnp.float32(1) * reduce(x, axis=axes or None, keepdims=keepdims)
        ),
    )


def _slices(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 5)), 1, 6)
    slices = []
    for n in shape:
        step = int(rng.choice([1, 1, 2, -1, -2]))
        start, stop = (int(v) if rng.integers(0, 2) else None for v in rng.integers(-n, n + 1, 2))
        slices.append(slice(start, stop, step))
    if rng.integers(0, 3) == 0:
        slices.insert(int(rng.integers(0, len(slices) + 1)), None)  # type: ignore[arg-type]
    if rng.integers(0, 3) == 0:
        slices[0] = -1  # type: ignore[call-overload]
    return Made(f"{slices} of {shape}", _brought_to(shape, lambda x: x[tuple(slices)]))


def _gather(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 5)), 2, 5)
    index: list[Any] = []
    taken = _sizes(rng, int(rng.integers(0, 3)), 1, 3)
    for n in shape:
        what = rng.integers(0, 3)
        index.append(
            slice(None)
            if what == 0
            else int(rng.integers(-n, n))
            if what == 1
            else rng.integers(-n - 1, n + 1, taken)
        )
    mode = rng.choice(["fill", "clip", "wrap", None])
    return Made(
        f"gather {index} of {shape} {mode}",
        _brought_to(
            shape, lambda x: x.at[tuple(index)].get(mode=None if mode is None else str(mode))
        ),
    )


def _scatter(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 4)), 2, 5)
    index: list[Any] = []
    taken = _sizes(rng, 1, 1, 3)
    for n in shape:
        what = rng.integers(0, 3)
        index.append(
            slice(None) if what == 0 else rng.permutation(n)[: taken[0]] if what == 1 else -1
        )
    lengths = {len(i) for i in index if isinstance(i, np.ndarray)}
    if len(lengths) > 1:
        index = [i[: min(lengths)] if isinstance(i, np.ndarray) else i for i in index]
    method = str(rng.choice(["set", "add", "multiply", "max", "min"]))
    return Made(
        f"scatter {method} {index} of {shape}",
        _brought_to(shape, lambda x: getattr(x.at[tuple(index)], method)(0.375)),
    )


def _padding(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 5)))
    config = [
        (int(a), int(b), int(c))
        for a, b, c in zip(
            *rng.integers(-1, 3, (2, len(shape))), rng.integers(0, 3, len(shape)), strict=True
        )
    ]
    return Made(
        f"pad {config} of {shape}",
        _brought_to(shape, lambda x: lax.pad(x, np.float32(0.5), config)),
    )


def _moves(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 6)), 1, 3)
    order = tuple(int(a) for a in rng.permutation(len(shape)))
    axes = tuple(int(a) for a in range(len(shape)) if rng.integers(0, 2))
    flat = bool(rng.integers(0, 2))

    def function(x: Any) -> Any:
        y = lax.rev(lax.transpose(x, order), axes)
        return y.reshape(y.shape[0], -1) if flat else y

    return Made(f"transpose {order} rev {axes} of {shape} {flat}", _brought_to(shape, function))


def _broadcast(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(0, 3)), 1, 3)
    rank = len(shape) + int(rng.integers(0, 3))
    places = sorted(int(p) for p in rng.choice(rank, len(shape), replace=False)) if rank else []
    result = list(_sizes(rng, rank, 1, 3))
    for place, n in zip(places, shape, strict=True):
        result[place] = n if n != 1 else result[place]
    return Made(
        f"broadcast {shape} to {result} at {places}",
        _brought_to(shape, lambda x: lax.broadcast_in_dim(x, result, places)),
    )


def _cumulative(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 4)))
    axis, reverse = int(rng.integers(0, len(shape))), bool(rng.integers(0, 2))
    name = str(rng.choice(["cumsum", "cummax", "cummin", "cumprod", "cumlogsumexp"]))
    function = getattr(lax, name)
    return Made(
        f"{name} of {shape} along {axis} {reverse}",
        _brought_to(shape, lambda x: function(x, axis, reverse=reverse)),
    )


def _sort(rng: Rng) -> Made:
    shape = _sizes(rng, int(rng.integers(1, 4)), 1, 5)
    axis = int(rng.integers(0, len(shape)))
    descending, stable = bool(rng.integers(0, 2)), bool(rng.integers(0, 2))
    return Made(
        f"sort of {shape} along {axis} {descending} {stable}",
        _brought_to(shape, lambda x: jnp.sort(x, axis=axis, descending=descending, stable=stable)),
    )


def _resize(rng: Rng) -> Made:
    shape = (1, *_sizes(rng, 2, 2, 6), 2)
    target = (1, *_sizes(rng, 2, 1, 8), 2)
    method = str(rng.choice(["nearest", "bilinear", "cubic"]))
    antialias = bool(rng.integers(0, 2))
    return Made(
        f"resize {shape} to {target} {method} {antialias}",
        _brought_to(shape, lambda x: jax.image.resize(x, target, method, antialias=antialias)),
    )


def _attention(rng: Rng) -> Made:
    b, t, heads, groups, d = 2, *_sizes(rng, 1, 1, 4), *_sizes(rng, 1, 1, 2), *_sizes(rng, 2, 1, 3)
    causal = bool(rng.integers(0, 2))

    def function(x: Any) -> Any:
        q = x
        k = v = x[:, :, ::groups]
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    shape = (b, t, heads * groups, d)
    return Made(f"attention {shape} {groups} {causal}", _brought_to(shape, function))


def _scan(rng: Rng) -> Made:
    shape = (int(rng.integers(1, 5)), *_sizes(rng, int(rng.integers(0, 3)), 1, 3))
    reverse, unroll = bool(rng.integers(0, 2)), int(rng.choice([1, 1, 2]))

    def step(carry: Any, row: Any) -> Any:
        total, count = carry
        return (jnp.tanh(total + row), count + 1), (total * count, row > total)

    def function(x: Any) -> Any:
        start = (jnp.zeros(x.shape[1:], x.dtype), jnp.int32(0))
        last, (rows, larger) = lax.scan(step, start, x, reverse=reverse, unroll=unroll)
        return rows + larger + last[0] * last[1]

    return Made(f"scan of {shape} {reverse} {unroll}", _brought_to(shape, function))


def _gru(rng: Rng) -> Made:
    steps, b, n = _sizes(rng, 3, 1, 3)
    w, u = _weights(rng, (n, 3 * n)), _weights(rng, (n, 3 * n))
    is_lstm_like = bool(rng.integers(0, 2))

    def step(state: Any, row: Any) -> Any:
        h, c = state
        r, z, m = jnp.split(row @ w + h @ u, 3, -1)
        c = jax.nn.sigmoid(r) * c + jax.nn.sigmoid(z) * jnp.tanh(m)
        h = jnp.tanh(c) if is_lstm_like else c
        return (h, c), h

    def function(x: Any) -> Any:
        zeros = jnp.zeros((b, n), x.dtype)
        last, rows = lax.scan(step, (zeros, zeros), x)
        return rows if is_lstm_like else last[1]

    return Made(f"gru {steps} {b} {n} {is_lstm_like}", _brought_to((steps, b, n), function))


MAKERS: dict[str, Callable[[Rng], Made]] = {
    name.lstrip("_"): maker
    for name, maker in {
        "attention": _attention,
        "broadcast": _broadcast,
        "convolution": _convolution,
        "cumulative": _cumulative,
        "gather": _gather,
        "gru": _gru,
        "moves": _moves,
        "padding": _padding,
        "product": _product,
        "reduction": _reduction,
        "resize": _resize,
        "scan": _scan,
        "scatter": _scatter,
        "slices": _slices,
        "sort": _sort,
        "window": _window,
    }.items()
}
