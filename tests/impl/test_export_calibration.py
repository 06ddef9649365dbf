"""Quantisation of what has no range: NaN, infinities and empty arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jax2tf
from tests.impl.export_programs import RNG, export, left

W = RNG.normal(size=(64, 32)).astype(np.float32)


def dense(w, x):
    return jnp.tanh(x @ w)


def samples():
    return [RNG.normal(size=(8, 64)).astype(np.float32) for _ in range(4)]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("where", [0, 3])
@pytest.mark.parametrize(
    ("number", "words"), [(np.nan, "holds NaN"), (np.inf, "an infinity"), (-np.inf, "an infinity")]
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_samples_that_are_not_finite(tmp_path, verify, where, number, words, is_whole):
    data = samples()
    data[where][... if is_whole else (0, 0)] = number
    options = {"quantize": "int8", "representative_data": data, "verify": verify}
    said = rf"representative_data\[{where}\] of 'serving_default' .*{words} in the input 'x'"
    with pytest.raises(ValueError, match=said):
        export(dense, W, "b, 64", tmp_path / "m.tflite", **options)
    assert left(tmp_path) == []


def test_samples_of_bfloat16_and_without_elements(tmp_path):
    options = {"quantize": "int8", "widen_bfloat16": True}
    data = [jnp.full((2, 64), jnp.nan, jnp.bfloat16)]
    with pytest.raises(ValueError, match="holds NaN"):
        export(
            *(dense, jnp.asarray(W, jnp.bfloat16), "b, 64:bfloat16", tmp_path / "m.tflite"),
            **(options | {"representative_data": data}),
        )
    with pytest.raises(ValueError, match="has no elements"):
        export(
            *(dense, W, "b, 64", tmp_path / "m.tflite"),
            quantize="int8",
            representative_data=[np.zeros((0, 64), np.float32)],
        )


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_results_that_are_not_finite(tmp_path, number):
    with pytest.raises(jax2tf.ExportError, match=r"output 'y' \(result\['y'\]\) holds .* int8"):
        export(
            *(lambda w, x: {"y": x @ w * number}, W, "b, 64", tmp_path / "m.tflite"),
            quantize="int8",
            representative_data=samples(),
        )
    assert left(tmp_path) == []


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_not_finite(tmp_path, number):
    w = W.copy()
    w[0, 0] = number
    params = {"w": [w]}

    def function(p, x):
        return dense(p["w"][0], x)

    with pytest.raises(jax2tf.ExportError, match=r"params\['w'\]\[0\] holds .*'dynamic'"):
        export(function, params, "b, 64", tmp_path / "m.tflite", quantize="dynamic")
    export(function, params, "b, 64", tmp_path / "m.tflite", quantize="float16")
