"""Of TensorFlow's tapes: which of them watch, and the gradients that they find by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf
from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.eager import forwardprop_util as _tf_forwardprop_util
from tensorflow.python.eager import record as _tf_record
from tensorflow.python.framework import ops as _tf_ops


def tape_may_record(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape or ForwardAccumulator could record an operation on `tensors` now.

    Only TensorFlow's record module knows; without it each eager call would pay for a
    tf.custom_gradient that nobody watches.
    """
    return bool(_tf_record.should_record_backprop(tensors)) or bool(
        _tf_record.could_possibly_record()
    )


def tape_watches(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape records an operation on `tensors` because of one of them."""
    return bool(_tf_record.should_record_backprop(tensors))


def accumulator_watches(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a ForwardAccumulator has a tangent for one of them; only TensorFlow itself knows."""
    return bool(_tf_forwardprop_util.pack_tangents(list(tensors)).tangents)


def nothing_recorded() -> contextlib.AbstractContextManager[None]:
    """A context in which no tape records; a public tape's stop_recording stops that tape alone."""
    result: contextlib.AbstractContextManager[None] = _tf_record.stop_recording()
    return result


@contextlib.contextmanager
def recorded_again() -> Iterator[None]:
    """A context in which tapes record although they are inside `nothing_recorded`.

    TensorFlow stops them for a thread, also tapes that begin inside, which then give zeros.
    """
    was_stopped = _pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if was_stopped:
        _pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if was_stopped:
            _pywrap_tfe.TFE_Py_TapeSetStopOnThread()


# What TensorFlow calls the functions that tf.custom_gradient registers.
REGISTERED_GRADIENT_NAME = "internal_grad_fn"


def record(
    name: str,
    outputs: Sequence[tf.Tensor],
    inputs: Sequence[tf.Tensor],
    backward: Callable[..., Sequence[tf.Tensor]],
) -> None:
    """Has the tapes and accumulators record an operation whose gradient is `backward`.

    tf.custom_gradient is the public way, and keeps every graph that it is used in.
    """
    _tf_record.record_operation(name, outputs, inputs, backward)


def forget_gradient(name: str) -> None:
    """Takes a gradient out of TensorFlow's registry, which has no public way to do so."""
    _tf_ops.gradient_registry._registry.pop(name, None)
