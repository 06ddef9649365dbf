"""Checks of values by callbacks of a library, which raise where TensorFlow can call Python."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

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
