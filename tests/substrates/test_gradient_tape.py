"""tf.GradientTape: TensorFlow's derivatives, and what a tape refuses on JAX and on NumPy."""

from __future__ import annotations

import dataclasses
import threading

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

tf = tf_of("jax")


def x_of(tf):
    return tf.constant([1.5, -2.0])


def derived(function, *arrays, method="gradient", persistent=False, **options):
    """A program: the derivative of a function of watched tensors with respect to all of them."""

    def program(tf):
        xs = [tf.constant(a) for a in arrays]
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(xs)
            y = function(tf, *xs)
        return none_as_text(getattr(tape, method)(y, xs, **options))

    return program


def none_as_text(value):
    if isinstance(value, (list, tuple)):
        return [none_as_text(item) for item in value]
    if isinstance(value, dict):
        return {key: none_as_text(item) for key, item in value.items()}
    return "None" if value is None else value


def case(name, program, **options):
    return Case(name, program, only=("jax",), **options)


X = np.array([1.5, -2.0, 0.25], np.float32)
Z = np.array([1 + 2j, -0.5j], np.complex64)
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]], np.float64)

# Functions of watched tensors, and their operands.
FUNCTIONS = {
    "operators": (lambda tf, x: x * x + 2.0 / x - x / 3 + (1 - x) ** 2 + 3.0 * x - (-x), X),
    "powers": (lambda tf, x: 2.0**x + abs(x) + x % 1.25, X),
    "functions": (lambda tf, x: tf.sin(x) * tf.exp(x), X),
    "float64": (lambda tf, x: tf.sin(x) * 2, X.astype(np.float64)),
    "float16": (lambda tf, x: x * x, X.astype(np.float16)),
    "two operands": (lambda tf, x, y: tf.linalg.matmul(x, y) @ x, MATRIX, MATRIX + 1),
    "matrices": (lambda tf, a: tf.linalg.inv(a), MATRIX),
    "cholesky": (lambda tf, a: tf.linalg.cholesky(a), MATRIX),
    "cholesky of complex": (
        lambda tf, a: tf.linalg.cholesky(a),
        MATRIX + np.array([[0, 0.5j], [-0.5j, 0]]),
    ),
    "a list of operands": (lambda tf, x, y: tf.stack([x, y * 2, x]), X, X),
    "slices": (lambda tf, x: x[1:] * x[0] + x[tf.constant(2)], X),
    "rows": (lambda tf, x: sum(row * i for i, row in enumerate(x)), X),
    "gathered": (lambda tf, x: tf.gather(x * 1.0, [2, 0, 0]) ** 2, X),
    "empty": (lambda tf, x: x * x, np.zeros([0, 2], np.float32)),
    "NaN": (lambda tf, x: x * x, np.array([np.nan, np.inf], np.float32)),
    "where": (lambda tf, x: tf.where(x > 0, x * x, 3 * x), X),
    "complex": (lambda tf, z: z * z * (1 + 1j), Z),
    "real of complex": (lambda tf, z: tf.math.real(z * z), Z),
    "abs of complex": (lambda tf, z: tf.abs(z), Z),
    "not connected": (lambda tf, x: tf.constant(3.0), X),
    "through the same value": (lambda tf, x: tf.identity(tf.reshape(x, [3])), X),
    "several targets": (lambda tf, x, y: [x * y, {"a": y, "b": tf.constant(1.0)}], X, X),
    "one of two": (lambda tf, x, y: y * y, X, X),
    "the source itself": (lambda tf, x: x, X),
    "integers": (lambda tf, x: x * x, np.array([1, 2])),
    "through integers": (lambda tf, x: tf.cast(tf.cast(x, tf.int32), tf.float32), X),
    "a while loop": (
        lambda tf, x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1],
        X,
    ),
    "a while loop on a value": (
        lambda tf, x: tf.while_loop(
            lambda y: tf.reduce_sum(y) < 50.0, lambda y: (y * y + x,), (x,)
        )[0],
        np.array([1.5, 2.0], np.float32),
    ),
    "a branch": (lambda tf, x: tf.cond(tf.reduce_sum(x) < 0, lambda: x * 2, lambda: x**3), X),
    "a case": (lambda tf, x: tf.case([(x[0] > 0, lambda: x * x)], default=lambda: x), X),
    "a switch": (lambda tf, x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x * x]), X),
    "map_fn": (lambda tf, x: tf.map_fn(lambda row: row * row * x[0], x), X),
    "vectorized_map": (lambda tf, x: tf.vectorized_map(lambda row: row * row * x[0], x), X),
    "scan": (lambda tf, x: tf.scan(lambda s, row: s * x[0] + row, x), X),
    "foldl": (lambda tf, x: tf.foldl(lambda s, row: s * row, x, tf.constant(1.0)), X),
    "a compiled function": (lambda tf, x: tf.function(lambda y: y * y * x)(x), X),
    "recomputed": (lambda tf, x: tf.recompute_grad(tf.sin)(x), X),
    "passed through": (lambda tf, x: tf.grad_pass_through(tf.round)(x * 2), X),
    "an own gradient": (
        lambda tf, x: tf.custom_gradient(lambda y: (y * y, lambda up: up * 10.0))(x * 2.0),
        X,
    ),
    "a TensorArray": (
        lambda tf, x: (
            tf.TensorArray(tf.float32, 2, element_shape=[3]).write(0, x * x).write(1, x).stack()
        ),
        X,
    ),
    **{
        f"no derivative of {name}": (lambda tf, x, f=f: f(tf, x), X)
        for name, f in {
            "stop_gradient": lambda tf, x: tf.stop_gradient(x),
            "stop_gradient beside": lambda tf, x: tf.stop_gradient(x) * x,
            "zeros_like": lambda tf, x: tf.zeros_like(x),
            "ones_like": lambda tf, x: tf.ones_like(x),
            "floor": lambda tf, x: tf.floor(x),
            "ceil": lambda tf, x: tf.math.ceil(x),
            "round": lambda tf, x: tf.round(x),
            "rint": lambda tf, x: tf.math.rint(x),
            "floordiv": lambda tf, x: tf.math.floordiv(x, 2.0),
            "//": lambda tf, x: x // 2.0,
            "argmax": lambda tf, x: tf.argmax(x),
            "sign, but zeros": lambda tf, x: tf.sign(x),
        }.items()
    },
}

