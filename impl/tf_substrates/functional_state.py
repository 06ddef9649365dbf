"""Functions that use variables, as pure functions of the variables' values.

`functional` is for both substrates. While a function runs for it, a tf.Variable keeps its value in
a `Frame` of the thread: what is assigned there is seen in that call, and nowhere else.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Held:
    """What tf.Variable is on either substrate.

    Attributes:
      held: its value outside of calls of `functional` and of what JAX traces.
      made_in: the trace of a loop that it was made in, if it has no value outside of that.
    """

    held: Any
    made_in: Any = None

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def shape(self) -> Any:
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        raise NotImplementedError

    @property
    def trainable(self) -> bool:
        raise NotImplementedError

    def value(self) -> Any:
        raise NotImplementedError

    def assign(self, value: Any) -> Any:
        raise NotImplementedError


class Frame:
    """The values of variables in one call.

    Attributes:
      discovering: whether variables may be made, and used without being known before.
      variables: those that the call may use, in order of their first use.
      place: which trace of JAX's the call began in; None on NumPy.
    """

    def __init__(self, function: Functional, discovering: bool, place: Any):
        self.function = function
        self.discovering = discovering
        self.place = place
        # By identity; `variables` keeps them alive.
        self.variables: dict[int, Held] = {}
        self.values: dict[int, Any] = {}

    def add(self, variable: Held, value: Any) -> None:
        self.variables[id(variable)] = variable
        self.values[id(variable)] = value

    def value_of(self, variable: Held) -> Any:
        self._note(variable)
        return self.values[id(variable)]

    def owner_of(self, variable: Held) -> Any:
        """None: no trace of a loop has given the variable its value."""
        return None

    def assign(self, variable: Held, value: Any) -> None:
        self._note(variable)
        self.values[id(variable)] = value

    def made(self, variable: Held) -> None:
        """Takes a variable that the call has made."""
        if not self.discovering:
            raise self._error(
                f"it makes the variable {variable.name!r} in each call, and a state has the"
                " variables that were made by `init`. What to do: make it once, outside of the"
                " function or where an attribute is still None"
            )
        self.add(variable, variable.held)

    def _note(self, variable: Held) -> None:
        if id(variable) in self.values:
            return
        if not self.discovering:
            raise self._error(
                f"it uses the variable {variable.name!r}, which is not in the state. What to do:"
                " call `init` with arguments for which the function uses all of its variables"
            )
        self.add(variable, held_of(variable))

    def _error(self, what: str) -> Exception:
        errors = importlib.import_module("tf_substrates.numpy.errors")
        return errors.StatefulError(f"functional({self.function.__name__}): {what}.")


def held_of(variable: Held) -> Any:
    """The value of a variable outside of calls of `functional` and of what JAX traces.

    Raises:
      StatefulError: it was made in a trace that has ended.
    """
    if variable.made_in is None or not variable.made_in.ended:
        return variable.held
    errors = importlib.import_module("tf_substrates.numpy.errors")
    raise errors.StatefulError(
        f"tf.Variable: {variable.name} was made in a loop or a branch that JAX has traced, and has"
        " no value outside of it. What to do: make it before the loop (an optimizer's variables by"
        " its `build`), or return its value from the loop."
    )


class _Frames(threading.local):
    """The frames of a thread, and the regions that JAX traces, the outermost first."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_FRAMES = _Frames()


def current() -> Any:
    """The frame of the call that is under way, or the region that JAX traces; None outside."""
    return _FRAMES.stack[-1] if _FRAMES.stack else None


@contextlib.contextmanager
def entered(frame: Any) -> Iterator[None]:
    """A block in which variables have the values of a frame, or of a region that JAX traces."""
    _FRAMES.stack.append(frame)
    try:
        yield
    finally:
        _FRAMES.stack.pop()


