"""The quirks of TensorFlow itself: programs that it gets wrong if their graph does not avoid them.

A quirk that TensorFlow no longer has fails here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from jax2tf._src.targets import quirks
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.tensorflow import WITH_XLA
from tests.running import MODES, assert_near, ops_of

TABLE = np.arange(8, dtype=np.float32)
X = np.array([2.6, 1.2, 3.4], np.float32)
NARROW = ("bool", "int4", "float8_e4m3fn", "bfloat16", "float64", "int64", "complex64")


def at(i: jax.Array) -> jax.Array:
    return lax.dynamic_slice(jnp.asarray(TABLE), (i.astype(int),), (2,)).sum()


def in_scan(of: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    start = of(x)
    return lax.scan(lambda c, y: (c + at(start) * y, None), x[0], x)[0]


def in_while(of: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    start = of(x)
    return lax.while_loop(lambda c: c < 9, lambda c: c + 1 + at(start), x[1])


def carried(of: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda i, c: (c[0] + at(c[1] + i), c[1]), (x[0], of(x)))[0]


def in_cond(of: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    start = of(x)
    return lax.cond(x[0] > 2, lambda: at(start), lambda: x[1])


def in_cond_of_scan(of: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    start = of(x)
    step = lambda c, y: (lax.cond(y > 2, lambda: c + at(start), lambda: c), None)  # noqa: E731
    return lax.scan(step, x[0], x)[0]


FORMS = {f.__name__: f for f in (in_scan, in_while, carried, in_cond, in_cond_of_scan)}
STARTS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sort": lambda x: jnp.sort(x)[0],
    "sort_of_constant": lambda x: jnp.sort(jnp.asarray(X) * 2)[0],
    "argsort": lambda x: jnp.argsort(x)[0],
    "sort_by_two_keys": lambda x: lax.sort((jnp.round(x), x, x + 1), num_keys=2)[2][0],
    "median": lambda x: jnp.median(x),
    "top_k": lambda x: lax.top_k(x, 2)[0][1],
    "any_of_sorted": lambda x: jnp.isfinite(jnp.sort(x)).any(),
    **{
        f"sort_{dtype}": lambda x, dtype=dtype: jnp.sort(x.astype(dtype))[1].real
        for dtype in NARROW
    },
}


def run_compiled(forms: Iterable[str], target: jax2tf.Target) -> None:
    """Runs the functions with each start, compiled, and compares with JAX."""
    with jax.enable_x64(True):
        for form, start in itertools.product(forms, STARTS):
            function = functools.partial(FORMS[form], STARTS[start])
            compiled = MODES["compiled"](jax2tf.convert(function, target=target))
            print(form, start, flush=True)
            for _ in range(2):
                assert_near(compiled(X), jax.jit(function)(X))


def run_in_process(forms: str, target: str) -> subprocess.CompletedProcess[str]:
    call = f"from {__name__} import *; run_compiled({forms}, {target})"
    command = [sys.executable, "-c", call]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_sorted_values_are_starts_of_slices():
    process = run_in_process("FORMS", "WITH_XLA")
    assert process.returncode == 0, process.stdout[-300:] + process.stderr[-3000:]


def without(quirk: Quirk) -> jax2tf.Target:
    return dataclasses.replace(WITH_XLA, quirks=WITH_XLA.quirks - {quirk})


@pytest.mark.parametrize("form", ["in_scan", "in_cond"])
def test_tensorflow_ends_without_its_quirk(form):
    process = run_in_process(
        f"[{form!r}]", f"without(Quirk({str(Quirk.SEEKS_STARTS_OF_SLICES)!r}))"
    )
    assert process.returncode < 0, "TensorFlow compiles slices that start at a sorted value"


def test_only_compiled_slices_are_of_xla():
    function = jax2tf.convert(lambda x: lax.dynamic_slice(x, (x[0].astype(int),), (2,)))
    for mode, is_compiled in (("graph", False), ("compiled", True)):
        concrete = MODES[mode](function).get_concrete_function(tf.constant(TABLE))
        assert ("XlaDynamicSlice" in ops_of(concrete)) == is_compiled


def test_one_window_of_one_feature_is_wrong_without_its_quirk():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(2, 7, 4, 1)).astype(np.float32)
    kernel = rng.normal(size=(2, 3, 1, 6)).astype(np.float32)

    def convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
        form = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (1, 2), "VALID", dimension_numbers=form)

    expected = convolved(images, kernel)
    np.testing.assert_allclose(
        jax2tf.convert(convolved)(images, kernel), expected, rtol=1e-5, atol=1e-5
    )
    wrong = jax2tf.convert(convolved, target=without(Quirk.ONE_WINDOW_OF_ONE_FEATURE))
    assert not np.allclose(wrong(images, kernel), expected, rtol=1e-5, atol=1e-5)


def test_every_quirk_of_tensorflow_is_shown_here():
    shown = {Quirk.SEEKS_STARTS_OF_SLICES, Quirk.ONE_WINDOW_OF_ONE_FEATURE}
    assert shown == quirks.quirks_of("tensorflow") | quirks.quirks_of("xla")
