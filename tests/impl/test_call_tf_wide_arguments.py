"""call_tf of functions that take 64 bits, while JAX has 32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)
IDS = np.array([[1, 2], [3, 4]])
SCALE = np.float32(2)


def _spec(shape, dtype):
    return tf.TensorSpec(shape, dtype)


class Model(tf.Module):
    """Its functions take ids of 64 bits beside arguments that are not to be widened."""

    def __init__(self):
        super().__init__()
        self.table = tf.Variable(TABLE)

    @tf.function(input_signature=[_spec([None, None], tf.int64), _spec([], tf.float32)],
                 autograph=False)  # fmt: skip
    def rows(self, ids, scale):
        return scale * tf.gather(self.table, ids)

    @tf.function(autograph=False)
    def plain(self, ids, scale):
        return scale * tf.gather(self.table, ids + tf.constant(0, tf.int64))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The model, and the model restored from a SavedModel; what is restored dies with it."""
    model = Model()
    model.plain.get_concrete_function(_spec([None, None], tf.int64), _spec([], tf.float32))
    folder = str(tmp_path_factory.mktemp("model"))
    signatures = {"rows": model.rows.get_concrete_function()}
    tf.saved_model.save(model, folder, signatures=signatures)
    return model, tf.saved_model.load(folder)


def _by_name(signature):
    return lambda ids, scale: signature(ids=ids, scale=scale)["output_0"]


KINDS = {
    "with_signature": lambda given, restored: given.rows,
    "concrete": lambda given, restored: given.rows.get_concrete_function(),
    "without_signature": lambda given, restored: given.plain,
    "python": lambda given, restored: lambda ids, scale: given.rows(ids, scale),
    "restored": lambda given, restored: restored.rows,
    "restored_without_signature": lambda given, restored: restored.plain,
    "restored_concrete": lambda given, restored: restored.rows.concrete_functions[0],
    "signature_in_python": lambda given, restored: _by_name(restored.signatures["rows"]),
    "signature_in_a_function": lambda given, restored: tf.function(
        _by_name(restored.signatures["rows"]), autograph=False
    ),
}


def _gradient(function):
    return jax.jit(jax.grad(lambda ids, scale: function(ids, scale).sum(), argnums=1))


def _mapped(function):
    return lambda ids, scale: jax.vmap(function, (0, None))(ids[:, None], scale)


