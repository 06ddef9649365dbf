"""The passes of a conversion: each can be left out, and stands where it stands for a reason.

A program gives the same results with a pass and without it, bit for bit if nothing else is said.
Where a target needs the pass to lower the program at all, it is refused without it.
"""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import custom_batching, lax

import jax2tf
from jax2tf._src.lowering import pipeline, plan
from jax2tf._src.lowering.passes import complex_as_real, legalize, repeats
from jax2tf._src.targets.by_name import TARGETS

RNG = np.random.default_rng(0)
F = RNG.normal(size=(3, 4)).astype(np.float32)
F16 = F.astype(np.float16)
INTEGERS = RNG.integers(-9, 9, (3, 4), dtype=np.int32)
LARGE = RNG.integers(-(2**31), 2**31 - 1, (3, 4), dtype=np.int32)
U = RNG.integers(0, 2**32 - 1, (3, 4), dtype=np.uint32)
B = F > 0
SEED = np.array([7], np.int32)
SEEDS = np.array([1, 2], np.uint32)


def raises(*_):
    raise ValueError("a negative number")


def checked(x):
    bad = jnp.any(x > 100)
    return lax.cond(bad, lambda x: jax.pure_callback(raises, x, x), lambda x: x, x) * 2


def with_reference(x):
    ref = jax.new_ref(x)
    ref[...] = jnp.sin(x)
    return ref[...] * 2


def overwritten(x):
    ref = jax.new_ref(x)
    ref[...] = jnp.sin(x)
    ref[...] = x * 2
    return ref[...]


def unused(x):
    return (jnp.tanh(x), jnp.sin(x))[0]


def fourier(x):
    return jnp.fft.ifft(jnp.fft.fft(x) * 2).real


def layers(x):
    for _ in range(8):
        x = jnp.tanh(jnp.sin(x) * 2 + jnp.cos(x)) - jnp.exp(-x * x) + jnp.abs(x)
    return x


def long_loop(x):
    def step(x, y):
        return jnp.sin(x + y) * 0.5, x.max()

    return lax.scan(step, x, jnp.arange(200.0))


@custom_batching.custom_vmap
def with_batching(x):
    return jnp.sin(x)


@with_batching.def_vmap
def _with_batching_of_rows(size, is_mapped, x):
    del size
    return jnp.sin(x), is_mapped[0]


def split_keys(x):
    return jax.random.key_data(jax.random.split(jax.random.wrap_key_data(x), 3)[1])


def loop_of_uint32(x):
    y = lax.fori_loop(0, 3, lambda i, y: y + np.uint32(7), x.astype(jnp.uint32))
    return y.astype(jnp.int32)


def loop_of_keys(x):
    key = lax.fori_loop(0, 2, lambda i, k: jax.random.split(k)[0], jax.random.key(x[0]))
    return jax.random.uniform(key, (2,))


def squeezed_key(x):
    keys = jax.random.split(jax.random.key(x[0]), 3)
    return jax.random.uniform(jnp.squeeze(keys[1:2], 0), (3,))


def minus_maximum(x):
    return x - x.max(1, keepdims=True)


def plus_row(x):
    return x + jnp.sin(x[0])


def gathered(x):
    return jnp.take(x, jnp.array([2, 0]), 0)


def narrow(x):
    return x.astype(jnp.int16)


