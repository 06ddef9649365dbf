"""Gradients of converted functions: JAX's own, in every way that TensorFlow asks for them."""

from __future__ import annotations

import gc
import re
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import assert_near, first_and_second, ops_of

assert_close = partial(assert_near, ulps=64, each=True)


def tf_gradient(fun, *args):
    """The gradient of fun's sum with respect to all of its arguments, by a tape."""
    tensors = [tf.convert_to_tensor(a) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = tf.reduce_sum(fun(*tensors))
    return tape.gradient(result, tensors)


def product(x, y):
    return jnp.sin(x) * y + jnp.exp(y)


X = np.array([0.5, -1.0, 2.0], np.float32)
Y = np.array([1.5, 0.25, -2.0], np.float32)
WAYS = {
    "eager": lambda fun: fun,
    "tape inside the graph": lambda fun: tf.function(fun, autograph=False),
    "compiled": lambda fun: tf.function(fun, autograph=False, jit_compile=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jitted"])
def test_first_order(way, wrap):
    converted = jax2tf.convert(wrap(product))
    actual = WAYS[way](lambda x, y: tf_gradient(converted, x, y))(X, Y)
    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_tape_around_a_graph(jit_compile):
    graph = tf.function(jax2tf.convert(product), autograph=False, jit_compile=jit_compile)
    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    graph(X, Y)  # traced while no tape watches
    for a, e in zip(tf_gradient(graph, X, Y), expected, strict=True):
        assert_close(a, e)


def test_tf_gradients():
    converted = jax2tf.convert(product)

    @tf.function(autograph=False)
    def gradients(x, y):
        return tf.gradients(converted(x, y), [x, y])

    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    for a, e in zip(gradients(tf.constant(X), tf.constant(Y)), expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("way", WAYS)
def test_nested_tapes(way):
    def fun(x):
        return jnp.sin(x) * x**2

    converted = jax2tf.convert(fun)

    def third(x):
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = converted(x)
                d1 = t1.gradient(y, x)
            d2 = t2.gradient(d1, x)
        return d1, d2, t3.gradient(d2, x)

    x = np.float32(0.7)
    d1 = jax.grad(fun)
    d2 = jax.grad(d1)
    expected = (d1(x), d2(x), jax.grad(d2)(x))
    for a, e in zip(WAYS[way](third)(tf.constant(x)), expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shapes", [None, "b"])
def test_nested_tapes_around_a_graph(shapes, jit_compile):
    def fun(x):
        return jnp.sum(jnp.sin(x) * x**2) / x.shape[0]

    converted = jax2tf.convert(fun, polymorphic_shapes=shapes)
    graph = tf.function(converted, autograph=False, jit_compile=jit_compile)
    expected = jax.grad(fun)(X), jax.grad(lambda x: jnp.sum(jax.grad(fun)(x) ** 2))(X)
    for a, e in zip(first_and_second(graph, tf.constant(X)), expected, strict=True):
        assert_close(a, e, ulps=512)
    inside = tf.function(first_and_second, autograph=False)
    for a, e in zip(inside(converted, tf.constant(X)), expected, strict=True):
        assert_close(a, e, ulps=512)


def test_the_rules_are_jaxs():
    assert float(tf_gradient(jax2tf.convert(jax.nn.relu), np.float32(0))[0]) == 0

    @jax.custom_vjp
    def doubled(x):
        return x

    doubled.defvjp(lambda x: (x, None), lambda _, ct: (ct * 2,))
    assert float(tf_gradient(jax2tf.convert(doubled), np.float32(3))[0]) == 2

    @jax.custom_jvp
    def tripled(x):
        return x

    tripled.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 3))
    assert float(tf_gradient(jax2tf.convert(tripled), np.float32(3))[0]) == 3


def test_integers_and_unused_arguments():
    def fun(x, n, unused):
        return x * n, n + 1

    converted = jax2tf.convert(fun)
    x, n, unused = tf.constant(2.0), tf.constant(3), tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, unused])
        y, m = converted(x, n, unused)
    assert float(tape.gradient(y, x)) == 3
    assert float(tape.gradient(y, unused)) == 0
    assert tape.gradient(m, x) is None or float(tape.gradient(m, x)) == 0
    assert int(m) == 4


def test_complex():
    def fun(z):
        return jnp.abs(z * z + z) ** 2

    z = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
    expected = jax.grad(lambda z: fun(z).sum())(z)
    # TensorFlow's convention for a complex argument is the conjugate of JAX's.
    assert_close(tf_gradient(jax2tf.convert(fun), z)[0], np.conj(expected), ulps=512)


@pytest.mark.parametrize("native", [False, True])
def test_forward_mode(mode, native):
    converted = jax2tf.convert(product, native_serialization=native)

    def tangent(x, y, fun):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            result = fun(x, y)
        return accumulator.jvp(result)

    _, expected = jax.jvp(lambda x: product(x, Y), (X,), (np.ones_like(X),))
    x, y = tf.constant(X), tf.constant(Y)
    inside = mode(lambda x, y: tangent(x, y, converted))
    assert_close(inside(x, y), expected)
    assert_close(tangent(x, y, mode(converted)), expected)


@pytest.mark.parametrize("nothing", [None, (), {"a": [], "b": None}])
@pytest.mark.parametrize("argument", [X, None])
def test_no_results(mode, argument, nothing):
    assert mode(jax2tf.convert(lambda x: nothing))(argument) == nothing


def test_variables():
    weights = {"w": tf.Variable(X), "b": tf.Variable(Y)}
    converted = jax2tf.convert(lambda p, x: p["w"] * x + p["b"])
    with tf.GradientTape() as tape:
        result = tf.reduce_sum(converted(weights, X))
    gradients = tape.gradient(result, weights)
    assert_close(gradients["w"], X)
    assert_close(gradients["b"], np.ones(3, np.float32))


def test_switched_off():
    converted = jax2tf.convert(product, with_gradient=False)
    assert_close(converted(X, Y), product(X, Y))
    with pytest.raises(LookupError, match=r"convert\(product, with_gradient=False\) was asked for"):
        tf_gradient(converted, X, Y)


def test_switched_off_in_a_graph_for_engines():
    converted = jax2tf.convert(product, with_gradient=False, enable_xla=False)
    function = tf.function(converted, autograph=False)
    concrete = function.get_concrete_function(tf.constant(X), tf.constant(Y))
    assert "PreventGradient" not in ops_of(concrete)
    with pytest.raises(LookupError, match=r"jax2tf\.convert\.product\.with_gradient\.False"):
        tf_gradient(function, X, Y)


def test_a_training_step_computes_forward_once():
    def fun(x):
        return jnp.sum(jnp.exp(jnp.sin(x)))

    converted = jax2tf.convert(fun)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([3])])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return y, tape.gradient(y, x)

    graph = step.get_concrete_function().graph.as_graph_def()
    ops = [n.op for n in graph.node] + [n.op for f in graph.library.function for n in f.node_def]
    assert (ops.count("Sin"), ops.count("Exp")) == (1, 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_among_the_residuals_selects(way):
    converted = jax2tf.convert(lambda x: jnp.max(x, 1))
    x = np.array([[1, 1, 0], [np.nan, 1, 0]], np.float32)
    (gradient,) = WAYS[way](lambda x: tf_gradient(converted, x))(x)
    np.testing.assert_array_equal(gradient, [[0.5, 0.5, 0], [0, 0, 0]])


def test_nothing_of_the_gradient_is_made_before_it_is_asked_for():
    traces = []

    @jax.custom_vjp
    def fun(x):
        return x

    fun.defvjp(lambda x: (x, None), lambda _, ct: (traces.append("backward") or ct,))
    graph = tf.function(jax2tf.convert(fun), autograph=False)
    graph(X)
    assert traces == []
    assert_close(tf_gradient(graph, X)[0], np.ones(3, np.float32))
    assert traces


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: jnp.linalg.inv(a),
        lambda a: jnp.linalg.solve(a, jnp.ones(3, np.float32)),
        lambda a: jnp.linalg.det(a),
        lambda a: jnp.linalg.qr(a)[1],
        lambda a: jax.scipy.linalg.expm(a),
        lambda a: jax.lax.cond(a[0, 0] > 0, jnp.sin, jnp.cos, a),
        lambda a: jax.lax.scan(lambda c, x: (c @ jnp.tanh(a), x * c), jnp.eye(3), a)[1],
    ],
    ids=["inv", "solve", "det", "qr", "expm", "cond", "scan"],
)
@pytest.mark.parametrize("way", WAYS)
def test_loops_and_branches_inside(fun, way):
    a = np.eye(3, dtype="float32") + np.arange(9, dtype="float32").reshape(3, 3) / 20
    converted = jax2tf.convert(fun)
    gradient = WAYS[way](lambda a: tf_gradient(converted, a))
    expected = jax.jit(jax.grad(lambda a: jnp.sum(fun(a))))(a)
    np.testing.assert_allclose(gradient(tf.constant(a))[0], expected, rtol=2e-5, atol=2e-5)


