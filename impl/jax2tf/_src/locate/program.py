"""The user's function as one flat list of equations, run by JAX one after the other."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.export.signatures import Signature
from jax2tf._src.lowering import pipeline
from jax2tf._src.lowering.passes.dead_code import without_dead_code
from jax2tf._src.tracing import functions, jaxprs
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.traits import CALLS
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Array, Atom, PyTree, aval_of

# The values of variables.
Values: TypeAlias = dict[jex_core.Var, Array]


@dataclasses.dataclass(frozen=True)
class Program:
    """A flat list of equations with the arguments they are run on.

    Attributes:
      closed: the equations; calls are inlined, loops and branches are one equation each.
      leaves: the arguments: parameters, then inputs.
      n_params: the number of leaves that are parameters.
      names: the names of the outputs in files.
      paths: the paths of the leaves that are parameters, such as "['layers'][7]".
      again: traces the user's function anew; None for a program inside of another.
    """

    closed: jex_core.ClosedJaxpr
    leaves: tuple[Array, ...]
    n_params: int
    names: tuple[str, ...]
    paths: tuple[str, ...] = ()
    again: Callable[[], Program] | None = None

    @property
    def equations(self) -> Sequence[jex_core.JaxprEqn]:
        """The equations in the order of the program."""
        return self.closed.jaxpr.eqns

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The leaves that are inputs; the data of keys."""
        return tuple(as_numpy(leaf) for leaf in self.leaves[self.n_params :])

    def given(self) -> Values:
        """The values of the arguments and of the constants."""
        jaxpr = self.closed.jaxpr
        values = dict(zip(jaxpr.constvars, self.closed.consts, strict=True))
        return {**values, **dict(zip(jaxpr.invars, self.leaves, strict=True))}

    @functools.cached_property
    def reference(self) -> Values:
        """JAX's value of each variable."""
        values = self.given()
        for eqn in self.equations:
            values.update(zip(eqn.outvars, results_of(eqn, operands_of(eqn, values)), strict=True))
        return values

    def results_of(self, index: int, operands: Sequence[Array]) -> Sequence[Array]:
        """The results of an equation, in JAX.

        The last ones of each equation are kept: two files of one program give the same values up to
        the equation at which one of them goes wrong.
        """
        known = self._last.get(index)
        if known is not None and all(map(_is_same, known[0], operands)):
            return known[1]
        results = results_of(self.equations[index], operands)
        self._last[index] = list(operands), results
        return results

    @functools.cached_property
    def _last(self) -> dict[int, tuple[list[Array], Sequence[Array]]]:
        return {}

    def outputs(self, values: Mapping[jex_core.Var, Array]) -> dict[str, np.ndarray]:
        """The outputs by name."""
        read = (read_atom(atom, values) for atom in self.closed.jaxpr.outvars)
        return {name: as_numpy(x) for name, x in zip(self.names, read, strict=True)}

    def outputs_with(self, changed: Values, first: int) -> dict[str, np.ndarray]:
        """JAX's outputs with other values for some variables, of equations before `first`."""
        values = {**self.reference, **changed}
        dirty = set(changed)
        for eqn in self.equations[first:]:
            if dirty.isdisjoint(jaxprs.variables(eqn.invars)):
                continue
            values.update(zip(eqn.outvars, results_of(eqn, operands_of(eqn, values)), strict=True))
            dirty.update(eqn.outvars)
        return self.outputs(values)

    def readable(self) -> list[jex_core.Var]:
        """The results of equations that are arrays of numbers, with elements."""
        results = (v for eqn in self.equations for v in eqn.outvars)
        return [v for v in results if is_array(v) and 0 not in aval_of(v).shape]

    def with_outputs(self, outputs: Sequence[jex_core.Var]) -> jex_core.ClosedJaxpr:
        """The program cut behind these results, which it returns."""
        jaxpr = self.closed.jaxpr
        traced = jaxpr.replace(
            outvars=list(outputs),
            # The names of results are those of the whole program.
            debug_info=jaxpr.debug_info._replace(result_paths=None),
        )
        return without_dead_code(jex_core.ClosedJaxpr(traced, self.closed.consts))


