"""Variables that JAX's traces read and assign: their values go in and come out as arrays.

JAX traces the step of a tf.while_loop once for all steps, and a tf.function once for all calls. In
such a trace a variable has a value of the trace (`Region`). Which variables a function assigns is
known when it has been traced, so `carrying` traces it again with these as a part of what the loop
carries, and assigns them when the loop has ended. TensorFlow's graphs of loops take the variables
that they use as inputs in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as xp

from tf_substrates.functional_state import Held, current, entered, held_of
from tf_substrates.numpy.errors import StatefulError
from tf_substrates.numpy.recording import innermost_frame, is_differentiable, stands_for

JAX_MODE = False
if JAX_MODE:
    import jax.extend


class Again(Exception):
    """A trace has used variables that it was not given. It is thrown away, and made again."""


class MadeInFunction(Exception):
    """A tf.function has made a variable: its first call runs as it is."""


class AssignedInMapError(StatefulError):
    """A variable is assigned in what runs for all rows at once."""


class Region:
    """The values that variables have in one trace of JAX's.

    Attributes:
      place: which trace it is.
      log_frame: what tapes that were opened outside know of the trace.
      values: of the variables that were given to the trace, made in it or assigned in it.
      missed: the variables that the trace has to be given as well.
      made_here: the variables that were made in the trace.
    """

    def __init__(
        self, is_function: bool = False, refusal: tuple[type[StatefulError], str] | None = None
    ) -> None:
        # A tf.function is given the variables that it reads, a loop those that it assigns.
        self.is_function = is_function
        # Of what may not assign any: the error's class and text.
        self.refusal = refusal
        self.outer = current()
        self.ended = False
        self.place = place_of_trace()
        self.log_frame = innermost_frame()
        # By identity; `kept` keeps the variables alive.
        self.values: dict[int, Any] = {}
        self.kept: list[Held] = []
        self.given: set[int] = set()
        self.missed: dict[int, Held] = {}
        self.made_here: dict[int, Held] = {}
        # Those that a tf.function gives back.
        self.assigned: dict[int, Held] = {}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        try:
            with entered(self):
                yield
        finally:
            self.ended = True

    def give(self, variable: Held, value: Any) -> None:
        self._set(variable, value)
        self.given.add(id(variable))

    def _set(self, variable: Held, value: Any) -> None:
        self.kept.append(variable)
        self.values[id(variable)] = self._read_by_tapes(variable, value)

    def _read_by_tapes(self, variable: Held, value: Any) -> Any:
        """The value, whose derivative is that of the variable for tapes that were opened outside.

        As in TensorFlow, each read counts, and assignments have no derivatives.
        """
        frame = self.log_frame
        if frame is None or not variable.trainable or not is_differentiable(value):
            return value
        outside = _outer_value(self.outer, variable)
        frame.track_variable(variable, outside, _outer_owner(self.outer, variable))
        outside = stands_for(outside)
        return _as_read(value, outside) if outside.shape == value.shape else value

    def value_of(self, variable: Held) -> Any:
        if id(variable) in self.values:
            return self.values[id(variable)]
        if self.is_function and id(variable) not in self.made_here:
            self.missed[id(variable)] = variable
        return _outer_value(self.outer, variable)

    def owner_of(self, variable: Held) -> Any:
        """What tapes know of the trace that has given the variable its value; None outside."""
        if id(variable) in self.values:
            return self.log_frame
        return _outer_owner(self.outer, variable)

    def assign(self, variable: Held, value: Any) -> None:
        if self.refusal is not None:
            kind, text = self.refusal
            raise kind(text.format(name=variable.name))
        self._set(variable, value)
        self.assigned[id(variable)] = variable
        if id(variable) not in self.given and id(variable) not in self.made_here:
            self.missed[id(variable)] = variable

    def made(self, variable: Held) -> None:
        """Takes a variable that is made in the trace."""
        if self.is_function:
            raise MadeInFunction
        self.made_here[id(variable)] = variable
        if traced_value(variable.held):
            variable.made_in = self
        elif self.outer is not None:
            self.outer.made(variable)

    def after(self, variables: Sequence[Held]) -> list:
        """The values of variables at the end of the trace."""
        return [strong(self.value_of(variable)) for variable in variables]


def _outer_value(outer: Any, variable: Held) -> Any:
    return held_of(variable) if outer is None else outer.value_of(variable)


def _outer_owner(outer: Any, variable: Held) -> Any:
    return None if outer is None else outer.owner_of(variable)


def _as_read(value: Any, outside: Any) -> Any:
    """`value`, with the derivative of `outside`."""
    read = jax.custom_jvp(lambda value, outside: value)
    read.defjvp(lambda primals, tangents: (primals[0], tangents[1]))
    return read(value, outside)


class Carried:
    """The variables that functions are given which JAX traces together: a condition and a step."""

    def __init__(self, variables: list[Held], made_before: int):
        self.variables = variables
        self.missed: dict[int, Held] = {}
        self.made: dict[int, tuple[Held, Region]] = {}
        # The most in one trace: JAX may trace a function several times.
        self.made_at_once = 0
        self.made_before = made_before

    def start(self) -> list:
        """The values that the variables have now."""
        return [strong(_outer_value(current(), variable)) for variable in self.variables]

    @contextlib.contextmanager
    def region(
        self,
        values: list,
        refusal: tuple[type[StatefulError], str] | None = None,
    ) -> Iterator[Region]:
        """The block in which a function is traced.

        Args:
          values: those of the variables at the start; none for those that they have outside.
          refusal: the error of a function that may not assign any.
        """
        this = Region(refusal=refusal)
        if values:
            for variable, value in zip(self.variables, values, strict=True):
                this.give(variable, value)
        else:
            this.given |= {id(variable) for variable in self.variables}
        with this.entered():
            yield this
        self.missed |= this.missed
        self.made_at_once = max(self.made_at_once, len(this.made_here))
        self.made |= {id(variable): (variable, this) for variable in this.made_here.values()}

    @property
    def is_whole(self) -> bool:
        """Whether the functions were given all the variables that they assign.

        A variable that was made in the trace may be made anew in each step, or be kept for the
        next one. Those that are kept are not made by another trace.
        """
        return not self.missed and self.made_at_once <= self.made_before

    def require_whole(self) -> None:
        """Raises `Again` if JAX has to trace again; the loop of this trace is then not run."""
        if not self.is_whole:
            raise Again


def carrying(run: Callable[[Carried], tuple[Any, list]]) -> Any:
    """The result of `run`, with the variables that it assigns while JAX traces.

    Args:
      run: of the variables that it may assign; it gives its result and their values afterwards.
    """
    carried = Carried([], 0)
    while True:
        try:
            result, values = run(carried)
        except Again:
            whole = False
        else:
            whole = carried.is_whole
        if whole:
            for variable, region in carried.made.values():
                variable.made_in = region
            for variable, value in zip(carried.variables, values, strict=True):
                variable.assign(value)
            return result
        variables = [*carried.variables, *carried.missed.values()]
        carried = Carried(variables, carried.made_at_once)


def strong(value: Any) -> Any:
    """A copy that tapes do not know, of the dtype that it has, also beside other arrays."""
    return jax.lax.convert_element_type(xp.array(value), value.dtype)


def traced_value(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer) if JAX_MODE else False


def place_of_trace() -> Any:
    """Something that is equal in one trace of JAX's, and differs in a branch or loop in it."""
    return jax.extend.core.get_opaque_trace_state(convention="flax") if JAX_MODE else None
