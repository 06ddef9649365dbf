"""What the matrix does not show of control flow: which graphs it becomes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from jax2tf._src.lowering.emit import carries
from tests.running import LOWERINGS, MODES, assert_near, each_lowering


def _step(total: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return total + y, total * y


@pytest.mark.parametrize(("length", "loops"), [(0, 0), (1, 0), (2, 1)])
def test_a_scan_is_a_loop_if_it_takes_two_steps(length, loops):
    # A loop costs an eager caller a graph, and some readers of graphs take none.
    fun = tf.function(jax2tf.convert(lambda x, y: lax.scan(_step, x, y)), autograph=False)
    graph = fun.get_concrete_function(tf.zeros([3]), tf.zeros([length, 3])).graph
    ops = op_types(graph)
    assert ops["While"] + ops["StatelessWhile"] == loops


def _scan_that_forgets(x: jax.Array) -> jax.Array:
    return lax.scan(lambda c, _: (lax.stop_gradient(c) + x.sum(), None), x, None, length=2)[0]


def _scan_of_a_call_that_forgets(x: jax.Array) -> jax.Array:
    step = jax.jit(lambda c: lax.stop_gradient(c) + x.sum())
    return lax.scan(lambda c, _: (step(c), None), x, None, length=2)[0]


def _scan_of_sums_that_forgets(x: jax.Array) -> jax.Array:
    return x * lax.scan(lambda c, _: (lax.stop_gradient(c), None), x.sum(), None, length=2)[0]


@jax.custom_vjp
def _loop_in_its_vjp(x: jax.Array) -> jax.Array:
    return 2 * x


def _backward(x: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    start = (0, cotangent, cotangent)
    return (lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, x, s[1] + s[2]), start)[2],)


_loop_in_its_vjp.defvjp(lambda x: (2 * x, x), _backward)


@each_lowering
@pytest.mark.parametrize("place", ["eager", "graph"])
@pytest.mark.parametrize(
    "fun",
    [
        _scan_that_forgets,
        _scan_of_a_call_that_forgets,
        _scan_of_sums_that_forgets,
        _loop_in_its_vjp,
    ],
)
def test_a_jacobian_by_a_loop_that_overwrites_a_cotangent(fun, place, lowering):
    x = tf.constant([0.5, 1.0, 2.0])
    converted = jax2tf.convert(fun, enable_xla=LOWERINGS[lowering])

    def jacobian(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.jacobian(y, x)

    assert_near(MODES[place](jacobian)(x), jax.jacrev(fun)(x.numpy()))


def test_a_gradient_by_a_loop_that_overwrites_a_number():
    x = tf.constant([0.5, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax2tf.convert(_scan_of_sums_that_forgets)(x)
    fun = jax.grad(lambda x: _scan_of_sums_that_forgets(x).sum())
    assert_near(tape.gradient(y, x), fun(x.numpy()))


def test_a_loop_that_is_no_vjp_chooses_nothing():
    fun = tf.function(jax2tf.convert(_scan_that_forgets), autograph=False)
    graph = fun.get_concrete_function(tf.zeros([3])).graph
    assert not {"SelectV2", "Select"} & set(op_types(graph))


@each_lowering
def test_a_jacobian_through_a_choice(lowering):
    """In eager mode what the vjp chooses by is no tensor of the graph that maps the vjp."""

    def fun(x: jax.Array, mask: jax.Array) -> jax.Array:
        return jnp.where(mask, x * x, jnp.sin(x)) * jnp.max(x)

    x, mask = tf.constant([0.5, 1.5, 2.5]), tf.constant([True, False, True])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax2tf.convert(fun, enable_xla=LOWERINGS[lowering])(x, mask)
    expected = jax.jacrev(fun)(x.numpy(), mask.numpy())
    assert_near(tape.jacobian(y, x), expected)


@pytest.mark.parametrize("here", ["cuda", "rocm", "tpu"])
def test_the_branch_of_the_platform_that_jax_runs_on(here, monkeypatch):
    """A GPU of either kind calls itself "gpu", and branches name the two kinds."""
    branches = {"cuda": jnp.cos, "rocm": jnp.tan, "tpu": jnp.sin, "default": jnp.exp}
    converted = jax2tf.convert(lambda x: lax.platform_dependent(x, **branches))
    x = tf.constant([0.5, 1.0])
    assert_near(converted(x), jnp.exp(x.numpy()))
    monkeypatch.setattr(jax.export, "default_export_platform", lambda: here)
    assert_near(converted(x), branches[here](x.numpy()))
    # Where JAX is told to run on the CPU, whatever else there is.
    with jax.default_device(jax.devices("cpu")[0]):
        assert_near(converted(x), jnp.exp(x.numpy()))


def _of_step(step, carry, ask):
    """`ask` of the graph of a step, its operands and its results, as engines get them."""
    converted = jax2tf.convert(step, target="tensorflow", with_gradient=False)
    answers = []

    def function(*carry):
        results = converted(*carry)
        answers.append(ask(tf.compat.v1.get_default_graph(), carry, results))
        return results

    specs = [tf.TensorSpec(x.shape, x.dtype) for x in carry]
    tf.function(function, autograph=False).get_concrete_function(*specs)
    return answers[-1]


_X, _COLUMN = jnp.zeros(3), jnp.zeros((3, 1))


@pytest.mark.parametrize(
    ("step", "carry", "moved"),
    [
        (lambda a, b: (b, a), (_X, _X), [0, 1]),
        (lambda a, b: (a, b), (_X, _X), []),
        (lambda a, b: (a + b, a), (_X, _X), [1]),
        (lambda a, b: (b[:, None], a[:, 0]), (_COLUMN, _X), [0, 1]),
        (lambda a, b: (b * 1 + 0, 1 * a - 0), (_X, _X), [0, 1]),
        (lambda a, b: (b * 2, 0 - a), (_X, _X), []),
        (lambda a, b: (b[::-1], a + 1), (_X, _X), []),
        (lambda a, b: jax.jit(lambda a, b: (b, a + 1))(a, b), (_X, _X), [0]),
        (lambda a, b: (lax.fori_loop(0, 2, lambda i, c: c + 1, b), a), (_X, _X), [1]),
        (lambda a, b: lax.fori_loop(0, 2, lambda i, c: (c[0] + 1, c[1]), (b, a)), (_X, _X), [1]),
        (lambda a, b: lax.scan(lambda c, _: ((c[0], c[1] + 1), c[0]), (b, a), None, 2)[0],
         (_X, _X), [0]),
        (lambda a, b: lax.cond(a[0] > 0, lambda a, b: (b, a), lambda a, b: (b, b), a, b),
         (_X, _X), [0]),
    ],
)  # fmt: skip
def test_what_a_step_moves(step, carry, moved):
    assert set(moved) <= set(_of_step(step, carry, carries.moved_results))


# Each gives its operand, a row, by ops that a converter folds.
IDENTITIES = {
    "power of one": lambda a: lax.integer_pow(a, 1),
    "float power of one": lambda a: a**1.0,
    "padded by nothing": lambda a: lax.pad(a, np.float32(0), [(0, 0, 0)] * 2),
    "times ones": lambda a: a * jnp.ones((1, 3)),
    "plus zeros": lambda a: a + np.zeros((3,), np.float32),
    "by a power of 0": lambda a: a * jnp.sin(a) ** 0,
    "plus a difference": lambda a: a + (jnp.sin(a) - jnp.sin(a)),
    "one case": lambda a: lax.select_n(np.int32(0), a),
    "same cases": lambda a: jnp.where(a > 1, a, a),
    "condition that holds": lambda a: jnp.where(True, a, 0),
    "sum of one": lambda a: a.sum(0, keepdims=True),
    "mean of one": lambda a: a[None].mean(0),
    "reverse of nothing": lambda a: lax.rev(a, ()),
    "reverse of one": lambda a: a[::-1],
    "two reverses": lambda a: a[:, ::-1][:, ::-1],
    "slice of all": lambda a: lax.dynamic_slice(a, (jnp.int32(a[0, 0]), 0), (1, 3)),
    "written whole": lambda a: lax.dynamic_update_slice(jnp.zeros((1, 3)), a, (0, 0)),
    "scattered whole": lambda a: jnp.zeros((1, 3)).at[:].set(a),
    "beside nothing": lambda a: jnp.concatenate([a, a[:0]]),
    "of its parts": lambda a: jnp.concatenate([a[:, :1], a[:, 1:]], 1),
    "of a stack": lambda a: jnp.stack([jnp.sin(a), a])[1],
    "gathered": lambda a: a[jnp.array([0])],
    "maximum": lambda a: jnp.maximum(a, -jnp.inf),
    "minimum": lambda a: jnp.minimum(np.float32(np.inf), a),
    "clamp": lambda a: lax.clamp(-np.float32(np.inf), a, np.float32(np.inf)),
    "maximum of itself": lambda a: jnp.maximum(a, a * 1),
    "tiled once": lambda a: jnp.tile(a, (1, 1)),
    "negated twice": lambda a: -(0.0 - a),
    "inverted twice": lambda a: 1 / (1 / a),
    "there and back": lambda a: a.astype(jnp.float16).astype(jnp.float32),
    "bits": lambda a: lax.bitcast_convert_type(
        lax.bitcast_convert_type(a, jnp.int32) | 0, jnp.float32
    ),
    "sum of the first": lambda a: lax.cumsum(a, 0),
    "sorted": lambda a: lax.sort(a, 0),
    "rolled": lambda a: jnp.roll(a, 1, 0),
    "window of one": lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 1), (1, 1), "VALID"),
    "shared function": lambda a: jax.jit(lambda a: a * 1)(a),
    "branches": lambda a: lax.cond(a[0, 0] > 0, lambda a: a, lambda a: a * 1, a),
    "loop": lambda a: lax.fori_loop(0, 3, lambda i, a: a * 1, a),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_step_moves_what_a_converter_folds(name):
    """By the graph of the step: the primitives that make it so cannot be listed."""
    row = jnp.ones((1, 3))

    def step(a, b):
        return a + b, IDENTITIES[name](a)

    assert _of_step(step, (row, row), carries.moved_results) == [1]


@pytest.mark.parametrize(
    "step",
    [
        lambda a, b: (a + b, a * b),
        lambda a, b: (a - b, jnp.sin(a)),
        lambda a, b: (a * 2 + b, a * 0.5),
        lambda a, b: (a, b / 2),
        lambda a, b: (jnp.tanh(a) * b, a @ jnp.ones((3, 3))),
        lambda a, b: (jnp.maximum(a, 0.0), jnp.minimum(a, 3.0)),
    ],
)
def test_a_step_that_computes_moves_nothing(step):
    row = jnp.ones((1, 3))
    assert not _of_step(step, (row, row), carries.moved_results)


def test_a_zero_that_a_loop_carries_moves_what_it_is_added_to():
    row = jnp.ones((1, 3))

    def step(a, b, zeros):
        return a + b, a + zeros, zeros

    assert 1 in _of_step(step, (row, row, row), carries.moved_results)


@pytest.mark.parametrize(
    ("result", "is_read"),
    [
        (lambda a: a + 1, True),
        (lambda a: jnp.sin(a)[::-1], True),
        (lambda a: jnp.where(a > 0, 1.0, 2.0), True),
        (lambda a: jnp.where(np.array([True, False, True]), 2.0, a), True),
        (
            lambda a: lax.dynamic_update_slice(
                a, jnp.ones((1, 1)), (0, lax.round(a[0, 0]).astype(int))
            ),
            True,
        ),
        (lambda a: jnp.ones_like(a), False),
        (lambda a: a * 0, False),
        (lambda a: a - a, False),
        (lambda a: jnp.sin(a) ** 0, False),
        (lambda a: a[:0].sum() + jnp.ones((1, 3)), False),
        (lambda a: lax.dynamic_update_slice(a, jnp.ones((1, 3)), (0, 0)), False),
        (lambda a: jnp.where(np.ones((1, 3), bool), 2.0, a), False),
        (lambda a: jnp.maximum(a, jnp.inf), False),
    ],
)
def test_what_a_step_reads(result, is_read):
    row = jnp.ones((1, 3))

    def step(a, b):
        return result(a), b + 1

    assert _of_step(step, (row, row), carries.unread_carries) == ([] if is_read else [0])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32"]
)
@pytest.mark.parametrize("target", ["litert", "tensorflow"])
def test_what_a_step_moves_comes_from_an_op(target, dtype):
    def exchanged(x):
        return lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, x[::-1]))

    x = jnp.array([3, 0, 200]).astype(dtype)
    converted = jax2tf.convert(exchanged, target=target, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(x))
    functions = graph.graph.as_graph_def().library.function
    ops = {node.op for function in functions for node in function.node_def}
    assert ("LogicalOr" if dtype == "bool" else "Minimum") in ops
    for result, expected in zip(graph(tf.constant(x)), exchanged(x), strict=True):
        assert result.numpy().tolist() == expected.tolist()


def test_xla_keeps_what_a_step_moves():
    converted = jax2tf.convert(
        lambda x: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, x + 1)), with_gradient=False
    )
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.zeros([3])).graph
    assert not op_types(graph)["Minimum"]


def _sum_of_a_product(c):
    return c + c * 1


@jax.jit
def _inner(a, b):
    return a + b


@jax.jit
def _outer(a, b):
    # Twice each, and so TensorFlow functions that call one.
    return jnp.sin(_inner(a, b)) * jnp.cos(_inner(b, a))


def _sum_of_a_view(c):
    return c + c.reshape(6).reshape(c.shape)[:, :]


_DOUBLED = {
    "a product": _sum_of_a_product,
    "a view": _sum_of_a_view,
    "a function": lambda c: _outer(c, c) + _outer(c, c * 1),
    "a call": lambda c: jax2tf.call_tf(lambda x, y: tf.reverse(x + y, [0]))(c, c),
    "mapped calls": lambda c: jax.vmap(jax2tf.call_tf(lambda x, y: x + y))(c, c),
}
_PLACES = {
    "scan": lambda f, x: lax.scan(lambda c, _: (c / 2, f(c)), x, None, length=2),
    "fori_loop": lambda f, x: lax.fori_loop(0, 2, lambda i, c: f(c) / 2, x),
    "read by a loop": lambda f, x: lax.scan(lambda c, _: (c / 2, f(x)), x, None, length=2),
    "read twice by a loop": lambda f, x: lax.scan(
        lambda c, y: (c + y, _inner(x, c) + f(x)), x * 1, jnp.stack([x, x])
    ),
    "cond": lambda f, x: lax.cond(x.sum() > 0, f, jnp.sin, x),
    "switch": lambda f, x: lax.switch(x.sum().astype(int), [jnp.sin, f, jnp.cos], x / 6),
}


@each_lowering
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("doubled", _DOUBLED)
def test_what_is_added_to_itself_is_there(doubled, place, lowering):
    """TensorFlow's optimiser would have the sum wait for another way through the graph."""

    def fun(x):
        return _PLACES[place](_DOUBLED[doubled], x)

    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3) / 4
    converted = jax2tf.convert(fun, enable_xla=LOWERINGS[lowering], with_gradient=False)
    result = tf.function(converted, autograph=False)(x)
    assert_near(jax.tree.map(jnp.asarray, result), jax.jit(fun)(x))