# For each pass: a function, its arguments and a target.
SAME = [
    ("value checks", checked, (F,), "xla"),
    ("dead code", unused, (F,), "xla"),
    ("shared repeats", layers, (F,), "tensorflow"),
    ("shared repeats", layers, (F16,), "xla"),
    ("empties", lambda x: x[:0] * 2 + 1, (F,), "xla"),
    ("empties", lambda x: jnp.concatenate([jnp.sin(x[:0]), x]), (F,), "onnx"),
    ("idioms", lambda x: x.mean(1), (F,), "onnx"),
    ("idioms", lambda x: x.mean(1), (F,), "openvino"),
    ("masks", lambda x: x * (x > 0).astype(np.float32), (F,), "xla"),
    ("masks", lambda x, y: (y > 0).astype(np.float32) * x, (F, INTEGERS), "litert"),
    ("broadcasts", lambda x: jnp.where(x > 0, x, 0.5), (F,), "xla"),
    ("broadcasts", plus_row, (F,), "openvino"),
    ("unread equations", plus_row, (F,), "tensorflow"),
    ("unread equations", lambda x: jnp.where(x > 0, x, 0.5), (F,), "onnx"),
    ("kept dimensions", minus_maximum, (F,), "xla"),
    ("kept dimensions", minus_maximum, (F,), "openvino"),
    ("known results", lambda x: x + jnp.cumsum(jnp.arange(4.0)), (F,), "onnx"),
    ("known results", lambda x: x[..., jnp.argsort(jnp.array([1, 0]))], (F,), "tensorflow"),
    ("legalize", lambda x: x // np.uint32(3), (U,), "openvino"),
    ("ranks", lambda x: jnp.arctan2(x[0, 0], x), (F,), "litert"),
    ("integers", lambda x: x // 3, (LARGE,), "openvino"),
    ("integers", lambda x: x % 3, (INTEGERS,), "openvino"),
    ("integers", lambda x: lax.clamp(np.uint32(3), x, np.uint32(3 * 10**9)), (U,), "openvino"),
    ("moves of bits", gathered, (F16,), "litert"),
    ("int16", narrow, (LARGE,), "openvino"),
    ("int16", lambda x: x.astype(jnp.uint16), (LARGE,), "openvino"),
    ("emulated dtypes", lambda x: x + x, (LARGE.astype(np.int16),), "litert"),
    ("emulated dtypes", lambda x: x + x, (LARGE.astype(np.int16),), "openvino"),
    ("comparisons", lambda x: x < x[::-1], (LARGE,), "openvino"),
    ("constant folding", lambda x: x + jnp.sin(jnp.arange(4.0)), (F,), "openvino"),
    ("constant folding", lambda x: x + jnp.cos(jnp.arange(4.0)), (F,), "tfjs"),
]

# The same, with how many units in the last place the results may differ by.
CLOSE = [
    ("idioms", jax.nn.softmax, (F,), "litert", 4),
    ("idioms", jax.nn.softmax, (F,), "onnx", 4),
    ("compiled runs", long_loop, (F,), "xla", 4),
]

REFUSED = [
    ("references", with_reference, (F,), "xla"),
    ("references", with_reference, (F,), "onnx"),
    ("complex numbers as real ones", fourier, (F,), "onnx"),
    ("legalize", lambda x: x // np.uint32(3), (U,), "litert"),
    ("rule", jnp.sin, (F,), "xla"),
    ("foreign", with_batching, (F,), "xla"),
    ("boundaries", loop_of_uint32, (SEED,), "tfjs"),
    ("squeezed keys", squeezed_key, (SEED,), "tfjs"),
    ("integers", lambda x: lax.mulhi(x, x), (LARGE,), "litert"),
    ("bitcasts", lambda x: lax.bitcast_convert_type(x, jnp.uint8), (F,), "onnx"),
    ("bitcasts", lambda x: lax.bitcast_convert_type(x, jnp.uint8), (F,), "coreml"),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), (F16,), "litert"),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), (F16,), "onnx"),
    ("emulated dtypes", lambda x: x // np.uint32(3), (U,), "litert"),
    ("emulated dtypes", jnp.sin, (F16,), "litert"),
    ("bools", jnp.sort, (B,), "coreml"),
    ("bools", lambda x: x ^ x[::-1], (B,), "coreml"),
    ("contractions", lambda x: x @ x.T, (INTEGERS,), "litert"),
    ("contractions", lambda x: x @ x.T, (INTEGERS.astype(np.int8),), "litert"),
    ("random bits", lambda x: lax.rng_bit_generator(x, (3,))[1], (U[0],), "onnx"),
    ("special functions", lambda x: lax.lgamma(x + 3), (F,), "litert"),
    ("special functions", lambda x: lax.digamma(x + 3), (F,), "onnx"),
    ("linear algebra", lambda x: jnp.linalg.qr(x)[1], (F,), "onnx"),
    ("linear algebra", lambda x: jnp.linalg.cholesky(x @ x.T), (F,), "litert"),
    ("nextafter", lambda x: jnp.nextafter(x, x[::-1]), (F,), "litert"),
    ("counts of bits", lax.population_count, (U,), "onnx"),
    ("bits", lambda x: x & (x >> 1), (INTEGERS,), "litert"),
    ("bits", lambda x: x ^ 5, (INTEGERS,), "coreml"),
]


def _graph(fun, args, target):
    # A function of its own: what JAX has traced before has been through the passes.
    converted = jax2tf.convert(
        lambda *args: fun(*args), target=target, with_gradient=False, value_checks="drop"
    )
    function = tf.function(converted, autograph=False)
    return function.get_concrete_function(*map(tf.constant, args))


def _ops(function):
    graph_def = function.graph.as_graph_def()
    in_functions = (n for f in graph_def.library.function for n in f.node_def)
    return sorted(node.op for node in (*graph_def.node, *in_functions))