def program_of(signature: Signature, params: PyTree, arrays: Sequence[np.ndarray]) -> Program:
    """The program of a signature on inputs.

    Args:
      signature: the function with its inputs.
      params: its parameters; None for functions of only inputs.
      arrays: the inputs, in order.
    """
    params = functions.without_opaque_leaves(
        () if params is None else params, functions.is_array_or_number
    )
    args, kwargs = signature.arguments(arrays)
    traced = jax.jit(Function(signature.function).callable()).trace(params, *args, **kwargs)
    simplified = pipeline.simplified(traced.lojax.jaxpr, True)
    leaves = jax.tree.leaves((params, args, kwargs))
    results = functions.values(traced.out_info)
    return Program(
        flat(simplified),
        tuple(
            leaf if is_key(leaf) else np.asarray(leaf, aval.dtype)
            for leaf, aval in zip(leaves, simplified.in_avals, strict=True)
        ),
        len(jax.tree.leaves(params)),
        tuple(signature.output_names(results)),
        tuple(
            jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)
        ),
        functools.partial(program_of, signature, params, arrays),
    )


def flat(closed: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """The jaxpr with all calls inlined; equations keep their lines and scopes."""
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    inlined = jaxprs.traced(lambda *args: _evaluate(closed, args), specs)
    return without_dead_code(inlined)


def _evaluate(
    closed: jex_core.ClosedJaxpr, args: Sequence[Array], outer: jex_core.JaxprEqn | None = None
) -> list[Array]:
    inline = functools.partial(_inline, outer)
    return jaxprs.evaluate(closed.jaxpr, closed.consts, args, inline)


def _inline(
    outer: jex_core.JaxprEqn | None, eqn: jex_core.JaxprEqn, operands: list[Array]
) -> Sequence[Array]:
    # Functions of JAX's own have no line of the user; the call of them has one.
    named = eqn if outer is None or compat.jaxprs.user_source(eqn) else outer
    if eqn.primitive in CALLS:
        return _evaluate(jaxprs.called(eqn), operands, named)
    with compat.jaxprs.bound_as(named):
        return jaxprs.bind(eqn.primitive, operands, eqn.params)


def results_of(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Sequence[Array]:
    """JAX's results of one equation."""
    return jaxprs.bind(eqn.primitive, operands, eqn.params)


def operands_of(eqn: jex_core.JaxprEqn, values: Mapping[jex_core.Var, Array]) -> list[Array]:
    """The operands of an equation."""
    return [read_atom(atom, values) for atom in eqn.invars]


def read_atom(atom: Atom, values: Mapping[jex_core.Var, Array]) -> Array:
    """The value of a variable or of a literal."""
    return jaxprs.array_of(atom) if isinstance(atom, jex_core.Literal) else values[atom]


def is_array(atom: Atom) -> bool:
    """Whether an atom is an array of numbers: not a token, nor an array of keys."""
    dtype = getattr(atom.aval, "dtype", None)
    return dtype is not None and not dtypes.is_key(dtype)


def _is_same(x: Array, y: Array) -> bool:
    """Whether two operands are the same bits."""
    if x is y:
        return True
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        return False
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def is_key(value: PyTree) -> bool:
    """Whether a value is an array of keys."""
    return hasattr(value, "dtype") and dtypes.is_key(value.dtype)


def as_numpy(value: Array) -> np.ndarray:
    """The array of a value; the data of keys."""
    return compat.jaxprs.data_of_keys(value) if is_key(value) else np.asarray(value)


def numbered(variables: Iterable[jex_core.Var]) -> Iterator[tuple[str, jex_core.Var]]:
    """Variables with names for files."""
    return ((f"v{i:05d}", v) for i, v in enumerate(variables))
