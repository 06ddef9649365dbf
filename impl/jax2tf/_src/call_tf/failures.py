"""Errors that TensorFlow raises over a batch, cut to one line.

Over a batch a function runs as a graph. The message of an error then holds a page of traceback of
the whole graph, and the cause is one line of that page.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator

from jax2tf._src.api.errors import CallTfError
from jax2tf._src.util.lazy_imports import tf


@contextlib.contextmanager
def in_one_line(name: str) -> Iterator[None]:
    """Turns errors of TensorFlow into CallTfError; errors of the user's code pass through.

    Args:
      name: the function that runs over a batch, for the message.
    """
    try:
        yield
    except CallTfError:
        raise
    except Exception as error:
        if not _is_of_tensorflow(error):
            raise
        raise CallTfError(
            f"jax2tf.call_tf({name}): over a batch TensorFlow runs the function as a graph, which "
            f"raises {type(error).__name__}: {cause(_message(error))}. Call the function for one "
            "element, without jax.vmap, to see where that comes from"
        ) from error


def cause(message: str) -> str:
    """The line of a TensorFlow message that says what was wrong."""
    for noise in _NOISE:
        message = re.sub(noise, "", message)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return "no message"
    begins_with_traceback = lines[0].startswith(("Graph execution error", "in user code"))
    line = lines[-1] if begins_with_traceback else lines[0]
    return re.sub(r"^\w*Error: ", "", line).rstrip(".")


_NOISE = (
    r"\s*\[\[.*?\]\]",  # the node that failed
    r"\s*\[Op:\w+\]( name: *$)?",  # the op or function that failed
    r" for '\{\{[^']*'",  # a node with its attributes
    r"\{\{function_node .*?\}\} ",
    r"^Failed getting HLO text: '",
)


@contextlib.contextmanager
def not_logged() -> Iterator[None]:
    """A context in which tf.vectorized_map does not log the ops that it has no rule for.

    It logs pages of errors, although the function then runs in a loop.
    """
    thread = threading.get_ident()

    def is_from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread or record.module != "pfor"

    logger = tf.get_logger()
    logger.addFilter(is_from_elsewhere)
    try:
        yield
    finally:
        logger.removeFilter(is_from_elsewhere)


def _message(error: Exception) -> str:
    return error.message if isinstance(error, tf.errors.OpError) else str(error)


def _is_of_tensorflow(error: BaseException) -> bool:
    if isinstance(error, tf.errors.OpError):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in ("tensorflow", "keras")