def _loop(x, y):
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * jnp.cos(x)), (0, y))[
        1
    ]


@jax.custom_vjp
def adjoint_loops(x, y):
    return x * y


adjoint_loops.defvjp(
    lambda x, y: (x * y, (x, y)),
    lambda kept, ct: (_loop(kept[0], ct * kept[1]), _loop(kept[0], ct * kept[0])),
)
OPTIONS = {
    "ops": {},
    "jitted": {},
    "no_xla": {"enable_xla": False},
    "native": {"native_serialization": True},
}
each_option = pytest.mark.parametrize("option", OPTIONS)
PLACES = {
    "eager": lambda fun: fun,
    "graph": tf.function(autograph=False),
    "compiled": tf.function(autograph=False, jit_compile=True),
}
each_place = pytest.mark.parametrize("place", PLACES)


def converted_with(option, fun):
    return jax2tf.convert(jax.jit(fun) if option == "jitted" else fun, **OPTIONS[option])


def test_a_tape_in_a_graph_and_then_one_around_it():
    """The residuals that the first one makes results of are of an op that has no derivative."""

    def fun(x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.dot(x, x, precision="highest")) * x

    graph = tf.function(jax2tf.convert(fun), autograph=False)
    expected = jax.grad(lambda x: fun(x).sum())(X)
    in_graph = tf.function(tf_gradient, autograph=False)(graph, tf.constant(X))
    assert_close(in_graph, [expected])
    assert_close(tf_gradient(graph, X), [expected])


