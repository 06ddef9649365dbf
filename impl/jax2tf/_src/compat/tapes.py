"""TensorFlow's tapes: what they watch, and the gradients that are registered by name."""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence

from jax2tf._src.util.lazy_imports import LazyModule, tf
from jax2tf._src.util.lru import cached

_pywrap_tfe = LazyModule("tensorflow.python.pywrap_tfe")
_tf_forwardprop_util = LazyModule("tensorflow.python.eager.forwardprop_util")
_tf_record = LazyModule("tensorflow.python.eager.record")
_tf_ops = LazyModule("tensorflow.python.framework.ops")


def tape_may_record(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape or ForwardAccumulator could record an operation on `tensors` now.

    Only TensorFlow's private record module knows. Without it each eager call would need a
    tf.custom_gradient, although nothing is recorded.
    """
    return bool(_tf_record.should_record_backprop(tensors)) or bool(
        _tf_record.could_possibly_record()
    )


def tape_watches(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape records an operation on `tensors` because of one of them."""
    return bool(_tf_record.should_record_backprop(tensors))


def tape_may_watch(tensor: tf.Tensor) -> bool:
    """Whether a GradientTape or a ForwardAccumulator watches a tensor."""
    return tape_watches([tensor]) or accumulator_watches([tensor])


def accumulator_watches(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a ForwardAccumulator has a tangent for one of them; no public name tells."""
    return bool(_tf_forwardprop_util.pack_tangents(list(tensors)).tangents)


def nothing_recorded() -> contextlib.AbstractContextManager[None]:
    """A context in which no tape records; the public tape.stop_recording stops only one tape."""
    return _tf_record.stop_recording()


@cached
def _asking() -> dict[types.CodeType, str]:
    """The code of TensorFlow's functions of gradients, and the parameter with the sources."""
    return {
        inspect.unwrap(tf.GradientTape.gradient).__code__: "sources",
        inspect.unwrap(tf.gradients).__code__: "xs",
        inspect.unwrap(tf.compat.v1.gradients).__code__: "xs",
    }


def asked_for() -> list[object] | None:
    """The tensors and variables whose gradients are being computed; None outside of such a call.

    TensorFlow asks each recorded operation for the gradients of all its operands. Only the
    arguments of the function of gradients tell which ones are used.
    """
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        parameter = _asking().get(frame.f_code)
        if parameter is not None:
            return list(tf.nest.flatten(frame.f_locals[parameter]))
        frame = frame.f_back
    return None


def is_among(value: object, asked: Sequence[object]) -> bool:
    """Whether a tensor or variable is one of those in `asked`."""
    return any(_handle(value) is _handle(one) for one in asked)


def _handle(value: object) -> object:
    """The object that a tape watches: of a variable, its handle, as variables may share one."""
    return getattr(value, "handle", value)


@contextlib.contextmanager
def recorded_again() -> Iterator[None]:
    """A context in which tapes record although they are inside `nothing_recorded`.

    Stopping affects all tapes of a thread: a tape that begins inside would give zeros.
    """
    was_stopped = _pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if was_stopped:
        _pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if was_stopped:
            _pywrap_tfe.TFE_Py_TapeSetStopOnThread()


# TensorFlow's name of the functions that tf.custom_gradient registers.
REGISTERED_GRADIENT_NAME = "internal_grad_fn"


def record(
    name: str,
    outputs: Sequence[tf.Tensor],
    inputs: Sequence[tf.Tensor],
    backward: Callable[..., Sequence[tf.Tensor]],
) -> None:
    """Records an operation whose gradient is `backward` on the tapes and accumulators.

    The public tf.custom_gradient keeps every graph in which it is used alive.
    """
    _tf_record.record_operation(name, outputs, inputs, backward)


def forget_gradient(name: str) -> None:
    """Removes a gradient from TensorFlow's registry, for which there is no public name."""
    _tf_ops.gradient_registry._registry.pop(name, None)
