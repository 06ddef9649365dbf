"""What `convert` and `Module` take for a function: what jax.jit takes, and objects with state."""

from __future__ import annotations

import dataclasses
import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
W = np.arange(4, dtype=np.float32)


def power(x, n, mode="up", *, shift=None):
    """A function of a number, a text and an optional array."""
    y = x**n if mode == "up" else x / n
    return y if shift is None else y + shift


@dataclasses.dataclass
class Equal:
    """Equality without a hash, and a list for its state."""

    weights: list

    def __call__(self, x):
        return x * self.weights[0]

    def method(self, x):
        return x * self.weights[0]

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def jitted(self, x, n):
        return x * self.weights[0] ** n

    __hash__ = None


class WithIdentity(Equal):
    __hash__ = object.__hash__


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Tree:
    """A pytree that holds an array and, where a network has one, a function."""

    weights: object
    activation: object = jnp.sin

    def __call__(self, x):
        return self.activation(x * self.weights)


class LibrarysJit:
    """What libraries make of jax.jit: all that is no array is static, in arguments and results."""

    def __init__(self, fun):
        self.fun, self.traced = fun, 0
        self.__wrapped__ = fun
        self.__name__ = getattr(fun, "__name__", fun)  # which need not be a text

    def _jitted(self, args, kwargs):
        leaves, tree = jax.tree.flatten((args, kwargs))
        is_array = [isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves]
        opaque = []

        @jax.jit
        def of_arrays(arrays):
            self.traced += 1
            remaining = iter(arrays)
            given = [next(remaining) if a else v for a, v in zip(is_array, leaves, strict=True)]
            args, kwargs = jax.tree.unflatten(tree, given)
            results, out_tree = jax.tree.flatten(self.fun(*args, **kwargs))
            kept = [r if isinstance(r, jax.Array) else None for r in results]
            opaque.append(([None if k is not None else r for k, r in zip(kept, results)], out_tree))  # noqa: B905
            return kept

        kept = of_arrays([v for a, v in zip(is_array, leaves, strict=True) if a])
        others, out_tree = opaque[-1]
        return jax.tree.unflatten(
            out_tree, [o if k is None else k for k, o in zip(kept, others, strict=True)]
        )

    def __call__(self, *args, **kwargs):
        return self._jitted(args, kwargs)

    def lower(self, *args, **kwargs):
        raise NotImplementedError

    __hash__ = None


CALLABLES = {
    "partial of a keyword": functools.partial(power, n=3.0),
    "partial of an array": functools.partial(power, n=W + 1),
    "partial of a partial": functools.partial(functools.partial(power, mode="down"), n=W + 1),
    "JAX's partial": jax.tree_util.Partial(power, n=jnp.asarray(W)),
    "bound method": Equal([W]).method,
    "object without a hash": Equal([W]),
    "object with an identity": WithIdentity([W]),
    "pytree": Tree(jnp.asarray(W)),
    "jitted bound method": jax.jit(Equal([W]).method),
    "vmap": jax.vmap(functools.partial(power, n=2)),
    "gradient": jax.grad(lambda x: jnp.sum(x**2)),
    "custom derivative": jax.nn.relu6,
    "builtin": operator.neg,
    "without a signature": getattr(operator, "methodcaller")("__neg__"),  # noqa: B009
    "jax.numpy's": jnp.negative,
    "a library's jit": LibrarysJit(jnp.sin),
    "a library's jit of a network": LibrarysJit(Tree(jnp.asarray(W))),
    "donated": jax.jit(lambda x: x * 2, donate_argnums=0),
    "inlined, unused kept": jax.jit(lambda x, y=1: x * 2, inline=True, keep_unused=True),
    "placed": jax.jit(
        jnp.sin, in_shardings=jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    ),
}


@pytest.mark.parametrize("fun", CALLABLES.values(), ids=CALLABLES)
def test_a_callable_gives_what_it_gives_in_jax(fun, mode):
    expected = fun(jnp.asarray(X))
    np.testing.assert_allclose(mode(jax2tf.convert(fun))(X), expected, rtol=1e-5, atol=1e-6)


def test_the_state_of_an_object_is_that_of_the_first_call_of_each_conversion():
    scale = WithIdentity([W])
    np.testing.assert_array_equal(jax2tf.convert(scale)(X), X * W)
    scale.weights = [W + 1]
    np.testing.assert_array_equal(jax2tf.convert(scale)(X), X * (W + 1))


