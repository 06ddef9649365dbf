"""JAX inside TensorFlow inside JAX, and the other way round, for a sample of the harnesses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from harnesses.engine.compare import compare
from harnesses.engine.selection import Selection
from harnesses.harness import CALL_TF
from jax2tf import CallTfError, ConversionError, call_tf, convert
from limitations.ledger import load
from tests.running import MODES, gradient_in_graph

_LIMITED = {primitive for entry in load() for primitive in entry.primitive}
_NOT_PASSED = {"random", "callbacks"}  # typed keys; what XLA does not compile
SAMPLE = [
    harness
    for harness in Selection(sample=60).harnesses()
    if harness.primitive not in _LIMITED and harness.family not in _NOT_PASSED
]
OF_TENSORFLOW = [
    harness
    for harness in Selection(sample=20, direction=CALL_TF).harnesses()
    if not {p for entry in load(direction=CALL_TF) for p in entry.primitive} & {harness.primitive}
]


LOWERINGS = {"xla": {}, "no_xla": {"enable_xla": False}, "native": {"native_serialization": True}}
each_lowering = pytest.mark.parametrize("options", LOWERINGS.values(), ids=LOWERINGS)


@each_lowering
@pytest.mark.parametrize("harness", SAMPLE, ids=lambda harness: harness.name)
def test_call_of_converted(harness, options):
    with jax.enable_x64(harness.x64):
        args = harness.make_args()
        expected = jax.tree.map(np.asarray, jax.jit(harness.fun)(*args))
        actual = jax.jit(call_tf(convert(harness.fun, **options)))(*args)
        assert compare(harness, args, expected, jax.tree.map(np.asarray, actual)).problem is None


@each_lowering
@pytest.mark.parametrize("harness", OF_TENSORFLOW, ids=lambda harness: harness.name)
def test_converted_call(harness, options):
    with jax.enable_x64(True):
        args = harness.make_args()
        expected = jax.tree.map(np.asarray, harness.fun(*map(tf.constant, args)))
        converted = convert(call_tf(harness.fun), **options)
        for run in (converted, tf.function(converted, autograph=False)):
            actual = jax.tree.map(np.asarray, run(*map(tf.constant, args)))
            assert compare(harness, args, expected, actual).problem is None


@pytest.mark.parametrize("options", [{"enable_xla": False}, {"native_serialization": True}])
def test_other_lowerings(options):
    x = np.ones(3, np.float32)
    back = call_tf(convert(jnp.sin, **options))
    assert_allclose(jax.jit(back)(x), np.sin(x), rtol=1e-6)
    assert_allclose(jax.jit(jax.grad(lambda x: back(x).sum()))(x), np.cos(x), rtol=1e-6)
    there = convert(lambda x: jnp.cos(call_tf(tf.sin)(x)), **options)
    assert_allclose(tf.function(there, autograph=False)(x), np.cos(np.sin(x)), rtol=1e-6)


class TestNative:
    """Calls of TensorFlow inside of the one op that holds the function's StableHLO."""

    X = tf.constant([[0.5, 1.5], [2.0, -1.0]])

    def test_captured_variables_and_their_gradients(self, mode):
        v, w = tf.Variable([2.0, 3.0]), tf.Variable(4.0, trainable=False)
        large = tf.reshape(tf.range(1000.0), [500, 2])

        def layer(x):
            return tf.sin(x * v) * w + tf.reduce_sum(large, 0)

        f = convert(lambda x: jnp.cos(call_tf(layer)(x)), native_serialization=True)
        run = mode(f)

        def gradients(f):
            with tf.GradientTape() as tape:
                tape.watch(self.X)
                y = f(self.X)
            return y, tape.gradient(y, [self.X, v])

        def compare_all():
            for one, other in zip(
                jax.tree.leaves(gradients(run)),
                jax.tree.leaves(gradients(lambda x: tf.cos(layer(x)))),
                strict=True,
            ):
                assert_allclose(one, other, rtol=1e-5, atol=1e-5)

        compare_all()
        v.assign([5.0, -1.0])
        w.assign(0.5)
        compare_all()

    def test_a_loop_beside_a_variable(self):
        """XLA copies the variable, and JAX exports no copies."""
        v = tf.Variable(np.arange(2, dtype=np.int32))

        def f(x):
            _, x = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * 2), (0, x))
            return x, tf.identity(v)

        batches = jax.vmap(jax.vmap(call_tf(f)))
        x = tf.ones([3, 1, 4])
        doubled, copied = convert(batches, native_serialization=True)(x)
        assert_allclose(doubled, x * 4)
        assert_allclose(copied, np.broadcast_to(v, (3, 1, 2)))

    def test_calls_on_the_host(self):
        def program(x):
            return call_tf(tf.sin, compile=False)(x) + 1

        with pytest.raises(
            ConversionError,
            match=r"call_tf\(sin, compile=False\) runs on the host.*round_trips.py:\d+.*"
            "native_serialization=False",
        ):
            convert(program, native_serialization=True)(self.X)
        assert_allclose(convert(program)(self.X), np.sin(self.X) + 1, rtol=1e-6)

    def test_variables_that_are_written(self):
        v = tf.Variable(1.0, name="counter")
        f = convert(call_tf(lambda x: x + v.assign_add(1.0)), native_serialization=True)
        with pytest.raises(ConversionError, match=r"writes to counter:0"):
            f(self.X)


