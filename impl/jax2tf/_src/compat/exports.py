"""Files of jax.export."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from jax._src import config


@contextlib.contextmanager
def reading_expired_files() -> Iterator[None]:
    """JAX 0.11 and later refuse files of jax.export that are older than half a year.

    The switch that lets them through, with a warning, has no public context manager, and
    `jax.config.update` would change other threads. JAX 0.10 has neither.
    """
    state = getattr(config, "export_deserialize_expired_versions", None)
    with contextlib.nullcontext() if state is None else state(True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Exported being deserialized", DeprecationWarning)
        yield