@pytest.mark.parametrize(("lowering", "kept"), [("xla", "EnsureShape"), ("no_xla", "Minimum")])
def test_what_is_kept_from_the_optimiser(lowering, kept):
    """No op where no jaxpr adds a value to itself, but for TensorFlow alone, who finds more."""

    def ops(step):
        converted = jax2tf.convert(
            lambda x: lax.fori_loop(0, 2, lambda i, c: step(c), x),
            enable_xla=LOWERINGS[lowering],
            with_gradient=False,
        )
        concrete = tf.function(converted, autograph=False).get_concrete_function(tf.ones(3))
        functions = concrete.graph.as_graph_def().library.function
        return [node.op for function in functions for node in function.node_def]

    assert ops(_sum_of_a_product).count(kept) == 1
    assert ops(jnp.sin).count(kept) == (1 if lowering == "xla" else 0)


@pytest.mark.parametrize("dtype", [jnp.int4, jnp.uint4])
def test_branches_and_loops_over_a_dtype_without_kernels(dtype):
    """TensorFlow has no Switch, Merge and TensorListStack for these."""

    def fun(index: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
        chosen = lax.switch(index, [lambda x: x, lambda x: x + x, jnp.zeros_like], x)
        _, looped = lax.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + chosen), (0, jnp.zeros_like(x))
        )
        last, scanned = lax.scan(lambda c, y: (y, c + y), looped[0], looped)
        return chosen, looped, last, scanned

    arguments = np.int32(1), np.array([1, 0, 2], dtype)
    for switch in ({}, {"enable_xla": False}):
        converted = jax2tf.convert(fun, **switch)
        for run in (converted, tf.function(converted, autograph=False)):
            results = run(*map(tf.constant, arguments))
            assert [r.dtype.name for r in results] == [np.dtype(dtype).name] * 4
            for result, expected in zip(results, fun(*arguments), strict=True):
                np.testing.assert_array_equal(tf.cast(result, tf.int32), expected.astype(np.int32))