def _shifted(x):
    return tf.sin(x) + tf.constant([1.0, 2.0])


def _joined(x):
    return tf.concat([x, tf.cos(x)], 0)


_GRAPH = {"call_tf_graph": True}
_OPEN = {"polymorphic_shapes": "b, _"}


class TestFunctionList:
    """Native modules that call TensorFlow's graphs, which the op that holds the module lists."""

    X = tf.constant([[0.5, 1.5], [2.0, -1.0]])

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("function", "how", "options"),
        [
            (_shifted, _GRAPH, {}),
            (_shifted, _GRAPH, _OPEN),
            (_shifted, {}, _OPEN),
            (_joined, {}, _OPEN),
            (_shifted, {}, {"native_serialization_platforms": ("cpu", "cuda")}),
        ],
    )
    def test_values_and_gradients(self, function, how, options, mode):
        def program(x):
            called = call_tf(function, **how)
            return jnp.cos(called(x) + called(2 * x))

        def expected(x):
            return tf.cos(function(x) + function(2 * x))

        f = MODES[mode](convert(program, native_serialization=True, **options))
        for one, other in zip(self.with_gradient(f), self.with_gradient(expected), strict=True):
            assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def with_gradient(self, f):
        with tf.GradientTape() as tape:
            tape.watch(self.X)
            y = f(self.X)
        return y, tape.gradient(y, self.X)

    @pytest.mark.parametrize("transformed", ["scan", "vmap", "cond"])
    def test_inside_of_transformations(self, transformed):
        called = call_tf(tf.sin, call_tf_graph=True)
        function = {
            "scan": lambda x: jax.lax.scan(lambda c, _: (called(c), None), x, None, length=2)[0],
            "vmap": lambda x: called(jax.vmap(called)(x)),
            "cond": lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: called(called(x)), jnp.cos, x),
        }[transformed]
        for options in ({}, _OPEN if transformed != "vmap" else {}):
            result = convert(function, native_serialization=True, **options)(self.X)
            assert_allclose(result, np.sin(np.sin(self.X)), rtol=1e-6)

    def test_the_op_lists_each_function_once(self):
        def program(x):
            first, second = (call_tf(f, call_tf_graph=True) for f in (_shifted, _joined))
            return second(first(x) + first(2 * x))

        f = tf.function(convert(program, native_serialization=True), autograph=False)
        (op,) = (
            op
            for op in f.get_concrete_function(self.X).graph.get_operations()
            if op.type == "XlaCallModule"
        )
        assert len(op.get_attr("function_list")) == 2

    def test_a_saved_model_needs_no_jax(self, tmp_path, without_jax):
        module = tf.Module()
        module.f = tf.function(
            convert(call_tf(_shifted), native_serialization=True, **_OPEN),
            autograph=False,
            input_signature=[tf.TensorSpec([None, 2])],
        )
        tf.saved_model.save(module, tmp_path / "saved")
        code = "print(*tf.saved_model.load(sys.argv[1]).f(tf.zeros([3, 2])).numpy().ravel())"
        assert without_jax(code, tmp_path / "saved") == ["1.0 2.0 1.0 2.0 1.0 2.0"]

    def test_variables_are_refused(self):
        w = tf.Variable(2.0, name="weight")
        f = convert(call_tf(lambda x: x * w, call_tf_graph=True), native_serialization=True)
        with pytest.raises(
            ConversionError, match=r"captures the variable weight:0.*: pass it as an argument"
        ):
            f(self.X)


