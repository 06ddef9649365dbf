"""What XLA compiled in an earlier run, for JAX and for TensorFlow: most of a run's time goes there.

Both compilers have such a cache themselves. JAX's key is the module, the flags and the versions;
TensorFlow's is the module alone, so its entries lie in a folder of the versions, the processor and
the flags. What is found there is the machine code that the same compiler made of the same module.
"""

import hashlib
import itertools
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


def name_functions_of(cell: str) -> None:
    """Has TensorFlow name the functions that it makes from now on by a cell.

    It numbers them through the process, and the name of a function is a part of the module that
    XLA compiles: the same cell would be another module wherever other cells ran before it. Called
    once a cell, after TensorFlow was imported.
    """
    from tensorflow.python.framework import ops

    # No public name says how functions are numbered. Nothing else counts that far.
    first = int.from_bytes(hashlib.sha256(cell.encode()).digest()[:5], "big") << 20
    ops.uid = itertools.count(first).__next__


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
