"""Operators and methods of arrays, which hand their calls to tapes while one records.

They are put on all classes of arrays at once, whatever JAX traces at that moment: in a traced
function known arrays stand beside traced ones. When the last tape of all threads stops, the classes
have their own operators again.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from typing import Any

from tf_substrates.numpy.array_classes import ARRAY_CLASSES
from tf_substrates.numpy.known_values import Known, known
from tf_substrates.numpy.recording import Log, forget, is_recording, record, remember, tracked

# The operators of arrays that have derivatives. (tf.math.floordiv has none in TensorFlow.)
_OPERATORS: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
}
_UNARY: dict[str, Callable[..., Any]] = {
    "__neg__": operator.neg,
    "__pos__": operator.pos,
    "__abs__": operator.abs,
}
# Methods and attributes of JAX's arrays that have derivatives. TensorFlow's tensors have none.
_METHODS = (
    *("astype", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal"),
    *("dot", "flatten", "max", "mean", "min", "prod", "ptp", "ravel", "repeat", "reshape", "sort"),
    *("squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var"),
)
_ATTRIBUTES = ("T", "mT", "real", "imag")


def start(log: Log) -> None:
    """Lets a tape record what the thread computes from here on."""
    remember(log)
    _REPLACED.acquire()


def stop(log: Log) -> None:
    """Ends that."""
    forget(log)
    _REPLACED.release()


class _Replaced:
    """What the classes of arrays have instead of their own while a tape of any thread records."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        # By class and name; None where the class inherits it.
        self.own: list[tuple[type, str, Any]] = []

    def acquire(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                for owner in (*ARRAY_CLASSES, Known):
                    self._replace(owner)

    def release(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                for owner, name, own in self.own:
                    if own is None:
                        delattr(owner, name)
                    else:
                        setattr(owner, name, own)
                self.own = []

    def _replace(self, owner: type) -> None:
        for name, recording in _recording_members(owner).items():
            self.own.append((owner, name, vars(owner).get(name)))
            setattr(owner, name, recording)


def _recording_members(owner: type) -> dict[str, Any]:
    """What a class of arrays has while tapes record, by its name."""
    calls = dict(_UNARY)
    calls["__getitem__"] = operator.getitem
    for name, function in _OPERATORS.items():
        calls[f"__{name}__"] = function
        calls[f"__r{name}__"] = functools.partial(_reflected, function)
        # Only known tensors have it: nothing changes in place.
        calls[f"__i{name}__"] = function
    calls |= {name: functools.partial(_method, name) for name in _METHODS}
    members: dict[str, Any] = {
        name: _recording(getattr(owner, name), function)
        for name, function in calls.items()
        if hasattr(owner, name)
    }
    for name in _ATTRIBUTES:
        if hasattr(owner, name):
            members[name] = _recording_attribute(name, getattr(owner, name))
    if hasattr(owner, "at"):
        members["at"] = _recording_at(owner.at)
    members["__iter__"] = _recording_iteration(owner.__iter__)  # type: ignore[attr-defined]
    return members


def _reflected(function: Callable, x: Any, other: Any) -> Any:
    return function(other, x)


def _method(name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    return known(getattr(x, name)(*args, **kwargs))


def _recording(original: Callable, function: Callable) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_recording() or not tracked((*args, *kwargs.values())):
            return original(*args, **kwargs)
        return record(function, args, kwargs)

    return call


def _recording_attribute(name: str, original: Any) -> property:
    def get(x: Any) -> Any:
        if not is_recording() or not tracked((x,)):
            return original.__get__(x)
        return record(operator.attrgetter(name), (x,), {})

    return property(get)


def _recording_iteration(original: Callable) -> Callable:
    @functools.wraps(original)
    def rows(x: Any) -> Any:
        if is_recording() and tracked((x,)) and len(x.shape) > 0:
            return (x[i] for i in range(x.shape[0]))
        return original(x)

    return rows


def _recording_at(original: Any) -> property:
    return property(lambda x: _At(x) if is_recording() else original.__get__(x))


class _At:
    """`x.at`, of which `x.at[index].set(y)` and its like are recorded."""

    def __init__(self, x: Any):
        self._x = x

    def __getitem__(self, index: Any) -> Any:
        return _AtIndex(self._x, index)


class _AtIndex:
    def __init__(self, x: Any, index: Any):
        self._x, self._index = x, index

    def __getattr__(self, name: str) -> Callable:
        def function(x: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(x.at[index], name)(*args, **kwargs)

        return lambda *args, **kwargs: record(function, (self._x, self._index, *args), kwargs)


_REPLACED = _Replaced()
