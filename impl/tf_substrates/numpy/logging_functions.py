"""tf.get_logger and tf.compat.v1.logging, which write to Python's logger `tensorflow`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tf_substrates.numpy.namespaces import export, named

for _level in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
    export(f"compat.v1.logging.{_level}")(getattr(logging, _level))


@export("get_logger")
def get_logger() -> logging.Logger:
    """Python's logger of that name."""
    return logging.getLogger("tensorflow")


def _writer(kind: str, level: int) -> Callable:
    def write(msg: Any, *args: Any, **kwargs: Any) -> None:
        get_logger().log(level, msg, *args, **kwargs)

    return named(write, kind, f"Writes a message, and what its `%` take, as {kind}.")


for _kind, _number in (
    ("debug", logging.DEBUG),
    ("info", logging.INFO),
    ("warn", logging.WARNING),
    ("warning", logging.WARNING),
    ("error", logging.ERROR),
    ("fatal", logging.FATAL),
):
    export(f"compat.v1.logging.{_kind}")(_writer(_kind, _number))


@export("compat.v1.logging.log")
def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().log(level, msg, *args, **kwargs)


@export("compat.v1.logging.set_verbosity")
def set_verbosity(v: int) -> None:
    """Lets only messages of that level, or above it, be written."""
    get_logger().setLevel(v)


@export("compat.v1.logging.get_verbosity")
def get_verbosity() -> int:
    return get_logger().getEffectiveLevel()
