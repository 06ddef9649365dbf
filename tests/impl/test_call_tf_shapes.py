"""Shapes of results that follow from those of arguments, where TensorFlow does not infer them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf import CallTfError

X = np.linspace(-1, 2, 20, dtype=np.float32).reshape(4, 5)
OPEN = tf.TensorSpec([None, None], tf.float32)


def _loop(x):
    """Doubled twice: TensorFlow infers nothing of what a loop carries in open sizes."""
    invariants = (tf.TensorShape([]), tf.TensorShape([None, None]))
    return tf.while_loop(
        lambda i, a: i < 2,
        lambda i, a: (i + 1, tf.concat([a, a], 1)),
        (0, x),
        shape_invariants=invariants,
    )[1]


def _rows(x):
    row = tf.TensorSpec([None], tf.float32)
    return tf.map_fn(lambda r: tf.concat([r, r, r[:2]], 0), x, fn_output_signature=row)


def _branches(x):
    return tf.cond(
        tf.reduce_sum(x) > 0, lambda: tf.concat([x, x], 1), lambda: tf.concat([x, -x], 1)
    )


# How sizes of results follow from those of arguments: name, function, the same of JAX.
FORMS = {
    "same": (lambda x: x * 2, lambda x: x * 2),
    "wider": (
        lambda x: tf.concat([x, x, x[:, :2]], 1),
        lambda x: jnp.concatenate([x, x, x[:, :2]], 1),
    ),
    "padded": (lambda x: tf.pad(x, [[0, 0], [3, 4]]), lambda x: jnp.pad(x, [[0, 0], [3, 4]])),
    "flat": (lambda x: tf.reshape(x, [-1]), lambda x: x.reshape(-1)),
    "transposed": (tf.transpose, jnp.transpose),
    "outer": (
        lambda x: x[:, None, :] * x[:, :, None],
        lambda x: x[:, None, :] * x[:, :, None],
    ),
    "sum": (lambda x: tf.reduce_sum(x, 1), lambda x: x.sum(1)),
    "repeated": (lambda x: tf.repeat(x, 3, 0), lambda x: jnp.repeat(x, 3, 0)),
    "loop": (_loop, lambda x: jnp.tile(x, [1, 4])),
    "rows": (_rows, lambda x: jnp.concatenate([x, x, x[:, :2]], 1)),
    "branches": (
        _branches,
        lambda x: jnp.concatenate([x, jnp.where(x.sum() > 0, x, -x)], 1),
    ),
    "zeros": (
        lambda x: tf.zeros([tf.shape(x)[0], tf.shape(x)[1] + 2]),
        lambda x: jnp.zeros([x.shape[0], x.shape[1] + 2]),
    ),
}


class Held(tf.Module):
    """A function whose graph was made for open sizes, as a SavedModel has it."""

    def __init__(self, function):
        super().__init__()
        self.f = tf.function(function, input_signature=[OPEN], autograph=False)


def _restored(function, folder):
    tf.saved_model.save(Held(function), str(folder))
    return tf.saved_model.load(str(folder))


@pytest.fixture(scope="module")
def restored(tmp_path_factory):
    """Each of the forms, restored from a SavedModel."""
    return {
        name: _restored(of_tf, tmp_path_factory.mktemp(name)) for name, (of_tf, _) in FORMS.items()
    }


USES = {
    "jit": lambda f, **o: jax.jit(jax2tf.call_tf(f, **o)),
    "jit_by_host": lambda f: jax.jit(jax2tf.call_tf(f, compile=False)),
    "vmap_by_host": lambda f: (
        lambda x: jax.jit(jax.vmap(jax2tf.call_tf(f, compile=False)))(x[None])[0]
    ),
    "graph_alone": lambda f: jax2tf.convert(jax2tf.call_tf(f, call_tf_graph=True)),
    "graph_by_host": lambda f: jax2tf.convert(jax2tf.call_tf(f, compile=False)),
    "open": lambda f: jax2tf.convert(jax2tf.call_tf(f), polymorphic_shapes="b, c"),
    "half_open": lambda f: jax2tf.convert(jax2tf.call_tf(f), polymorphic_shapes="b, _"),
    "open_graph": lambda f: tf.function(
        jax2tf.convert(jax2tf.call_tf(f), polymorphic_shapes="b, c"),
        input_signature=[OPEN], autograph=False,
    ),
    "open_native": lambda f: jax2tf.convert(
        jax2tf.call_tf(f), polymorphic_shapes="b, c", native_serialization=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", FORMS)
def test_sizes_follow_from_those_of_arguments(restored, name, use):
    if name == "loop" and use in ("jit", "open_native"):
        # XLA does not compile a loop whose carry grows.
        kind = CallTfError if use == "jit" else tf.errors.InvalidArgumentError
        with pytest.raises(kind, match="Input and output shapes of loop body do not match"):
            USES[use](restored[name].f)(X)
        return
    expected = FORMS[name][1](X)
    actual = USES[use](restored[name].f)(X)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-6)


def _branches(x):
    return tf.cond(
        tf.reduce_sum(x) > 0,
        lambda: tf.concat([x, x * x, x], 1),
        lambda: tf.concat([-x, x * x, x], 1),
    )


def _loss(x):
    y = x * x
    return jnp.concatenate([jnp.where(x.sum() > 0, x, -x), y, x], 1).sum()


DERIVATIVES = {
    "grad": jax.grad,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,))[1],
    "hessian": jax.hessian,
    "grad_of_vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, -x])).sum()),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_derivatives_of_branches_of_open_sizes(derivative):
    held = Held(_branches)
    take, x = DERIVATIVES[derivative], jnp.asarray(X, jnp.float32)
    expected = take(_loss)(x)

    def result_of(function, **options):
        return take(lambda x: jax2tf.call_tf(function, **options)(x).sum())

    with pytest.raises(CallTfError, match=r"input_signature has open sizes.*python_function"):
        jax.jit(result_of(held.f))(x)
    remedies = [
        result_of(held.f),
        jax.jit(result_of(held.f.python_function)),
        jax.jit(result_of(held.f, compile=False)),
        jax2tf.convert(result_of(held.f), polymorphic_shapes="b, c"),
    ]
    for remedy in remedies:
        np.testing.assert_allclose(np.asarray(remedy(x)), expected, rtol=1e-6)


def test_a_model_that_does_not_take_small_sizes(tmp_path):
    """A window of ten does not fit sizes below; the formula comes from larger ones."""
    window = tf.ones([10, 1, 1])
    held = _restored(lambda x: tf.nn.conv1d(x[..., None], window, 1, "VALID")[..., 0], tmp_path)
    x = np.ones((4, 16), np.float32)
    converted = jax2tf.convert(jax2tf.call_tf(held.f), polymorphic_shapes="b, c",
                               polymorphic_constraints=["c >= 10"])  # fmt: skip
    assert converted(x).shape == (4, 7)


def test_ids_of_an_open_length(tmp_path):
    """Numbers of a trial are indices within small tables."""
    spec = tf.TensorSpec([None, None], tf.int64)
    module = tf.Module()
    table = tf.constant(np.arange(20.0, dtype=np.float32).reshape(10, 2))
    module.f = tf.function(lambda i: tf.gather(table, i), input_signature=[spec], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    called = jax2tf.call_tf(tf.saved_model.load(str(tmp_path)).f, compile=False)
    ids = np.array([[1, 2, 3], [4, 5, 6]])
    for f in (jax.jit(called), jax2tf.convert(called, polymorphic_shapes="b, t")):
        np.testing.assert_array_equal(np.asarray(f(ids)), table.numpy()[ids])


DEPENDING = {
    "masked": lambda x: tf.boolean_mask(x, x > 0),
    "unique": lambda x: tf.unique(tf.reshape(x, [-1]))[0],
    "where": lambda x: tf.where(x > 0.2),
    "range": lambda x: tf.range(tf.cast(tf.reduce_sum(x), tf.int32)),
}


@pytest.mark.parametrize("name", DEPENDING)
def test_what_depends_on_values_is_still_said(name, tmp_path):
    f = _restored(DEPENDING[name], tmp_path).f
    with pytest.raises(CallTfError, match="depend on values"):
        jax.jit(jax2tf.call_tf(f, compile=False))(X)
    with pytest.raises(CallTfError, match="no formula was found"):
        jax2tf.convert(jax2tf.call_tf(f), polymorphic_shapes="b, c")(X)


def _mostly_the_same(x):
    """Another size for numbers that no trial has."""
    return tf.cond(tf.reduce_max(x) > 1e6, lambda: x[:, :1], lambda: tf.concat([x, x], 1))


@pytest.mark.parametrize("use", ["jit_by_host", "graph_alone", "graph_by_host", "open"])
def test_a_size_that_was_wrong_is_an_error(use, tmp_path):
    f = _restored(_mostly_the_same, tmp_path).f
    called = USES[use](f)
    assert np.asarray(called(X)).shape == (4, 10)
    with pytest.raises(Exception, match=r"it depends on values|dimension 1 of a result is not"):
        np.asarray(called(X * 1e8))


def test_effects_are_not_tried(tmp_path):
    """A function with state is not run with numbers that nobody passed."""

    def printing(x):
        tf.print("run")
        return _loop(x)

    printed = _restored(printing, tmp_path).f
    with pytest.raises(CallTfError, match="depend on values"):
        jax.jit(jax2tf.call_tf(printed, compile=False))(X)


# --- output_shape_dtype with symbolic dimensions ----------------------------------------------


def _stating(names, **options):
    shape = jax.export.symbolic_shape(names)
    stated = jax.ShapeDtypeStruct(shape, jnp.float32)
    double = tf.function(lambda x: tf.concat([x, x], 1), input_signature=[OPEN], autograph=False)
    return jax2tf.call_tf(
        lambda x: tf.py_function(lambda y: double(y), [x], tf.float32),
        output_shape_dtype=stated, **options,
    )  # fmt: skip


@pytest.mark.parametrize("names", ["b, 2*c", "b, c + c", "max(b, 1), 2*c"])
def test_the_stated_shapes_of_another_scope(names):
    """The remedy of the message, followed to the letter: the user makes a scope of their own."""
    converted = jax2tf.convert(_stating(names), polymorphic_shapes="b, c")
    np.testing.assert_array_equal(converted(X), np.concatenate([X, X], 1))
    around = jax2tf.convert(lambda x: _stating(names)(x) * 2 + 1, polymorphic_shapes="b, c")
    np.testing.assert_allclose(around(X), np.concatenate([X, X], 1) * 2 + 1)


def test_a_stated_dimension_that_no_argument_has():
    with pytest.raises(CallTfError, match="names the dimension z, and those of the arguments are"):
        jax2tf.convert(_stating("b, z"), polymorphic_shapes="b, c")(X)


def test_the_message_names_the_dimensions():
    without = tf.function(lambda x: tf.py_function(lambda y: y, [x], tf.float32))
    with pytest.raises(CallTfError, match=r"symbolic_shape\('b, c'\)"):
        jax2tf.convert(jax2tf.call_tf(without), polymorphic_shapes="b, c")(X)
