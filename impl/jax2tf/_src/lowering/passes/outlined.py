"""Moves equations of a jaxpr into an inner jaxpr that one equation calls.

A *window* is the sequence of equations that moves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.tracing.jaxprs import closed, variables
from jax2tf._src.util.typing import Array, Param

# JAX's messages use this name for the inner jaxprs.
_DEBUG_INFO = jex_core.DebugInfo("jax2tf", "moved equations", None, None)


@dataclasses.dataclass(frozen=True)
class Wiring:
    """The values that the equations of a window read.

    Attributes:
      inputs: the values from outside, in the order of their first use.
      references: for each operand, the number of its value. Windows that differ only in their
        inputs have the same references.
    """

    inputs: list[jex_core.Var]
    references: tuple[int, ...]

    @classmethod
    def of(cls, window: Sequence[jex_core.JaxprEqn]) -> Wiring:
        results = [var for eqn in window for var in eqn.outvars]
        # Results are numbered from 0 up, inputs from -1 down.
        numbers = {var: i for i, var in enumerate(results)}
        inputs: list[jex_core.Var] = []
        references = []
        for eqn in window:
            for var in variables(eqn.invars):
                if var not in numbers:
                    inputs.append(var)
                    numbers[var] = -len(inputs)
                references.append(numbers[var])
        return cls(inputs, tuple(references))


class Body:
    """The jaxpr that equal windows call. It is made from the first window."""

    def __init__(
        self,
        name: str,
        window: Sequence[jex_core.JaxprEqn],
        inputs: Sequence[jex_core.Var],
        outputs: Sequence[tuple[int, int]],
        **params: Param,
    ):
        """Makes the jaxpr.

        Args:
          name: the name of the function that the jaxpr becomes.
          window: the equations.
          inputs: the values from outside that they read; see `Wiring`.
          outputs: an equation's place in the window and the place of its result, for each value
            that is read outside.
          params: other params of the equation that calls the jaxpr, in place of those of JAX.
        """
        self._outputs = outputs
        results = self._results(window)
        n_scopes = compat.jaxprs.common_scopes(window)
        inside = [
            e.replace(source_info=compat.jaxprs.in_scopes(e, slice(n_scopes, None))) for e in window
        ]
        body = closed(jex_core.Jaxpr([], inputs, results, inside, debug_info=_DEBUG_INFO))

        def moved(*args: Array) -> list[int]:
            return [0] * len(results)

        # JAX sets the params of a call; the function that it traces here does not matter.
        traced = jax.make_jaxpr(jax.jit(moved, keep_unused=True))(*[0] * len(inputs))
        (self._call,) = traced.jaxpr.eqns
        self._params = {**self._call.params, "jaxpr": body, "name": name, **params}

    def call(
        self, window: Sequence[jex_core.JaxprEqn], inputs: Sequence[jex_core.Var]
    ) -> jex_core.JaxprEqn:
        """Returns the call that computes the results of a window."""
        n_scopes = compat.jaxprs.common_scopes(window)
        return self._call.replace(
            invars=list(inputs),
            outvars=self._results(window),
            params=self._params,
            source_info=compat.jaxprs.in_scopes(window[0], slice(n_scopes)),
        )

    def _results(self, window: Sequence[jex_core.JaxprEqn]) -> list[jex_core.Var]:
        return [window[i].outvars[j] for i, j in self._outputs]
