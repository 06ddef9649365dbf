"""What XLA compiled in an earlier run, for JAX and for TensorFlow: most of a run's time goes there.

Both compilers have such a cache themselves. JAX's key is the module, the flags and the versions;
TensorFlow's is the module alone, so its entries lie in a folder of the versions, the processor and
the flags. What is found there is the machine code that the same compiler made of the same module.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import jax

from harnesses.engine.versions import processor_flags, tensorflow_version

_FLAGS = "TF_XLA_FLAGS"
_OPTION = "--tf_xla_persistent_cache_directory="
_DEVICES = "--tf_xla_persistent_cache_device_types=CPU"


def use(folder: Path) -> None:
    """Has both compilers keep what they compile in a folder, and look there first.

    Called before this process, or one that it starts, has compiled anything.
    """
    flags = without_ours(os.environ).get(_FLAGS, "")
    of_tensorflow = folder.absolute() / "tensorflow" / _key(flags)
    of_tensorflow.mkdir(parents=True, exist_ok=True)
    os.environ[_FLAGS] = f"{flags} {_OPTION}{of_tensorflow} {_DEVICES}".strip()
    jax.config.update("jax_compilation_cache_dir", str(folder.absolute() / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def without_ours(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of an environment without the flags that `use` adds, which change no result."""
    if _OPTION not in variables.get(_FLAGS, ""):
        return dict(variables)
    words = (word for word in variables[_FLAGS].split() if word != _DEVICES)
    flags = " ".join(word for word in words if not word.startswith(_OPTION))
    others = ((name, value) for name, value in variables.items() if name != _FLAGS)
    return dict(others) | ({_FLAGS: flags} if flags else {})


def _key(flags: str) -> str:
    of = [tensorflow_version(), processor_flags(), flags, os.environ.get("XLA_FLAGS", "")]
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]
