"""What the matrix does not show of sorting: how many are taken may be symbolic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import LOWERINGS, MODES, each_lowering, each_mode, of_every_size

FUNCTIONS = {
    "all": lambda x: lax.top_k(x, x.shape[1]),
    "half_or_none": lambda x: lax.top_k(x, x.shape[1] // 2),
    "of_the_first_axis": lambda x: lax.top_k(x, (x.shape[0] + 1) // 2, axis=0),
    "integers": lambda x: lax.top_k(x.astype(int), x.shape[1] // 2),
    "partition": lambda x: jnp.sort(jnp.partition(x, 0, axis=1), 1),
    "approximate": lambda x: lax.approx_min_k(x, 1),
}


@each_lowering
@each_mode
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_many_as_a_symbolic_size(name, mode, lowering):
    fun = FUNCTIONS[name]
    converted = jax2tf.convert(
        fun, polymorphic_shapes="b, n", enable_xla=LOWERINGS[lowering], with_gradient=False
    )
    function = of_every_size(converted, mode, tf.TensorSpec([None, None], tf.float32))
    for shape in ((1, 1), (2, 3), (3, 6)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        for a, e in zip(function(tf.constant(x)), jax.jit(fun)(x), strict=True):
            np.testing.assert_array_equal(a, e, strict=True)


# Where the key of a number is the same, NaN stands above infinity and 0 above -0.
TIES = {
    "nan_and_infinity": [np.inf, np.nan, -np.inf, 1.0],
    "zeros": [-0.0, 0.0, -1.0, -0.0],
}


@each_lowering
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("values", TIES.values(), ids=TIES)
def test_a_cut_among_what_compares_equal(values, k, lowering):
    x = np.array(values, np.float32)
    converted = jax2tf.convert(lambda x: lax.top_k(x, k), enable_xla=LOWERINGS[lowering])
    for actual, expected in zip(converted(x), jax.jit(lambda x: lax.top_k(x, k))(x), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sorting_by_top_k_is_stable_and_gives_what_the_comparator_gives(dtype):
    without = jax2tf.TARGETS["xla"].without_optimizations("sorts_by_top_k")
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for size in (0, 50):
            key = rng.integers(limits.min, limits.max, (4, size, 3), dtype, endpoint=True)
            key[:, ::3] = 5
            others = (rng.normal(size=key.shape), key > 7)
            for axis in (0, 2):

                def fun(key, *others, axis=axis):
                    return lax.sort(key, axis), lax.sort((key, *others), axis, num_keys=1)

                expected = jax.tree.leaves(jax.jit(fun)(key, *others))
                for target in ("xla", without):
                    actual = MODES["graph"](jax2tf.convert(fun, target=target))(key, *others)
                    for a, e in zip(jax.tree.leaves(actual), expected, strict=True):
                        np.testing.assert_array_equal(a, e, strict=True)


def test_sorting_by_top_k_is_left_out_where_xla_compiles():
    def fun(x):
        return lax.sort(x)

    for options, op in (({}, "TopKV2"), ({"jit_compile": True}, "XlaVariadicSort")):
        graph = tf.function(jax2tf.convert(fun), autograph=False, **options)
        concrete = graph.get_concrete_function(tf.TensorSpec([5], tf.int32))
        assert op_types(concrete.graph)[op] == 1
    graph = tf.function(jax2tf.convert(fun), autograph=False)
    concrete = graph.get_concrete_function(tf.TensorSpec([5], tf.float32))
    assert op_types(concrete.graph)["XlaVariadicSort"] == 1


@pytest.mark.parametrize("target", ["litert", "xla"])
@pytest.mark.parametrize("compare", [lax.eq_to_p, lax.le_to_p, lax.lt_to_p])
def test_the_total_order_of_numbers_zeros_and_nan(compare, target):
    numbers = np.float32([-np.inf, -2.5, -1, -0.0, 0, 1e-3, 1, 2.5, 7, np.inf, np.nan])
    x, y = (a.reshape(-1) for a in np.meshgrid(numbers, numbers))
    converted = jax2tf.convert(compare.bind, target=target, with_gradient=False)
    result = tf.function(converted, autograph=False)(x, y)
    np.testing.assert_array_equal(result, compare.bind(x, y))


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("k", [2, 6])
def test_the_largest_of_float16_know_the_sign_of_a_nan(k, enable_xla):
    x = np.float16([-np.nan, 1, np.inf, np.nan, -0.0, 0, -np.inf])

    def largest(x):
        return lax.top_k(x, k)

    converted = jax2tf.convert(largest, enable_xla=enable_xla, with_gradient=False)
    results = tf.function(converted, autograph=False)(x)
    for result, expected in zip(results, largest(x), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("k", [1, 4, 24])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.float16])
@pytest.mark.parametrize("shape", [(24,), (2, 24), (2, 3, 24), (3, 0)])
def test_floats_that_compiled_code_takes_as_they_are(shape, dtype, k):
    values = [1.0, np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 2.0]
    x = np.random.default_rng(0).choice(np.array(values, dtype), size=shape)
    k = min(k, shape[-1])

    def fun(x):
        return lax.top_k(x, k), lax.top_k(-x, k)

    expected = jax.jit(fun)(x)
    without = jax2tf.TARGETS["xla"].without_optimizations("floats_in_top_k")
    for target in ("xla", without):
        actual = MODES["compiled"](jax2tf.convert(fun, target=target))(tf.constant(x))
        for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            assert a.dtype.as_numpy_dtype == e.dtype
            a, e = (np.asarray(x, np.float64) for x in (a, e))  # NumPy finds no NaN in bfloat16
            np.testing.assert_array_equal(a, e, strict=True)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(e))


def test_compiled_code_sorts_no_vector_whole_for_its_largest():
    converted = jax2tf.convert(lambda x: lax.top_k(x, 8)[0])
    function = tf.function(converted, jit_compile=True, autograph=False)
    x = tf.zeros([1000])
    program = function.experimental_get_compiler_ir(x)(stage="optimized_hlo")
    assert 'custom_call_target="TopK"' in program
    assert " sort(" not in program
