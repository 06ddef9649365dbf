"""tf_substrates.authors for TensorFlow, and as it is rewritten for JAX and NumPy."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import sys

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, tf_of

BACK_ENDS = ("tensorflow", *SUBSTRATES)
PLACES = {"tensorflow": "tf_substrates.authors"} | {
    name: f"tf_substrates.{name}.authors" for name in SUBSTRATES
}


def back_end(name):
    """TensorFlow's API and the authors' helpers of a back end."""
    tf = tensorflow if name == "tensorflow" else tf_of(name)
    return tf, importlib.import_module(PLACES[name])


@pytest.fixture(params=BACK_ENDS)
def both(request):
    return back_end(request.param)


@pytest.mark.parametrize("name", BACK_ENDS)
def test_modes_and_names(name):
    _, authors = back_end(name)
    assert (name == "jax", name == "numpy") == (authors.JAX_MODE, authors.NUMPY_MODE)
    assert dir(authors) == sorted(authors.__all__)
    assert all(getattr(authors, known) is not None for known in authors.__all__)
    with pytest.raises(AttributeError, match=r"no attribute 'prefer'. It has .*prefer_static"):
        authors.prefer  # noqa: B018


def test_examples():
    module = importlib.import_module("tf_substrates.authors.derivatives")
    assert doctest.testmod(module) == (0, 6)


def test_what_is_not_rewritten_needs_tensorflow(monkeypatch):
    monkeypatch.delitem(sys.modules, "tf_substrates.authors.samplers", raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    authors = importlib.import_module("tf_substrates.authors")
    monkeypatch.delitem(vars(authors), "samplers", raising=False)
    with pytest.raises(
        ModuleNotFoundError, match=r"authors\.samplers: .*is not rewritten.*install"
    ):
        authors.samplers  # noqa: B018


# Each of `ps` and `x`, a tensor of shape [2, 3], and what it gives.
STATIC = {
    "concat": (lambda ps, x: ps.concat([ps.shape(x), [4], []], axis=0), [2, 3, 4]),
    "concat of nothing": (lambda ps, x: ps.concat([[], ()], axis=0), np.zeros(0, np.int32)),
    "rank": (lambda ps, x: ps.rank(x), 2),
    "rank of a list": (lambda ps, x: ps.rank([[1, 2]]), 2),
    "rank from shape": (lambda ps, x: ps.rank_from_shape(x.shape), 2),
    "size": (lambda ps, x: ps.size(x), 6),
    "dimension": (lambda ps, x: ps.dimension(x, -1), 3),
    "reduce_prod": (lambda ps, x: ps.reduce_prod(ps.shape(x)), 6),
    "reduce_prod of nothing": (lambda ps, x: ps.reduce_prod(ps.shape(x)[:0]), 1),
    "broadcast_shape": (lambda ps, x: ps.broadcast_shape(ps.shape(x), [5, 1, 1]), [5, 2, 3]),
    "range": (lambda ps, x: ps.range(1, ps.rank(x) + 1), [1, 2]),
    "where": (lambda ps, x: ps.where(ps.equal(ps.shape(x), 2), 7, ps.shape(x)), [7, 3]),
    "cast": (lambda ps, x: ps.cast(ps.range(3) > 1, "int32"), [0, 0, 1]),
    "non-negative axes": (lambda ps, x: ps.non_negative_axis([-1, 0], ps.rank(x)), [1, 0]),
    "cond": (lambda ps, x: ps.cond(ps.rank(x) > 1, lambda: 4, lambda: 1 / 0), 4),
    "case": (
        lambda ps, x: ps.case([(ps.rank(x) < 1, lambda: 1 / 0)], default=lambda: ps.shape(x)),
        [2, 3],
    ),
    "switch_case": (lambda ps, x: ps.switch_case(ps.rank(x), [lambda: 1 / 0, lambda: 5]), 5),
}


@pytest.mark.parametrize("case", STATIC)
def test_static_shapes(case, both):
    tf, authors = both
    ps = authors.prefer_static
    program, wanted = STATIC[case]
    seen = []

    def traced(x):
        seen.append(program(ps, x))
        return x

    found = program(ps, tf.ones([2, 3]))
    tf.function(traced)(tf.ones([2, 3]))
    for value in (found, *seen):
        assert not isinstance(value, jax.core.Tracer)
        assert ps.is_static(value)
        assert isinstance(value, (int, np.ndarray))
        np.testing.assert_array_equal(value, wanted)
        if isinstance(value, np.ndarray):
            assert value.dtype == np.int32


def test_open_shapes_are_tensors():
    tf, authors = back_end("tensorflow")
    ps = authors.prefer_static

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec(None)])
    def shapes(x, y):
        assert not ps.is_static(ps.shape(x))
        assert isinstance(ps.rank(x), np.ndarray)
        assert isinstance(ps.dimension(x, 1), np.ndarray)
        assert authors.tensorshape.rank(y.shape) is None
        known = authors.tensorshape.constant_value_as_shape([ps.shape(x)[0], 4])
        assert known.as_list() == [None, 4]
        assert authors.tensorshape.set_static_shape(y, [2, None]).shape.as_list() == [2, None]
        with pytest.raises(ValueError, match="not every dimension of it is known"):
            authors.convert_to_shape_tensor(x.shape)
        return (
            ps.concat([ps.shape(x), [], [2]], axis=0),
            ps.rank(y),
            ps.size(x),
            ps.broadcast_shape(ps.shape(x), [1]),
            ps.cond(ps.rank(y) > 1, lambda: 1, lambda: 0),
            ps.case([(False, lambda: 7), (ps.size(y) > 9, lambda: 8)], default=lambda: 9),
            ps.reduce_prod(ps.shape(x)),
            authors.convert_to_shape_tensor([ps.dimension(x, 0), 5]),
            ps.dimension(y, 1),
        )

    found = [value.numpy().tolist() for value in shapes(tf.ones([0, 3]), tf.ones([1, 1]))]
    assert found == [[0, 3, 2], 2, 0, [0, 3], 1, 9, 0, [0, 5], 1]


def test_floats_stay_with_the_tape():
    for name in ("tensorflow", "jax"):
        tf, authors = back_end(name)
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = authors.prefer_static.reduce_prod(x)
        np.testing.assert_array_equal(tape.gradient(y, x), [2, 1])


def test_shape_tensors(both):
    tf, authors = both
    convert = authors.convert_to_shape_tensor
    for value, dtype in ((3, "int32"), ((2, 3), "int32"), (tf.TensorShape([2]), "int32")):
        found = convert(value)
        assert (type(found), found.dtype.name) == (np.ndarray, dtype)
    assert convert([], dtype_hint=tf.int64).dtype == convert(2, tf.int64).dtype == np.int64
    assert convert([]).shape == (0,)
    with pytest.raises(TypeError, match=r"must be of integers, and 1\.5 is of float32.*tf\.cast"):
        convert(1.5)
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        authors.prefer_static.reshape(np.arange(6), [4])
    with pytest.raises(ValueError, match="more than one predicate"):
        authors.prefer_static.case([(True, int), (True, int)], exclusive=True)
    with pytest.raises(ValueError, match="no predicate is true"):
        authors.prefer_static.case([(False, int)])


def test_tensorshapes(both):
    tf, authors = both
    ts, shape = authors.tensorshape, tf.ones([2, 3]).shape
    assert (ts.rank(shape), ts.as_list(shape), ts.num_elements(shape)) == (2, [2, 3], 6)
    assert ts.is_fully_defined(shape)
    assert not ts.is_fully_defined([None])
    assert ts.concatenate(shape, [4]).as_list() == [2, 3, 4]
    assert ts.merge_with([None, 3], shape).as_list() == [2, 3]
    assert ts.broadcast(shape, [5, 1, 1]).as_list() == [5, 2, 3]
    assert ts.is_compatible_with(shape, [None, 3])
    assert ts.with_rank_at_least(ts.with_rank(shape, 2), 1).as_list() == [2, 3]
    assert ts.set_static_shape(tf.ones([2, 3]), [None, 3]).shape == shape
    for check in (
        lambda: ts.assert_has_rank(shape, 3),
        lambda: ts.assert_is_compatible_with(shape, [3, 3]),
        lambda: ts.set_static_shape(tf.ones([2]), [3]),
    ):
        with pytest.raises(ValueError, match=r"(?i)shape"):
            check()


SEEDS = (5, -7, 2**40 + 3, np.int64(9), (4, 2), np.array([1, 2], np.int32))


def seeds_and_draws(name):
    tf, authors = back_end(name)
    samplers = authors.samplers
    seeds = [samplers.sanitize_seed(seed, salt) for seed in SEEDS for salt in (None, "a", 3)]
    seeds += samplers.split_seed(8, 3, salt="b")
    seeds.append(samplers.fold_in(8, tf.constant(2)))
    draws = [
        samplers.uniform([3], seed=5, maxval=9, dtype=tf.int32),
        samplers.uniform([3], seed=(4, 2)),
        samplers.normal([2], seed=5, mean=3.0),
        samplers.truncated_normal([2], seed=5),
        samplers.categorical([[0.0, 1.0]], 3, seed=5),
    ]
    if name != "jax":  # where they take long to compile, and tests of their own compare them
        draws += [
            samplers.gamma([2], alpha=2.0, seed=5),
            samplers.poisson([2], lam=[2.0, 3.0], seed=5),
            samplers.binomial([2], counts=5.0, probs=0.5, seed=5),
        ]
    return seeds, draws


@pytest.mark.parametrize("name", SUBSTRATES)
def test_seeds_and_samples_are_those_of_tensorflow(name):
    wanted_seeds, wanted = seeds_and_draws("tensorflow")
    run = jax.jit(seeds_and_draws, static_argnums=0) if name == "jax" else seeds_and_draws
    seeds, draws = run(name)
    found = [tuple(np.asarray(seed).tolist()) for seed in seeds]
    assert found == [tuple(seed.numpy().tolist()) for seed in wanted_seeds]
    assert len(set(found)) == len(found)
    for ours, theirs in zip(draws, wanted[: len(draws)], strict=True):
        assert ours.dtype.kind == theirs.numpy().dtype.kind
        np.testing.assert_allclose(ours, theirs, rtol=3e-6)


def test_keys_of_jax_are_seeds():
    _, authors = back_end("jax")
    key = jax.random.key(7)
    words = np.asarray(jax.random.key_data(key)).view(np.int32).tolist()
    for seed in (key, jax.random.PRNGKey(7)):
        assert authors.samplers.sanitize_seed(seed).tolist() == words
    draw = jax.jit(lambda key: authors.samplers.normal([2], seed=key))
    np.testing.assert_allclose(draw(key), authors.samplers.normal([2], seed=words), rtol=1e-6)


def test_seeds_that_are_none(both):
    _, authors = both
    for seed, said in (
        (None, r"`seed` is None.*seed=\(4, 2\)"),
        ([1, 2, 3], r"an integer or two integers.*shape \(3,\)"),
        (2.5, "it is of float32"),
        (True, "it is of bool"),
    ):
        with pytest.raises(ValueError, match=said):
            authors.samplers.uniform([2], seed=seed)
    with pytest.raises(TypeError, match=r"a string or an integer, not 2\.5"):
        authors.samplers.fold_in(3, 2.5)


def power(tf, authors, with_jvp):
    """`scale * x**n` and a sum of `x`, whose derivative in `x` is 10 times the true one."""

    def forward(n, x, pair):
        return {"a": pair["scale"] * x**n, "b": tf.reduce_sum(x)}, (x, pair["scale"])

    def backward(n, aux, upstream):
        x, scale = aux
        gradient = 10 * (upstream["a"] * scale * n * x ** (n - 1) + upstream["b"])
        return gradient, {"count": None, "scale": tf.reduce_sum(upstream["a"] * x**n)}

    def tangents(n, primals, moves):
        (x, pair), (dx, dpair) = primals, moves
        assert dpair["count"] is None
        along = 10 * pair["scale"] * n * x ** (n - 1) * dx + dpair["scale"] * x**n
        return forward(n, x, pair)[0], {"a": along, "b": 10 * tf.reduce_sum(dx)}

    rules = authors.custom_gradient(
        forward, backward, tangents if with_jvp else None, nondiff_argnums=[0]
    )

    @rules
    def function(n, x, pair):
        return forward(n, x, pair)[0]

    def of_x(x):
        found = function(3, pair={"scale": tf.constant(2.0), "count": tf.constant(4)}, x=x)
        return found["a"] + found["b"]

    return of_x


# The derivative of 2 x^3 + sum(x), ten times, and the derivative of that.
FIRST = lambda x: 10 * (6 * x**2 + len(x))  # noqa: E731
SECOND = lambda x: 10 * 10 * 12 * x  # noqa: E731


@pytest.mark.parametrize("with_jvp", [True, False])
@pytest.mark.parametrize("name", ["tensorflow", "jax"])
@pytest.mark.parametrize("compiled", [False, True])
def test_own_derivatives_under_tapes(name, with_jvp, compiled):
    tf, authors = back_end(name)
    f = power(tf, authors, with_jvp)
    x = tf.constant([1.0, 2.0])

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    def forward(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(first(x) / 10)
        return tape.gradient(y, x)

    def taken(x):
        return authors.value_and_gradient(f, x)[1]

    wanted = {first: [80, 260], taken: [80, 260], forward: [70, 10], second: [12, 24]}
    for derivative, values in wanted.items():
        run = tf.function(derivative) if compiled else derivative
        np.testing.assert_allclose(run(x), values, rtol=1e-6)


@pytest.mark.parametrize("with_jvp", [True, False])
def test_own_derivatives_by_jax(with_jvp):
    tf, authors = back_end("jax")
    f = power(tf, authors, with_jvp)
    total = lambda x: f(x).sum()  # noqa: E731
    x = jax.numpy.array([1.0, 2.0])
    for run in (lambda g: g, jax.jit):
        np.testing.assert_allclose(run(jax.grad(total))(x), [80, 260])
        np.testing.assert_allclose(run(jax.jacfwd(f))(x), [[70, 10], [10, 250]])
        np.testing.assert_allclose(run(jax.jacrev(f))(x), [[70, 10], [10, 250]])
        batch = run(jax.vmap(jax.grad(total)))(jax.numpy.stack([x, 2 * x]))
        np.testing.assert_allclose(batch, [[80, 260], [260, 980]])


def test_numpy_has_values_and_no_derivatives():
    tf, authors = back_end("numpy")
    f = power(tf, authors, True)
    np.testing.assert_array_equal(f(tf.constant([1.0, 2.0])), [5, 19])
    with pytest.raises(NotImplementedError, match=r"value_and_gradient: NumPy has no derivatives"):
        authors.value_and_gradient(f, 1.0)


@pytest.mark.parametrize("name", ["tensorflow", "jax"])
def test_values_and_gradients(name):
    tf, authors = back_end(name)
    take = authors.value_and_gradient

    def f(x, pair):
        return x * pair["a"], "aux"

    (value, aux), (dx, dpair) = take(f, 2.0, {"a": [3.0, 4.0], "b": 1.0}, has_aux=True)
    assert (np.asarray(value).tolist(), aux, float(dx)) == ([6, 8], "aux", 7)
    assert np.asarray(dpair["a"]).tolist() == [2, 2]
    assert float(dpair["b"]) == 0
    along = take(
        lambda x: x * x, tf.constant([1.0, 2.0]), output_gradients=tf.constant([1.0, 0.0])
    )[1]
    assert np.asarray(along).tolist() == [2, 0]
    # A tape outside sees what the function closes over.
    scale = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(scale)
        slope = take(lambda x: scale * x**2, 2.0)[1]
    assert (float(slope), float(tape.gradient(slope, scale))) == (12, 4)
    with pytest.raises(TypeError, match="argument 1 is of int32"):
        take(f, 1.0, 2)
    with pytest.raises(TypeError, match="no argument to differentiate"):
        take(f)


@pytest.mark.parametrize("name", ["tensorflow", "jax"])
def test_wrong_rules(name):
    _, authors = back_end(name)
    few = authors.custom_gradient(lambda x, y: (x * y, ()), lambda aux, upstream: [upstream])

    @few
    def product(x, y):
        return x * y

    with pytest.raises(ValueError, match="product: `vjp_bwd` gave 1 gradients for 2 arguments"):
        authors.value_and_gradient(product, 1.0, 2.0)

    @few
    def named(x, *, y):
        return x * y

    with pytest.raises(TypeError, match=r"named: .*no keyword-only arguments.* y"):
        named(1.0, y=2.0)


def test_signatures_are_the_same():
    for module in ("prefer_static", "samplers", "tensorshape"):
        of_tensorflow = getattr(back_end("tensorflow")[1], module)
        for name in SUBSTRATES:
            ours = getattr(back_end(name)[1], module)
            for function in filter(lambda n: not n.startswith("_"), vars(of_tensorflow)):
                theirs = getattr(of_tensorflow, function)
                if inspect.isfunction(theirs):
                    with contextlib.suppress(ValueError):
                        found = inspect.signature(getattr(ours, function))
                        assert list(found.parameters) == list(inspect.signature(theirs).parameters)
