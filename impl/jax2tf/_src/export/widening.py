"""Computes functions of bfloat16 in float32, for engines without bfloat16."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.signatures import Signature
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.primitives import jit_p
from jax2tf._src.util.typing import Array, Atom, PyTree

_NARROW = np.dtype(jnp.bfloat16)
_WIDE = np.dtype(np.float32)


def widened(tree: PyTree) -> PyTree:
    """The tree with float32 in place of its arrays of bfloat16."""
    return jax.tree.map(_wide, tree)


def widened_signature(signature: Signature, params: PyTree) -> Signature:
    """A signature with float32 in place of bfloat16 in its inputs, results and computations.

    Args:
      signature: the signature.
      params: the parameters before they are widened.
    """
    args, kwargs = signature.arguments(signature.inputs)
    leaves = jax.tree.leaves(((() if params is None else params), args, kwargs))
    function = _Widened(signature.function, tuple(map(_is_narrow, leaves)))
    inputs = tuple(
        dataclasses.replace(i, dtype=_WIDE) if _is_narrow(i) else i for i in signature.inputs
    )
    return dataclasses.replace(signature, function=function, inputs=inputs)


def _is_narrow(x: object) -> bool:
    return bool(getattr(x, "dtype", None) == _NARROW)


class _Widened:
    """A function that takes and computes float32 in place of bfloat16."""

    def __init__(self, function: Callable[..., PyTree], narrow: Sequence[bool]) -> None:
        self._function = function
        self._narrow = narrow
        functools.update_wrapper(self, function)

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, tree = jax.tree.flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype")]
        specs = [
            jax.ShapeDtypeStruct(x.shape, _NARROW if self._narrow[i] else x.dtype)
            for i, x in ((i, leaves[i]) for i in places)
        ]

        def flat(*arrays: jax.Array) -> PyTree:
            traced = list(leaves)
            for place, array in zip(places, arrays, strict=True):
                traced[place] = array
            args, kwargs = jax.tree.unflatten(tree, traced)
            return Function(self._function).callable()(*args, **kwargs)

        closed, result = jax.make_jaxpr(flat, return_shape=True)(*specs)
        outputs = _evaluated(closed.jaxpr, closed.consts, [leaves[i] for i in places])
        return jax.tree.unflatten(jax.tree.structure(result), outputs)


def _evaluated(
    jaxpr: jex_core.Jaxpr, consts: Sequence[Array], args: Sequence[PyTree]
) -> list[PyTree]:
    """The results of a jaxpr, with float32 in place of bfloat16."""
    return jaxprs.evaluate(
        jaxpr, list(map(_wide, consts)), args, _results, lambda literal: _wide(literal.val)
    )


def _results(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Sequence[PyTree]:
    """The results of one equation."""
    with compat.jaxprs.bound_as(eqn):
        return _bound(eqn, operands)


def _bound(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Sequence[PyTree]:
    primitive = eqn.primitive
    if primitive is jit_p:
        inner = eqn.params["jaxpr"]
        function = functools.partial(_evaluated, inner.jaxpr, inner.consts)
        named_function = _named(lambda *args: function(args), eqn.params["name"])
        return jax.jit(named_function)(*operands)
    if primitive in traits.CALLS:
        inner = jaxprs.called(eqn)
        return _evaluated(inner.jaxpr, inner.consts, operands)
    if primitive is lax.bitcast_convert_type_p and _NARROW in _dtypes(eqn):
        raise ExportError(
            "jax2tf.export: widen_bfloat16=True computes in float32, and the function reads or "
            "makes the bits of bfloat16 (bitcast_convert_type), which float32 has not. What to "
            "do: draw random numbers in float32 and cast them, or leave that part out"
        )
    return jaxprs.bind(primitive, operands, _wide_params(eqn.params))


def _named(function: Callable[..., PyTree], name: str) -> Callable[..., PyTree]:
    function.__name__ = name
    return function


def _dtypes(eqn: jex_core.JaxprEqn) -> set[PyTree]:
    atoms: list[Atom] = [*eqn.invars, *eqn.outvars]
    return {getattr(atom.aval, "dtype", None) for atom in atoms}


def _wide(value: PyTree) -> PyTree:
    return value.astype(_WIDE) if _is_narrow(value) else value


def _wide_params(params: dict[str, PyTree]) -> dict[str, PyTree]:
    return {
        name: _WIDE if isinstance(value, np.dtype | type) and value == _NARROW else value
        for name, value in jaxprs.map_inner(params, _wide_jaxpr).items()
    }


def _wide_jaxpr(jaxpr: jaxprs.AnyJaxpr) -> jaxprs.AnyJaxpr:
    inner = jaxprs.closed(jaxpr)
    specs = [
        jax.ShapeDtypeStruct(a.shape, _WIDE if a.dtype == _NARROW else a.dtype, weak_type=False)
        for a in inner.in_avals
    ]
    wide = jax.make_jaxpr(lambda *args: _evaluated(inner.jaxpr, inner.consts, args))(*specs)
    return wide if inner is jaxpr else wide.jaxpr
