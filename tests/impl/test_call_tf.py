"""call_tf op by op and staged: arrays, pytrees, variables, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf import CallTfError, call_tf

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int4", "uint4"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"),
]


# Those that DLPack has.
SHARED = [d for d in DTYPES if "float8" not in d and "int4" not in d]


class _Capsule:
    """What TensorFlow exports, by the protocol that JAX asks for."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU, the first


@pytest.fixture(params=["op_by_op", "jit"])
def stage(request):
    """How the function runs: as it is, or inside jax.jit."""
    return jax.jit if request.param == "jit" else lambda f: f


def _reverse(x):
    return tf.reverse(x, [0]) if x.shape.rank else tf.identity(x)


class TestArrays:
    @pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_dtype_goes_through(self, stage, dtype, shape):
        with jax.enable_x64(True):
            x = jnp.ones(shape, dtype)
            y = stage(call_tf(tf.identity))(x)
            assert (y.dtype, y.shape) == (x.dtype, x.shape)
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x))

    def test_values_of_64_bits_become_32_as_in_jax(self, stage):
        f = stage(call_tf(lambda x: (x, tf.cast(x, tf.int64))))
        x, i = f(np.array([1.5, 2.5], np.float64))
        assert (x.dtype, i.dtype) == (jnp.float32, jnp.int32)
        np.testing.assert_array_equal(i, [1, 2])

    def test_x64_keeps_64_bits(self, stage):
        with jax.enable_x64(True):
            y = stage(call_tf(lambda x: x / 3))(np.float64(1))
            assert y.dtype == jnp.float64
            assert float(y) == 1 / 3

    @pytest.mark.parametrize("dtype", SHARED)
    def test_memory_is_shared_both_ways(self, dtype):
        with jax.enable_x64(True):
            x = jnp.ones(1 << 12, dtype)
            seen = []

            def look(tensor):
                seen.append(tf.experimental.dlpack.to_dlpack(tensor))
                return tf.identity(tensor)

            y = call_tf(look)(x)
            inside = jax.dlpack.from_dlpack(_Capsule(seen[0]))
            assert inside.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
            assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()

    def test_a_variable_that_is_written_later_leaves_what_was_read(self):
        v = tf.Variable(tf.zeros(1 << 12))
        y = call_tf(lambda: v.read_value())()
        v.assign_add(tf.ones(1 << 12))
        assert float(y.sum()) == 0

    def test_numpy_arguments_are_copied(self):
        x = np.zeros(1 << 12, np.float32)
        y = call_tf(tf.identity)(x)
        x += 1
        assert float(y.sum()) == 0

    def test_trees_in_and_out(self, stage):
        def f(a, *, b):
            return {"sum": a["x"] + b[0], "rest": [(b[1], None)]}

        y = stage(call_tf(f))({"x": 1.0}, b=(2.0, 3))
        assert jax.tree.map(float, y) == {"sum": 3.0, "rest": [(3.0, None)]}

    def test_the_tree_of_an_eager_call_may_depend_on_values(self):
        f = call_tf(lambda x: [x] * int(x))
        assert [len(f(np.float32(n))) for n in (1, 3, 2)] == [1, 3, 2]

    def test_tensors_and_variables_are_passed_by_value(self):
        f = call_tf(lambda x, v: x + v)
        assert float(f(tf.constant(2.0), tf.Variable(3.0))) == 5.0

    def test_constants_inside_jit(self):
        assert float(jax.jit(lambda: call_tf(tf.reduce_sum)(np.ones(3, np.float32)))()) == 3.0


def test_a_kernel_for_xla_that_gives_another_dtype():
    """Compiled, the eigenvalues of complex matrices are real, and TensorFlow's graph says not."""
    x = np.array([[2, 1j], [-1j, 3]], np.complex64)
    eigenvalues = jax2tf.call_tf(tf.linalg.eigvalsh)
    compiled, mapped = jax.jit(eigenvalues)(x), jax.jit(jax.vmap(eigenvalues))(x[None])[0]
    for found in (compiled, mapped):
        assert found.dtype == np.complex64
        np.testing.assert_array_max_ulp(np.real(found), np.linalg.eigvalsh(x), 4)


