"""Meshes of the devices that a machine has, and programs of each of their devices."""

import math
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

# The sizes of a mesh of eight devices, by its axes.
MESHES: dict[str, dict[str, int]] = {
    "8": {"a": 8},
    "4x2": {"a": 4, "b": 2},
    "2x4": {"a": 2, "b": 4},
    "8x1": {"a": 8, "b": 1},
    "2x2x2": {"a": 2, "b": 2, "c": 2},
    "1": {"a": 1},
}


def mesh_of(name: str, axis_type: AxisType = AxisType.Auto) -> Mesh:
    """The mesh of that name: of the CPU's devices where the machine has too few of another kind.

    Made where a harness runs: before, no device may have been chosen.
    """
    sizes = MESHES[name]
    count = math.prod(sizes.values())
    devices = jax.devices()
    if len(devices) < count:
        devices = jax.devices("cpu")
    kinds = (axis_type,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), kinds, devices=devices[:count])


def rows_over(mesh: str) -> P:
    """The spec of an array whose rows are split over all axes of a mesh."""
    return P(tuple(MESHES[mesh]))


def on_each(
    function: Callable[..., Any], mesh: str, in_specs: Any, out_specs: Any, **options: Any
) -> Callable[..., Any]:
    """The program of each device of a mesh, as a function of whole arrays."""

    def fun(*args: Any) -> Any:
        mapped = jax.shard_map(
            function, mesh=mesh_of(mesh), in_specs=in_specs, out_specs=out_specs, **options
        )
        return mapped(*args)

    return fun
