"""tf.test, and what test files import of TensorFlow's own test tools.

Everything here runs at once: graph modes and sessions are the same as eager mode.
"""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_substrates.numpy.arrays.shaping import identity
from tf_substrates.numpy.gradient_tape import GradientTape
from tf_substrates.numpy.namespaces import export, export_lazily

JAX_MODE = False
if JAX_MODE:
    import jax

export_lazily("test.TestCase", "test_case", "TestCase")
export_lazily("compat.v1.test.TestCase", "test_case", "TestCase")


@export("test.main", "compat.v1.test.main")
def main(argv: Any = None) -> None:
    """Runs the tests of the program's main module."""
    unittest.main(argv=argv)


@export("compat.v1.test.get_temp_dir")
def get_temp_dir() -> str:
    return tempfile.gettempdir()


def _gpus() -> list:
    return [d for d in jax.devices() if d.platform == "gpu"] if JAX_MODE else []


@export("test.is_gpu_available")
def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    return bool(_gpus())


@export("test.gpu_device_name")
def gpu_device_name() -> str:
    """The name of the first GPU; empty where there is none."""
    return f"/device:GPU:{_gpus()[0].id}" if _gpus() else ""


@export("test.is_built_with_cuda", "test.is_built_with_gpu_support")
def is_built_with_gpu_support() -> bool:
    return bool(_gpus())


@export("test.is_built_with_rocm")
def is_built_with_rocm() -> bool:
    return False


@export("test.is_built_with_xla")
def is_built_with_xla() -> bool:
    """True on JAX, which compiles with XLA."""
    return JAX_MODE


@export("test.compute_gradient")
def compute_gradient(f: Callable, x: Any, delta: float | None = None) -> tuple[tuple, tuple]:
    """The Jacobians of `f` for each of its arguments: by a tape, and by differences of its values.

    Each is an array of [elements of the result, elements of the argument].

    Args:
      f: of tensors, its result is a tensor.
      x: a list of the arguments.
      delta: half the distance of the differences; 1/1024 if not given.

    Raises:
      ValueError: `x` is neither a list nor a tuple.
      AssertionError: an argument or the result is not of floats.
      NotImplementedError: they are complex; or on NumPy.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not"
            f" a {type(x)}"
        )
    arguments = [identity(value) for value in x]
    with GradientTape(persistent=True) as tape:
        for argument in arguments:
            tape.watch(argument)
        y = identity(f(*arguments))
    names = [f"argument {i}" for i in range(len(arguments))]
    for tensor, name in zip([*arguments, y], [*names, "y"], strict=True):
        _refuse_unless_real(np.asarray(tensor).dtype, name)
    size = np.size(y)
    of_tape = tape.jacobian(y, arguments, unconnected_gradients="zero")
    theoretical = tuple(
        np.reshape(np.asarray(found), (size, np.size(argument)))
        for found, argument in zip(of_tape, arguments, strict=True)
    )
    plain = [np.asarray(argument) for argument in arguments]
    step = 1.0 / 1024 if delta is None else delta
    return theoretical, tuple(_differences(f, plain, i, step) for i in range(len(plain)))


def _refuse_unless_real(dtype: np.dtype, name: str) -> None:
    if dtype.kind == "c":
        raise NotImplementedError(
            f"tf.test.compute_gradient: {name} is {dtype}. What to do: pass the real and the"
            " imaginary part as two arguments."
        )
    if dtype.kind not in "fV":  # V: bfloat16
        raise AssertionError(f"Cannot compute gradient for unsupported type {dtype} of {name}")


def _differences(f: Callable, arguments: Sequence[np.ndarray], at: int, step: float) -> np.ndarray:
    """The Jacobian of one argument by central differences, in its dtype."""
    argument = arguments[at]
    columns = []
    for i in range(argument.size):
        ends = []
        for moved in (-step, step):
            changed = argument.copy()
            changed.flat[i] += argument.dtype.type(moved)
            given = [*arguments[:at], changed, *arguments[at + 1 :]]
            ends.append(np.asarray(f(*map(identity, given))).ravel())
        columns.append((ends[1] - ends[0]) / ends[0].dtype.type(2 * step))
    if not columns:
        return np.zeros((0, 0), argument.dtype)
    return np.stack(columns, axis=1)