class TestCallables:
    def test_function_of_tensorflow(self, stage):
        assert float(stage(call_tf(tf.function(lambda x: x * 2)))(3.0)) == 6.0

    def test_concrete_function(self, stage):
        concrete = tf.function(lambda x: x * 2).get_concrete_function(tf.TensorSpec([2]))
        np.testing.assert_array_equal(stage(call_tf(concrete))(np.ones(2, np.float32)), [2, 2])

    def test_method_of_a_module(self, stage):
        class Scale(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(2.0)

            @tf.function
            def apply(self, x):
                return {"y": x * self.w}

        scale = Scale()
        assert float(stage(call_tf(scale.apply))(3.0)["y"]) == 6.0

    def test_compiled_once_a_signature(self):
        traces = []

        def f(x):
            traces.append(x.shape)
            return tf.sin(x)

        g = call_tf(f)
        for _ in range(2):
            jax.jit(lambda x: g(g(x)) + g(x[:1]))(jnp.ones(2))
        assert sorted(map(tuple, traces)) == [(1,), (2,)]

    def test_one_function_of_the_module_a_signature(self):
        def wave(x):
            return tf.sin(x)

        g = call_tf(wave)
        text = jax.jit(lambda x: g(g(x)) + g(x[:1])).lower(jnp.ones(2)).as_text()
        assert text.count("func.func private @call_tf_wave") == 2

    def test_jax_compiles_the_ops_with_their_names(self):
        def layer(x):
            with tf.name_scope("block"):
                return tf.sin(x, name="wave")

        text = jax.jit(call_tf(layer)).lower(1.0).compile().as_text()
        assert 'op_name="jit(layer)/call_tf/block/wave"' in text

    def test_layer_of_keras(self, stage):
        layer = tf.keras.layers.Dense(2, activation="tanh")
        layer.build((None, 3))
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        actual = stage(call_tf(layer))(x)
        np.testing.assert_allclose(actual, layer(x), rtol=1e-5, atol=1e-6)

    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match=r"call_tf: callable_tf should be a function, got int"):
            call_tf(3)


class TestVariables:
    def test_read_at_call_time(self, stage):
        v = tf.Variable([1.0, 2.0])
        f = stage(call_tf(lambda x: x * v))
        np.testing.assert_array_equal(f(2.0), [2, 4])
        v.assign([10.0, 20.0])
        np.testing.assert_array_equal(f(2.0), [20, 40])

    def test_read_in_gradients_and_batches(self, stage):
        v = tf.Variable(3.0)
        f = stage(jax.vmap(jax.grad(call_tf(lambda x: x * x * v))))
        np.testing.assert_array_equal(f(np.array([1, 2], np.float32)), [6, 12])
        v.assign(1.0)
        np.testing.assert_array_equal(f(np.array([1, 2], np.float32)), [2, 4])

    def test_captured_tensors(self, stage):
        large = tf.random.stateless_uniform([1000], [0, 1])
        y = stage(call_tf(lambda x: tf.reduce_sum(x * large)))(2.0)
        np.testing.assert_allclose(y, 2 * np.sum(large), rtol=1e-6)

    def test_write_op_by_op(self):
        v = tf.Variable(1.0)

        def impure(x):
            v.assign(11.0)
            return x + v

        assert float(call_tf(impure)(tf.constant(2.0))) == 13.0

    def test_write_under_jit_is_refused_and_named(self):
        v = tf.Variable(1.0, name="weight")

        def impure(x):
            v.assign(11.0)
            return x + v

        with pytest.raises(CallTfError, match=r"call_tf\(impure\).*writes to weight:0.*Pass the"):
            jax.jit(call_tf(impure))(2.0)
        assert float(jax.jit(call_tf(impure, compile=False))(2.0)) == 13.0

    def test_write_within_a_function_that_it_calls(self):
        v = tf.Variable(1.0, name="weight")
        count = tf.function(lambda x: v.assign_add(x), autograph=False)

        def impure(x):
            return tf.cond(x > 0, lambda: count(x), lambda: x)

        with pytest.raises(CallTfError, match=r"call_tf\(impure\).*writes to op .*AssignAdd"):
            jax.jit(call_tf(impure))(2.0)
        assert float(jax.jit(call_tf(impure, compile=False))(2.0)) == 3.0

    def test_the_new_value_as_a_result(self, stage):
        y, new = stage(call_tf(lambda x, v: (x + 11.0, v * 0 + 11.0)))(2.0, 1.0)
        assert (float(y), float(new)) == (13.0, 11.0)


def _length(x):
    return tf.strings.length(tf.strings.format("Hello {}!", [x]))


