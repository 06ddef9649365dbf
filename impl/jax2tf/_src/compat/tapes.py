"""Of TensorFlow's tapes: which of them watch, and the gradients that they find by name."""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
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


def tape_may_watch(tensor: tf.Tensor) -> bool:
    """Whether a GradientTape or a ForwardAccumulator knows of a tensor."""
    return tape_watches([tensor]) or accumulator_watches([tensor])


def accumulator_watches(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a ForwardAccumulator has a tangent for one of them; only TensorFlow itself knows."""
    return bool(_tf_forwardprop_util.pack_tangents(list(tensors)).tangents)


def nothing_recorded() -> contextlib.AbstractContextManager[None]:
    """A context in which no tape records; a public tape's stop_recording stops that tape alone."""
    result: contextlib.AbstractContextManager[None] = _tf_record.stop_recording()
    return result


# Who asks for gradients, by the code that runs, and the parameter that says of what.
_ASKING = {
    inspect.unwrap(tf.GradientTape.gradient).__code__: "sources",
    inspect.unwrap(tf.gradients).__code__: "xs",
    inspect.unwrap(tf.compat.v1.gradients).__code__: "xs",
}


def asked_for() -> list[object] | None:
    """The tensors and variables whose gradients are computed now; None where nobody says.

    TensorFlow asks each operation that it recorded for the gradients of all its operands, whether
    or not somebody wants them. Which ones are wanted only the caller knows.
    """
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        parameter = _ASKING.get(frame.f_code)
        if parameter is not None:
            return list(tf.nest.flatten(frame.f_locals[parameter]))
        frame = frame.f_back
    return None


def is_among(value: object, asked: Sequence[object]) -> bool:
    """Whether a tensor or variable is one of those that were asked for."""
    return any(_handle(value) is _handle(one) for one in asked)


def _handle(value: object) -> object:
    """What a tape knows a variable by; several objects may stand for one variable."""
    return getattr(value, "handle", value)


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
