"""Host callbacks where nothing can call back: in compiled code, and in a process that loads."""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.experimental import checkify, io_callback

import jax2tf
from tests.running import MODES, assert_near, of_every_size

X = np.array([1.0, 4.0], np.float32)


def host_sqrt(x):
    return np.sqrt(x)


def spec(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def with_prints(x):
    jax.debug.print("x is {}", x)
    y = jax.lax.fori_loop(0, 2, lambda i, y: (jax.debug.callback(print, y), y * 2)[1], x)
    return jax.lax.cond(y[0] > 0, lambda y: (jax.debug.print("{}", y), y + 1)[1], jnp.sin, y)


def compiled(fun, **options):
    return tf.function(jax2tf.convert(fun, **options), autograph=False, jit_compile=True)


class TestDebugCallbacks:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("enable_xla", [True, False])
    def test_are_left_out(self, mode, enable_xla, capfd):
        converted = jax2tf.convert(with_prints, debug_callbacks=False, enable_xla=enable_xla)
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = MODES[mode](converted)(x)
        np.testing.assert_array_equal(y, X * 4 + 1)
        np.testing.assert_array_equal(tape.gradient(y, x), [4, 4])
        jax.effects_barrier()
        assert capfd.readouterr().out == ""

    def test_run_by_default(self, capfd):
        jax2tf.convert(with_prints)(X)
        jax.effects_barrier()
        assert capfd.readouterr().out.count("x is [1. 4.]") == 1

    def test_a_jitted_function_is_compiled_without_them(self):
        converted = jax2tf.convert(jax.jit(with_prints), debug_callbacks=False)
        graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(X)).graph
        assert any(f.attr["_XlaMustCompile"].b for f in graph.as_graph_def().library.function)

    def test_in_compiled_code_the_refusal_names_the_option(self):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError) as refusal:
            compiled(with_prints)(X)
        words = ("XLA cannot compile a call back", "debug_callbacks=False", "test_callbacks.py")
        assert all(word in str(refusal.value) for word in words)

    def test_those_with_values_stay(self):
        for callback in (jax.pure_callback, io_callback):
            fun = functools.partial(lambda call, x: call(host_sqrt, spec(x), x), callback)
            with pytest.raises(jax2tf.UnsupportedPrimitiveError) as refusal:
                compiled(fun, debug_callbacks=False)(X)
            words = ("without jit_compile=True", "value_checks='drop'", "checkify.checkify(f)")
            assert all(word in str(refusal.value) for word in words)
            converted = jax2tf.convert(fun, debug_callbacks=False)
            np.testing.assert_array_equal(converted(X), [1, 2])


class TestChecks:
    """The ways that docs and refusals name for functions that check values."""

    @staticmethod
    def solve(x):
        checkify.check(jnp.all(x > 0), "x should be positive, starts with {}", x[0])
        return jnp.log(x)

    def test_checkify_alone_is_refused(self):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match=r"checkify\.checkify\(f\)"):
            jax2tf.convert(self.solve)(X)

    def test_checkify_as_values_in_compiled_code(self):
        converted = jax2tf.convert(checkify.checkify(self.solve))
        structures = []

        @tf.function(jit_compile=True, autograph=False)
        def checked(x):
            error, result = converted(x)
            leaves, structure = jax.tree.flatten(error)
            structures.append(structure)
            return leaves, result

        for x, message in ((X, None), (-X, "x should be positive, starts with -1.0")):
            leaves, result = checked(tf.constant(x))
            np.testing.assert_allclose(result, jnp.log(x), rtol=1e-6)
            error = jax.tree.unflatten(structures[0], [leaf.numpy() for leaf in leaves])
            assert (message is None and error.get() is None) or message in error.get()


