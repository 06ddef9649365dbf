"""What the matrix cannot see of random numbers: how many of them only the run can tell, and that
XLA compiles the others.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import MODES

KEY = np.arange(4, dtype=np.uint32)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
@pytest.mark.parametrize("algorithm", [0, 1, 2], ids=["default", "threefry", "philox"])
def test_bits_of_an_unknown_number(algorithm, dtype, enable_xla):
    def fun(key, x):
        return lax.rng_bit_generator(key, x.shape, dtype, algorithm)

    converted = jax2tf.convert(fun, polymorphic_shapes=[None, "b, _"], enable_xla=enable_xla)
    spec = [tf.TensorSpec([4], tf.uint32), tf.TensorSpec([None, 3], tf.float32)]
    graph = tf.function(converted, autograph=False, input_signature=spec)
    for size in (1, 3, 4, 5):
        x = np.ones([size, 3], np.float32)
        for result, expected in zip(graph(KEY, x), jax.jit(fun)(KEY, x), strict=True):
            np.testing.assert_array_equal(result, expected)


MOVES_OF_KEYS = {
    "slice": lambda k: lax.slice(k, (1, 0), (3, 4), (2, 1)),
    "slice without strides": lambda k: lax.slice(k, (1, 0), (3, 4)),
    "squeeze": lambda k: lax.squeeze(k[:1], [0]),
    "reshape": lambda k: k.reshape(2, 6),
    "transpose": lambda k: k.T,
    "broadcast_in_dim": lambda k: lax.broadcast_in_dim(k, (3, 2, 4, 1), (0, 2)),
    "concatenate": lambda k: jnp.concatenate([k, k[1:]]),
    "stack": lambda k: jnp.stack([k, k[::-1]], 1),
    "unpack": lambda k: [*k.T][1],
    "of no keys": lambda k: k[:0].reshape(2, 0),
    "gather": lambda k: k[jnp.array([2, 0])],
    "select_n": lambda k: jnp.where(jnp.arange(4) > 1, k, k[::-1]),
}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("name", MOVES_OF_KEYS)
def test_keys_are_moved(name, impl):
    def moved(data):
        return jax.random.key_data(MOVES_OF_KEYS[name](jax.random.wrap_key_data(data, impl=impl)))

    size = 2 if impl == "threefry2x32" else 4
    data = np.arange(3 * 4 * size, dtype=np.uint32).reshape(3, 4, size)
    np.testing.assert_array_equal(jax2tf.convert(moved)(data), moved(data), strict=True)


@pytest.mark.parametrize("name", ["reshape", "transpose", "broadcast_in_dim", "concatenate"])
def test_keys_of_an_open_batch_are_moved(name):
    moves = {
        "reshape": lambda k: k.reshape(-1),
        "transpose": lambda k: k.T,
        "broadcast_in_dim": lambda k: jnp.stack([k, k]),
        "concatenate": lambda k: jnp.concatenate([k, k], 1),
    }

    def moved(data):
        return jax.random.key_data(moves[name](jax.random.wrap_key_data(data)))

    converted = jax2tf.convert(moved, polymorphic_shapes="b, ...")
    spec = [tf.TensorSpec([None, 4, 2], tf.uint32)]
    graph = tf.function(converted, autograph=False, input_signature=spec)
    for size in (1, 3):
        data = np.arange(size * 8, dtype=np.uint32).reshape(size, 4, 2)
        np.testing.assert_array_equal(graph(data), moved(data), strict=True)


WITHOUT = jax2tf.TARGETS["xla"].without_optimizations("compiled_draws")


def of_many_kinds(key):
    """Draws that are integers, or made of their bits without rounding."""
    a, b, c, d = jax.random.split(key, 4)
    return {
        "bits": jax.random.bits(a, (7, 11)),
        "narrow": jax.random.bits(a, (1025,), np.uint8),
        "of_keys": jax.vmap(lambda k: jax.random.bits(k, (3,)))(jax.random.split(b, 5)),
        "uniform": jax.random.uniform(b, (64, 65)),
        "integers": jax.random.randint(c, (33,), 1, 5),
        "coin": jax.random.bernoulli(d, 0.25, (5, 0, 2)),
        "permutation": jax.random.permutation(jax.random.fold_in(d, 3), 10),
    }


@pytest.mark.parametrize(
    ("mode", "impl", "x64"),
    [
        ("eager", "threefry2x32", False),
        ("graph", "threefry2x32", True),
        ("graph", "rbg", False),
        ("compiled", "unsafe_rbg", False),
    ],
)
def test_compiled_draws_are_the_numbers_of_jax(mode, impl, x64):
    with jax.enable_x64(x64):
        key = jax.random.key_data(jax.random.key(3, impl=impl))

        def fun(key):
            return of_many_kinds(jax.random.wrap_key_data(key, impl=impl))

        expected = jax.tree.map(np.asarray, jax.jit(fun)(key))
        for target in (WITHOUT, "xla"):
            actual = MODES[mode](jax2tf.convert(fun, target=target))(np.asarray(key))
            jax.tree.map(partial(np.testing.assert_array_equal, strict=True), expected, actual)


@pytest.mark.parametrize("draw", ["normal", "gumbel", "truncated_normal"])
def test_compiled_draws_of_floats_are_no_further_from_jax(draw):
    options = (-2.0, 2.0) if draw == "truncated_normal" else ()

    def fun(key):
        return getattr(jax.random, draw)(jax.random.wrap_key_data(key), *options, shape=(500,))

    expected = np.asarray(jax.jit(fun)(KEY[:2]))
    far = {
        target.name: np.abs(MODES["graph"](jax2tf.convert(fun, target=target))(KEY[:2]) - expected)
        for target in (WITHOUT, dataclasses.replace(jax2tf.TARGETS["xla"], name="compiled"))
    }
    assert (far["compiled"] <= np.maximum(far["xla"], 2 * np.spacing(np.abs(expected)))).all()


def dropout(key, x):
    return jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.5, x.shape), 2 * x, 0)


def in_loops(key, x):
    def step(x, i):
        return x + jax.random.normal(jax.random.fold_in(jax.random.wrap_key_data(key), i), x.shape)

    x, _ = lax.scan(lambda x, i: (step(x, i), None), x, np.arange(3))
    return lax.cond(x[0, 0] > 0, lambda x: step(x, 7), lambda x: step(x, 8), x)


ROWS = np.ones([4, 300], np.float32)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_compiled_draws_in_loops_and_in_what_is_differentiated(mode):
    def loss(key, x):
        return jnp.sum(jnp.sin(in_loops(key, dropout(key, x))))

    def with_gradient(key, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = jax2tf.convert(loss)(key, x)
        return value, tape.gradient(value, x)

    results = MODES[mode](with_gradient)(tf.constant(KEY[:2]), tf.constant(ROWS))
    expected = jax.jit(jax.value_and_grad(loss, 1))(KEY[:2], ROWS)
    for actual, e in zip(results, expected, strict=True):
        np.testing.assert_allclose(actual, e, rtol=1e-5, atol=1e-5)


def test_compiled_draws_are_saved_and_mapped(tmp_path):
    expected = np.asarray(jax.jit(dropout)(KEY[:2], ROWS))
    module = tf.Module()
    signature = [tf.TensorSpec([2], tf.uint32), tf.TensorSpec([4, 300], tf.float32)]
    module.f = tf.function(jax2tf.convert(dropout), autograph=False, input_signature=signature)
    tf.saved_model.save(module, str(tmp_path))
    np.testing.assert_array_equal(tf.saved_model.load(str(tmp_path)).f(KEY[:2], ROWS), expected)
    keys = tf.constant(KEY.reshape(2, 2))
    mapped = tf.vectorized_map(lambda key: module.f(key, ROWS), keys)
    for key, result in zip(keys, mapped, strict=True):
        np.testing.assert_array_equal(result, jax.jit(dropout)(key.numpy(), ROWS))


def test_a_compiled_draw_is_one_call():
    def nodes_of(fun, **options):
        graph = tf.function(jax2tf.convert(fun, **options), autograph=False)
        return op_types(graph.get_concrete_function(*specs).graph)

    specs = [tf.TensorSpec([2], tf.uint32), tf.TensorSpec([4, 300], tf.float32)]
    many = nodes_of(dropout)
    # A draw that is there once becomes a function all the same.
    assert many.total() <= nodes_of(dropout, target=WITHOUT).total() + 2
    assert many["StatefulPartitionedCall"] + many["PartitionedCall"] >= 1
    assert must_compile(specs, dropout)
    # XLA would compile anew for each size, and there is no XLA among standard ops.
    assert not must_compile(
        [specs[0], tf.TensorSpec([None, 300], tf.float32)], dropout, (None, "b, _")
    )
    assert not must_compile(specs, dropout, enable_xla=False)
    assert not must_compile(specs, dropout, target=WITHOUT)
    # A function of arrays that is jitted inside is not compiled with the draws in it.
    assert not must_compile(specs, jax.jit(lambda key, x: jnp.sin(x)))


def must_compile(specs, fun, polymorphic_shapes=None, **options):
    def outer(*args):
        return fun(*args)

    converted = jax2tf.convert(outer, polymorphic_shapes=polymorphic_shapes, **options)
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
    functions = graph.as_graph_def().library.function
    return any(f.attr["_XlaMustCompile"].b for f in functions)
