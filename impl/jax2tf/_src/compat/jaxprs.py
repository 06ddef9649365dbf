"""Jaxprs and their equations: their sources, their params, the keys of JAX's caches."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jax import export
from jax._src import config as _jax_config
from jax._src import source_info_util as _source_info_util
from jax._src import util as _jax_util
from jax._src.interpreters import ad as _jax_ad
from jax._src.state import discharge as _discharge
from jax._src.state import types as _state_types

from jax2tf._src.api.errors import ConversionError
from jax2tf._src.util.typing import Param, PyTree

if TYPE_CHECKING:
    # Importing jax.extend takes JAX longer than this package takes for all that it imports at once.
    from jax.extend import core as jex_core


def trace_context() -> Hashable:
    """The JAX configuration that changes a trace (x64, default precision, ...).

    jax.jit traces again when it changes. JAX has no public name for all of it.
    """
    return _jax_config.trace_context()


def cached_weakly(kind: type) -> None:
    """Makes JAX's caches of abstract evaluation refer weakly to params of exactly this type.

    Otherwise they keep a param until thousands of others follow, and a param of call_tf holds a
    TensorFlow function with its graphs. JAX does the same for jaxprs.
    """
    _jax_util.weakref_cache_key_types.add(kind)


# JAX takes the innermost stack frame outside of the registered folders for the source of an
# operation. So the source is a line of the user's, not one of this package.
_source_info_util.register_exclusion(str(pathlib.Path(__file__).parents[1]) + os.sep)


def user_source(eqn: jex_core.JaxprEqn) -> str:
    """`file:line (function)` of the user code that bound `eqn`; JAX prints it in its own errors.

    Empty if no user code did: in a JAX function that is converted directly, in the lowering of a
    primitive, or for an equation that was made without a source.
    """
    return _source_info_util.summarize(eqn.source_info)


def callers(eqn: jex_core.JaxprEqn) -> tuple[str, ...]:
    """The user's lines that called `user_source(eqn)`, innermost first.

    JAX keeps them up to the function that was traced: none beyond a `jax.jit` inside of it.
    """
    frames = list(_source_info_util.user_frames(eqn.source_info.traceback))
    return tuple(
        f"{f.file_name}:{f.start_line}:{f.start_column} ({f.function_name})" for f in frames[1:]
    )


def name_stack(eqn: jex_core.JaxprEqn) -> str:
    """The named scopes and transformations around `eqn`, as JAX writes them into its HLO."""
    return str(eqn.source_info.name_stack)


def common_scopes(eqns: Sequence[jex_core.JaxprEqn]) -> int:
    """How many of the outermost scopes and transformations are around all of `eqns`."""
    stacks = [eqn.source_info.name_stack.stack for eqn in eqns]
    levels = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*stacks, strict=False))
    return len(list(levels))


def in_scopes(eqn: jex_core.JaxprEqn, scopes: slice) -> _source_info_util.SourceInfo:
    """The source information of `eqn`, with only a slice of its scopes and transformations."""
    return eqn.source_info.replace(name_stack=eqn.source_info.name_stack[scopes])


def bound_as(eqn: jex_core.JaxprEqn) -> contextlib.AbstractContextManager[None]:
    """A context in which bound primitives get the source and the named scopes of `eqn`.

    It serves rewrites of an equation; JAX does the same when it evaluates a jaxpr.
    """
    source = eqn.source_info
    return _source_info_util.user_context(source.traceback, name_stack=source.name_stack)


def explicit_constraints(scope: export.SymbolicScope) -> tuple[str, ...]:
    """The constraints of a scope of dimension variables, as text; publicly it only prints them."""
    return tuple(constraint.debug_str for constraint in scope._explicit_constraints)


def scan_arity(params: dict[str, Param]) -> tuple[int, int]:
    """The number of operands of a scan that are constants, and of those that are the carry.

    JAX 0.12 has a flat tree of a private class for it, earlier versions two numbers.
    """
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts.vals), len(carry.vals)


def data_of_keys(keys: PyTree) -> np.ndarray:
    """The raw data of an array of typed PRNG keys.

    jax.random.key_data binds a primitive, which is not possible while JAX lowers a call_tf.
    """
    return np.asarray(keys._base_array)


def prng_impl(dtype: PyTree) -> PyTree:
    """The generator (seed, split, fold_in, random_bits) of a typed key's dtype.

    jax.random.key_impl names it only for an array of keys, and gives no functions.
    """
    return dtype._impl


def without_references(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """`jaxpr` with its mutable references (jax.new_ref) turned into values that are passed along.

    JAX does the same before it compiles; the transformation has no public name.

    Raises:
      ConversionError: a reference was made outside of the function.
    """
    if any(isinstance(v.aval, _state_types.AbstractRef) for v in jaxpr.jaxpr.constvars):
        raise ConversionError(
            "jax2tf.convert: the function uses a mutable reference (jax.new_ref) that was made "
            "outside of it, and TensorFlow cannot write to that. Make the reference inside the "
            "function, or pass its value in and out"
        )
    if not any("Mutable" in type(e).__name__ or "Ref" in type(e).__name__ for e in jaxpr.effects):
        return jaxpr
    return _discharge.discharge_state(jaxpr)


def callback_function(params: dict[str, Param]) -> Callable[..., PyTree] | None:
    """The function that a callback calls; None where JAX hides it.

    The primitives of callbacks have params of private classes.
    """
    return getattr(params.get("callback"), "callback_func", None)


def callback_name(params: dict[str, Param]) -> str:
    """The name of the function that a callback calls; empty where JAX hides it."""
    function = callback_function(params)
    return getattr(function, "__name__", type(function).__name__) if function else ""


# JAX raises this if a function with a custom derivative rule closes over a value that is
# differentiated. Publicly it is only an Exception.
ClosedOverError: type[Exception] = _jax_ad.CustomVJPException


def groups_of_numbers() -> contextlib.AbstractContextManager[None]:
    """A context in which JAX writes groups of devices into modules as numbers.

    Newer versions of JAX name axes of the mesh, which the StableHLO that TensorFlow reads cannot
    express. Publicly the option can only be set for the whole process.
    """
    state = getattr(_jax_config, "use_rgv3", None)
    return contextlib.nullcontext() if state is None else state(False)


def varies_over_a_mesh(aval: object) -> bool:
    """Whether the value varies between the devices of a mesh, within shard_map."""
    kind = getattr(aval, "manual_axis_type", None)
    return kind is not None and bool(kind.varying)