class Functional:
    """A function as a pure one: see `functional`."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.function = function
        self.variables: dict[str, Held] | None = None

    def init(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Runs the function once, and gives the state that it began with.

        No variable that there was before has another value afterwards. Those that the function
        makes are made now.

        Args:
          *args, **kwargs: arguments of the function, for which it uses all of its variables.

        Returns:
          The value of each variable, by its name; a second one of a name has `_1` behind it.

        Raises:
          StatefulError: it was called in what JAX traces.
        """
        frame = Frame(self, discovering=True, place=_place())
        _run(frame, self.function, args, kwargs)
        found: dict[str, Held] = {}
        for variable in frame.variables.values():
            found[_name(variable.name.partition(":")[0], found)] = variable
        for name, variable in found.items():
            if _is_traced(variable.held):
                raise frame._error(
                    f"JAX traces the value of the variable {name!r} that `init` makes. What to do:"
                    " call `init` outside of jax.jit and jax.grad"
                )
        self.variables = found
        return {name: array_of(variable.held) for name, variable in found.items()}

    def __call__(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> tuple:
        """`(state after the call, result)`.

        Raises:
          StatefulError: `init` was not called, or the function uses or makes a variable that is
            not in the state.
          ValueError: the state has other names, shapes or dtypes than that of `init`.
        """
        if self.variables is None:
            raise Frame(self, False, None)._error(
                "there is no state yet. What to do: state = f.init(...) with arguments of the"
                " function, once"
            )
        if set(state) != set(self.variables):
            raise ValueError(
                f"functional({self.__name__}): `state` must have {sorted(self.variables)}, and has"
                f" {sorted(state)}. What to do: pass what `init` or a call gave."
            )
        frame = Frame(self, discovering=False, place=_place())
        for name, variable in self.variables.items():
            frame.add(variable, _value(self.__name__, name, variable, state[name]))
        result = _run(frame, self.function, args, kwargs)
        after = {
            name: array_of(frame.values[id(variable)]) for name, variable in self.variables.items()
        }
        return after, result

    def assign(self, state: dict[str, Any]) -> None:
        """Gives the variables the values of a state."""
        for name, variable in (self.variables or {}).items():
            variable.held = _value(self.__name__, name, variable, state[name])


def functional(f: Callable) -> Functional:
    """A function that uses tf.Variable, as a pure function of the values of its variables.

    `functional(f)(state, *args)` gives `(state, result)`: the values of the variables after the
    call, and what `f(*args)` returns. No variable changes. On JAX it can be given to jax.jit,
    jax.grad and jax.vmap. `functional(f).init(*args)` gives the first state and makes the variables
    that `f` makes at its first call.

    Args:
      f: a function, or a tf.Module that can be called. It closes over its variables, modules and
        optimizers, and makes variables at its first call alone.

    >>> import jax, tf_substrates
    >>> from tf_substrates.jax import tf
    >>> weight = tf.Variable(2.0, name="weight")
    >>> def step(x):
    ...     weight.assign_add(x)
    ...     return weight * 10.0
    >>> pure = tf_substrates.functional(step)
    >>> state = pure.init(1.0)
    >>> state, result = jax.jit(pure)(state, 3.0)
    >>> float(result), float(state["weight"]), float(weight)
    (50.0, 5.0, 2.0)
    >>> pure.assign(state)
    >>> float(weight)
    5.0
    """
    return Functional(f)


def _run(frame: Frame, function: Callable, args: tuple, kwargs: dict) -> Any:
    nest = importlib.import_module("tf_substrates.numpy.nest")
    with entered(frame):
        return nest.map_structure(array_of, function(*args, **kwargs))


def array_of(value: Any) -> Any:
    """The value of a variable, which a result holds; everything else is given back."""
    return value.value() if isinstance(value, Held) else value


def _name(wanted: str, taken: dict[str, Held]) -> str:
    number, name = 0, wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _value(function: str, name: str, variable: Held, value: Any) -> Any:
    tensors = importlib.import_module(f"{type(variable).__module__.rpartition('.')[0]}.tensors")
    if not hasattr(value, "dtype"):
        value = tensors.convert(value, variable.dtype)
    dtype = importlib.import_module("tf_substrates.numpy.dtypes").as_dtype(value.dtype)
    if dtype != variable.dtype or not variable.shape.is_compatible_with(value.shape):
        raise ValueError(
            f"functional({function}): `state[{name!r}]` must be of {variable.dtype.name} with shape"
            f" {variable.shape}, and is of {dtype.name} with shape {tuple(value.shape)}."
        )
    return value


def _place() -> Any:
    jax_variables = sys.modules.get("tf_substrates.jax.traced_variables")
    return None if jax_variables is None else jax_variables.place_of_trace()


def _is_traced(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)
