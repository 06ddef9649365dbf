"""Loops, branches, TensorArrays, tf.function and custom gradients."""

from __future__ import annotations

import jax
import numpy as np
import pytest

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
