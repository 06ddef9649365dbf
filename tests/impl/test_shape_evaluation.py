"""eval_polymorphic_shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf


def layer(params, x):
    return {"y": jnp.tanh(x @ params["w"]), "flat": x.reshape(-1)}


PARAMS = {"w": np.ones((4, 8), np.float32)}


@pytest.mark.parametrize(
    "x",
    [
        np.ones((3, 4), np.float32),
        tf.TensorSpec([None, 4]),
        jax.ShapeDtypeStruct((3, 4), np.float32),
        tf.ones([3, 4]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_shapes_of_the_results(x):
    shapes, specs = jax2tf.eval_polymorphic_shape(layer, polymorphic_shapes=[None, "b, _"])(
        PARAMS, x
    )
    assert jax.tree.map(lambda s: (str(s.shape), s.dtype), shapes) == {
        "y": ("(b, 8)", np.float32),
        "flat": ("(4*b,)", np.float32),
    }
    assert specs == {"y": "(b, 8)", "flat": "(4*b)"}


def test_a_chain_of_functions():
    """The specs of one function's results are those of the next one's arguments."""
    x = tf.TensorSpec([None, None])
    middle, specs = jax2tf.eval_polymorphic_shape(
        lambda x: jnp.concatenate([x, x]), polymorphic_shapes="a, b"
    )(x)
    assert specs == "(2*a, b)"
    struct = tf.TensorSpec([None, None], middle.dtype)
    _, last = jax2tf.eval_polymorphic_shape(lambda y: y.T.reshape(-1), polymorphic_shapes=specs)(
        struct
    )
    assert last == "(2*a*b)"
    converted = jax2tf.convert(lambda y: y.T.reshape(-1), polymorphic_shapes=specs)
    assert converted(np.ones((4, 3), np.float32)).shape == 12


def test_constraints():
    evaluate = jax2tf.eval_polymorphic_shape(
        lambda x: x[: jax.core.min_dim(x.shape[0], 3)],
        polymorphic_shapes="b",
        polymorphic_constraints=["b >= 3"],
    )
    assert evaluate(np.ones(5))[1] == "(3)"


@pytest.mark.parametrize(("x64", "dtype"), [(False, "float32"), (True, "float64")])
def test_dtypes_follow_x64(x64, dtype):
    with jax.enable_x64(x64):
        struct, _ = jax2tf.eval_polymorphic_shape(lambda x: x)(tf.TensorSpec([2], tf.float64))
    assert struct.dtype == dtype


def test_keywords_have_known_shapes():
    _, specs = jax2tf.eval_polymorphic_shape(lambda x, *, y: (x, y), polymorphic_shapes="b")(
        np.ones(2), y=np.ones(3)
    )
    assert specs == ("(b)", "(3)")


class TestRefused:
    def test_no_function(self):
        with pytest.raises(TypeError, match="fun_jax should be a function, got int"):
            jax2tf.eval_polymorphic_shape(3)

    def test_an_unknown_shape(self):
        with pytest.raises(ValueError, match=r"argument params\['w'\].*not fully known.*\"b, 8\""):
            jax2tf.eval_polymorphic_shape(layer)({"w": tf.TensorSpec([None, 8])}, np.ones((3, 4)))

    def test_a_spec_that_does_not_fit(self):
        evaluate = jax2tf.eval_polymorphic_shape(layer, polymorphic_shapes=[None, "b"])
        with pytest.raises(ValueError, match=r"argument x: .*'b' has 1 dimensions"):
            evaluate(PARAMS, np.ones((3, 4)))

    def test_no_array(self):
        evaluate = jax2tf.eval_polymorphic_shape(lambda x: x)
        with pytest.raises(TypeError, match="argument x: expected a number"):
            evaluate(object())
        with pytest.raises(TypeError, match=r"argument x: .* got the text 'b, 4'.*polymorphic_sh"):
            evaluate("b, 4")
        with pytest.raises(TypeError, match="argument x: JAX has no dtype string"):
            evaluate(tf.TensorSpec([3], tf.string))