class TestABackwardRuleThatHasNoDerivative:
    """It fails where its derivative is asked for, and nowhere else."""

    @each_place
    @each_option
    def test_a_tape_around_a_function_that_reads_a_variable(self, option, place):
        converted, y = converted_with(option, adjoint_loops), tf.Variable(Y)
        function = PLACES[place](lambda x: converted(x, y))
        with tf.GradientTape(persistent=True) as tape:
            result = function(tf.constant(X))
        assert_close(tape.gradient(result, y), jax.grad(lambda y: adjoint_loops(X, y).sum())(Y))

    @each_place
    def test_a_tape_that_does_not_ask(self, place):
        converted = jax2tf.convert(adjoint_loops)

        def penalty(x):
            (gradient, _) = tf_gradient(converted, x, Y)
            return x * tf.stop_gradient(gradient)

        gradient = tf_gradient(PLACES[place](penalty), X)[0]
        assert_close(gradient, jax.grad(lambda x: adjoint_loops(x, Y).sum())(X))

    @each_place
    def test_a_second_order_is_refused(self, place):
        function = PLACES[place](jax2tf.convert(lambda x: adjoint_loops(x, Y).sum()))
        with pytest.raises(jax2tf._src.api.errors.NotDifferentiableError) as error:
            first_and_second(function, tf.constant(X))
        for words in ("the gradient of <lambda>", "JAX cannot differentiate", "while_loop"):
            assert words in str(error.value)

    @pytest.mark.parametrize(
        ("fun", "words"),
        [
            (lambda x: _loop(x, x), "while_loop"),
            (lambda x: x.at[0].apply(jnp.sin), "scatter_apply"),
            (lambda x: x.at[jnp.array([0, 0])].multiply(x[1:]), "unique_indices"),
            (lambda x: jnp.abs(jnp.linalg.eig(jnp.diag(x) + jnp.tri(3))[1]).sum(), "eigenvectors"),
        ],
    )
    def test_what_has_none_itself_runs_under_a_tape(self, fun, words):
        converted = jax2tf.convert(fun)
        with tf.GradientTape() as tape:
            x = tf.Variable(X)
            result = converted(x)
        assert_close(result, jax.jit(fun)(X))
        with pytest.raises(jax2tf._src.api.errors.NotDifferentiableError, match=words) as error:
            tape.gradient(result, x)
        assert re.search(r"[^.]\. To run or save it", str(error.value))
        with pytest.raises(jax2tf._src.api.errors.NotDifferentiableError, match=words):
            tf_gradient(tf.function(converted, autograph=False), X)