OVER_OPEN_SIZES = {
    "pure": lambda x: jax.pure_callback(np.sin, x, x),
    "longer": lambda x: jax.pure_callback(
        lambda x: (np.concatenate([x, x]), np.float32(len(x))),
        (
            jax.ShapeDtypeStruct((2 * x.shape[0], *x.shape[1:]), x.dtype),
            jax.ShapeDtypeStruct((), x.dtype),
        ),
        x,
    ),
    "known result": lambda x: jax.pure_callback(
        lambda x: x.sum(0), jax.ShapeDtypeStruct(x.shape[1:], x.dtype), x
    ),
    "vmapped, with more dimensions": jax.vmap(
        lambda row: jax.pure_callback(np.sin, row, row, vmap_method="expand_dims")
    ),
    "vmapped, one by one": jax.vmap(
        lambda row: jax.pure_callback(np.sort, row, row, vmap_method="sequential")
    ),
    "in a scan": lambda x: jax.lax.scan(
        lambda c, row: (c + 1, jax.pure_callback(np.sin, row, row)), 0, x
    ),
    "in a branch": lambda x: jax.lax.cond(
        x.sum() > -99, lambda x: jax.pure_callback(np.sin, x, x), lambda x: x, x
    ),
    "io": lambda x: io_callback(np.sin, x, x),
    "io, ordered": lambda x: io_callback(np.sin, x, x, ordered=True),
    "debug": lambda x: (jax.debug.callback(lambda x: None, x), x + 1)[1],
}


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("name", OVER_OPEN_SIZES)
def test_over_open_sizes(name, mode, enable_xla):
    fun = OVER_OPEN_SIZES[name]
    converted = jax2tf.convert(fun, polymorphic_shapes="b, _", enable_xla=enable_xla)
    run = of_every_size(converted, mode, tf.TensorSpec([None, 2], tf.float32))
    for size in (1, 3):
        x = np.linspace(-1, 1, 2 * size, dtype=np.float32).reshape(size, 2)
        actual, expected = run(tf.constant(x)), fun(jnp.asarray(x))
        assert_near(jax.tree.map(np.asarray, actual), expected)


def test_a_wrong_size_is_told_as_in_jax():
    converted = jax2tf.convert(
        lambda x: jax.pure_callback(lambda x: x[1:], x, x), polymorphic_shapes="b"
    )
    with pytest.raises(RuntimeError, match=r"Expected: \(2,\), Actual: \(1,\)"):
        converted(X)


def test_a_branch_that_is_not_taken_calls_nothing():
    # TensorFlow folds what has constant operands, wherever it stands.
    calls = []

    def recorded(x):
        calls.append(x)
        return x

    def fun(x):
        limit = np.float32(3)
        return jax.lax.cond(
            x > 0, jnp.sin, lambda x: x + jax.pure_callback(recorded, spec(limit), limit), x
        )

    graph = tf.function(jax2tf.convert(fun, with_gradient=False), autograph=False)
    np.testing.assert_allclose(graph(np.float32(1)), np.sin(1), rtol=1e-6)
    assert calls == []
    np.testing.assert_array_equal(graph(np.float32(-1)), 2)
    assert calls == [3]


class TestSavedModel:
    def save(self, folder, fun, **options):
        module = tf.Module()
        converted = jax2tf.convert(fun, with_gradient=False, **options)
        module.f = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([2])])
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            tf.saved_model.save(module, str(folder))
        ours = [w for w in found if "jax2tf" in str(w.message)]
        assert not [w.filename for w in ours if "jax2tf" in w.filename], "who saves is elsewhere"
        return [str(w.message) for w in ours]

    def test_saving_warns_and_loading_names_the_function(self, tmp_path, without_jax):
        def fun(x):
            return jax.pure_callback(host_sqrt, spec(x), x)

        (warning,) = self.save(tmp_path, fun)
        words = ("the SavedModel calls host_sqrt", "test_callbacks.py", "Take the callback out")
        assert all(word in warning for word in words)
        lines = without_jax(
            """
            restored = tf.saved_model.load(sys.argv[1])
            try:
                restored.f(tf.ones([2]))
            except tf.errors.InvalidArgumentError as error:
                print("host_sqrt_is_a_function_of_the_process_that_converted_it" in str(error))
            """,
            tmp_path,
        )
        assert lines == ["True"]

    def test_in_a_loop(self, tmp_path):
        def fun(x):
            def body(i, y):
                return io_callback(host_sqrt, spec(y), y)

            return jax.lax.fori_loop(0, 2, body, x)

        (warning,) = self.save(tmp_path, fun)
        assert "the SavedModel calls host_sqrt" in warning

    def test_of_debug_callbacks(self, tmp_path):
        assert len(self.save(tmp_path, with_prints)) == 3
        assert self.save(tmp_path, with_prints, debug_callbacks=False) == []

    def test_in_this_process_nothing_is_said(self, tmp_path):
        def fun(x):
            return jax.pure_callback(host_sqrt, spec(x), x)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = tf.function(jax2tf.convert(fun, with_gradient=False), autograph=False)
            np.testing.assert_array_equal(graph(X), [1, 2])