GRADIENTS = [
    case(name, derived(function, *arrays), rtol=1e-5, atol=1e-6)
    for name, (function, *arrays) in FUNCTIONS.items()
] + [
    case(f"{name}, or zeros", derived(f, *arrays, unconnected_gradients="zero"))
    for name, (f, *arrays) in FUNCTIONS.items()
    if name in ("not connected", "one of two", "no derivative of floor")
]

JACOBIANS = [
    case(f"{method} {name}", derived(f, *arrays, method=method, **options), rtol=1e-5)
    for method, name, f, arrays, options in [
        ("jacobian", "of a vector", lambda tf, x: x * x[0], [X], {}),
        ("jacobian", "of a scalar", lambda tf, x: x[0] * x[1], [X], {}),
        ("jacobian", "of a matrix", lambda tf, a: a @ a, [MATRIX], {}),
        ("jacobian", "complex", lambda tf, z: z * z * 1j, [Z], {}),
        ("jacobian", "of two", lambda tf, x, y: x * tf.sin(y), [X, X], {}),
        ("jacobian", "not connected", lambda tf, x: tf.constant([1.0]), [X], {}),
        (
            "jacobian", "of zeros", lambda tf, x: tf.constant([1.0]), [X],
            {"unconnected_gradients": "zero"},
        ),
        ("jacobian", "of a list", lambda tf, x: [x, x], [X], {}),
        (
            "jacobian", "without parallel", lambda tf, x: x * x[0], [X],
            {"experimental_use_pfor": False, "persistent": True},
        ),
    ]
]  # fmt: skip


def batch_jacobian(function, array, **options):
    def program(tf):
        x = tf.constant(array)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(tf, x)
        return none_as_text(tape.batch_jacobian(y, x, **options))

    return program


