"""LSTMs that jax2tf.export writes for ONNX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import jax2tf

FEATURES, UNITS = 3, 4
RNG = np.random.default_rng(7)
PARAMS = {
    "w": RNG.normal(size=(FEATURES, 4 * UNITS)).astype(np.float32),
    "u": RNG.normal(size=(UNITS, 4 * UNITS)).astype(np.float32),
    "b": RNG.normal(size=(4 * UNITS,)).astype(np.float32),
}


def one_way(params, x, *, reverse=False):
    """States `[batch, steps, units]` of an LSTM, its last state and its last cell."""

    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((x.shape[0], UNITS))
    (h, c), states = lax.scan(step, (start, start), x.swapaxes(0, 1), reverse=reverse)
    return states.swapaxes(0, 1), h, c


def both_ways(params, x):
    (ahead, *last), (back, *first) = one_way(params, x), one_way(params, x, reverse=True)
    return jnp.concatenate([ahead, back], -1), last, first


def turned_by_hand(params, x):
    states, *last = one_way(params, x[:, ::-1])
    return states[:, ::-1], last


def turned_before_alone(params, x):
    return one_way(params, x[:, ::-1])


def directions(path):
    model = onnx.load(path)
    lstms = [node for node in model.graph.node if node.op_type == "LSTM"]
    return [next(a.s for a in node.attribute if a.name == "direction") for node in lstms]


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (one_way, [b"forward"]),
        (both_ways, [b"forward", b"reverse"]),
        (turned_by_hand, [b"forward"]),
        (turned_before_alone, [b"forward"]),
    ],
)
@pytest.mark.parametrize("spec", ["2, 5, 3", "b, 5, 3", "b, t, 3"])
def test_a_loop_becomes_one_op(fun, expected, spec, tmp_path):
    path = tmp_path / "model.onnx"
    # It runs what it wrote, and compares it with JAX.
    jax2tf.export(fun, PARAMS, spec, path, assume_finite=True, progress=False)
    assert sorted(directions(path)) == expected


def test_what_may_be_no_number_is_a_loop(tmp_path):
    path = tmp_path / "model.onnx"
    jax2tf.export(one_way, PARAMS, "b, 5, 3", path, progress=False)
    assert directions(path) == []
    assert "Loop" in {node.op_type for node in onnx.load(path).graph.node}


@pytest.mark.parametrize("opset", [18, 25])
def test_weights_may_be_inputs(opset, tmp_path):
    def fun(x, w, u, b):
        return both_ways({"w": w, "u": u, "b": b}, x)

    path = tmp_path / "model.onnx"
    specs = ["b, 5, 3", *(", ".join(map(str, PARAMS[k].shape)) for k in "wu"), str(4 * UNITS)]
    jax2tf.export(fun, None, specs, path, assume_finite=True, opset=opset, progress=False)
    assert sorted(directions(path)) == [b"forward", b"reverse"]


@pytest.mark.parametrize("quantize", ["float16", "int8_weights", "int4"])
def test_weights_take_fewer_bits(quantize, tmp_path):
    wide = {k: np.tile(v, (40, 1) if v.ndim > 1 and k == "w" else 1) for k, v in PARAMS.items()}
    sizes = {}
    for kind in (None, quantize):
        path = tmp_path / f"{kind}.onnx"
        options = {"assume_finite": True, "quantize": kind, "progress": False}
        jax2tf.export(one_way, wide, f"b, 5, {40 * FEATURES}", path, **options)
        assert directions(path) == [b"forward"]
        sizes[kind] = path.stat().st_size
    assert sizes[quantize] < 0.7 * sizes[None]