def test_typed_keys_inside_of_a_traced_call():
    key = jax.random.key(3)

    def draw(key, x):
        return x * jax.random.uniform(key) + jax.random.bits(jax.random.key(4), (), "uint8")

    captured = convert(lambda x: draw(key, x))
    passed = convert(draw)
    for fun in (captured, lambda x: passed(key, x)):
        x = np.float32(2)
        assert_allclose(jax.jit(call_tf(fun))(x), draw(key, x), rtol=1e-6)


@pytest.mark.parametrize("open_axis", [0, 1])
def test_a_result_of_another_size_than_was_stated(open_axis):
    """Only the run can tell, where the size is a dimension variable."""

    def wrong(x):
        stated = jax.ShapeDtypeStruct(x.shape, x.dtype)
        shorter = (slice(None),) * open_axis + (slice(1, None),)
        return call_tf(lambda t: t[shorter], output_shape_dtype=stated)(x)

    converted = convert(wrong, polymorphic_shapes=["b, 3", "3, b"][open_axis])
    message = f"dimension {open_axis} of a result is not b"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        converted(tf.ones([3, 3]))


def test_more_dimension_variables_than_formulas_are_tried_for():
    many = convert(call_tf(lambda x: x + 1), polymorphic_shapes="a, b, c, d, e")
    with pytest.raises(
        CallTfError, match=r"\(a, b, c, d, e\).*State call_tf\(\.\.\., output_shape_dtype"
    ):
        many(np.ones([1, 2, 3, 4, 5], np.float32))
    four = convert(call_tf(lambda x: x + 1), polymorphic_shapes="a, b, c, d, _")
    assert_allclose(four(np.ones([1, 2, 3, 4, 5], np.float32)), np.full([1, 2, 3, 4, 5], 2))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transformed", ["cond", "scan", "switch"])
def test_the_gradient_of_a_tf_cond_inside_of_control_flow(transformed, mode):
    scale = tf.Variable(3)

    def function(x):
        return tf.cond(tf.reduce_sum(x) > 1, lambda: x * tf.cast(scale, x.dtype), lambda: x * x)

    called = call_tf(function)
    program = {
        "cond": lambda x: jax.lax.cond(x.sum() > 0, called, jnp.sin, x),
        "scan": lambda x: jax.lax.scan(lambda c, _: (called(c), None), x, None, length=2)[0],
        "switch": lambda x: jax.lax.switch(1, [jnp.sin, called, jnp.cos], x),
    }[transformed]
    gradient = MODES[mode](convert(jax.grad(lambda x: program(x).sum())))
    for x in (np.float32([1, 2]), np.float32([0.25, 0.5]), np.float32([-1, 0.5])):
        expected = jax.grad(lambda x: program(x).sum())(x)
        assert_allclose(gradient(x), expected, rtol=1e-6)


BEFORE = {
    "a derivative in a graph": lambda f, x: tf.function(convert(jax.grad(call_tf(f))))(x),
    "a tape in a graph": lambda f, x: gradient_in_graph(f)(tf.constant(x)),
    "op by op": lambda f, x: jax.grad(call_tf(f))(x),
}
COMPILED = {
    "a derivative": lambda f: convert(jax.jit(jax.grad(call_tf(f)))),
    "a tape": lambda f: gradient_in_graph(convert(jax.jit(call_tf(f)))),
    "of checkpoint": lambda f: convert(jax.jit(jax.grad(jax.checkpoint(call_tf(f))))),
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("compiled", COMPILED)
def test_a_branch_that_a_graph_has_differentiated_is_compiled(compiled, before):
    """TensorFlow adds to its branches, in the one trace of it, what XLA does not compile."""
    scale = tf.Variable(tf.constant(2, tf.float16))

    @tf.function(autograph=False)
    def function(x):
        def number():
            return tf.cast(scale, tf.float32)

        return x * tf.cond(scale > 0, lambda: tf.square(number()), lambda: tf.sin(number()))

    x = np.float32(1.5)
    assert_allclose(BEFORE[before](function, x), 4)
    assert_allclose(COMPILED[compiled](function)(tf.constant(x)), 4)