BATCH = np.arange(6, dtype=np.float32).reshape(3, 2)
BATCHES = [
    case("a row's Jacobian", batch_jacobian(lambda tf, x: x**3 * x[:, :1], BATCH)),
    case("rows of matrices", batch_jacobian(lambda tf, x: x[..., None] * x[:, None], BATCH)),
    case("other numbers of rows", batch_jacobian(lambda tf, x: x[:2] * 2.0, BATCH)),
    case("vectors", batch_jacobian(lambda tf, x: x[:, 0], BATCH)),
    case("rows not connected", batch_jacobian(lambda tf, x: tf.ones([3, 4]), BATCH)),
    case(
        "rows of zeros",
        batch_jacobian(lambda tf, x: tf.ones([3, 4]), BATCH, unconnected_gradients="zero"),
    ),
]


def second_order(tf):
    x = tf.constant([0.5, 1.5])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.sin(x) * x**2)
        first = inner.gradient(y, x)
    return first, outer.jacobian(first, x)


def third_order(tf):
    x = tf.constant(1.5)
    with tf.GradientTape() as a:
        a.watch(x)
        with tf.GradientTape() as b:
            b.watch(x)
            with tf.GradientTape() as c:
                c.watch(x)
                y = x**5
            first = c.gradient(y, x)
        second = b.gradient(first, x)
    return first, second, a.gradient(second, x)