def _with_and_without(name, fun, args, target):
    """The results with a pass and without it, of graphs that differ."""
    function = _graph(fun, args, target)
    with pipeline.without_pass(name):
        without = _graph(fun, args, target)
    assert _ops(function) != _ops(without), "the pass does nothing for this program"
    return (tf.nest.flatten(each(*map(tf.constant, args))) for each in (function, without))


def _id(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("name", "fun", "args", "target"), SAME, ids=_id)
def test_results_are_the_same_without_the_pass(name, fun, args, target):
    for one, other in zip(*_with_and_without(name, fun, args, target), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize(("name", "fun", "args", "target", "ulps"), CLOSE, ids=_id)
def test_results_are_close_without_the_pass(name, fun, args, target, ulps):
    for one, other in zip(*_with_and_without(name, fun, args, target), strict=True):
        np.testing.assert_array_max_ulp(one.numpy(), other.numpy(), ulps)


@pytest.mark.parametrize(("name", "fun", "args", "target"), REFUSED, ids=_id)
def test_the_target_needs_the_pass(name, fun, args, target):
    _graph(fun, args, target)
    with (
        pipeline.without_pass(name),
        pytest.raises(jax2tf.UnsupportedPrimitiveError, match="cannot lower primitive"),
    ):
        _graph(fun, args, target)


def test_rules_need_the_data_of_keys():
    """Most rules know nothing of the dimensions that the data of keys have behind their own."""
    _graph(split_keys, (SEEDS,), "xla")
    with pipeline.without_pass("keys"), pytest.raises(ValueError, match="must be rank 1"):
        _graph(split_keys, (SEEDS,), "xla")


def test_a_product_with_a_mask_is_zero_where_the_mask_is():
    """XLA computes it so, and the product would be NaN."""
    x = np.array([np.inf, 1.0], np.float32)
    results = _with_and_without(
        "masks", lambda x: x * (x < 2).astype(np.float32), (x,), "tensorflow"
    )
    with_pass, without = (r.numpy() for (r,) in results)
    assert with_pass.tolist() == [0.0, 1.0]
    assert np.isnan(without[0])


def test_every_pass_is_left_out_once():
    tried = {row[0] for row in (*SAME, *CLOSE, *REFUSED)} | {"keys"}
    assert tried == set(pipeline.names())


def test_names_are_unique_and_reasons_are_sentences():
    assert len(set(pipeline.names())) == len(pipeline.names())
    lists = (
        *(pipeline.ON_TRACE, pipeline.FOR_TARGET, pipeline.FOR_GRAPH, pipeline.ON_EQUATIONS),
        *(pipeline.RULES, legalize.WAYS, pipeline.ON_TENSORS),
    )
    assert all(each.reason.endswith(".") for passes in lists for each in passes)


def test_there_is_no_pass_of_that_name():
    with pytest.raises(ValueError, match="there is no pass 'repeats'; there are value checks"):
        pipeline.without_pass("repeats").__enter__()


class TestOrder:
    """Where a reason says that the order matters, another order gives another result."""

    def test_derivatives_are_without_checks_too(self):
        jaxpr = jax.make_jaxpr(checked)(F)
        for is_lowered in (True, False):
            assert "callback" not in str(pipeline.simplified(jaxpr, is_lowered, "drop"))
        assert "callback" in str(pipeline.simplified(jaxpr, False, "raise"))

    @pytest.mark.parametrize(
        ("fun", "choice", "order"),
        [
            (checked, "drop", ["references", "dead code", "value checks"]),
            (
                overwritten,
                "raise",
                ["value checks", "dead code", "references"],
            ),
        ],
    )
    def test_dead_code_is_the_last(self, fun, choice, order):
        jaxpr = jax.jit(fun).trace(F).lojax.jaxpr
        size = len(pipeline.simplified(jaxpr, True, choice).eqns)
        assert size == 1
        with _ordered(pipeline, "ON_TRACE", order):
            assert len(pipeline.simplified(jaxpr, True, choice).eqns) > size

    def test_complex_numbers_come_before_shared_repeats(self):
        def program(x):
            z = lax.complex(x, x)
            for _ in range(8):
                z = jnp.exp(z * z - 2) * (z + 1) - z * jnp.conj(z) + 1j
            return z.real

        jaxpr = jax.make_jaxpr(program)(F)

        def n_shared(jaxpr):
            return [eqn.params.get("name") for eqn in jaxpr.eqns].count("repeated")

        shared = repeats.with_shared_repeats(complex_as_real.without_complex(jaxpr))
        opened = complex_as_real.without_complex(repeats.with_shared_repeats(jaxpr))
        assert n_shared(shared) == 7
        assert n_shared(opened) == 0

    def test_empties_come_before_idioms(self):
        assert _taken(jax.nn.softmax, (F[:0],), "litert") == {"div": "empties"}
        with _moved_first("idioms"):
            assert _taken(jax.nn.softmax, (F[:0],), "litert") == {"div": "idioms"}

    def test_masks_come_before_broadcasts(self):
        def program(x, row):
            return row * (x > 0).astype(np.float32)

        assert _taken(program, (F, F[0]), "xla") == {"mul": "masks"}
        with _moved_first("broadcasts"):
            assert _taken(program, (F, F[0]), "xla") == {"mul": "broadcasts"}

    def test_equations_that_nothing_reads_go_before_dimensions_are_kept(self):
        def program(x):
            maximum = x.max(1)
            unread = lax.broadcast_in_dim(maximum, (5, 3), (1,))[:0]
            return x - lax.broadcast_in_dim(maximum, (3, 1), (0,)), unread

        def equations():
            block = pipeline.block_of(jax.make_jaxpr(program)(F).jaxpr, TARGETS["xla"])
            return sorted(eqn.primitive.name for eqn in block.equations)

        assert equations() == ["reduce_max", "slice", "sub"]
        with _moved_first("kept dimensions"):
            assert equations() == ["broadcast_in_dim", "reduce_max", "slice", "sub"]
        with _moved_first("unread equations"):
            assert equations().count("broadcast_in_dim") == 2

    def test_what_a_target_lacks_comes_before_the_rules(self):
        with (
            _moved_first("rule", "RULES"),
            pytest.raises(jax2tf.UnsupportedPrimitiveError, match="of uint32"),
        ):
            _graph(lambda x: lax.div(x, np.uint32(3) + 0 * x), (U,), "litert")

    def test_keys_come_before_the_rules(self):
        with _moved_first("rule", "RULES"), pytest.raises(ValueError, match="must be rank 1"):
            _graph(split_keys, (SEEDS,), "xla")

    def test_a_rule_comes_before_an_implementation(self):
        assert "Sigmoid" in _ops(_graph(lax.logistic, (F,), "xla"))
        with _moved_first("foreign", "RULES"):
            assert "Sigmoid" not in _ops(_graph(lax.logistic, (F,), "xla"))

    @pytest.mark.parametrize(
        ("fun", "args", "target"),
        [
            (lambda x: lax.clamp(np.uint32(3), x, np.uint32(3 * 10**9)), (U,), "openvino"),
            (gathered, (F16,), "litert"),
        ],
        ids=["integers", "moves of bits"],
    )
    def test_emulated_dtypes_come_after_better_forms(self, fun, args, target):
        ops = _ops(_graph(fun, args, target))
        with _moved_first("emulated dtypes", "WAYS", legalize):
            assert _ops(_graph(fun, args, target)) != ops

    @pytest.mark.parametrize("at", [0, len(legalize.WAYS)])
    @pytest.mark.parametrize(
        "row",
        [
            row
            for row in (*SAME, *REFUSED)
            if row[0] in {way.name for way in legalize.WAYS if way.reason == legalize._ANYWHERE}
        ],
        ids=lambda row: row[0],
    )
    def test_the_other_ways_may_stand_anywhere(self, row, at):
        name, fun, args, target = row
        ops = _ops(_graph(fun, args, target))
        order = [way.name for way in legalize.WAYS if way.name != name]
        order.insert(at, name)
        with _ordered(legalize, "WAYS", order):
            assert _ops(_graph(fun, args, target)) == ops


def _taken(fun, args, target):
    """The passes that have taken equations, by the primitives of these."""
    block = pipeline.block_of(jax.make_jaxpr(fun)(*args).jaxpr, TARGETS[target])
    of_equations = {eqn.primitive.name: block.taken_by.get(eqn) for eqn in block.equations}
    return {name: taken_by for name, taken_by in of_equations.items() if taken_by}


def _moved_first(name, passes="ON_EQUATIONS", module=pipeline):
    names = [each.name for each in getattr(module, passes)]
    return _ordered(module, passes, [name, *(n for n in names if n != name)])


@contextlib.contextmanager
def _ordered(module, passes, names):
    """Another order of a list of passes; what was made by the order before is forgotten."""
    before = getattr(module, passes)
    by_name = {each.name: each for each in before}
    try:
        setattr(module, passes, tuple(by_name[name] for name in names))
        _forget()
        yield
    finally:
        setattr(module, passes, before)
        _forget()


def _forget():
    legalize._ways.cache_clear()
    plan._PLANS.clear()
