"""JAX's side of `tf_substrates.authors`: derivatives that authors give, and those they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_substrates.numpy import nest
from tf_substrates.numpy.recording import is_recording, recorded
from tf_substrates.numpy.tensors import convert

JAX_MODE = False
if JAX_MODE:
    import jax


def with_tangents(function: Callable, jvp_fn: Callable, args: tuple) -> Any:
    """`function(*args)`, of which `jvp_fn` gives the forward derivative.

    Args:
      function: of tensors, in structures of any kind.
      jvp_fn: of the arguments and of their tangents, None for those of integers; it gives the
        result and its tangent.
      args: the arguments.
    """
    seen: list = []

    def flat(*primals: Any) -> list:
        seen.append(function(*nest.pack_sequence_as(args, list(primals))))
        return _arrays(seen[-1])

    derivable = jax.custom_jvp(flat)

    @derivable.defjvp
    def tangents_of(primals: Any, tangents: Any) -> tuple:
        moving = [
            tangent if jax.numpy.issubdtype(primal.dtype, jax.numpy.inexact) else None
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        result, tangent = jvp_fn(
            nest.pack_sequence_as(args, list(primals)), nest.pack_sequence_as(args, moving)
        )
        seen.append(result)
        outputs = _arrays(result)
        along = zip(nest.flatten(tangent), outputs, strict=True)
        return outputs, [_tangent(given, output) for given, output in along]

    leaves = recorded(derivable)(*_arrays(args))
    return nest.pack_sequence_as(seen[-1], leaves)


def _arrays(structure: Any) -> list:
    return [jax.numpy.asarray(convert(leaf)) for leaf in nest.flatten(structure)]


def _tangent(given: Any, output: Any) -> Any:
    """A tangent as JAX wants it: of the dtype and shape of its output."""
    if not jax.numpy.issubdtype(output.dtype, jax.numpy.inexact):
        return jax.custom_derivatives.zero_from_primal(output)
    if given is None:
        return jax.numpy.zeros_like(output)
    return jax.numpy.asarray(convert(given)).astype(output.dtype)


def derived(f: Callable, args: tuple, output_gradients: Any, has_aux: bool) -> Any:
    """`(result, gradients of args)` by jax.vjp, or None where a tape records.

    A tape sees what `f` closes over if it is the one that derives.
    """
    if is_recording():
        return None
    seen: list = []

    def flat(leaves: list) -> Any:
        found = f(*nest.pack_sequence_as(args, leaves))
        result, aux = found if has_aux else (found, None)
        seen.append(result)
        return _arrays(result), aux

    outputs, pull, aux = jax.vjp(flat, _arrays(args), has_aux=True)
    if output_gradients is None:
        upstream = list(map(jax.numpy.ones_like, outputs))
    else:
        upstream = [
            jax.numpy.broadcast_to(jax.numpy.asarray(convert(g, dtype=o.dtype)), o.shape)
            for g, o in zip(nest.flatten(output_gradients), outputs, strict=True)
        ]
    (gradients,) = pull(upstream)
    result = nest.pack_sequence_as(seen[-1], outputs)
    return (result, aux) if has_aux else result, nest.pack_sequence_as(args, gradients)
