"""Makes native modules in which a program of each device has its rows and columns the wrong way."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import PartitionSpec

import jax2tf

_shard_map = jax.shard_map


def convert(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """As jax2tf's, of a function whose specs are turned."""

    def turned(*args: Any) -> Any:
        jax.shard_map = _turned
        try:
            return fun(*args)
        finally:
            jax.shard_map = _shard_map

    return jax2tf.convert(turned, **options)


def _turned(function: Callable[..., Any], *, in_specs: Any, **options: Any) -> Any:
    return _shard_map(function, in_specs=PartitionSpec(*in_specs[::-1]), **options)