class TestRulesThatRaise:
    @pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)])
    def test_a_note_says_where_it_comes_from(self, wrap):
        picked = jax.custom_vjp(lambda x, i: x[i])
        picked.defvjp(
            lambda x, i: (x[i], (x, i)),
            lambda saved, ct: (
                jnp.zeros_like(saved[0]).at[saved[1]].set(ct),
                np.zeros(saved[1].shape, jax.dtypes.float0),
            ),
        )
        index = tf.constant([0, 2])
        with tf.GradientTape() as tape:
            x = tf.Variable(X)
            y = wrap(jax2tf.convert(picked))(x, index)
        np.testing.assert_array_equal(tape.gradient(y, x), [1, 0, 1])
        of_every_size = jax2tf.convert(picked, polymorphic_shapes=["b", "c"])
        with tf.GradientTape() as tape, pytest.raises(TypeError, match="_DimExpr") as error:
            tape.gradient(wrap(of_every_size)(x, index), x)
        assert any(
            note.startswith("jax2tf.convert(<lambda>): JAX raised this while it derived the gradi")
            and "cotangent of an integer argument is None" in note
            for note in error.value.__notes__
        )


class TestResultsOfEveryDtype:
    """TensorFlow gives no cotangent, or one of its own kinds, for some results."""

    @staticmethod
    def fun(x, n):
        return {
            "y": x * x,
            "again": x * x,
            "argument": x,
            "integer": jnp.argmax(x) + n,
            "integer argument": n,
            "truth": x > 0,
            "complex": x + 2j * x,
            "empty": x[:0],
        }

    @each_place
    @each_option
    def test_a_tape_around(self, option, place):
        function, x = PLACES[place](converted_with(option, self.fun)), tf.Variable(X)
        with tf.GradientTape(persistent=True) as tape:
            results = function(x, tf.constant(2))
            rows = tf.gather(results["y"], [0, 0, 2])
            total = tf.reduce_sum(rows) + tf.reduce_sum(results["argument"])
            total += tf.reduce_sum(tf.math.imag(results["complex"]))
        assert_close(tape.gradient(total, x), 2 * X * np.float32([2, 0, 1]) + 3)
        assert results["integer"] == 4
        assert_close(tape.gradient([results["y"], results["again"]], x), 4 * X)
        zero = tf.UnconnectedGradients.ZERO
        assert_close(tape.gradient(results["truth"], x, unconnected_gradients=zero), 0 * X)

    def test_float8(self):
        # TensorFlow itself has no zeros for one that comes out of a tf.function.
        converted = jax2tf.convert(lambda x: (x * x, x.astype(jnp.float8_e4m3fn)))
        (gradient,) = tf_gradient(lambda x: converted(x)[0], X)
        assert_close(gradient, 2 * X)

    @each_place
    def test_a_tape_inside_an_accumulator_and_a_jacobian(self, place):
        converted = jax2tf.convert(lambda x: self.fun(x, 2))
        function, x = PLACES[place](lambda x: converted(x)["y"]), tf.constant(X)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = function(x)
        assert_close(accumulator.jvp(y), 2 * X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert_close(tape.jacobian(y, x), np.diag(2 * X))

    @each_option
    def test_restored(self, option, tmp_path):
        module = tf.Module()
        signature = [tf.TensorSpec([3]), tf.TensorSpec([], tf.int32)]
        function = converted_with(option, self.fun)
        module.f = tf.function(function, autograph=False, input_signature=signature)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, str(tmp_path), options=options)
        restored, x = tf.saved_model.load(str(tmp_path)), tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = restored.f(x, tf.constant(2))
        assert_close(tape.gradient([results["y"], results["complex"]], x), 2 * X + 1)


