"""jax2tf.export of JAX functions that call TensorFlow functions with variables of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.impl.export_programs import FILES

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


class Captured(tf.Module):
    """A function of two variables, one of which is not trained."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(9, dtype=np.float32).reshape(3, 3))
        self.n = tf.Variable(2, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 3])], autograph=False)
    def f(self, x):
        return x @ self.w + tf.cast(self.n, tf.float32)


def _restored(model, folder):
    tf.saved_model.save(model, folder)
    return tf.saved_model.load(folder)


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("kind", ["given", "restored"])
@pytest.mark.parametrize("spec", ["2, 3:float32", "b, 3:float32"])
def test_captured_variables_are_written(tmp_path, format, kind, spec):
    model = Captured()
    model = model if kind == "given" else _restored(model, str(tmp_path / "restored"))
    called = jax2tf.call_tf(model.f)
    jax2tf.export(
        lambda p, x: jnp.tanh(called(x)) * p,
        np.float32(2),
        spec,
        tmp_path / FILES[format],
        format=format,
        progress=False,
    )


def test_a_savedmodel_has_them_beside_its_parameters(tmp_path):
    model = Captured()
    called = jax2tf.call_tf(model.f)
    fun = lambda p, x: called(x) * p["scale"]  # noqa: E731
    jax2tf.export(fun, {"scale": np.float32(2)}, "b, 3:float32", tmp_path / "m", progress=False)
    restored = tf.saved_model.load(str(tmp_path / "m"))
    assert list(restored.parameters) == ["scale"]
    assert sorted(str(v.shape) for v in restored.variables) == ["()", "()", "(3, 3)"]
    assert sorted(str(v.shape) for v in restored.trainable_variables) == ["()", "(3, 3)"]
    (w,) = (v for v in restored.variables if v.shape.rank)
    with tf.GradientTape() as tape:
        (y,) = restored.serving_default(tf.constant(X)).values()
    np.testing.assert_allclose(y, 2 * model.f(X), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, w), 2 * X.sum(0)[:, None].repeat(3, 1), atol=1e-6)
    w.assign(0 * w)  # it is read whenever the function runs
    (y,) = restored.serving_default(tf.constant(X)).values()
    np.testing.assert_array_equal(y, np.full((2, 3), 4, np.float32))


def test_several_signatures_share_them(tmp_path):
    model = Captured()
    called = jax2tf.call_tf(model.f)
    functions = {
        "value": (lambda p, x: called(x) * p, "b, 3:float32"),
        "slope": (lambda p, x: jax.grad(lambda x: called(x).sum())(x) * p, "b, 3:float32"),
    }
    jax2tf.export(functions, np.float32(1), None, tmp_path / "m", progress=False)
    restored = tf.saved_model.load(str(tmp_path / "m"))
    assert len(restored.variables) == 3


def test_a_table_is_refused_with_a_way_out(tmp_path):
    """The way out is followed to the letter."""
    keys = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2]), tf.constant([3.0, 4.0]))
    table = tf.lookup.StaticHashTable(keys, 0.0)
    called = jax2tf.call_tf(lambda x: x + table.lookup(tf.constant([1, 2, 3])), compile=False)
    spec = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    with pytest.raises(jax2tf.ExportError, match="captures a resource that is not a variable"):
        jax2tf.export(lambda x: called(x), None, spec, tmp_path / "m", progress=False)
    module = tf.Module()
    module.table = table
    module.f = tf.function(
        jax2tf.convert(called), autograph=False, input_signature=[tf.TensorSpec([2, 3])]
    )
    tf.saved_model.save(module, str(tmp_path / "m"))
    result = tf.saved_model.load(str(tmp_path / "m")).f(X)
    np.testing.assert_allclose(result, X + np.array([3, 4, 0], np.float32))
