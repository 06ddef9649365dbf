"""Checks of values by callbacks of a library, which raise where TensorFlow can call Python."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import check, each_lowering

POSITIVE = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@eqx.filter_jit
def _checked_root(x):
    return jnp.sqrt(eqx.error_if(x, jnp.any(x < 0), "a negative number"))


@each_lowering
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_error_checks_of_equinox_convert_and_raise(mode, lowering):
    check(_checked_root, (POSITIVE,), mode, lowering)
    with pytest.raises(Exception, match="a negative number"):
        check(_checked_root, (-POSITIVE,), mode, lowering)


def test_error_checks_of_equinox_are_refused_where_xla_compiles():
    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match=r"pure_callback.*call back into"):
        check(_checked_root, (POSITIVE,), "compiled", "xla")


@pytest.mark.parametrize("choice", ["drop", "nan"])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_error_checks_of_equinox_by_the_option(mode, choice):
    run = jax2tf.convert(_checked_root, value_checks=choice)
    if mode != "eager":
        run = tf.function(run, autograph=False, jit_compile=mode == "compiled")
    np.testing.assert_allclose(run(POSITIVE), np.sqrt(POSITIVE), rtol=1e-6)
    assert np.isnan(run(-POSITIVE)).all()


@pytest.mark.parametrize("choice", ["drop", "nan"])
def test_a_solver_of_diffrax_that_runs_out_of_steps(choice):
    def solve(y0, max_steps):
        term = diffrax.ODETerm(lambda t, y, args: -y)
        control = diffrax.PIDController(rtol=1e-5, atol=1e-5)
        found = diffrax.diffeqsolve(
            term,
            diffrax.Tsit5(),
            0.0,
            1.0,
            0.1,
            y0,
            stepsize_controller=control,
            max_steps=max_steps,
        )
        return found.ys

    y0 = np.array([1.0, 2.0], np.float32)
    for max_steps in (64, 2):
        fun = functools.partial(solve, max_steps=max_steps)
        run = tf.function(
            jax2tf.convert(fun, value_checks=choice), autograph=False, jit_compile=True
        )
        y = run(y0).numpy()[0]
        if max_steps == 64:
            np.testing.assert_allclose(y, fun(jnp.asarray(y0))[0], rtol=1e-5)
        else:
            assert np.isnan(y).all() == (choice == "nan"), y


@pytest.mark.parametrize(
    ("choice", "printed"), [("nan", "[2. 1.] [nan nan]"), ("off", "[2. 1.] [ 2. nan]")]
)
def test_error_checks_of_equinox_in_what_is_compiled_and_saved(choice, printed, tmp_path):
    code = """
    import sys, equinox as eqx, jax.numpy as jnp, numpy as np, tensorflow as tf, jax2tf

    def solve(x):
        return jnp.sqrt(eqx.error_if(x, jnp.any(x < 0), "negative"))

    module, signature = tf.Module(), [tf.TensorSpec([2])]
    converted = jax2tf.convert(solve)
    module.f = tf.function(
        converted, autograph=False, jit_compile=True, input_signature=signature
    )
    tf.saved_model.save(module, sys.argv[1])
    restored = tf.saved_model.load(sys.argv[1])
    print(restored.f(np.array([4.0, 1.0])).numpy(), restored.f(np.array([4.0, -1.0])).numpy())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        env=os.environ | {"EQX_ON_ERROR": choice},  # Equinox reads it when it is imported
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == printed, done.stderr[-2000:]
