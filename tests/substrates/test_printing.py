"""tf.print writes what TensorFlow writes."""

from __future__ import annotations

import collections
import sys

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, tf_of

Pair = collections.namedtuple("Pair", "a b")

INPUTS = {
    "nothing": lambda tf: [],
    "scalars": lambda tf: [tf.constant(1 / 3), tf.constant(3), tf.constant(True), 2.5, 1 / 3, None],
    "float32": lambda tf: [
        tf.constant([1, 2.5, 1e10, 1e-7, 123456.789, 16777217, np.nan, np.inf, -np.inf, -0.0])
    ],
    "float64": lambda tf: [tf.constant([1 / 3, 1e300, 0.1, 123456789.123], tf.float64)],
    "float16": lambda tf: [tf.constant([1.5, 1 / 3], tf.float16)],
    "bfloat16": lambda tf: [tf.constant([1.5, 1 / 3], tf.bfloat16)],
    "bools": lambda tf: [tf.constant([True, False])],
    "bytes": lambda tf: [tf.constant([200, 3], tf.uint8), tf.constant(-5, tf.int8)],
    "complex": lambda tf: [tf.constant(1 + 2j, tf.complex64), tf.constant([1j], tf.complex64)],
    "seven": lambda tf: [tf.range(7)],
    "a matrix": lambda tf: [tf.reshape(tf.range(100), [10, 10]), "behind"],
    "a volume": lambda tf: [tf.reshape(tf.range(48), [3, 8, 2])],
    "of one": lambda tf: [tf.reshape(tf.range(4), [2, 1, 2, 1])],
    "empty": lambda tf: [tf.zeros(shape) for shape in ([0], [2, 0], [0, 2], [2, 0, 2], [1, 1, 0])],
    "a structure": lambda tf: ["x:", {"b": 1, "a": [tf.range(2), "s"]}, (tf.zeros([]),)],
    "a pair": lambda tf: [Pair(1, tf.constant([2.0]))],
    "a long structure": lambda tf: [[tf.range(i) for i in range(40)]],
    "an array of NumPy": lambda tf: [np.array([1.0, 2.0]), np.float32(0.1)],
    "text": lambda tf: ["a\nb", ["a\nb"], "{}", "%s"],
    "a variable": lambda tf: [tf.Variable([1.0, 2.0])],
}


def _printed(tf, make, path, **options):
    tf.print(*make(tf), output_stream=f"file://{path}", **options)
    return path.read_text()


@pytest.mark.parametrize("substrate", SUBSTRATES)
@pytest.mark.parametrize("name", INPUTS)
def test_as_tensorflow(name, substrate, tmp_path):
    with jax.enable_x64(name == "float64"):
        actual = _printed(tf_of(substrate), INPUTS[name], tmp_path / "ours")
    assert actual == _printed(tensorflow, INPUTS[name], tmp_path / "theirs")


@pytest.mark.parametrize("substrate", SUBSTRATES)
@pytest.mark.parametrize(
    "options", [{"summarize": 1}, {"summarize": -1}, {"sep": "|", "end": "!"}, {"summarize": 4}]
)
def test_options(options, substrate, tmp_path):
    def make(tf):
        return [tf.reshape(tf.range(30), [3, 10]), "a"]

    actual = _printed(tf_of(substrate), make, tmp_path / "ours", **options)
    assert actual == _printed(tensorflow, make, tmp_path / "theirs", **options)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_streams(substrate, capsys):
    tf = tf_of(substrate)
    tf.print("to the first", tf.constant(1))
    tf.print("to the second", output_stream=sys.stdout)
    assert capsys.readouterr() == ("to the second\n", "to the first 1\n")


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_refusals(substrate):
    tf = tf_of(substrate)
    with pytest.raises(ValueError, match=r"output_stream is 'log'. What to do: sys.stdout"):
        tf.print("x", output_stream="log")
    with pytest.raises(ValueError, match=r"keyword arguments for tf.print: \{'stream': 1\}"):
        tf.print("x", stream=1)
    with pytest.raises(TypeError, match=r"Expected int for argument 'summarize' not 'a'"):
        tf.print("x", summarize="a")


def test_inside_jit_and_its_transformations(tmp_path):
    tf, path = tf_of("jax"), tmp_path / "ours"

    def square(x):
        tf.print("x =", {"x": x}, output_stream=f"file://{path}")
        return x * x

    assert jax.jit(jax.grad(square))(3.0) == 6
    jax.effects_barrier()
    assert path.read_text() == "x = {'x': 3}\n"
    path.unlink()
    assert list(jax.jit(jax.vmap(square))(np.arange(2.0, dtype=np.float32))) == [0, 1]
    jax.effects_barrier()
    assert sorted(path.read_text().splitlines()) == ["x = {'x': 0}", "x = {'x': 1}"]
