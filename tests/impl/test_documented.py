"""What the documentation of earlier jax2tf versions says of conversion, saving and differentiation,
where no other test shows it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

CUSTOM_GRADIENTS = tf.saved_model.SaveOptions(experimental_custom_gradients=True)


class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b


jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))


def weighted(pair):
    return 2.0 * pair.a + 3.0 * pair.b


class TestShapes:
    @pytest.mark.parametrize("native", [False, True])
    @pytest.mark.parametrize("jit_compile", [False, True])
    @pytest.mark.parametrize(
        ("fun", "spec", "x"),
        [
            (lambda x: jnp.reshape(x, (x.shape[0] * x.shape[1],)), "(b, 4)", np.ones((3, 4))),
            (lambda x: x + x.shape[0] + jnp.sin(x.shape[0]), "b", np.ones(3)),
            (lambda x: (5.0 + x.shape[0], x.shape[0] - np.ones(5, np.int32)), "b", np.ones(3)),
            (lambda x: jnp.sum(x, axis=0) / x.shape[0], "(v, _)", np.ones((3, 4))),
            (lambda x: jnp.array(x.shape), "(b, _)", np.ones((3, 4))),
            (lambda x: jnp.reshape(x, (2, -1)), "(b, ...)", np.ones((4, 5, 6))),
            (lambda x: jnp.reshape(x, (-1, x.shape[0])), "(b1, b2, ...)", np.ones((4, 5, 6))),
            (lambda x: jnp.reshape(x, (2, -1)), "(2*b, ...)", np.ones((4, 5, 7))),
            (lambda x: x.sum() if x.shape[0] + 1 >= 2 else x, "(b, ...)", np.ones((4, 5))),
        ],
    )
    def test_computing_with_dimensions(self, fun, spec, x, jit_compile, native):
        x = x.astype(np.float32)
        converted = jax2tf.convert(fun, polymorphic_shapes=[spec], native_serialization=native)
        graph = tf.function(converted, autograph=False, jit_compile=jit_compile)
        signature = tf.TensorSpec([d if i else None for i, d in enumerate(x.shape)])
        if "b2" in spec:
            signature = tf.TensorSpec([None, None, 6])
        actual = graph.get_concrete_function(signature)(x)
        for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(fun(x)), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-6)

    @pytest.mark.parametrize(
        ("fun", "specs", "shapes", "words"),
        [
            (lambda x, y: x + y, ["(v,)", "(4,)"], [(4,), (4,)], r"incompatible shapes .*\(v,\)"),
            (lambda x: x @ x, ["(v, 4)"], [(4, 4)], r"contracting dimensions"),
            (lambda x: x.reshape(2, -1), ["(b, ...)"], [(4, 5, 7)], "Cannot divide evenly"),
            (
                lambda x: 0 if x.shape[0] + 1 >= x.shape[1] else 1,
                ["a, b"],
                [(3, 4)],
                "inconclusive",
            ),
            (lambda x: jnp.ones(x.shape[0] * np.array([4])), ["b"], [(4,)], "concrete values"),
        ],
    )
    def test_what_jax_cannot_decide_is_its_own_error(self, fun, specs, shapes, words):
        converted = jax2tf.convert(fun, polymorphic_shapes=specs)
        with pytest.raises(Exception, match=words):
            converted(*(np.ones(shape, np.float32) for shape in shapes))

    @pytest.mark.parametrize("native", [False, True])
    @pytest.mark.parametrize(
        ("spec", "shape"), [("a, 2*a, b", (2, 4, 3)), ("a * a, a", (9, 3)), ("2*a, a + b", (4, 5))]
    )
    def test_variables_that_the_input_shapes_determine(self, spec, shape, native):
        converted = jax2tf.convert(
            lambda x: x * x.shape[-1], polymorphic_shapes=[spec], native_serialization=native
        )
        graph = tf.function(converted, autograph=False)
        function = graph.get_concrete_function(tf.TensorSpec([None] * len(shape)))
        np.testing.assert_array_equal(function(tf.ones(shape)), np.full(shape, shape[-1]))

    @pytest.mark.parametrize(("spec", "shape"), [("a * a", (4,)), ("a + b", (4,))])
    def test_variables_that_they_do_not(self, spec, shape):
        with pytest.raises(ValueError, match=r"cannot solve dimension variable a.*argument x\."):
            jax2tf.convert(lambda x: x, polymorphic_shapes=[spec])(np.ones(shape))

    @pytest.mark.parametrize("native", [False, True])
    def test_the_shape_of_an_argument_that_is_not_used(self, native):
        converted = jax2tf.convert(
            lambda x_unused, y: y * 2.0,
            polymorphic_shapes=["b, a", "b, 2 * a"],
            native_serialization=native,
        )
        x, y = np.ones((3, 2), np.float32), np.ones((3, 4), np.float32)
        np.testing.assert_array_equal(converted(x, y), y * 2)
        with pytest.raises(ValueError, match=r"argument y.shape\[1\] should be 2\*a.*a = 3"):
            converted(np.ones((3, 3), np.float32), y)

    def test_equal_dimensions_are_known_to_be_equal(self):
        converted = jax2tf.convert(
            lambda x: 1 if x.shape[-2] == x.shape[-1] else 0, polymorphic_shapes="b, d, d"
        )
        assert int(converted(np.ones((2, 3, 3)))) == 1


class TestDtypes:
    @pytest.mark.parametrize(("x64", "dtype"), [(False, tf.float32), (True, tf.float64)])
    def test_variables_of_another_dtype_are_cast(self, x64, dtype):
        with jax.enable_x64(x64):
            graph = tf.function(jax2tf.convert(jnp.sin), autograph=False)
            assert graph(tf.Variable(3.14, dtype=tf.float64)).dtype == dtype
            assert graph(tf.Variable(3.14, dtype=jax2tf.dtype_of_val(3.14))).dtype == dtype
            assert jax2tf.convert(jnp.sin)(3.14).dtype == dtype

    def test_their_gradients_have_the_dtype_of_the_variable(self):
        variable = tf.Variable(0.5, dtype=tf.float64)
        with tf.GradientTape() as tape:
            y = jax2tf.convert(jnp.sin)(variable)
        gradient = tape.gradient(y, variable)
        assert gradient.dtype == tf.float64
        np.testing.assert_allclose(gradient, np.cos(0.5), rtol=1e-6)


class TestCustomContainers:
    def test_in_and_out_of_graphs(self):
        converted = jax2tf.convert(weighted)
        x = Pair(4.0, 5.0)
        assert float(converted(x)) == 23
        assert float(tf.function(converted, autograph=False, jit_compile=True)(x)) == 23

    def test_saved_and_differentiated_through_a_wrapper(self, tmp_path):
        converted = jax2tf.convert(weighted)

        def of_leaves(a, b):
            return converted(Pair(a, b))

        module = tf.Module()
        module.f = tf.function(of_leaves, autograph=False, input_signature=[tf.TensorSpec([])] * 2)
        tf.saved_model.save(module, str(tmp_path), options=CUSTOM_GRADIENTS)
        for fun in (of_leaves, tf.saved_model.load(str(tmp_path)).f):
            variables = [tf.Variable(4.0), tf.Variable(5.0)]
            with tf.GradientTape() as tape:
                y = fun(*variables)
            assert float(y) == 23
            assert [float(g) for g in tape.gradient(y, variables)] == [2, 3]


class TestGradients:
    def test_of_integers_unused_and_unconnected(self):
        def fun(x0, x1, x2, x3):
            return x0 * 0.0 + x2 * 2.0

        variables = [tf.Variable(x) for x in (10.0, 11.0, 12.0, 13)]
        with tf.GradientTape(persistent=True) as tape:
            y = jax2tf.convert(fun)(*variables)
        first, second, third, of_int = tape.gradient(y, variables)
        assert [float(g) for g in (first, second, third)] == [0, 0, 2]
        assert of_int is None
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(y, variables, unconnected_gradients=zero)
        assert [float(g) for g in gradients] == [0, 0, 2, 0]
        assert gradients[3].dtype == tf.int32

    def test_of_bool(self):
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = jax2tf.convert(lambda x, b: jnp.where(b, x, 0))(x, tf.constant(True))
        assert float(tape.gradient(y, x)) == 1

    def test_by_jax_with_respect_to_an_integer(self):
        gradient = jax2tf.convert(jax.grad(lambda n: n * 2.0, allow_int=True))(np.int16(2))
        # float0 has no values; TensorFlow has no such dtype, and here it is bool, as in XLA.
        assert (gradient.dtype, gradient.shape, bool(gradient)) == (tf.bool, (), False)

    # Without pfor tape.jacobian makes a loop of unknown length, which XLA does not compile.
    @pytest.mark.parametrize(
        ("experimental_use_pfor", "jit_compile"), [(True, False), (True, True), (False, False)]
    )
    def test_jacobians(self, experimental_use_pfor, jit_compile):
        def fun(x):
            return jnp.tanh(x @ jnp.arange(9.0).reshape(3, 3) / 9)

        converted = jax2tf.convert(fun)

        @tf.function(autograph=False, jit_compile=jit_compile)
        def jacobian(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = converted(x)
            return tape.jacobian(y, x, experimental_use_pfor=experimental_use_pfor)

        x = np.array([0.5, -1.0, 2.0], np.float32)
        np.testing.assert_allclose(jacobian(tf.constant(x)), jax.jacobian(fun)(x), rtol=1e-4)

    def test_forward_mode_around_a_graph(self):
        graph = tf.function(jax2tf.convert(lambda x: jnp.sin(x) * x), autograph=False)
        x = tf.constant([0.5, 2.0])
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = graph(x)
        np.testing.assert_allclose(accumulator.jvp(y), np.cos(x) * x + np.sin(x), rtol=1e-5)

    def test_of_a_loop_that_jax_differentiates_in_forward_mode_alone(self):
        converted = jax2tf.convert(
            lambda x: jax.lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)
        )
        x = tf.constant(6.0)
        assert float(converted(x)) == 0.75
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        with pytest.raises(jax2tf.NotDifferentiableError, match="with_gradient=False"):
            tape.gradient(y, x)


class TestSavedModel:
    def save(self, folder, fun, *signature, options=CUSTOM_GRADIENTS):
        module = tf.Module()
        module.f = tf.function(fun, autograph=False, input_signature=signature or None)
        tf.saved_model.save(module, str(folder), options=options)
        return tf.saved_model.load(str(folder))

    def test_custom_gradients_are_saved_unless_switched_off(self, tmp_path, without_jax):
        @jax.custom_jvp
        def fun(x):
            return jnp.sin(x)

        fun.defjvp(lambda primals, tangents: (fun(primals[0]), 5 * tangents[0]))
        without = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        for name, options in (("default", None), ("without", without)):
            self.save(tmp_path / name, jax2tf.convert(fun), tf.TensorSpec([]), options=options)
        lines = without_jax(
            """
            for name in ("default", "without"):
                restored = tf.saved_model.load(sys.argv[1] + "/" + name)
                x = tf.constant(0.5)
                print(round(float(restored.f(x)), 4))
                try:
                    with tf.GradientTape() as tape:
                        tape.watch(x)
                        y = restored.f(x)
                    print(float(tape.gradient(y, x)))
                except LookupError as error:
                    print("LookupError")
            """,
            tmp_path,
        )
        assert lines == ["0.4794", "5.0", "0.4794", "LookupError"]

    def test_a_function_without_reverse_gradient_saved_without_it(self, tmp_path):
        converted = jax2tf.convert(
            lambda x: jax.lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)
        )
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        restored = self.save(tmp_path, converted, tf.TensorSpec([]), options=options)
        assert float(restored.f(tf.constant(6.0))) == 0.75

    @pytest.mark.parametrize("native", [False, True])
    def test_warmed_shapes_with_gradients(self, tmp_path, native):
        module = tf.Module()
        converted = jax2tf.convert(lambda x: jnp.sin(x).sum(), native_serialization=native)
        module.f = tf.function(converted, autograph=False)
        shapes = [(1, 28), (16, 28)]
        for shape in shapes:
            module.f(tf.ones(shape))
        tf.saved_model.save(module, str(tmp_path), options=CUSTOM_GRADIENTS)
        restored = tf.saved_model.load(str(tmp_path))
        for shape in shapes:
            x = tf.ones(shape)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = restored.f(x)
            np.testing.assert_allclose(tape.gradient(y, x), np.cos(np.ones(shape)), rtol=1e-5)
        with pytest.raises(ValueError, match="Could not find matching concrete function"):
            restored.f(tf.ones([2, 28]))

    @pytest.mark.parametrize("native", [False, True])
    def test_a_compiled_core_between_strings(self, tmp_path, native):
        core = tf.function(
            jax2tf.convert(
                lambda x: jnp.tanh(x) * 2, polymorphic_shapes="b", native_serialization=native
            ),
            autograph=False,
            jit_compile=True,
        )

        def of_text(text):
            numbers = tf.strings.to_number(tf.strings.split(text, sep=","))
            return tf.strings.as_string(core(numbers), precision=3)

        restored = self.save(tmp_path, of_text, tf.TensorSpec([], tf.string))
        for fun in (of_text, restored.f):
            for text, count in (("0,0.5,1", 3), ("0.25", 1)):
                expected = [f"{2 * np.tanh(float(t)):.3f}".encode() for t in text.split(",")]
                actual = fun(tf.constant(text)).numpy().tolist()
                assert (actual, len(actual)) == (expected, count)

    def test_a_round_trip_through_jax(self, tmp_path):
        @jax.custom_vjp
        def fun(x):
            return x * x

        fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (ct * 3 * x,))
        restored = self.save(tmp_path, jax2tf.convert(fun), tf.TensorSpec([]))
        back = jax2tf.call_tf(restored.f)
        assert float(back(np.float32(2))) == 4
        assert float(jax.grad(back)(np.float32(2))) == 6


def test_unsafe_rbg_keeps_graphs_small():
    def sample(key):
        return jax.random.normal(key, (3,))

    sizes = {}
    for impl in ("threefry2x32", "unsafe_rbg"):
        key = jax.random.key_data(jax.random.key(0, impl=impl))
        fun = jax2tf.convert(lambda k, i=impl: sample(jax.random.wrap_key_data(k, impl=i)))
        graph = tf.function(fun, autograph=False).get_concrete_function(key).graph.as_graph_def()
        functions = sum(len(f.node_def) for f in graph.library.function)
        sizes[impl] = len(graph.node) + functions
    assert sizes["unsafe_rbg"] < sizes["threefry2x32"]
