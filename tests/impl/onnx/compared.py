"""Compares ops in ONNX Runtime with TensorFlow's, with sizes that are known and that are open."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.impl.onnx.running import Written, assert_same

Function = Callable[..., Any]


def check(
    function: Function,
    *arrays: np.ndarray,
    ulps: int = 0,
    relative: float = 0.0,
    signs: bool = True,
    opset: int = 21,
    are_open: tuple[bool, ...] = (False, True),
    reference: Function | None = None,
) -> list[str]:
    """Compares a function of tensors; returns the ops that were written for open sizes.

    Args:
      function: takes and gives tensors.
      arrays: those of bfloat16 are given as float32, which the function casts.
      ulps: units in the last place that a number may differ.
      relative: what a number may differ relative to the largest of the result, instead.
      signs: whether the signs of zeros count.
      opset: the version of ONNX's ops.
      are_open: try sizes that are known (False), and that are open (True).
      reference: the function by which TensorFlow makes what is expected, if it is another one.
    """
    __tracebackhide__ = True
    arrays = tuple(map(np.asarray, arrays))
    given = tuple(x.astype(np.float32) if x.dtype.name == "bfloat16" else x for x in arrays)
    function = _of_given(function, arrays)
    wanted = _of_given(reference, arrays) if reference else function
    expected = [x.numpy() for x in _listed(wanted(*map(tf.constant, given)))]
    ops = []
    for is_open in are_open:
        shapes = [[None] * x.ndim if is_open else x.shape for x in given]
        specs = [tf.TensorSpec(s, x.dtype) for s, x in zip(shapes, given, strict=True)]
        written = Written(function, *specs, opset=opset)
        ops = written.ops()
        for result, numbers in zip(written.run(*given), expected, strict=True):
            _compare(result, numbers, ulps, relative, signs)
    return ops


def _compare(
    result: np.ndarray, expected: np.ndarray, ulps: int, relative: float, signs: bool
) -> None:
    __tracebackhide__ = True
    if expected.dtype.kind == "f":
        # TensorFlow makes zeros of subnormal numbers.
        result, expected = map(_flushed, (result, expected))
        if relative:
            largest = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
            np.testing.assert_allclose(result, expected, rtol=relative, atol=relative * largest)
            return
        if not signs:
            result, expected = result + 0, expected + 0
    assert_same(result, expected, ulps)


def _of_given(function: Function, arrays: tuple[np.ndarray, ...]) -> Function:
    """The function of arrays in which bfloat16 is held as float32."""
    narrow = [x.dtype.name == "bfloat16" for x in arrays]

    def of_given(*tensors: tf.Tensor) -> list[tf.Tensor]:
        taken = (
            tf.cast(x, tf.bfloat16) if is_narrow else x
            for x, is_narrow in zip(tensors, narrow, strict=True)
        )
        results = _listed(function(*taken))
        return [tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x for x in results]

    return of_given


def _flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def _listed(results: Any) -> list[tf.Tensor]:
    return list(results) if isinstance(results, list | tuple) else [results]