# What is done with a function, and what JAX's own gives.
USES = {
    "eager": (lambda f: f, lambda e: e),
    "jit": (jax.jit, lambda e: e),
    "grad": (_gradient, lambda e: e.sum() / SCALE),
    "vmap": (_mapped, lambda e: e[:, None]),
    "jit_vmap": (lambda f: jax.jit(_mapped(f)), lambda e: e[:, None]),
    "converted": (lambda f: jax2tf.convert(f), lambda e: e),
    "graph": (lambda f: tf.function(jax2tf.convert(f), autograph=False), lambda e: e),
    "compiled": (
        lambda f: tf.function(jax2tf.convert(f), autograph=False, jit_compile=True),
        lambda e: e,
    ),
    "open": (lambda f: jax2tf.convert(f, polymorphic_shapes=["b, c", None]), lambda e: e),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_widened(models, kind, use):
    function = jax2tf.call_tf(KINDS[kind](*models))
    transformed, expected = USES[use]
    for _ in range(2):
        actual = np.asarray(transformed(function)(IDS, SCALE))
        np.testing.assert_allclose(actual, expected(SCALE * TABLE[IDS]), rtol=1e-6)
        assert actual.dtype == np.float32


@pytest.mark.parametrize("wrapped", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_a_signature_of_keywords(models, wrapped):
    signature = models[1].signatures["rows"]
    results = wrapped(jax2tf.call_tf(signature))(ids=IDS, scale=SCALE)
    (rows,) = results.values()
    np.testing.assert_allclose(rows, SCALE * TABLE[IDS])


@pytest.mark.parametrize("wrapped", [jax.jit, lambda f: f], ids=["jit", "eager"])
@pytest.mark.parametrize("wide", ["int64", "uint64", "float64", "complex128"])
def test_each_dtype_of_64_bits(wide, wrapped):
    """As an argument and as a result, which is JAX's 32 bits again."""
    spec = tf.TensorSpec([None], wide)
    with_signature = tf.function(lambda x: x + 1, input_signature=[spec], autograph=False)
    for function in (with_signature, lambda x: x + tf.constant(1, wide)):
        result = wrapped(jax2tf.call_tf(function))(np.arange(3).astype(wide))
        assert result.dtype == jax.dtypes.canonicalize_dtype(wide)
        np.testing.assert_array_equal(result, [1, 2, 3])


@pytest.mark.parametrize("wrapped", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_pytrees_keep_what_has_32_bits(wrapped):
    """Of a tree, only the leaves that the signature states in 64 bits are widened."""
    signature = [
        {"ids": _spec([None], tf.int64), "mask": _spec([None], tf.int32)},
        [_spec([None], tf.float64), _spec([None], tf.float32)],
    ]

    def function(batch, numbers):
        wide = tf.cast(batch["ids"], tf.float64) * numbers[0]
        return wide, tf.cast(batch["mask"], tf.float32) * numbers[1]

    stated = tf.function(function, input_signature=signature, autograph=False)
    x = np.arange(3)
    both = {"ids": x, "mask": x.astype(np.int32)}, [x.astype(np.float64), x.astype(np.float32)]
    for f in (stated, stated.get_concrete_function(), lambda *args: stated(*args)):
        for result in wrapped(jax2tf.call_tf(f))(*both):
            assert result.dtype == np.float32
            np.testing.assert_array_equal(result, x * x)


def test_one_array_in_two_arguments():
    """The same array may be wanted in both widths."""
    signature = [_spec([None], tf.int64), _spec([None], tf.int32)]
    function = tf.function(
        lambda a, b: a + tf.cast(b, tf.int64), input_signature=signature, autograph=False
    )
    called = jax2tf.call_tf(function)
    for f in (called, jax.jit(called), jax2tf.convert(called)):
        x = jnp.arange(3)
        np.testing.assert_array_equal(jax.jit(lambda x, f=f: called(x, x))(x), [0, 2, 4])
        np.testing.assert_array_equal(np.asarray(f(x, x)), [0, 2, 4])


def test_a_model_of_keras():
    ids = tf.keras.Input([2], dtype="int64")
    model = tf.keras.Model(ids, tf.keras.layers.Embedding(10, 3)(ids))
    called = jax2tf.call_tf(model)
    expected = model(tf.constant(IDS)).numpy()
    for f in (called, jax.jit(called)):
        np.testing.assert_allclose(f(IDS), expected)


def test_a_refusal_says_what_to_do():
    """An int8 is not widened: it has 8 bits in JAX with 64-bit values too."""
    function = tf.function(
        lambda x: x + tf.constant(1, tf.int64) + tf.constant(1, tf.int8), autograph=False
    )
    with pytest.raises(TypeError) as refusal:
        jax2tf.call_tf(function)(np.arange(3))
    assert any("tf.cast(ids, tf.int64)" in note for note in refusal.value.__notes__)


def test_what_writes_is_not_run_twice():
    counter = tf.Variable(0)

    def function(x):
        counter.assign_add(1)
        return x + tf.constant(1, tf.int64)

    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)) as refusal:
        jax2tf.call_tf(function)(np.arange(3))
    assert any("tf.cast(ids, tf.int64)" in note for note in refusal.value.__notes__)
    assert counter.numpy() == 1


def test_nothing_is_widened_with_x64():
    with jax.enable_x64(True):
        called = jax2tf.call_tf(tf.function(lambda x: x + tf.constant(1, tf.int64)))
        assert jax.jit(called)(np.arange(3)).dtype == np.int64
        with pytest.raises((TypeError, ValueError)):
            called(np.arange(3, dtype=np.int32))
