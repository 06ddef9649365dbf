"""Numbers of ONNX files at the edges: sizes that overflow, arrays without elements, NaN."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
from jax import lax

import jax2tf.onnx


def check(function, specs, *arrays):
    """Compares with JAX: values, shapes, dtypes, signs of zeros."""
    __tracebackhide__ = True
    file = jax2tf.onnx.file_of_jax(function, specs)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    results = session.run(None, dict(zip(names, arrays, strict=True)))
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    for result, leaf in zip(results, expected, strict=True):
        wanted = np.asarray(leaf)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(result, wanted)
        if wanted.dtype.kind == "f":
            known = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(wanted[known]))


def _n(x, dtype=jnp.int32):
    return jnp.asarray(x.shape[0], dtype)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: _n(x) * _n(x) // _n(x),
        lambda x: lax.rem(_n(x) * _n(x), _n(x)),
        lambda x: jnp.maximum(_n(x) * _n(x), 5),
        lambda x: jnp.minimum(_n(x) * 100000, 7),
        lambda x: _n(x) * _n(x) > 0,
        lambda x: (_n(x) * _n(x)).astype(jnp.float32),
        lambda x: jnp.maximum(-_n(x, jnp.uint32), jnp.uint32(3)),
        lambda x: _n(x, jnp.uint32) * jnp.uint32(100000) // jnp.uint32(3),
    ],
)
def test_numbers_of_open_sizes_wrap_around(function):
    check(function, "b:int8", np.zeros(50000, np.int8))


@pytest.mark.parametrize(
    ("function", "specs", "shape"),
    [
        (lambda x: x.mean(0), "n, 3", (0, 3)),
        (lambda x: x.mean(1, keepdims=True), "b, n", (2, 0)),
        (lambda x: x.mean(), "b, n", (2, 0)),
        (lambda x: x.mean(), "b, n", (2, 3)),
        (lambda x: x.mean((0, 2)), "b, n, 4", (0, 2, 4)),
        (lambda x: x.var(0), "n, 3", (0, 3)),
        (lambda x: x.mean(0), "n, 3:float16", (0, 3)),
        (lambda x: lax.scan(lambda c, y: (c + y, c * 2), jnp.zeros(3), x), "n, 3", (0, 3)),
        (lambda x: x[::-1][1:], "n, 3", (0, 3)),
    ],
)
def test_axes_that_happen_to_be_empty(function, specs, shape):
    check(function, specs, np.ones(shape, specs.partition(":")[2] or "float32"))
