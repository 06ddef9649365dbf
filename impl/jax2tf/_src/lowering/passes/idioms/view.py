"""Views a jaxpr as if its calls were inlined, and finds the equation that computes each value.

Nothing is copied. A value is a variable of a jaxpr together with the calls that lead to this jaxpr.
Equations that only hand a value on (a call, a stop_gradient, a copy) are skipped.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import called
from jax2tf._src.util.typing import Atom, Aval, aval_of


class Frame:
    """A jaxpr at the place where it is called. The outermost jaxpr has no call."""

    def __init__(
        self, jaxpr: jex_core.Jaxpr, call: jex_core.JaxprEqn | None, outer: Frame | None
    ) -> None:
        self.jaxpr = jaxpr
        self.outer = outer
        self.arguments: dict[Atom, Atom] = (
            {} if call is None else dict(zip(jaxpr.invars, call.invars, strict=True))
        )
        self._made_by = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
        self._inner: dict[jex_core.JaxprEqn, Frame] = {}

    def made_by(self, var: jex_core.Var) -> tuple[jex_core.JaxprEqn, int] | None:
        """Returns the equation that computes `var`, and the index of this result."""
        return self._made_by.get(var)

    def enter(self, call: jex_core.JaxprEqn) -> Frame:
        """Returns the frame of the jaxpr that an equation of this frame calls."""
        if call not in self._inner:
            self._inner[call] = Frame(called(call).jaxpr, call, self)
        return self._inner[call]


@dataclasses.dataclass(frozen=True)
class Value:
    """The value of an atom, seen from the outermost jaxpr.

    Attributes:
      atom: a literal, or the variable of the equation that computes the value.
      frame: the frame of this atom.
      eqn: the equation that computes the value; None for literals, arguments and constants.
      index: the index of the value among the equation's results.
      literal: the value of a literal in the dtype of its use; None for other values.
    """

    atom: Atom
    frame: Frame
    eqn: jex_core.JaxprEqn | None = None
    index: int = 0
    literal: np.ndarray | None = dataclasses.field(default=None, compare=False)

    @property
    def aval(self) -> Aval:
        """The aval of the atom."""
        return aval_of(self.atom)


@dataclasses.dataclass(frozen=True)
class Path:
    """The way from an atom to its value.

    Attributes:
      value: the value.
      carrier: the first atom of the outermost jaxpr on the way; None if there is none.
      passed: the equations of the outermost jaxpr on the way, including the last one.
    """

    value: Value
    carrier: Atom | None
    passed: tuple[jex_core.JaxprEqn, ...]


def find(atom: Atom, frame: Frame) -> Path:
    """Finds the value of an atom of a frame's jaxpr."""
    carrier = None
    passed: list[jex_core.JaxprEqn] = []
    while True:
        if carrier is None and frame.outer is None:
            carrier = atom
        if isinstance(atom, jex_core.Literal):
            return Path(Value(atom, frame, literal=_number(atom)), carrier, tuple(passed))
        if atom in frame.arguments and frame.outer is not None:
            atom, frame = frame.arguments[atom], frame.outer
            continue
        made = frame.made_by(atom)
        if made is None:
            return Path(Value(atom, frame), carrier, tuple(passed))
        eqn, index = made
        if frame.outer is None:
            passed.append(eqn)
        if eqn.primitive in traits.CALLS and not eqn.effects:
            frame = frame.enter(eqn)
            atom = frame.jaxpr.outvars[index]
            continue
        number = _converted_literal(eqn, frame)
        if number is not None:
            return Path(Value(atom, frame, literal=number), carrier, tuple(passed))
        handed_on = _handed_on(eqn)
        if handed_on is None:
            return Path(Value(atom, frame, eqn, index), carrier, tuple(passed))
        atom = handed_on


def _number(literal: jex_core.Literal) -> np.ndarray:
    aval = aval_of(literal)
    return np.asarray(literal.val).astype(aval.dtype)


def _converted_literal(eqn: jex_core.JaxprEqn, frame: Frame) -> np.ndarray | None:
    """Returns the value of an equation that converts a literal, as jnp.clip(x, 0, 6) does."""
    if eqn.primitive is not lax.convert_element_type_p:
        return None
    literal = find(eqn.invars[0], frame).value.literal
    return None if literal is None else literal.astype(eqn.params["new_dtype"])


def _handed_on(eqn: jex_core.JaxprEqn) -> Atom | None:
    """Returns the operand that an equation hands on unchanged, or None."""
    if eqn.primitive in traits.IDENTITY and eqn.primitive not in traits.ANNOTATES:
        return eqn.invars[0]
    if eqn.primitive is lax.convert_element_type_p:
        given = aval_of(eqn.invars[0])
        return eqn.invars[0] if given.dtype == eqn.params["new_dtype"] else None
    if eqn.primitive is lax.max_p:
        # jnp.max begins with -inf, the maximum of no elements. max(-inf, x) is x.
        for one, other in (eqn.invars, reversed(eqn.invars)):
            if isinstance(one, jex_core.Literal) and np.isneginf(np.float64(one.val)):
                return other
    return None
