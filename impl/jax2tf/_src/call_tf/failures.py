"""What TensorFlow raises where it computes over a batch, in one line.

Over a batch a function runs as a graph. What fails there has the traceback of the whole graph in
its message, a page of it, and the cause in one line of that page.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator

import tensorflow as tf

from jax2tf._src.api.errors import CallTfError


@contextlib.contextmanager
def in_one_line(name: str) -> Iterator[None]:
    """Makes a CallTfError of what TensorFlow raises; what the user's code raises passes.

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
    """The one line of a message of TensorFlow's that says what was wrong."""
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
    """A context in which TensorFlow does not log for which op it has no rule for batches.

    It logs pages of it, as errors, and there is another way.
    """
    thread = threading.get_ident()

    def is_kept(record: logging.LogRecord) -> bool:
        return record.thread != thread or record.module != "pfor"

    logger = tf.get_logger()
    logger.addFilter(is_kept)
    try:
        yield
    finally:
        logger.removeFilter(is_kept)


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