_LOOPS = {
    "scan": lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x),
    "scan of a scan": lambda x: lax.scan(lambda c, y: lax.scan(_step, c + y, x), x[0], x),
    "while": lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1]), (0, x, -x)
    ),
    "batched while": lambda x: jax.vmap(
        lambda v: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2 + 1, v)
    )(x),
    "branches": lambda x: lax.switch(
        x.sum().astype(int) % 3, [jnp.sin, lambda x: x, lambda x: x * x[::-1]], x
    ),
    "branch of an argument": lambda x: lax.cond(x[0, 0] > 0, lambda y: y, lambda y: -y, x),
    "large constant": lambda x: lax.fori_loop(
        0, 3, lambda i, c: c + np.arange(60.0).reshape(20, 3), x
    ),
}


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("name", _LOOPS)
def test_loops_whose_ops_have_no_effects_to_order(name, mode):
    x = np.linspace(0.1, 2, 60, dtype=np.float32).reshape(20, 3)
    without = jax2tf.TARGETS["xla"].without_optimizations("unordered_bodies")
    results = [
        jax.tree.leaves(MODES[mode](jax2tf.convert(_LOOPS[name], target=target))(tf.constant(x)))
        for target in ("xla", without)
    ]
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)


def test_the_step_of_a_loop_has_no_op_more_for_each_result():
    def identities(target):
        converted = jax2tf.convert(_LOOPS["while"], target=target, with_gradient=False)
        graph = tf.function(converted, autograph=False).get_concrete_function(tf.ones([2, 3])).graph
        functions = graph.as_graph_def().library.function
        return [node.op for f in functions for node in f.node_def].count("Identity")

    of_kernels = jax2tf.TARGETS["xla"].without_optimizations("compiled_runs")
    without = of_kernels.without_optimizations("unordered_bodies")
    assert identities("xla") == 0
    assert identities(without) > 3