class TestErrors:
    def test_ops_that_xla_does_not_compile(self):
        assert int(call_tf(_length)(np.float32(42.0))) == 9
        with pytest.raises(CallTfError, match=r"call_tf\(_length\).*no StringFormat.*compile="):
            jax.jit(call_tf(_length))(np.float32(42.0))

    def test_run_on_the_host_instead(self):
        f = jax.jit(call_tf(_length, compile=False))
        assert int(f(np.float32(42.0))) == 9

    @pytest.mark.parametrize(
        "f",
        [
            lambda x: x[x[0] : 5],
            lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:]),
            lambda x: tf.boolean_mask(x, x > 1),
            lambda x: tf.unique(x)[0],
        ],
    )
    def test_shapes_that_depend_on_values(self, f):
        x = np.array([1, 2], np.int32)
        assert call_tf(f)(x).ndim == 1
        with pytest.raises(CallTfError, match="shapes of its results depend on values"):
            jax.jit(call_tf(f))(x)

    def test_stated_shapes_on_the_host(self):
        stated = jax.ShapeDtypeStruct((1,), np.int32)
        f = call_tf(lambda x: x[x[0] : 5], compile=False, output_shape_dtype=stated)
        np.testing.assert_array_equal(jax.jit(f)(np.array([1, 2], np.int32)), [2])

    def test_values_as_shapes(self):
        with pytest.raises(CallTfError, match=r"input 1 of Reshape .*depends on the values"):
            jax.jit(call_tf(tf.reshape))(jnp.ones(4), np.array([2, 2]))

    def test_results_without_a_dtype_in_jax(self, stage):
        with pytest.raises(CallTfError, match=r"call_tf\(as_string\): result .*no dtype string"):
            stage(call_tf(tf.strings.as_string))(1.0)

    def test_ragged_results(self, stage):
        f = call_tf(lambda x: {"r": tf.RaggedTensor.from_row_lengths(x, [1, 2])})
        with pytest.raises(CallTfError, match=r"result\['r'\] is a tf.RaggedTensor"):
            stage(f)(jnp.ones(3))

    def test_sparse_results(self, stage):
        with pytest.raises(
            CallTfError, match=r"call_tf\(from_dense\): result is a tf.SparseTensor"
        ):
            stage(call_tf(tf.sparse.from_dense))(jnp.eye(2))

    def test_resources_as_results(self, stage):
        f = call_tf(lambda x: tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[]))
        with pytest.raises(CallTfError, match=r"JAX has no dtype resource"):
            stage(f)(1.0)

    def test_tables(self):
        keys_and_values = tf.lookup.KeyValueTensorInitializer([1, 2], [30, 40])
        table = tf.lookup.StaticHashTable(keys_and_values, 0)
        find = table.lookup
        assert int(call_tf(find)(np.int32(2))) == 40
        with pytest.raises(CallTfError, match=r"call_tf\(lookup\).*no variable.*compile=False"):
            jax.jit(call_tf(find))(np.int32(2))
        assert int(jax.jit(call_tf(find, compile=False))(np.int32(2))) == 40

    def test_python_functions_inside(self):
        f = lambda x: tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), [])  # noqa: E731
        with pytest.raises(CallTfError, match=r"XLA has no PyFunc"):
            jax.jit(call_tf(f))(1.0)
        assert float(jax.jit(call_tf(f, compile=False))(1.0)) == np.sin(np.float32(1))

    def test_exceptions_of_the_function_keep_their_traceback(self, stage):
        def raises(x):
            raise KeyError("a key of mine")

        with pytest.raises(KeyError, match="a key of mine") as error:
            stage(call_tf(raises))(1.0)
        assert any("call_tf(raises)" in note for note in error.value.__notes__)
        assert "raise KeyError" in "".join(map(str, error.traceback))

    def test_arguments_without_a_dtype_in_jax(self):
        words = r"call_tf\(string_length_v2\): argument input: JAX has no dtype string"
        with pytest.raises(TypeError, match=words):
            call_tf(tf.strings.length)(tf.constant("text"))

    @pytest.mark.parametrize(
        ("value", "raised", "words"),
        [
            ("text", TypeError, "expected a number.*got builtins.str"),
            (object(), TypeError, "expected a number.*got builtins.object"),
            (np.array(["a"]), TypeError, "JAX has no dtype <U1"),
            (np.ones(2, ">i4"), TypeError, "JAX has no dtype >i4"),
            (2**40, OverflowError, "Python int 1099511627776 does not fit int32"),
        ],
    )
    def test_arguments_are_named_by_their_paths(self, stage, value, raised, words):
        with pytest.raises(raised, match=rf"argument tree\['a'\]\[1\]: {words}"):
            stage(lambda x: call_tf(lambda y, tree: y)(x, {"a": [x, value]}))(1.0)
        with pytest.raises(raised, match=rf"argument n: {words}"):
            stage(lambda x: call_tf(lambda y, *, n: y)(x, n=value))(1.0)

    def test_results_that_are_no_tensors(self, stage):
        words = r"result\['a'\] should be a tensor, .* got builtins.object; return its tensors"
        with pytest.raises(CallTfError, match=words):
            stage(call_tf(lambda x: {"a": object()}))(1.0)

    def test_typed_keys(self, stage):
        with pytest.raises(CallTfError, match=r"argument key is a typed PRNG key"):
            stage(call_tf(lambda x, key: key))(1.0, jax.random.key(0))

    def test_output_shape_dtype_of_another_shape(self, stage):
        f = call_tf(tf.identity, output_shape_dtype=jax.ShapeDtypeStruct((3,), np.float32))
        with pytest.raises(CallTfError, match=r"says float32\[3\] for result 0.*float32\[4\]"):
            stage(f)(jnp.ones(4))

    def test_output_shape_dtype_of_another_structure(self, stage):
        f = call_tf(tf.identity, output_shape_dtype=[jax.ShapeDtypeStruct((4,), np.float32)])
        with pytest.raises(CallTfError, match=r"output_shape_dtype has the structure"):
            stage(f)(jnp.ones(4))

    def test_output_shape_dtype_that_is_no_tree_of_them(self):
        with pytest.raises(CallTfError, match="should be a pytree of values with shape and dtype"):
            call_tf(tf.identity, output_shape_dtype=3.0)

    def test_errors_of_tensorflow_name_the_function(self, stage):
        def broken(x):
            return tf.matmul(x, x)

        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as error:
            stage(call_tf(broken))(jnp.ones(3))
        assert any("call_tf(broken)" in note for note in error.value.__notes__)

    def test_graphs_outside_of_convert(self):
        with pytest.raises(CallTfError, match=r"call_tf\(sin, call_tf_graph=True\).*convert"):
            jax.jit(call_tf(tf.math.sin, call_tf_graph=True))(1.0)

    def test_ordered_without_side_effects(self):
        with pytest.raises(ValueError, match="ordered=True needs has_side_effects=True"):
            call_tf(tf.math.sin, has_side_effects=False, ordered=True)

    def test_inside_a_graph(self):
        graph = tf.function(lambda x: call_tf(tf.math.sin)(x), autograph=False)
        with pytest.raises(TypeError, match=r"call_tf\(sin\): argument x: got a symbolic tensor"):
            graph(tf.constant(1.0))
        with pytest.raises(CallTfError, match=r"call_tf\(sin\): called while TensorFlow makes a"):
            graph(1.0)


