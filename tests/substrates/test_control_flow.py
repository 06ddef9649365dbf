"""Loops, branches, TensorArrays, tf.function and custom gradients."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of


def shaped_in_a_loop(tf):
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.while_loop(
        lambda i, *_: i < 2,
        lambda i, ta, unused: (i + 1, ta.write(i, rows[i] * 2.0), unused),
        (0, tf.TensorArray(tf.float32, size=2), tf.TensorArray(tf.float32, size=1)),
    )[1].stack()


def array_in_a_loop(tf):
    ta = tf.TensorArray(tf.float32, size=3, element_shape=[])
    _, ta = tf.while_loop(
        lambda i, ta: i < 3,
        lambda i, ta: (i + 1, ta.write(i, tf.cast(i, tf.float32) * 2.0)),
        (0, ta),
    )
    return ta.stack()


def written(tf):
    return tf.TensorArray(tf.float32, size=3).write(0, 1.0).write(1, 2.0)


CASES = [
    Case(
        "map_fn to a class of NumPy's",
        lambda tf: tf.map_fn(lambda i: tf.cast(i, tf.float64) / 2, tf.range(3), dtype=np.float64),
    ),
    Case(
        "while_loop",
        lambda tf: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, 1.0)),
    ),
    Case("while_loop of a list", lambda tf: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])),
    Case(
        "while_loop with a limit",
        lambda tf: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0], maximum_iterations=2),
    ),
    Case(
        "while_loop of a dict",
        lambda tf: tf.while_loop(lambda d: d["a"] < 3, lambda d: [{"a": d["a"] + 1}], [{"a": 0}]),
    ),
    Case("while_loop of nothing", lambda tf: tf.while_loop(lambda: True, lambda: [], [])),
    Case("while_loop without a function", lambda tf: tf.while_loop(1, lambda i: i, [0])),
    Case("while_loop with a TensorArray", array_in_a_loop),
    Case("while_loop that shapes a TensorArray", shaped_in_a_loop),
    Case(
        "cond",
        lambda tf: [
            tf.cond(tf.constant(True), lambda: 1, lambda: 2),
            tf.cond(False, lambda: (1, 2.0), lambda: (3, 4.0)),
        ],
    ),
    Case("cond of no function", lambda tf: tf.cond(True, 1, lambda: 2)),
    Case(
        "case",
        lambda tf: tf.case(
            [(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2)], default=lambda: 3
        ),
    ),
    Case("case of none", lambda tf: tf.case([(tf.constant(False), lambda: 1)])),
    Case(
        "switch_case",
        lambda tf: [
            tf.switch_case(tf.constant(5), [lambda: 1, lambda: 2]),
            tf.switch_case(tf.constant(1), {0: lambda: 1, 1: lambda: 7}),
            tf.switch_case(tf.constant(-1), [lambda: 1], default=lambda: 9),
        ],
    ),
    Case("switch_case of an int", lambda tf: tf.switch_case(1, [lambda: 1, lambda: 2])),
    Case(
        "scan",
        lambda tf: [
            tf.scan(lambda a, x: a + x, tf.range(4)),
            tf.scan(lambda a, x: a + x, tf.range(4), initializer=10),
            tf.scan(lambda a, x: a + x, tf.range(4), reverse=True),
            tf.scan(
                lambda a, x: (a[0] + x, a[1] * 2.0), tf.range(3), initializer=(0, 1.0), reverse=True
            ),
        ],
    ),
    Case(
        "folds",
        lambda tf: [
            tf.foldl(lambda a, x: a * 2 + x, tf.range(4)),
            tf.foldr(lambda a, x: a * 2 + x, tf.range(4)),
            tf.foldl(lambda a, x: a + x, tf.constant([1.0, 2.0]), initializer=0.5),
        ],
    ),
    Case(
        "map_fn",
        lambda tf: [
            tf.map_fn(lambda x: x * 2, tf.range(3)),
            tf.map_fn(
                lambda x: (x[0] + x[1], tf.cast(x[0], tf.float32)),
                (tf.range(3), tf.range(3)),
                fn_output_signature=(tf.int32, tf.float32),
            ),
        ],
    ),
    Case(
        "map_fn to another dtype",
        lambda tf: tf.map_fn(lambda x: tf.cast(x, tf.float32), tf.range(3)),
    ),
    Case("map_fn of a scalar", lambda tf: tf.map_fn(lambda x: x, tf.constant(1.0))),
    Case(
        "vectorized_map",
        lambda tf: [
            tf.vectorized_map(lambda x: x * 2, tf.range(3)),
            tf.vectorized_map(
                lambda x: x[0] + tf.reduce_sum(x[1]), (tf.range(2), tf.ones([2, 3], tf.int32))
            ),
        ],
    ),
    Case(
        "TensorArray",
        lambda tf: [
            written(tf).stack(),
            written(tf).read(1),
            written(tf).size(),
            written(tf).gather([1, 0]),
            tf.TensorArray(tf.float32, size=0, dynamic_size=True).write(3, 1.0).stack(),
            tf.TensorArray(tf.float32, size=2).unstack([[1.0], [2.0]]).concat(),
        ],
    ),
    Case("TensorArray outside", lambda tf: written(tf).write(7, 1.0)),
    Case("TensorArray read outside", lambda tf: written(tf).read(7)),
    Case("TensorArray of another shape", lambda tf: written(tf).write(2, [1.0, 2.0])),
    Case(
        "custom_gradient",
        lambda tf: tf.custom_gradient(lambda x: (x * 2.0, lambda dy: dy))(tf.constant(3.0)),
    ),
    Case("stop_gradient", lambda tf: tf.stop_gradient([1.0, 2.0])),
    Case(
        "function", lambda tf: tf.function(lambda x, scale: x * scale)(tf.constant(2.0), scale=3.0)
    ),
]


@over(CASES)
def test_control_flow(case, substrate):
    assert_as_tensorflow(case, substrate)


tf = tf_of("jax")


def test_loops_and_branches_under_jit():
    @jax.jit
    def program(x):
        _, doubled = tf.while_loop(lambda i, v: v < 10.0, lambda i, v: (i + 1, v * 2.0), (0, x))
        chosen = tf.cond(x > 2.0, lambda: {"y": x}, lambda: {"y": -x})
        which = tf.switch_case(
            tf.cast(x, tf.int32), [lambda: 0.5, lambda: 1.5], default=lambda: 9.0
        )
        first = tf.case([(x > 5.0, lambda: 1), (x > 0.0, lambda: 2)], default=lambda: 3)
        return doubled, chosen["y"], which, first

    assert [float(v) for v in program(3.0)] == [12.0, 3.0, 9.0, 2.0]
    assert [float(v) for v in program(1.0)] == [16.0, -1.0, 1.5, 2.0]
    assert [float(v) for v in program(8.0)] == [16.0, 8.0, 9.0, 1.0]


def test_a_loop_of_known_length_has_reverse_derivatives():
    def power(x):
        return tf.while_loop(
            lambda i, v: i < 3,
            lambda i, v: (i + 1, v * x),
            (0, tf.ones_like(x)),
            maximum_iterations=5,
        )[1]

    assert float(jax.grad(power)(2.0)) == 12.0
    assert float(jax.jit(jax.grad(power))(2.0)) == 12.0


SHRINKING = [
    Case(
        name,
        lambda tf, limit=limit: tf.while_loop(
            lambda i, v: i < 3,
            lambda i, v: (i + 1, v[1:] + v[:-1]),
            (0, tf.constant([1.0, 2.0, 4.0, 8.0, 16.0])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
            maximum_iterations=limit,
        ),
    )
    for name, limit in {"unlimited": None, "limited": 2, "limited beyond its end": 7}.items()
]


@over(SHRINKING)
def test_loops_may_change_shapes(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_loops_that_change_shapes_under_jit():
    def shrunk(v):
        return tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, v[i:] * 2.0), (0, v), maximum_iterations=5
        )[1]

    values = np.arange(6, dtype=np.float32)
    assert jax.jit(shrunk)(values).tolist() == [24.0, 32.0, 40.0]
    assert jax.grad(lambda v: shrunk(v).sum())(values).tolist() == [0, 0, 0, 8, 8, 8]


def test_loops_whose_end_is_traced_keep_their_shapes():
    def halved(v):
        return tf.while_loop(lambda v: tf.reduce_sum(v) > 1.0, lambda v: [v[1:]], [v])

    assert halved(tf.constant([1.0, 2.0, 0.5]))[0].tolist() == [0.5]
    with pytest.raises(TypeError, match="while_loop body"):
        jax.jit(halved)(np.ones(3, np.float32))
    places = lambda i, v: tf.reduce_sum(v[i:]) > 1.0  # noqa: E731
    with pytest.raises(IndexError, match="static"):
        jax.jit(lambda v: tf.while_loop(places, lambda i, v: (i + 1, v), (0, v)))(np.ones(3))


def test_a_list_that_grows_in_a_loop():
    def program(n):
        _, rows = tf.while_loop(
            lambda i, rows: i < n,
            lambda i, rows: (i + 1, rows.write(i, tf.cast(i, tf.float32))),
            (0, tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[])),
        )
        return rows.stack()

    assert program(tf.constant(3)).tolist() == [0.0, 1.0, 2.0]


def test_a_variable_of_a_loop_keeps_its_dtype():
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.while_loop(lambda i: i < 3, lambda i: [tf.cast(i, tf.float32)], [0])


@tf.custom_gradient
def thrice_in_reverse(x, y):
    return x * y, lambda upstream: (3.0 * upstream * y, upstream * x)


def test_custom_gradients_go_both_ways():
    args = (np.float32(2.0), np.float32(5.0))
    assert [float(g) for g in jax.grad(thrice_in_reverse, (0, 1))(*args)] == [15.0, 2.0]
    _, tangent = jax.jvp(thrice_in_reverse, args, (np.float32(1.0), np.float32(10.0)))
    assert float(tangent) == 35.0
    assert float(jax.jit(jax.vmap(thrice_in_reverse))(np.ones(2), np.ones(2))[0]) == 1.0


def test_functions_are_compiled_and_static_arguments_are_values():
    traces = []

    @tf.function(autograph=False)
    def scaled(x, how, times=2):
        traces.append(how)
        return x * times if how == "up" else x / times

    assert float(scaled(tf.constant(3.0), "up")) == 6.0
    assert float(scaled(tf.constant(4.0), "up")) == 8.0
    assert float(scaled(tf.constant(3.0), "down", times=3)) == 1.0
    assert traces == ["up", "down"]


def test_what_must_be_known_under_jit_says_so():
    with pytest.raises(
        ValueError, match=r"A shape must be known when jax.jit traces .* static_argn"
    ):
        jax.jit(lambda n: tf.zeros([n]))(3)
    with pytest.raises(ValueError, match=r"tf.where\(condition\) gives must be known"):
        jax.jit(tf.where)(np.array([True, False]))


def test_arithmetic_of_shapes_is_static_under_jit():
    @jax.jit
    def program(x):
        shape = tf.concat([tf.shape(x)[1:], [tf.reduce_prod(tf.shape(x)[:1]) * 2, 1]], axis=0)
        return tf.zeros(tf.where(shape > 4, 4, shape)) + tf.cast(tf.size(x), tf.float32)

    assert program(np.ones([3, 2], np.float32)).shape == (2, 4, 1)


def powers_by_a_counter(x):
    """x to the fourth power, by a loop that counts to it and says no maximum_iterations."""
    return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x)))[1]


def test_loops_that_count_have_reverse_derivatives():
    assert powers_by_a_counter(tf.constant(3.0)) == 81.0
    assert jax.grad(powers_by_a_counter)(2.0) == 32.0
    assert jax.jit(jax.grad(powers_by_a_counter))(2.0) == 32.0
    twice = lambda x: tf.while_loop(  # noqa: E731
        lambda i, y: i < 5, lambda i, y: (i + 3, powers_by_a_counter(y)), (0, x)
    )[1]
    assert jax.jit(jax.grad(twice))(1.0) == 16.0


def test_loops_whose_end_is_not_counted_have_no_reverse_derivatives():
    to = lambda x, n: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, x))[1]  # noqa: E731
    assert jax.jit(to)(2.0, 3) == 16.0
    with pytest.raises(ValueError, match="Reverse-mode"):
        jax.jit(jax.grad(to))(2.0, 3)
    # The step of the counter depends on what is traced.
    skips = lambda x: tf.while_loop(  # noqa: E731
        lambda i, y: i < 4, lambda i, y: (i + tf.cast(x, tf.int32), y * x), (0, x)
    )[1]
    assert jax.jit(skips)(2.0) == 8.0


def pivots(tf, matrix):
    """The sums behind the place of each step, while they are above a limit."""

    def step(i, rows, found):
        sums = tf.reduce_sum(rows[i:])
        return i + 1, rows * 0.5, tf.concat([found[:i], sums[None], found[i + 1 :]], 0)

    return tf.while_loop(
        lambda i, rows, found: (i < 4) & (tf.equal(i, 0) | (tf.reduce_max(rows) > 1.0)),
        step,
        (0, matrix, tf.zeros([4], matrix.dtype)),
    )


@pytest.mark.parametrize("largest", [0.5, 3.0, 100.0])
def test_steps_know_their_number_where_the_end_is_traced(largest):
    rows = np.array([largest, 0.5, 0.25, 0.5], np.float32)
    expected = [np.asarray(x) for x in pivots(tensorflow, tensorflow.constant(rows))]
    compiled = jax.jit(lambda rows: pivots(tf, rows))(rows)
    for a, e in zip(compiled, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)
    mapped = jax.vmap(lambda rows: pivots(tf, rows)[2])(np.stack([rows, rows * 3]))
    np.testing.assert_allclose(mapped[0], expected[2], rtol=1e-6)
    gradient = jax.grad(lambda rows: tf.reduce_sum(pivots(tf, rows)[2]))(rows)
    with tensorflow.GradientTape() as tape:
        variable = tensorflow.constant(rows)
        tape.watch(variable)
        total = tensorflow.reduce_sum(pivots(tensorflow, variable)[2])
    np.testing.assert_allclose(gradient, tape.gradient(total, variable), rtol=1e-6)


DRAWS = {
    "while_loop": lambda tf, x: tf.while_loop(
        lambda x: tf.reduce_sum(x) < 5.0, lambda x: [x + tf.random.uniform([2], seed=5)], [x]
    )[0],
    "while_loop with a limit": lambda tf, x: tf.while_loop(
        lambda x: tf.reduce_sum(x) < 50.0,
        lambda x: [x + tf.random.normal([2], seed=5)],
        [x],
        maximum_iterations=3,
    )[0],
    "scan": lambda tf, x: tf.scan(
        lambda a, row: a + row * tf.random.uniform([], seed=5), x, reverse=True
    ),
    "map_fn": lambda tf, x: tf.map_fn(lambda row: row + tf.random.uniform([], seed=5), x),
}


@pytest.mark.parametrize("name", DRAWS)
def test_each_step_of_a_loop_draws_anew(name):
    found = []
    x = np.array([0.25, 0.5], np.float32)
    for module in (tensorflow, tf_of("numpy"), tf):
        module.random.set_seed(3)
        found.append(np.asarray(DRAWS[name](module, module.constant(x))))
    tf.random.set_seed(3)
    found.append(jax.jit(lambda x: DRAWS[name](tf, x))(x))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


def test_draws_of_a_loop_in_a_loop_are_refused_where_they_are_traced():
    inner = lambda x: tf.while_loop(  # noqa: E731
        lambda y: tf.reduce_sum(y) < 3.0, lambda y: [y + tf.random.uniform([], seed=5)], [x]
    )[0]
    outer = lambda x: tf.while_loop(lambda y: y < 9.0, lambda y: [inner(y) * 2.0], [x])[0]  # noqa: E731
    assert outer(tf.constant(0.5)) >= 9.0
    with pytest.raises(NotImplementedError, match=r"loop inside of a loop.*What to do"):
        jax.jit(outer)(0.5)
