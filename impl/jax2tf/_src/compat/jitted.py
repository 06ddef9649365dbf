"""Of what jax.jit and jax.pmap give: static arguments and shardings."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import jax
from tensorflow.compiler.xla import xla_data_pb2

from jax2tf._src.util.typing import PyTree


def static_arguments(jitted: PyTree) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the arguments that jax.jit was told are static.

    A trace is made without them, and no public name of what jax.jit makes tells which they are.
    """
    return jitted._jit_info.static_argnums, jitted._jit_info.static_argnames


# jax.pmap gives a plain function. All that it gives have the same code.
_CODE_OF_PMAPPED = jax.pmap(lambda: None).__code__


def is_pmapped(fun: Callable[..., PyTree]) -> bool:
    """Whether jax.pmap made the function."""
    return getattr(fun, "__code__", None) is _CODE_OF_PMAPPED


def static_arguments_of_pmap(pmapped: Callable[..., PyTree]) -> tuple[int, ...]:
    """Positions of the arguments that jax.pmap was told are static.

    It keeps them in a function that the one that it gives closes over.
    """
    inner = inspect.getclosurevars(pmapped).nonlocals["infer_params"]
    results: tuple[int, ...] = inspect.getclosurevars(inner).nonlocals["static_broadcasted_tuple"]
    return results


def shardings_of(traced: jax.stages.Traced) -> list[jax.sharding.Sharding]:
    """What jax.jit was told of the shardings of arguments and results of the traced function.

    They are beside its jaxpr, and only a compiled function shows them by a public name.
    """
    return [*traced._params["in_shardings"], *traced._params["out_shardings"]]


def hlo_sharding(sharding: jax.sharding.Sharding, rank: int) -> PyTree:
    """XLA's message for a jax.sharding.Sharding of an array of that rank.

    Public names tell the part of each device for sizes that are known, and a batch may not be.
    """
    proto = sharding._to_xla_hlo_sharding(rank).to_proto()
    return xla_data_pb2.OpSharding.FromString(proto.SerializeToString())