def through_an_intermediate(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = x * x
        with tf.GradientTape() as inner:
            inner.watch(y)
            z = y**3 * x
        g = inner.gradient(z, y)
    return g, outer.gradient(g, x)


def persistent(tf):
    x = x_of(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.sin(y)
        within = tape.gradient(z, x)
        again = tape.gradient(within, x)
    return [tape.gradient(z, x), tape.gradient(z, [x, y]), tape.jacobian(y, x), within, again]


def stopped(tf):
    x = x_of(tf)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            y = y + x**3
            kept = x * 5.0
        z = y * kept + x
    return tape.gradient(z, x)


def reset(tf):
    x = x_of(tf)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = y * x
    return tape.gradient(z, x)


def entered_again(tf):
    x = x_of(tf)
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    z = y * x
    with tape:
        w = y * x
    return none_as_text([tape.gradient(y, x), tape.gradient(z, x), tape.gradient(w, x)])


def variables(tf):
    v, w = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v * w - (-v) + tf.Variable([1.0, 2.0])[1] * tf.sin(v)
    return none_as_text([str(len(tape.watched_variables())), tape.gradient(y, {"v": v, "w": w})])


def assigned(tf):
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(3.0)
        y = y + v
    return tape.gradient(y, v)


def not_watched_by_itself(tf):
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    return none_as_text(tape.gradient(y, [v, w]))


def entered_twice(tf):
    with tf.GradientTape() as tape, tape:
        pass


def not_watched(tf):
    x, c = x_of(tf), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * c
    return none_as_text(tape.gradient(y, [x, c]))


def upstream(*given):
    def program(tf):
        x = x_of(tf)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = [x * x, x * 3.0][: len(given)]
        return tape.gradient(
            y, x, output_gradients=[g if g is None else tf.constant(g) for g in given]
        )

    return program


def with_tape(use, **options):
    def program(tf):
        x = x_of(tf)
        with tf.GradientTape(**options) as tape:
            tape.watch(x)
            y = x * x
        return none_as_text(use(tf, tape, y, x))

    return program


PROGRAMS = [
    case("second order", second_order, rtol=1e-5),
    case("third order", third_order, rtol=1e-5),
    case("through an intermediate", through_an_intermediate),
    case("persistent", persistent, rtol=1e-5),
    case("stop_recording", stopped),
    case("reset", reset),
    case("entered again", entered_again),
    case("variables", variables),
    case("a variable assigned in the block", assigned),
    case("watch_accessed_variables=False", not_watched_by_itself),
    case("output_gradients", upstream([2.0, 3.0])),
    case("output_gradients of two", upstream([2.0, 3.0], [1.0, -1.0])),
    case("twice", with_tape(lambda tf, t, y, x: [t.gradient(y, x), t.gradient(y, x)])),
    case("never entered", lambda tf: tf.GradientTape().gradient(x_of(tf), x_of(tf))),
    case("watch before", lambda tf: tf.GradientTape().watch(x_of(tf))),
    case("watch a number", lambda tf: tf.GradientTape().watch(3.0)),
    case("a source of None", with_tape(lambda tf, t, y, x: t.gradient(y, None))),
    case("no known word", with_tape(lambda tf, t, y, x: t.gradient(y, x, None, "nope"))),
    case("the enum", lambda tf: [repr(v) for v in tf.UnconnectedGradients]),
    case("a structure", with_tape(lambda tf, t, y, x: t.gradient(y, {"b": [x], "a": (x, y)}))),
    case("entered twice", entered_twice),
    case("a source that is not watched", with_tape(lambda tf, t, y, x: t.gradient(y, y + 0.0))),
    case("not watched, but used", not_watched),
    case("stop before", lambda tf: tf.GradientTape().stop_recording().__enter__()),
    case("stop after", with_tape(lambda tf, t, y, x: t.stop_recording().__enter__())),
    case("reset before", lambda tf: tf.GradientTape().reset()),
    case("computed after", with_tape(lambda tf, t, y, x: t.gradient(y * 2.0, x))),
]


@over([*GRADIENTS, *JACOBIANS, *BATCHES, *PROGRAMS])
def test_as_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.fixture(autouse=True)
def operators_are_jax_own():
    """Whatever a test did, no operator of JAX's classes is left replaced."""
    classes = (type(jax.numpy.zeros(())), jax.core.Tracer)
    before = [(c.__mul__, c.__getitem__, c.__iter__) for c in classes]
    yield
    assert [(c.__mul__, c.__getitem__, c.__iter__) for c in classes] == before


def gradient_of_sine(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    return tape.gradient(y, x)


@pytest.mark.parametrize("x64", [False, True])
def test_a_tape_inside_what_jax_traces(x64):
    with jax.enable_x64(x64):
        x = jax.numpy.asarray([0.5, 1.5])
        expected = np.sin(x) + x * np.cos(x)
        np.testing.assert_allclose(jax.jit(gradient_of_sine)(x), expected, rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(gradient_of_sine)(x), expected, rtol=1e-6)
        second = jax.grad(lambda v: gradient_of_sine(v).sum())(x)
        np.testing.assert_allclose(second, 2 * np.cos(x) - x * np.sin(x), rtol=1e-5)
        assert gradient_of_sine(x).dtype == (np.float64 if x64 else np.float32)


def test_the_gradients_are_those_of_jax_and_known_when_not_traced():
    x = tf.constant([0.5, 1.5])
    again = [gradient_of_sine(x) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    np.testing.assert_allclose(again[0], jax.grad(lambda v: (tf.sin(v) * v).sum())(x), rtol=1e-6)


def test_signed_zeros_and_a_source_that_another_leads_to():
    x = tf.constant([-0.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        z = 1.0 / y
    of_x, of_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(of_x, np.float32([-np.inf, -1 / 12]))
    np.testing.assert_array_equal(of_y, np.float32([-np.inf, -1 / 36]))


def test_what_leaves_a_trace_is_refused():
    tapes = []

    @jax.jit
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        tapes.append((tape, y, x))
        return y

    program(tf.constant(2.0))
    tape, y, x = tapes[0]
    with pytest.raises(
        RuntimeError, match=r"(?s)recorded in a function that JAX has traced.*inside"
    ):
        tape.gradient(y, x)


def test_code_that_jax_compiles_inside_the_block_is_refused():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(NotImplementedError, match=r"(?s)jax\.jit.*open the tape inside"):
            jax.jit(lambda: tf.sin(x) * x)()


def test_a_tape_inside_a_branch_that_jax_decides():
    def program(p, x):
        return tf.cond(p > 0, lambda: gradient_of_sine(x), lambda: x)

    np.testing.assert_allclose(jax.jit(program)(1.0, 2.0), gradient_of_sine(tf.constant(2.0)))


def test_tapes_of_two_threads_do_not_meet():
    x = tf.constant(2.0)
    results = []

    def other():
        y = x * x
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = x * x * x
        results.append((y, tape.gradient(z, x)))

    with tf.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        y = x * x
    (of_thread, third) = results[0]
    assert tape.gradient(y, x) == 4.0
    assert (of_thread, third) == (4.0, 12.0)


def test_what_jax_numpy_computes_is_a_constant():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.numpy.sin(x) * x
    np.testing.assert_allclose(tape.gradient(y, x), np.sin(2.0), rtol=1e-6)


def test_a_source_that_is_no_tensor():
    with tf.GradientTape() as tape:
        pass
    with pytest.raises(TypeError, match=r"a source is a tensor or a variable, not 3.0 of type"):
        tape.gradient(tf.constant(1.0), 3.0)


def test_as_many_output_gradients_as_targets():
    with tf.GradientTape() as tape:
        pass
    with pytest.raises(ValueError, match=r"2 output_gradients for 1 targets"):
        tape.gradient(tf.constant(1.0), tf.constant(1.0), output_gradients=[1.0, 2.0])


def test_output_gradients_of_the_shape_and_dtype_of_the_target():
    # TensorFlow's process ends at another shape.
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_array_equal(
        tape.gradient([y, x], x, [tf.constant([5.0, 0.5]), None]), [11, 3]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[3\] vs. \[2\] \(output_grad"):
        tape.gradient(y, x, output_gradients=tf.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="requested dtype float32 for Tensor with dtype float16"):
        tape.gradient(y, x, output_gradients=tf.constant([1.0, 2.0], tf.float16))


def test_numpy_refuses_a_tape_and_says_where_there_is_one():
    with pytest.raises(NotImplementedError, match=r"NumPy has no derivatives.*tf_substrates.jax"):
        tf_of("numpy").GradientTape()


def test_a_value_of_a_registered_type_is_connected():
    tf = tf_of("jax")

    class Doubled:
        def __init__(self, variable):
            self.variable = variable

    tf.register_tensor_conversion_function(
        Doubled, lambda value, dtype=None, name=None, as_ref=False: value.variable * 2.0
    )
    variable = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        total = tf.square(Doubled(variable))
    assert float(total) == 36.0
    assert float(tape.gradient(total, variable)) == 24.0


JACOBIANS = [
    case("two arguments", lambda tf: tf.test.compute_gradient(lambda x, y: x * y[:1], [X, X + 1])),
    case("a matrix", lambda tf: tf.test.compute_gradient(tf.linalg.inv, [MATRIX])),
    case("a distance", lambda tf: tf.test.compute_gradient(tf.sin, [X], delta=0.1)),
    case("a constant", lambda tf: tf.test.compute_gradient(lambda x: tf.ones([2]), [X])),
    case("no elements", lambda tf: tf.test.compute_gradient(tf.sin, [X[:0]])),
    case("not a list", lambda tf: tf.test.compute_gradient(tf.sin, X)),
    case("integers", lambda tf: tf.test.compute_gradient(tf.square, [np.array([1, 2])])),
    case(
        "a result of integers",
        lambda tf: tf.test.compute_gradient(lambda x: tf.cast(x, tf.int32), [X]),
    ),
]


@over(
    [
        dataclasses.replace(c, rtol=1e-3, atol=1e-3)  # differences of float32
        for c in JACOBIANS
    ]
)
def test_jacobians_and_differences(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_jacobians_of_complex_numbers_and_on_numpy_are_refused():
    with pytest.raises(NotImplementedError, match=r"argument 0 is complex64. What to do: "):
        tf.test.compute_gradient(tf.square, [Z])
    with pytest.raises(NotImplementedError, match="NumPy has no derivatives"):
        tf_of("numpy").test.compute_gradient(lambda x: x, [X])