@pytest.mark.parametrize("name", ["scan", "while", "batched while", "branches"])
def test_effects_in_loops_and_branches_stay_in_order(name):
    variable = tf.Variable(1.0)

    def double_and_add(x):
        variable.assign(variable * 2)
        variable.assign_add(tf.reduce_sum(x))
        return x

    effect = jax2tf.call_tf(double_and_add, ordered=True)

    def chosen(x):
        return lax.cond(x > 0, lambda: effect(x), lambda: effect(-x))

    functions = {
        "scan": lambda x: lax.scan(lambda c, y: (c + effect(y), c), 0.0, x),
        "while": lambda x: lax.fori_loop(0, 3, lambda i, c: c + effect(x[i]), 0.0),
        "batched while": lambda x: lax.while_loop(
            lambda c: jnp.any(c < 3),
            lambda c: c + 1 + 0 * effect(x[c[0].astype(int)]),
            jnp.zeros(2),
        ),
        "branches": lambda x: [chosen(x[0]), chosen(-x[1]), lax.switch(2, [jnp.sin, chosen], x[2])],
    }
    converted = jax2tf.convert(functions[name], with_gradient=False)
    tf.function(converted, autograph=False)(tf.constant([1.0, 2.0, 3.0]))
    assert variable.numpy() == ((1 * 2 + 1) * 2 + 2) * 2 + 3
