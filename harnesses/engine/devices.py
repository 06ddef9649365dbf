"""The devices of a run: whether JAX has them, and that JAX and TensorFlow can share them."""

import os
from collections.abc import Sequence
from pathlib import Path

import jax

from harnesses.engine import compile_cache

CPU_DEVICES = 8


class DeviceError(ValueError):
    """JAX has no device of the kind that was asked for."""


# JAX 0.10 has no type of the attribute.
_NUMBER = "jax_num_cpu_devices"


def prepare(devices: Sequence[str], *, on_mesh: bool = False, compiled: str | None = None) -> None:
    """Makes the devices ready, before JAX or TensorFlow has touched one.

    Args:
      devices: the kinds that a run asks for.
      on_mesh: whether TensorFlow needs as many devices of the CPU as JAX.
      compiled: the folder of what was compiled before (harnesses.engine.compile_cache), or None.

    Raises:
      DeviceError: if JAX cannot use one of them here.
    """
    # Each of the two would take nearly all memory of a GPU for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if "gpu" in devices:
        _compute_in_float32()
    if compiled is not None:
        compile_cache.use(Path(compiled))
    # Programs of meshes want several devices; a CPU has as many as it is asked for. JAX refuses the
    # setting once it has run, even if it stays the same.
    if getattr(jax.config, _NUMBER) != CPU_DEVICES:
        jax.config.update(_NUMBER, CPU_DEVICES)
    if on_mesh:
        # Imported here and not above: other runs import TensorFlow with their first cell.
        from harnesses.engine import modes

        modes.make_logical_devices(CPU_DEVICES)
    for device in devices:
        if device != "cpu":
            _require(device)


def _compute_in_float32() -> None:
    """Makes kernels of a GPU take float32 factors as they are.

    NVIDIA's libraries and XLA's own products (Triton) round them to 10 bits (TensorFloat-32) where
    they expect to gain by it, so that two right products may be 2^13 ULPs apart, and no smaller
    error would be seen.
    """
    os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_gpu_enable_triton_gemm" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_enable_triton_gemm=false".strip()


def _require(device: str) -> None:
    try:
        jax.devices(device)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise DeviceError(f"--device {device}: JAX finds none here: {reason}") from error
