"""Variables that loops, branches and tf.function assign, eagerly and in what JAX traces."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import tf_substrates
from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of
from tf_substrates.numpy.errors import StatefulError


def a_sum(tf, v, n):
    return tf.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, x + v.assign_add(x)), (0, tf.constant(1.0))
    )[1]


def a_condition_that_reads(tf, v, n):
    return tf.while_loop(
        lambda i: v < tf.cast(n, tf.float32) * 2.0,
        lambda i: (i + tf.cast(v.assign(v * 1.5 + 1.0) > 0.0, tf.int32),),
        (0,),
    )[0]


def a_limit(tf, v, n):
    def body(i):
        v.assign(v + 1.0)
        return (i + 1,)

    return tf.while_loop(lambda i: v < 3.5, body, (0,), maximum_iterations=n)[0]


def loops_in_loops(tf, v, n):
    def outer(i):
        tf.while_loop(lambda j: j < n, lambda j: (j + inner(j),), (i,))
        return (i + 1,)

    def inner(j):
        v.assign_add(tf.cast(j, tf.float32))
        return 1

    return tf.while_loop(lambda i: i < n, outer, (0,))[0]


def a_branch_in_a_loop(tf, v, n):
    def body(i):
        tf.cond(v > 2.0, lambda: v.assign(v * 0.5) + 0.0, lambda: v.assign_add(1.5) + 0.0)
        return (i + 1,)

    return tf.while_loop(lambda i: i < n, body, (0,))[0]


def branches(tf, v, n):
    return tf.switch_case(n - 2, [lambda: v.assign(5.0) * 2.0, lambda: v * 1.0])


def rows(tf, v, n):
    scale = tf.cast(n, tf.float32)
    mapped = tf.map_fn(lambda x: v.assign_add(x * scale) + 0.0, tf.constant([1.0, 2.0, 3.0]))
    scanned = tf.scan(lambda a, x: a * v.assign_add(x), tf.constant([1.0, 2.0]), scale)
    return [mapped, scanned, tf.foldr(lambda a, x: a - v.assign(x), tf.constant([1.0, 4.0]), 0.0)]


def steps_of_training(tf, v, n):
    """An optimizer that makes its slot at its first step, in the loop."""
    slots = []

    def step(i, loss):
        with tf.GradientTape() as tape:
            loss = (v - 3.0) ** 2 * tf.cast(n, tf.float32)
        gradient = tape.gradient(loss, v)
        if not slots:
            slots.append(tf.Variable(tf.zeros([]), name="slot"))
        slots[0].assign(0.5 * slots[0] + gradient)
        v.assign_sub(0.05 * slots[0])
        return i + 1, loss

    return tf.while_loop(lambda i, _: i < 4, step, (0, 0.0))[1]


PROGRAMS = (
    a_sum,
    a_condition_that_reads,
    a_limit,
    loops_in_loops,
    a_branch_in_a_loop,
    branches,
    rows,
    steps_of_training,
)


def _eager(program):
    def run(tf):
        v = tf.Variable(0.5, name="v")
        results = []
        for n in (3, 2):
            results.append([program(tf, v, tf.constant(n)), v.numpy()])
        return results

    return run


CASES = [
    Case(
        program.__name__.replace("_", " "),
        _eager(program),
        only=("jax",) if program is steps_of_training else ("numpy", "jax"),
    )
    for program in PROGRAMS
]


@over(CASES)
def test_eager(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda program: program.__name__)
@pytest.mark.parametrize("how", ["function", "functional"])
def test_in_what_jax_traces(program, how):
    tf = tf_of("jax")
    expected = _eager(program)(tf)
    v, found = tf.Variable(0.5, name="v"), []
    if how == "function":
        compiled = tf.function(lambda n: program(tf, v, n))
        for n in (3, 2):
            found.append([compiled(tf.constant(n)), v.numpy()])
    else:
        pure = tf_substrates.functional(lambda n: program(tf, v, n))
        state, compiled = pure.init(tf.constant(3)), jax.jit(pure)
        for n in (3, 2):
            state, result = compiled(state, tf.constant(n))
            found.append([result, state["v"]])
        assert float(v) == 0.5
    jax.tree.map(lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-6), found, expected)


def _differentiated(tf):
    """Reads have derivatives, and assignments none, in loops that the tape's side traces too."""
    v = tf.Variable(2.0)

    def read_and_assigned(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = a_loop_of_products(x, n)
            z = y * v
        return [*tape.gradient(z, [x, v]), z]

    def a_loop_of_products(x, n):
        def body(i, y):
            y = y * v * x
            v.assign(v * 0.5 + y * 0.1)
            return i + 1, y

        return tf.while_loop(lambda i, _: i < n, body, (0, x))[1]

    compiled = tf.function(read_and_assigned)
    return [[*compiled(tf.constant(1.5), tf.constant(n)), v.numpy()] for n in (3, 2)]


def _in_functions(tf):
    v, count = tf.Variable(1.0), tf.Variable(0)

    class Layer(tf.Module):
        w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(x * 2.0)
            count.assign_add(1)
            return self.w * x

    @tf.function
    def add(x):
        v.assign_add(x)
        return v * 2.0

    first, second = Layer(), Layer()
    results = [add(tf.constant(1.0)), add(tf.constant(2.0)), v.numpy()]
    v.assign(0.0)
    results += [add(tf.constant(1.0)), tf.function(lambda: v + 1.0)(), v.numpy()]
    results += [layer(tf.constant(x)) for x in (1.0, 5.0) for layer in (first, second)]
    return [*results, count.numpy()]


def _made_in_each_call(tf):
    double = tf.function(lambda x: tf.Variable(x) * 2.0)
    return [double(tf.constant(1.0)), double(tf.constant(1.0))]


FUNCTIONS = [
    Case("derivatives of a loop that assigns", _differentiated, only=("jax",)),
    Case("variables of functions", _in_functions),
    Case("a variable in each call", _made_in_each_call, only=("jax",)),
]


@over(FUNCTIONS)
def test_functions(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_what_has_no_value_outside_is_refused():
    tf = tf_of("jax")
    v, made = tf.Variable(1.0, name="v"), []

    def body(i, x):
        made.append(tf.Variable(x, name="temporary"))
        made[-1].assign_add(1.0)
        return i + 1, made[-1].value()

    assert float(tf.while_loop(lambda i, _: i < 3, body, (0, 1.0))[1]) == 4.0
    with pytest.raises(StatefulError, match=r"temporary:0 was made in a loop .*before the loop"):
        made[-1].value()
    with pytest.raises(StatefulError, match=r"`cond` assigns the variable v:0.*in `body`"):
        tf.while_loop(lambda i: v.assign_add(1.0) < 3.0, lambda i: (i + 1,), (0,))
    each = lambda x: v.assign_add(x) + 0.0  # noqa: E731
    with pytest.raises(StatefulError, match=r"vectorized_map: .* v:0, .*use tf\.map_fn"):
        tf.vectorized_map(each, tf.constant([1.0, 2.0]), fallback_to_while_loop=False)
    assert float(v) == 1.0
    np.testing.assert_allclose(tf.vectorized_map(each, tf.constant([1.0, 2.0])), [2.0, 4.0])
    with pytest.raises(StatefulError, match=r"v:0 is assigned .*tf_substrates\.functional"):
        jax.jit(lambda n: a_sum(tf, v, n))(3)
    assert float(v) == 4.0


class Momentum:
    """A rule as optax has them; `anchored` makes its first state depend on the parameters."""

    def __init__(self, anchored=False):
        self.anchored = anchored

    def init(self, params):
        return {"trace": params if self.anchored else [0.0 * p for p in params], "count": 0}

    def update(self, gradients, state, params):
        trace = [g + 0.5 * t for g, t in zip(gradients, state["trace"], strict=True)]
        return [-0.1 * t for t in trace], {"trace": trace, "count": state["count"] + 1}


def test_an_optimizer_in_each_way_to_train():
    tf = tf_of("jax")
    start = [1.0, -2.0]

    def training(optimizer, v):
        def step(i):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((v - 3.0) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
            return (i + 1,)

        return step

    def by_loop(steps, step):
        return tf.while_loop(lambda i: i < steps, step, (0,))

    expected, trace = np.array(start), np.zeros(2)
    for _ in range(3):
        trace = 2 * (expected - 3) + 0.5 * trace
        expected = expected - 0.1 * trace
    ways = {
        "eager": lambda step: [step(tf.constant(i)) for i in range(3)],
        "loop": lambda step: by_loop(3, step),
        "function": lambda step: [tf.function(step)(tf.constant(i)) for i in range(3)],
        "loop in a function": lambda step: tf.function(by_loop)(tf.constant(3), step),
    }
    for name, train in ways.items():
        v, optimizer = tf.Variable(start), tf_substrates.Optimizer(Momentum())
        train(training(optimizer, v))
        np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6, err_msg=name)
        assert [int(x.numpy()) for x in optimizer.variables if x.name == "optimizer_0:0"] == [3]
    v, optimizer = tf.Variable(start), tf_substrates.Optimizer(Momentum())
    pure = tf_substrates.functional(lambda n: by_loop(n, training(optimizer, v)))
    state, _ = jax.jit(pure)(pure.init(tf.constant(1)), tf.constant(3))
    np.testing.assert_allclose(state["Variable"], expected, rtol=1e-6)
    anchored = tf_substrates.Optimizer(Momentum(anchored=True))
    train = training(anchored, v)
    with pytest.raises(ValueError, match=r"first state .*Variable:0.*call `build` with the var"):
        by_loop(3, lambda i: train(i + tf.cast(v.assign(v * 0.5)[0] > 9.0, tf.int32)))
    anchored.build([v])
    by_loop(3, train)
    assert not np.allclose(v.numpy(), start)
    with pytest.raises(ValueError, match=r"trains \[Variable:0\], and was given \[other:0\]"):
        anchored.apply_gradients([(tf.constant(1.0), tf.Variable(1.0, name="other"))])
    with pytest.raises(ValueError, match=r"no variable of \[Variable:0\] has a gradient"):
        anchored.apply_gradients([(None, v)])
