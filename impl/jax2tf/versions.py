"""The version of this package, and the versions of JAX and TensorFlow that it was tested with."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

# pyproject.toml reads this line: it has no version of its own.
__version__ = "0.1.0"

TESTED = {"jax": "0.10 to 0.12", "tensorflow": "2.20 to 2.22"}


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Says which versions were tested where an import does not find what it asks for."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in TESTED:
            raise  # It is not installed.
        tested = " and ".join(f"{name} {versions}" for name, versions in TESTED.items())
        installed = " and ".join(
            f"{name} {getattr(sys.modules.get(name), '__version__', '(none)')}" for name in TESTED
        )
        raise ImportError(
            f"jax2tf does not find what it needs inside of JAX or TensorFlow: {error}. It was "
            f"tested with {tested}; installed are {installed}. What to do: install tested "
            "versions, or a newer jax2tf"
        ) from error
