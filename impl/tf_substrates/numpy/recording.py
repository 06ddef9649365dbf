"""What gradient tapes see: calls of TensorFlow's functions, and the operators of arrays.

On JAX a tensor is a jax.Array, and no public part of JAX tells what was computed with an array that
is there already. So the layer that every function of this package goes through (`recorded`) hands a
call to the tapes that are recording, and while one is, the operators of arrays and tracers are
handed on too (`recorded_operators`). A call is recorded as the function, its arguments and its
results, if one of its arguments is watched or was computed from what is.

Without a recording tape a call costs one look-up more, and operators are JAX's own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tf_substrates.numpy.known_values import Known
from tf_substrates.numpy.registered_types import as_registered

JAX_MODE = False
if JAX_MODE:
    import jax


class _State(threading.local):
    """The recording tapes of a thread, and what suspends them.

    Attributes:
      logs: those of the tapes that record, the outermost first.
      depth: how many recorded calls are under way; what they call is a part of them.
      frames: the branches and steps that JAX traces at the moment, the outermost first.
    """

    def __init__(self) -> None:
        self.logs: list[Log] = []
        self.depth = 0
        self.frames: list[Frame] = []


_STATE = _State()


@dataclasses.dataclass(frozen=True)
class Call:
    """A recorded call: `function` of `inputs` in their structure gave the flat `outputs`."""

    function: Callable
    structure: Any
    inputs: list
    outputs: list

    def again(self, values: dict[int, Any]) -> list:
        """The flat results where `values` has other values for some inputs, by their identity."""
        leaves = [values.get(id(leaf), leaf) for leaf in self.inputs]
        args, kwargs = jax.tree_util.tree_unflatten(self.structure, leaves)
        return jax.tree_util.tree_leaves(self.function(*args, **kwargs))


class Log:
    """What one tape has recorded. Arrays are known by identity, and kept alive for that."""

    def __init__(self, watches_variables: bool):
        self.watches_variables = watches_variables
        self.staged = staged()
        # How many recorded calls were under way when it was opened, and the frames then.
        self.depth = 0
        self.frames = list(_STATE.frames)
        self.calls: list[Call] = []
        self.tracked: dict[int, Any] = {}
        # By identity: a variable and the values it was read as.
        self.variables: dict[int, tuple[Any, list]] = {}

    def track(self, array: Any) -> None:
        array = self.here(array)
        if is_differentiable(array):
            self.tracked[id(array)] = array

    def here(self, array: Any) -> Any:
        """The array, or what stood for it where the tape was opened."""
        return _through(self.frames, array)

    def track_variable(self, variable: Any, value: Any, owner: Any = None) -> None:
        value = self.here(value)
        _, values = self.variables.setdefault(id(variable), (variable, []))
        if not any(known is value for known in values):
            values.append(value)
        self.track(value)

    def tracks(self, leaves: list) -> bool:
        return any(id(leaf) in self.tracked for leaf in leaves)


class Frame(Log):
    """A branch or a step that JAX traces, where arguments of the trace stand for watched arrays.

    It lets operators be recorded, by which the arrays are exchanged, and records nothing itself.

    Attributes:
      used: the identities of the arrays that were exchanged.
      missed: what would have to be exchanged too: values of variables.
    """

    def __init__(self, arrays: list, arguments: list, outer: list[Log]):
        super().__init__(any(log.watches_variables for log in outer))
        self.outer = outer
        self.arguments = {id(a): b for a, b in zip(arrays, arguments, strict=True)}
        self.used: set[int] = set()
        self.missed: list = []

    def exchanged(self, array: Any) -> Any:
        if id(array) not in self.arguments:
            return array
        self.used.add(id(array))
        return self.arguments[id(array)]

    def track(self, array: Any) -> None:
        """Nothing is watched here that is not watched outside."""

    def track_variable(self, variable: Any, value: Any, owner: Any = None) -> None:
        if owner is self:
            return  # the value is the trace's own
        for log in self.outer:
            if log.watches_variables:
                log.track_variable(variable, value, owner)
        array = _through(self.frames, value)
        if is_differentiable(array) and id(array) not in self.arguments:
            self.missed.append(array)


def _through(frames: list[Frame], array: Any) -> Any:
    for entered in frames:
        array = entered.exchanged(array)
    return array


def stands_for(value: Any) -> Any:
    """The value, or the argument of the branch being traced that stands for a watched array."""
    return _through(_STATE.frames, value) if _STATE.frames else value


def current_tapes() -> list[Log]:
    """The tapes that see what the caller computes, and derive it."""
    return [log for log in _active() if not isinstance(log, Frame)]


@contextlib.contextmanager
def frame(arrays: list, arguments: list) -> Iterator[Frame]:
    """A branch or a step in which arguments stand for watched arrays."""
    this = Frame(arrays, arguments, _active())
    _STATE.depth += 1
    remember(this)
    _STATE.frames.append(this)
    try:
        yield this
    finally:
        _STATE.frames.pop()
        forget(this)
        _STATE.depth -= 1


@contextlib.contextmanager
def frames_of(log: Log) -> Iterator[None]:
    """A block where arrays are those that the tape knows."""
    kept, _STATE.frames = _STATE.frames, log.frames
    try:
        yield
    finally:
        _STATE.frames = kept


def is_differentiable(value: Any) -> bool:
    """Whether a value is a tensor of floats or complex numbers."""
    return isinstance(value, (jax.Array, Known)) and jax.numpy.issubdtype(
        value.dtype, jax.numpy.inexact
    )


def staged() -> bool:
    """Whether jax.jit, or what compiles as it does, traces the code that calls this."""
    return isinstance(jax.numpy.add(0.0, 0.0), jax.core.Tracer)


def is_recording() -> bool:
    """Whether a tape records what the caller computes."""
    return bool(_STATE.logs) and bool(_active())


def _active() -> list[Log]:
    """The tapes that see what the caller computes.

    A call is one thing to the tapes that were open before it. A tape that is opened inside, by the
    function of tf.custom_gradient for example, sees the calls that this one makes.
    """
    return [log for log in _STATE.logs if log.depth == _STATE.depth]


def recorded(function: Callable, connects: bool = True) -> Callable:
    """The function, whose calls recording tapes see.

    Args:
      function: of tensors, in structures of any kind.
      connects: whether TensorFlow has a derivative for it, which may be zero.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return function(*args, **kwargs)
        return record(function, args, kwargs, connects)

    return call