class TestTheGraphOfAConversion:
    """A process that converts time and again keeps none of what it has dropped."""

    @staticmethod
    def _dropped(use):
        """A weak reference to the graph of a converted function that `use` has used."""
        function = tf.function(jax2tf.convert(lambda x: jnp.sin(x) * x), autograph=False)
        use(function)
        graph = function.get_concrete_function(tf.TensorSpec([2], tf.float32)).graph
        return weakref.ref(graph)

    @staticmethod
    def _differentiate(function):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        tape.gradient(y, x)

    @pytest.mark.parametrize("differentiated", [False, True])
    def test_it_goes_with_its_function(self, differentiated):
        use = self._differentiate if differentiated else lambda function: None
        graph = self._dropped(use)
        gc.collect()
        assert graph() is None

    def test_a_copy_that_outlives_it_has_no_gradient(self):
        function = tf.function(jax2tf.convert(lambda x: jnp.sin(x) * x), autograph=False)
        spec = tf.TensorSpec([2], tf.float32)
        graph = function.get_concrete_function(spec).graph
        definition, graph = graph.as_graph_def(), weakref.ref(graph)
        del function
        gc.collect()
        assert graph() is None

        @partial(tf.function, autograph=False)
        def copied(x):
            (y,) = tf.graph_util.import_graph_def(
                definition, input_map={"x:0": x}, return_elements=["IdentityN:0"], name=""
            )
            return y

        with pytest.raises(LookupError, match="No gradient defined"):
            self._differentiate(copied)


def _in_a_branch(function, x):
    return tf.cond(x[0] > 0, lambda: function(x), lambda: x)


def _in_a_branch_of_a_branch(function, x):
    return tf.cond(x[0] > 0, lambda: _in_a_branch(function, x), lambda: x)


def _in_a_case(function, x):
    return tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: function(x)])


def _in_a_branch_of_a_loop(function, x):
    return tf.while_loop(
        lambda i, y: i < 1,
        lambda i, y: (i + 1, _in_a_branch(function, y)),
        (0, x),
        maximum_iterations=1,
    )[1]


def _beside_the_variable_of_a_loop(function, x):
    ends = tf.while_loop(
        lambda i, y: i < 1, lambda i, y: (i + 1, y + function(x)), (0, x), maximum_iterations=1
    )
    return ends[1] - x


class TestInControlFlowOfTensorFlow:
    """The arguments come from the graph around a branch or a body."""

    @pytest.mark.parametrize("jit_compile", [False, True])
    @each_option
    @pytest.mark.parametrize(
        "within",
        [
            _in_a_branch,
            _in_a_branch_of_a_branch,
            _in_a_case,
            _in_a_branch_of_a_loop,
            _beside_the_variable_of_a_loop,
        ],
    )
    def test_gradient(self, within, option, jit_compile):
        converted = converted_with(option, lambda x: jnp.sin(x) * x)
        function = tf.function(
            lambda x: within(converted, x), autograph=False, jit_compile=jit_compile
        )

        @partial(tf.function, autograph=False, jit_compile=jit_compile)
        def by_a_tape_inside(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = within(converted, x)
            return tape.gradient(y, x)

        x = np.array([1.0, 2.0], np.float32)
        expected = jax.grad(lambda x: (jnp.sin(x) * x).sum())(x)
        assert_close(by_a_tape_inside(tf.constant(x)), expected)
        if jit_compile and within is _in_a_branch_of_a_loop:
            # Of TensorFlow's own functions too: what the loop keeps for the tape is a list.
            with pytest.raises(tf.errors.UnimplementedError, match="TensorList"):
                tf_gradient(function, x)
        else:
            assert_close(tf_gradient(function, x)[0], expected)


class TestTheCollector:
    """It does not run while JAX traces: see jax2tf._src.tracing.trace.uncollected."""

    def test_it_waits_for_the_function_and_its_derivative(self):
        seen = []

        @jax.custom_jvp
        def fun(x):
            seen.append(("function", gc.isenabled()))
            return jnp.sin(x)

        @fun.defjvp
        def _(primals, tangents):
            seen.append(("derivative", gc.isenabled()))
            return fun(*primals), jnp.cos(*primals) * tangents[0]

        x = tf.constant(0.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax2tf.convert(fun)(x)
        np.testing.assert_allclose(tape.gradient(y, x), np.cos(0.5), rtol=1e-6)
        assert set(seen) == {("function", False), ("derivative", False)}
        assert gc.isenabled()

    @pytest.mark.parametrize("is_on", [True, False])
    def test_it_is_as_before_after_an_error(self, is_on):
        def wrong(x):
            raise KeyError(x)

        try:
            (gc.enable if is_on else gc.disable)()
            with pytest.raises(KeyError):
                jax2tf.convert(wrong)(np.ones(2, np.float32))
            assert gc.isenabled() == is_on
        finally:
            gc.enable()
