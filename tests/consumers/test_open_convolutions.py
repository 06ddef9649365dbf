"""Convolutions whose sizes are open, in engines' files: with JAX's numbers at every size.

A window may not fit: JAX's result is empty then, and no engine is asked for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

RNG = np.random.default_rng(0)
KERNEL = RNG.normal(size=(3, 3, 2, 4)).astype(np.float32)
IN_GROUPS = RNG.normal(size=(3, 3, 1, 4)).astype(np.float32)
SIZES = ((1, 1), (1, 2), (2, 1), (3, 3), (6, 5), (8, 11))

PADDINGS: dict[str, Any] = {
    "valid": "VALID",
    "same": "SAME",
    "same from below": "SAME_LOWER",
    "uneven": [(2, 0), (0, 1)],
    "even": [(1, 1), (1, 1)],
    "cut": [(-1, 1), (0, 0)],
}


def _convolved(padding: Any, stride: int, dilation: int, in_groups: bool) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            IN_GROUPS if in_groups else KERNEL,
            (stride, stride),
            padding,
            rhs_dilation=(dilation, dilation),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=2 if in_groups else 1,
        )

    return function


def _circular(dilation: int) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        x = jnp.concatenate([x[:, -1:], x, x[:, :1]], 1)
        x = jnp.concatenate([x[:, :, -1:], x, x[:, :, :1]], 2)
        return _convolved("VALID", 1, dilation, in_groups=False)(x)

    return function


PROGRAMS = {
    f"{name}, stride {stride}, dilation {dilation}, {'groups' if in_groups else 'no groups'}": (
        _convolved(padding, stride, dilation, in_groups)
    )
    for (name, padding), (stride, dilation), in_groups in itertools.product(
        PADDINGS.items(), [(1, 1), (2, 1), (1, 2)], [False, True]
    )
} | {f"circular, dilation {dilation}": _circular(dilation) for dilation in (1, 2)}


def _litert(path: str) -> Callable[[np.ndarray], np.ndarray]:
    interpreter = tf.lite.Interpreter(path)

    def run(x: np.ndarray) -> np.ndarray:
        place = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(place, x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(place, x)
        interpreter.invoke()
        result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        return result

    return run


def _onnx(path: str) -> Callable[[np.ndarray], np.ndarray]:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path)
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


def _expected(name: str, x: np.ndarray) -> jax.Array:
    if name.startswith("cut"):
        # XLA in JAX 0.10 reads beyond the array where a convolution cuts edges itself.
        x = lax.pad(x, np.float32(0), [(0, 0, 0), (-1, 1, 0), (0, 0, 0), (0, 0, 0)])
        name = name.replace("cut", "valid")
    return jax.jit(PROGRAMS[name])(x)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("suffix", "load"), [("tflite", _litert), ("onnx", _onnx)])
def test_convolutions_are_right_at_every_size(name, suffix, load, tmp_path):
    path = str(tmp_path / f"model.{suffix}")
    jax2tf.export(PROGRAMS[name], None, "b, h, w, 2", path, verify=False, progress=False)
    run = load(path)
    for rows, columns in SIZES:
        x = RNG.normal(size=(2, rows, columns, 2)).astype(np.float32)
        expected = _expected(name, x)
        if expected.size:
            np.testing.assert_allclose(run(x), expected, atol=1e-4)
