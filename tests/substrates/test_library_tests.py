"""What tests of libraries meet beside TensorFlow's API: keys of JAX, omitted modules, old NumPy."""

from __future__ import annotations

import importlib
import sys

import jax
import numpy as np
import pytest
import tensorflow

import tf_substrates
from tests.substrates.comparing import SUBSTRATES, tf_of


def test_a_key_of_jax_is_a_seed():
    tf = tf_of("jax")
    key = jax.random.key(7)
    words = np.asarray(jax.random.key_data(key)).view(np.int32)
    wanted = tensorflow.random.stateless_normal([3], words)
    for seed in (key, words.tolist()):
        for sampler in (tf.random.stateless_normal, tf.random.normal):
            np.testing.assert_allclose(sampler([3], seed=seed), wanted, rtol=1e-6)
    assert tf.convert_to_tensor(key, tf.int32).tolist() == words.tolist()
    batch = jax.vmap(lambda k: tf.random.stateless_uniform([2], k))(jax.random.split(key, 3))
    assert len(np.unique(batch)) == 6


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_static_values_keep_their_types(substrate):
    tf = tf_of(substrate)
    for value in (3, 2.5, True, [1, 2], np.int64(3), "a", None):
        found, wanted = tf.get_static_value(value), tensorflow.get_static_value(value)
        assert (type(found), found) == (type(wanted), wanted)
    static = importlib.import_module("tf_substrates.numpy.static")
    assert static.range(0, 3).dtype == static.reduce_prod([2, 3]).dtype == np.int32
    assert static.reduce_sum([1, 2]).dtype == np.int32
    assert static.math.log(5) == static.log(5) == np.log(5)
    with pytest.raises(ValueError, match="infer the missing input size"):
        static.reshape(np.zeros([0, 2]), [-1, 0])
    assert tf.searchsorted([1.0, 2.0], [1.5], out_type=None).dtype == np.int32


@pytest.mark.parametrize("name", [*SUBSTRATES, "tensorflow"])
def test_functions_run_eagerly_when_asked(name):
    tf = tensorflow if name == "tensorflow" else tf_of(name)
    runs = []

    @tf.function(jit_compile=True)
    def twice(x):
        runs.append(x)
        return x * 2

    def runs_of_two_calls():
        runs.clear()
        assert [float(twice(tf.constant(x))) for x in (1.0, 2.0)] == [2, 4]
        return len(runs)

    compiled = runs_of_two_calls()
    assert compiled == (2 if name == "numpy" else 1)
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        assert runs_of_two_calls() == 2
    finally:
        tf.config.run_functions_eagerly(False)
    assert not tf.config.functions_run_eagerly()
    assert runs_of_two_calls() == (2 if name == "numpy" else 0)


def test_a_rule_of_a_derivative_asks_for_the_dtype_of_a_number():
    tf = tf_of("jax")

    @jax.custom_jvp
    def twice(x):
        return x * 2

    @twice.defjvp
    def rule(primals, tangents):
        (x,) = primals
        assert tf.convert_to_tensor(x).dtype == x.dtype
        return tf.where(x > 0, x, tf.abs(x)) * 2, tangents[0] * 2

    with jax.enable_x64(True):
        assert jax.grad(twice)(3.0) == 2
        assert jax.grad(lambda x: twice(tf.convert_to_tensor(x)))(3.0) == 2


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_rewritten_packages(substrate, tmp_path, monkeypatch):
    (tmp_path / "uses").mkdir()
    (tmp_path / "uses/__init__.py").write_text(
        "import numpy as np\nimport tensorflow as tf\n"
        "kinds = [isinstance(x, np.ndarray) for x in (tf.ones([2]), np.ones(2), [1])]\n"
        "flat = np.reshape(np.ones([2, 2]), newshape=[-1])\n"
    )
    (tmp_path / "uses/inner").mkdir()
    (tmp_path / "uses/inner/a.py").write_text("from uses import flat\n")
    (tmp_path / "plain.py").write_text("import tensorflow.compat.v2 as tf\n")
    (tmp_path / "uses/other.py").write_text("import plain\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delitem(sys.modules, "tensorflow.compat.v2", raising=False)
    tf_substrates.install(substrate, ["uses"], omit=["uses.left"])
    prefix = f"tf_substrates.on_{substrate}.uses"
    uses = importlib.import_module(prefix)
    assert uses.kinds == [False, True, False]
    assert uses.flat.shape == (4,)
    assert importlib.import_module(f"{prefix}.inner.a").flat is uses.flat
    with pytest.raises(ModuleNotFoundError, match=f"uses.left is left out on {substrate}"):
        importlib.import_module(f"{prefix}.left")
    with pytest.raises(ModuleNotFoundError, match="other imports plain, which imports Tens"):
        importlib.import_module(f"{prefix}.other")