def test_names_are_those_of_what_was_wrapped():
    assert jax2tf.convert(power).__name__ == "power"
    with pytest.raises(TypeError, match=r"convert\(power\): argument n: expected a number"):
        jax2tf.convert(functools.partial(power, mode="up"))(X, object())
    with pytest.raises(TypeError, match=r"convert\(method\): argument x: expected"):
        jax2tf.convert(Equal([W]).method)(object())
    with pytest.raises(TypeError, match=r"argument xs\[1\]\[0\]: expected a number"):
        jax2tf.convert(lambda *xs: xs)(X, [object()])


class TestStatic:
    @pytest.mark.parametrize(
        "jitted",
        [
            jax.jit(power, static_argnames=("n", "mode", "shift")),
            jax.jit(power, static_argnums=(1, 2), static_argnames=("n", "mode", "shift")),
        ],
        ids=["names", "numbers"],
    )
    @pytest.mark.parametrize(
        ("args", "kwargs"),
        [
            ((3,), {}),
            ((3, "down"), {}),
            ((3, None), {"shift": None}),
            ((), {"n": 2, "mode": "down", "shift": True}),
        ],
    )
    def test_python_values(self, jitted, args, kwargs, mode):
        expected = jitted(X, *args, **kwargs)
        actual = mode(jax2tf.convert(jitted))(X, *args, **kwargs)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)

    def test_counted_from_the_end(self):
        jitted = jax.jit(lambda x, mode: power(x, 2, mode), static_argnums=-1)
        np.testing.assert_allclose(jax2tf.convert(jitted)(X, "down"), X / 2)

    def test_counted_from_the_end_of_any_number(self):
        jitted = jax.jit(lambda x, *rest: x + len(range(rest[-1])) + rest[0], static_argnums=-1)
        for args in ((2, 3), (2, 1, 3)):
            np.testing.assert_array_equal(jax2tf.convert(jitted)(X, *args), jitted(X, *args))

    def test_of_a_bound_method_and_of_a_partial(self):
        method = WithIdentity([W]).jitted
        np.testing.assert_allclose(jax2tf.convert(method)(X, 2), X * W**2, rtol=1e-6)
        jitted = functools.partial(jax.jit(power, static_argnames=("n", "mode")), mode="down")
        np.testing.assert_allclose(jax2tf.convert(jitted)(X, 2), X / 2)

    @pytest.mark.parametrize(
        ("argnums", "static"), [((0, 2), "n"), ((0, -1), "last"), ((0, -2), "n"), ((0, 3), "last")]
    )
    def test_of_a_bound_method_are_counted_with_what_it_is_bound_to(self, argnums, static):
        class Steps:
            @functools.partial(jax.jit, static_argnums=argnums)
            def call(self, x, n, last):
                # range takes a Python value alone.
                return x + len(range({"n": n, "last": last}[static])) + n * last

        expected = Steps().call(X, 2, 3)
        np.testing.assert_array_equal(jax2tf.convert(Steps().call)(X, 2, 3), expected)

    def test_each_value_is_traced_once(self):
        traced = []

        @functools.partial(jax.jit, static_argnames="n")
        def fun(x, n):
            traced.append(n)
            return x * n

        converted = jax2tf.convert(fun)
        for n in (2, 3, 2, True, 1, 1.0, (1, 2)[0], 3):
            np.testing.assert_array_equal(converted(X, n), X * n)
        assert traced == [2, 3, True, 1, 1.0]
        assert list(map(type, traced)) == [int, int, bool, int, float]

    def test_other_arguments_stay_arguments(self):
        converted = jax2tf.convert(jax.jit(power, static_argnames="mode"))
        n = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(converted(tf.constant(X), n, mode="down"))
        np.testing.assert_allclose(tape.gradient(y, n), -X.sum() / 9, atol=1e-6)

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}, {"enable_xla": False}])
    def test_in_a_saved_module(self, options, tmp_path):
        def fun(params, x, kind):
            return x @ params["w"] if kind == "linear" else x

        jitted = jax.jit(fun, static_argnames="kind")
        module = jax2tf.Module(jitted, {"w": np.eye(4, 3)}, polymorphic_shapes="b, _", **options)
        np.testing.assert_array_equal(module(X, kind="other"), X)
        module.linear = tf.function(
            lambda x: module(x, "linear"), input_signature=[tf.TensorSpec([None, 4])]
        )
        tf.saved_model.save(module, tmp_path)
        restored = tf.saved_model.load(tmp_path)
        np.testing.assert_allclose(restored.linear(X), X[:, :3])

    def test_shapes_are_evaluated_for_them(self):
        evaluate = jax2tf.eval_polymorphic_shape(
            jax.jit(lambda x, n: [x] * n, static_argnums=1), polymorphic_shapes=["b, _", None]
        )
        assert evaluate(tf.TensorSpec([None, 4]), 2)[1] == ["(b, 4)", "(b, 4)"]

    def test_jax_refuses_what_has_no_hash(self):
        with pytest.raises(ValueError, match=r"Non-hashable static arguments.*'list'"):
            jax2tf.convert(jax.jit(power, static_argnames="n"))(X, [3])

    def test_a_tensor_has_no_value_that_can_be_static(self):
        converted = jax2tf.convert(jax.jit(power, static_argnames="n"))
        for call in (converted, tf.function(converted)):
            with pytest.raises(TypeError, match=r"argument n is static in jax.jit.*as a tensor"):
                call(X, n=tf.constant(3))


