"""Functions of jax.jit and jax.pmap: their static arguments and shardings."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import jax

from jax2tf._src.util.lazy_imports import LazyModule
from jax2tf._src.util.typing import PyTree

xla_data_pb2 = LazyModule("tensorflow.compiler.xla.xla_data_pb2")


def static_arguments(jitted: PyTree) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the static arguments of a jitted function.

    A trace leaves them out, and a jitted function has no public name for them.
    """
    return jitted._jit_info.static_argnums, jitted._jit_info.static_argnames


# jax.pmap returns a plain function, always with the same code.
_CODE_OF_PMAPPED = jax.pmap(lambda: None).__code__


def is_pmapped(fun: Callable[..., PyTree]) -> bool:
    """Whether jax.pmap made the function."""
    return getattr(fun, "__code__", None) is _CODE_OF_PMAPPED


def static_arguments_of_pmap(pmapped: Callable[..., PyTree]) -> tuple[int, ...]:
    """Positions of the static arguments of a pmapped function.

    They are in a closure of a function that the pmapped function closes over.
    """
    inner = inspect.getclosurevars(pmapped).nonlocals["infer_params"]
    return tuple(inspect.getclosurevars(inner).nonlocals["static_broadcasted_tuple"])


def shardings_of(traced: jax.stages.Traced) -> list[jax.sharding.Sharding]:
    """The shardings of arguments and results that the jitted function was given.

    They are not in the jaxpr, and only a compiled function has a public name for them.
    """
    return [*traced._params["in_shardings"], *traced._params["out_shardings"]]


def hlo_sharding(sharding: jax.sharding.Sharding, rank: int) -> PyTree:
    """XLA's OpSharding message of a jax.sharding.Sharding for arrays of that rank.

    Public names give the part of each device only for known sizes, and a batch may be symbolic.
    """
    proto = sharding._to_xla_hlo_sharding(rank).to_proto()
    return xla_data_pb2.OpSharding.FromString(proto.SerializeToString())
