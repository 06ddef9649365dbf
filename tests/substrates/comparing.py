"""Programs written as `lambda tf: ...`, run by TensorFlow and by both substrates, and compared.

TensorFlow's own result is the law: values, dtypes, shapes, and the type of what is raised.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow
from packaging.version import Version

SUBSTRATES = ("numpy", "jax")
# Relative, to what TensorFlow gives: some units in the last place.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 3e-6, "float64": 1e-12}


# What TensorFlow 2.22 gives otherwise than 2.21, whose results the substrates have: by case.
CHANGED = {
    "elu at NaN": "the derivative is NaN, and was 1",
    "math.digamma-float32": "digamma of 0 is an infinity, and was NaN",
    "math.digamma-float64": "digamma of 0 is an infinity, and was NaN",
    "matmul of vectors": "ValueError, and was InvalidArgumentError",
    "norm at 0": "the derivative is 0, and was NaN",
    "norm of ints": "ValueError, and was InvalidArgumentError",
    "selu at NaN": "the derivative is NaN, and was 1",
    "xlogy at 0": "the derivative is that of a product, and was 0",
}
IS_CHANGED = Version(tensorflow.__version__) >= Version("2.22.0rc0")


@contextlib.contextmanager
def as_tensorflow_gives(case: str) -> Iterator[None]:
    """A comparison with TensorFlow, which has to fail where its newest version changed a result."""
    if not (IS_CHANGED and case in CHANGED):
        yield
        return
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        yield


@dataclasses.dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
      name: what it shows, for the test's id.
      program: a function of the module `tf`.
      rtol, atol: the tolerance, where it is not the dtype's own.
      only: the substrates that it is for, where one of them cannot do it.
    """

    name: str
    program: Callable[[Any], Any]
    rtol: float | None = None
    atol: float = 0.0
    only: tuple[str, ...] = SUBSTRATES


def over(cases: list[Case]) -> Any:
    """Parametrizes a test over cases and the substrates that they are for."""
    params = [
        pytest.param(case, substrate, id=f"{case.name}-{substrate}")
        for case in cases
        for substrate in case.only
    ]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return pytest.mark.parametrize(("case", "substrate"), params)


def tf_of(substrate: str) -> Any:
    return importlib.import_module(f"tf_substrates.{substrate}.tf")


def outcome(program: Callable[[Any], Any], tf: Any) -> list | type:
    """The flat results as NumPy arrays, or the type of what is raised."""
    try:
        result = program(tf)
    except Exception as error:
        return type(error)
    return [leaf if isinstance(leaf, str) else np.asarray(leaf) for leaf in _leaves(result)]


def _leaves(value: Any) -> list:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def assert_as_tensorflow(case: Case, substrate: str) -> None:
    """Runs a case with 64-bit types on, and compares it with TensorFlow."""
    __tracebackhide__ = True
    expected = outcome(case.program, tensorflow)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        actual = outcome(case.program, tf_of(substrate))
    finally:
        jax.config.update("jax_enable_x64", before)
    with as_tensorflow_gives(case.name):
        _compare(case, substrate, actual, expected)


def _compare(case: Case, substrate: str, actual: list | type, expected: list | type) -> None:
    __tracebackhide__ = True
    if isinstance(expected, type) or isinstance(actual, type):
        names = [o.__name__ if isinstance(o, type) else "a result" for o in (actual, expected)]
        if isinstance(expected, type) and actual is _class_of(expected, tf_of(substrate)):
            return
        if isinstance(actual, type) and not isinstance(expected, type):
            case.program(tf_of(substrate))  # shows where
        pytest.fail(f"{case.name} on {substrate}: {names[0]}, but TensorFlow gives {names[1]}")
    assert len(actual) == len(expected), f"{len(actual)} results, TensorFlow has {len(expected)}"
    for a, e in zip(actual, expected, strict=True):
        _assert_same(a, e, case, substrate)


def _class_of(raised: type, tf: Any) -> type:
    """A substrate's class for one that TensorFlow raises; Python's own are themselves."""
    if getattr(tensorflow.errors, raised.__name__, None) is raised:
        return getattr(tf.errors, raised.__name__)
    return raised


def _assert_same(a: Any, e: Any, case: Case, substrate: str) -> None:
    __tracebackhide__ = True
    where = f"{case.name} on {substrate}"
    if isinstance(e, str):
        assert a == e, f"{where}: {a!r}, TensorFlow has {e!r}"
        return
    assert a.dtype == e.dtype, f"{where}: dtype {a.dtype}, TensorFlow has {e.dtype}"
    assert a.shape == e.shape, f"{where}: shape {a.shape}, TensorFlow has {e.shape}"
    if e.dtype.kind in "biuOSU":
        np.testing.assert_array_equal(a, e, err_msg=where)
        return
    real = np.finfo(e.dtype).dtype.name if e.dtype.kind == "c" else e.dtype.name
    rtol = TOLERANCE[real] if case.rtol is None else case.rtol
    wide = np.complex128 if e.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        a.astype(wide), e.astype(wide), rtol=rtol, atol=case.atol, err_msg=where
    )