class TestALibrarysJit:
    """It takes trees with functions, texts and numbers, and may give them back."""

    def step(self, network, x, rate=0.5, mode="up"):
        assert isinstance(rate, float)
        assert isinstance(mode, str)
        return Tree(network.weights * rate, network.activation), network(x), mode

    def test_whatever_is_no_array_is_left_to_it(self, mode):
        network = Tree(W, jnp.cos)
        converted = jax2tf.convert(LibrarysJit(self.step))
        results = []

        def run(x):
            results.append(converted(network, x, mode="down"))
            return results[-1][0].weights, results[-1][1]

        weights, y = mode(run)(tf.constant(X))
        np.testing.assert_array_equal(weights, W / 2)
        np.testing.assert_allclose(y, np.cos(X * W), rtol=1e-5)
        assert results[-1][0].activation is jnp.cos
        assert results[-1][2] == "down"

    def test_each_such_value_is_traced_once(self):
        jitted = LibrarysJit(self.step)
        converted = jax2tf.convert(jitted)
        for activation in (jnp.sin, jnp.cos, jnp.sin):
            converted(Tree(W, activation), X)
        assert jitted.traced == 2

    def test_it_is_compiled_by_itself(self):
        graph = tf.function(jax2tf.convert(LibrarysJit(jnp.sin)), autograph=False)
        (call,) = [
            op
            for op in graph.get_concrete_function(tf.TensorSpec([2])).graph.get_operations()
            if "PartitionedCall" in op.type
        ]
        assert call.get_attr("_XlaMustCompile")

    @pytest.mark.parametrize("wrap", [lambda f: f, LibrarysJit])
    def test_a_module_has_variables_of_its_arrays(self, wrap):
        module = jax2tf.Module(
            wrap(lambda network, x: network(x)), Tree(W, jnp.cos), polymorphic_shapes="b, _"
        )
        assert [(v.name, v.trainable) for v in module.variables] == [("weights:0", True)]
        assert module.params.activation is jnp.cos
        with tf.GradientTape() as tape:
            y = module(tf.constant(X))
        np.testing.assert_allclose(y, np.cos(X * W), rtol=1e-5)
        expected = (-np.sin(X * W) * X).sum(0)
        (gradient,) = tape.gradient(y, module.trainable_variables)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)

    def test_another_function_refuses_them_as_jax_does(self):
        def call(network, x):
            return network(x)

        with pytest.raises(TypeError, match="activation"):
            jax.jit(call)(Tree(W), X)
        with pytest.raises(TypeError) as error:
            jax2tf.convert(call)(Tree(W), X)
        text = str(error.value)
        assert "jax2tf.convert(call): argument network.activation: expected a number" in text
        assert "What to do: close over what is no array, or jit the function as" in text


def test_a_text_for_an_argument_is_refused_with_the_way_to_make_it_static():
    with pytest.raises(TypeError) as error:
        jax2tf.convert(power)(X, 2, mode="up")
    text = str(error.value)
    assert "jax2tf.convert(power): argument mode: expected a number" in text
    assert "got builtins.str" in text
    assert "jax2tf.convert(jax.jit(power, static_argnames='mode'))" in text
