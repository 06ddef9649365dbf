"""tf.errors: TensorFlow's exceptions, and what this package raises of its own."""

from __future__ import annotations

import importlib
from typing import Any

from tf_substrates.numpy.namespaces import export

JAX_MODE = False


# The classes below by name, on NumPy.
_BY_NAME: dict[str, Any] = {}


def _of_both_substrates(kind: Any) -> Any:
    """One class for both: on JAX, NumPy computes what is static, and raises there what is wrong."""
    if JAX_MODE:
        return importlib.import_module(".numpy.errors", "tf_substrates")._BY_NAME[kind.__name__]
    return _BY_NAME.setdefault(kind.__name__, kind)


@export("errors.OpError")
@_of_both_substrates
class OpError(Exception):
    """What an operation raises. `message` says it without the operation's name."""

    def __init__(
        self, node_def: Any, op: Any, message: str, error_code: int | None = None, *args: Any
    ):
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        self.error_code = error_code
        self.experimental_payloads = args[0] if args else {}


# The codes are those of google.rpc.Code, which TensorFlow's public documentation names.
_CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


def _error(name: str, code: int) -> type:
    def __init__(self: Any, node_def: Any, op: Any, message: str, *args: Any) -> None:
        OpError.__init__(self, node_def, op, message, code, *args)

    members = {"__init__": __init__, "__module__": __name__, "__doc__": f"google.rpc code {code}."}
    return export(f"errors.{name}")(_of_both_substrates(type(name, (OpError,), members)))


_CLASSES = {name: _error(name, code) for name, code in _CODES.items()}
InvalidArgumentError = _CLASSES["InvalidArgumentError"]
FailedPreconditionError = _CLASSES["FailedPreconditionError"]
OutOfRangeError = _CLASSES["OutOfRangeError"]
UnimplementedError = _CLASSES["UnimplementedError"]


def class_named(name: str) -> type:
    """The class of errors of that name."""
    return _CLASSES[name]


def invalid_argument(message: str) -> Exception:
    """The error of an operation whose operands it does not take."""
    return InvalidArgumentError(None, None, message)


@export("errors.OperatorNotAllowedInGraphError")
@_of_both_substrates
class OperatorNotAllowedInGraphError(TypeError):
    """A Python operation that needs a value where tracing knows none."""


@_of_both_substrates
class StatefulError(RuntimeError):
    """State (a variable's assignment, a sampler without a seed) where JAX is pure."""


@_of_both_substrates
class UnknownValueError(ValueError):
    """A value that must be known while JAX traces, and depends on what it traces."""


@_of_both_substrates
class UnknownSizeError(InvalidArgumentError, ValueError):  # type: ignore[valid-type]
    """A reshape to a size of -1 that does not fit: a ValueError as well, as of NumPy and JAX."""


@_of_both_substrates
class NoStateError(UnknownValueError):
    """A sampler without a seed while JAX traces, where there is no state to draw one from."""


@_of_both_substrates
class DrawnInLoopError(UnknownValueError):
    """A sampler with a state in a loop, of which JAX traces one step for all of them."""