def record(function: Callable, args: tuple, kwargs: dict, connects: bool = True) -> Any:
    """The result of a function, a call that the recording tapes see."""
    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    # What becomes a tensor becomes one while the tapes look on: it may be computed of variables.
    leaves = [
        stands_for(leaf.__tf_tensor__() if hasattr(leaf, "__tf_tensor__") else as_registered(leaf))
        for leaf in leaves
    ]
    logs = [log for log in _active() if log.tracks(leaves)]
    args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
    _STATE.depth += 1
    try:
        result = function(*args, **kwargs)
        if not logs:
            return result
        outputs, shape_of_result = jax.tree_util.tree_flatten(result)
        outputs = [_distinct(output, leaves) for output in outputs]
    finally:
        _STATE.depth -= 1
    if connects:
        call = Call(function, structure, leaves, outputs)
        for log in logs:
            _add(log, call)
    return jax.tree_util.tree_unflatten(shape_of_result, outputs)


def _distinct(output: Any, inputs: list) -> Any:
    """The output, as another array than every input: tapes know arrays by identity."""
    if is_differentiable(output) and any(output is leaf for leaf in inputs):
        return output.copy() if isinstance(output, Known) else jax.numpy.array(output)
    return output


def _add(log: Log, call: Call) -> None:
    if any(isinstance(output, jax.core.Tracer) for output in call.outputs) and (
        staged() and not log.staged
    ):
        raise NotImplementedError(
            "tf.GradientTape: JAX compiles (jax.jit) code that uses a watched tensor, and the tape"
            " was opened outside of what is compiled. What to do: open the tape inside the compiled"
            " function and return its gradients, or take jax.grad of the function."
        )
    log.calls.append(call)
    for output in call.outputs:
        log.track(output)


def accessed(variable: Any, value: Any, owner: Any = None) -> None:
    """Tells recording tapes that a variable was read.

    Args:
      owner: the frame of the trace that has given the variable this value.
    """
    if is_recording() and variable.trainable:
        for log in _active():
            if log.watches_variables:
                log.track_variable(variable, value, owner)


def innermost_frame() -> Frame | None:
    """The branch or the step that JAX traces, as the tapes outside know it."""
    return _STATE.frames[-1] if _STATE.frames else None


def remember(log: Log) -> None:
    """Adds a tape to those of the thread; it sees calls as deep as this one."""
    log.depth = _STATE.depth
    _STATE.logs.append(log)


def forget(log: Log) -> None:
    """Takes a tape from those of the thread."""
    _STATE.logs = [other for other in _STATE.logs if other is not log]


def tracked(operands: tuple) -> bool:
    """Whether a recording tape watches an operand, or what it was computed from."""
    leaves = [leaf.__tf_tensor__() if hasattr(leaf, "__tf_tensor__") else leaf for leaf in operands]
    here = [stands_for(leaf) for leaf in leaves]
    exchanged = any(a is not b for a, b in zip(leaves, here, strict=True))
    return exchanged or any(log.tracks(here) for log in _active())