class TestSideEffects:
    def test_a_call_on_the_host_is_kept_though_unused(self):
        v = tf.Variable(0.0)

        def count(x):
            v.assign_add(1.0)
            return x

        def calls(f):
            before = float(v)
            jax.jit(lambda x: (f(x), x)[1])(1.0).block_until_ready()
            jax.effects_barrier()
            return float(v) - before

        assert calls(call_tf(count, compile=False)) == 1
        assert calls(call_tf(count, compile=False, has_side_effects=False)) == 0

    def test_ordered_calls_keep_their_order(self):
        seen = []
        v = tf.Variable(0.0)

        def append(x):
            v.assign(x)
            seen.append(float(x))
            return x

        f = call_tf(lambda x: tf.py_function(append, [x], tf.float32), compile=False, ordered=True,
                    output_shape_dtype=jax.ShapeDtypeStruct((), np.float32))  # fmt: skip
        jax.jit(lambda x: [f(x + i) for i in range(5)] and None)(0.0)
        jax.effects_barrier()
        assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_an_op_without_a_gradient_says_what_to_do(jit):
    saturated = call_tf(lambda x: tf.image.adjust_saturation(x, 1.5))
    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(2, 2, 3)
    with pytest.raises(LookupError, match="AdjustSaturation") as error:
        jit(jax.grad(lambda x: saturated(x).sum()))(x)
    notes = "\n".join(error.value.__notes__)
    for words in ("TensorFlow cannot differentiate an op", "stop_gradient", "tf.custom_gradient"):
        assert words in notes
    gradient = jit(jax.grad(lambda x: (x * saturated(jax.lax.stop_gradient(x))).sum()))(x)
    np.testing.assert_allclose(gradient, saturated(x), atol=1e-6)


def test_it_is_exported():
    assert "call_tf" in jax2tf.__all__
