"""tf.test, and what test files import of TensorFlow's own test tools.

Everything here runs at once: graph modes and sessions are the same as eager mode.
"""

from __future__ import annotations

import tempfile
import unittest
from typing import Any

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
