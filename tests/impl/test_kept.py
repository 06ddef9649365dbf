"""What Grappler, TensorFlow's graph optimiser, would compute otherwise than JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.ops import raw, writing
from tests.running import LOWERINGS, MODES, check, each_lowering, each_mode

_F32 = np.float32
_BIG = np.array([1e8, 1, 3], _F32)
_SMALL = np.array([1, 1, 3], _F32)
_ARRAY = np.array([[0.4, 0.6, 1.5], [2.5, -3.3, 0]], _F32)
_NAN = np.array([np.nan, 1, -1], _F32)
_ROUNDER = 12582912.0  # 1.5 * 2^23: a float32 of this size has no fraction


@jax.jit
def _raised(x):
    return x + _ROUNDER


def _until_small(x):
    """Steps until a number is at most 3, which NaN never is."""
    unfinished = lambda c: ~(c[0] > 3) & (c[1] < 5)  # noqa: E731
    return jax.lax.while_loop(unfinished, lambda c: (c[0] + 1, c[1] + 1), (x[0], 0))[1]


# XLA too joins constants, in TensorFlow 2.21 and in JAX 0.10, and no longer in JAX 0.12. What they
# give one after the other is what JAX computes op by op.
OF_GRAPHS = {
    "constants": (lambda x: (x + _ROUNDER) - _ROUNDER, _ARRAY),
    "constants, negative": (lambda x: (x + _ROUNDER) + -_ROUNDER, _ARRAY),
    "constants first": (lambda x: _ROUNDER - (_ROUNDER - x), _ARRAY),
    "constant arrays": (lambda x: (_ROUNDER + x) - _ROUNDER * jnp.ones(3), _ARRAY),
    "constants in two functions": (lambda x: _raised(x) - _ROUNDER, _ARRAY),
    "constants of float64": (lambda x: (x + 2.0**52) - 2.0**52, _ARRAY.astype(np.float64)),
    "constants, reshaped": (lambda x: (x + _ROUNDER).reshape(3, 2) - _ROUNDER, _ARRAY),
}
# Each is exact, or does the same few roundings in every mode.
PROGRAMS = {
    "pairs": (lambda a, b: (a + b) + (b - a), _BIG, _SMALL),
    "pairs of sums": (lambda a, b, c: (a + b) + (c + b), _BIG, _SMALL, -_BIG),
    "from the right": (lambda a, b, c: a + (c + (b + b)), _BIG, _SMALL, -_BIG),
    "numbers": (lambda x, s, t: (x + s) + t, _ARRAY, _F32(1e8), _F32(-1e8)),
    "numbers first": (lambda x, s, t: s + (t + x), _ARRAY, _F32(1e8), _F32(-1e8)),
    "rows": (lambda x, s, t: (x + s) + t, _ARRAY, np.full(3, 1e8, _F32), np.full(3, -1e8, _F32)),
    "factors": (lambda x, s, t: (x * s) * t, _ARRAY * _F32(1e10), _F32(1e30), _F32(1e-30)),
    "not larger": (lambda x: ~(x > 0), _NAN),
    "not at most": (lambda x: ~(x <= 0), _NAN),
    "not smaller in a function": (lambda x: ~jax.jit(lambda x: x < 0)(x), _NAN),
    "chosen": (lambda x: jnp.where(~(x >= 0), 1, 2), _NAN),
    "branch": (lambda x: jax.lax.cond(~(x[0] < 1), lambda: 1, lambda: 2), _NAN),
    "loop": (_until_small, _NAN),
}


@each_mode
@each_lowering
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_what_jax_computes(name, mode, lowering):
    fun, *args = PROGRAMS[name]
    check(fun, tuple(args), mode, lowering, ulps=0)


@pytest.mark.parametrize("mode", ["eager", "graph"])
@each_lowering
@pytest.mark.parametrize("name", OF_GRAPHS)
def test_constants_one_after_the_other(name, mode, lowering):
    fun, x = OF_GRAPHS[name]
    with jax.enable_x64(x.dtype == np.float64):
        run = MODES[mode](jax2tf.convert(fun, enable_xla=LOWERINGS[lowering]))
        np.testing.assert_array_equal(run(tf.constant(x)), fun(jnp.asarray(x)))


def test_a_restored_model(tmp_path):
    fun, x = OF_GRAPHS["constants"]
    module = tf.Module()
    module.run = tf.function(
        jax2tf.convert(fun), autograph=False, input_signature=[tf.TensorSpec(x.shape, x.dtype)]
    )
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    np.testing.assert_array_equal(restored.run(x), fun(jnp.asarray(x)))


@pytest.mark.parametrize("written", [True, False])
def test_both_makers_of_ops_say_the_same(written):
    with writing.switched(written), tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2])
        made = {
            "sum": raw.AddV2(x=x, y=x),
            "constant": raw.Sub(x=x, y=tf.fill([2], 2.0)),
            "both": raw.AddV2(x=tf.constant([1.0, 2]), y=tf.constant(3.0)),
            "product": raw.Mul(x=x, y=tf.constant(3.0)),
            "not": raw.LogicalNot(x=raw.Less(x=x, y=x)),
            "integers": raw.AddV2(x=tf.constant([1, 2]), y=tf.constant(3)),
        }
    kept = {
        name: {a.split("_")[-1] for a in y.op.node_def.attr if "_grappler" in a}
        for name, y in made.items()
    }
    assert kept == {
        "sum": {"AddOpsRewriteStage"},
        "constant": {"remove"},
        "both": {"AddOpsRewriteStage"},
        "product": {"AddOpsRewriteStage"},
        "not": {"remove"},
        "integers": set(),
    }


def test_constants_are_folded_all_the_same():
    """What has constants alone is no op of the graph that runs: nothing of it is kept."""

    @tf.function(autograph=False)
    def run(x):
        return jax2tf.convert(lambda x: x * (jnp.float32(3) + 2 * jnp.arange(3.0)))(x)

    concrete = run.get_concrete_function(tf.TensorSpec([3]))
    kept = [op for op in concrete.graph.get_operations() if op.type == "AddV2"]
    assert not any("_grappler_do_not_remove" in op.node_def.attr for op in kept)
