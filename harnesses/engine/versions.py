"""What a run's rows say of the machine: versions, and which processor."""

import functools
import platform
from importlib import metadata
from pathlib import Path

import jax

from harnesses.cell.rows import PROCESSOR_FEATURES, Row
from harnesses.engine.converters import converter, is_converter
from harnesses.harness import place

_CPUINFO = Path("/proc/cpuinfo")


def versions(impl: str | None) -> Row:
    """The columns that are the same for every cell of a run; no `impl` on JAX's own side."""
    direct = is_converter(impl)
    run = {
        "jax": jax.__version__,
        "tensorflow": tensorflow_version() if impl and not direct else None,
        "python": platform.python_version(),
        "processor": processor(),
        "impl": impl,
        "database": place.VERSION,
    }
    return run | {"impl_versions": converter(impl).versions()} if impl and direct else run


def processor() -> str:
    """Those of PROCESSOR_FEATURES that this machine has; none where only Linux could tell."""
    flags = processor_flags().split()
    return " ".join(feature for feature in PROCESSOR_FEATURES if feature in flags)


def processor_flags() -> str:
    """All features of this machine's processor; empty where only Linux could tell."""
    text = _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""
    return next((line for line in text.splitlines() if line.startswith("flags")), "")


@functools.cache
def tensorflow_version() -> str:
    """TensorFlow's version, without importing it, whichever distribution brought it."""
    # Not packages_distributions, which reads what every file of every distribution is: a second.
    for distribution in metadata.distributions():
        if "tensorflow" in (distribution.read_text("top_level.txt") or "").split():
            return distribution.version
    return metadata.version("tensorflow")
