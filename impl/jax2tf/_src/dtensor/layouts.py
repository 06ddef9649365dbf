"""JAX's meshes and shardings as DTensor's meshes and layouts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from jax2tf._src.api.errors import LayoutError
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

JaxMesh: TypeAlias = jax.sharding.Mesh | AbstractMesh

# TensorFlow's names for JAX's platforms.
_KINDS = {"cpu": "CPU", "gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


def mesh_of(
    mesh: tf.experimental.dtensor.Mesh, devices: Sequence[str] | None = None
) -> tf.experimental.dtensor.Mesh:
    """The DTensor mesh with the axes of a JAX mesh.

    A mesh of 8 needs 8 logical devices of TensorFlow. A machine without accelerators gets them from
    its CPU, before TensorFlow is used:

        cpu = tf.config.list_physical_devices("CPU")[0]
        eight = [tf.config.LogicalDeviceConfiguration()] * 8
        tf.config.set_logical_device_configuration(cpu, eight)

    >>> from jax.sharding import AbstractMesh
    >>> mesh_of(AbstractMesh((1, 1), ("data", "model"))).dim_names
    ['data', 'model']

    Args:
      mesh: a jax.sharding.Mesh, a jax.sharding.AbstractMesh, or a DTensor mesh, which is returned
        as it is. For several hosts, tf.experimental.dtensor.create_distributed_mesh makes one.
      devices: the TensorFlow devices in the order of the mesh, as "CPU:0". None takes those with
        the numbers of JAX's devices, or the first ones for an AbstractMesh.

    Raises:
      TypeError: `mesh` is not a mesh.
      LayoutError: TensorFlow has too few devices, or the name of an axis is not a text.
    """
    if isinstance(mesh, tf.experimental.dtensor.Mesh):
        return mesh
    if not isinstance(mesh, jax.sharding.Mesh | AbstractMesh):
        raise TypeError(
            "jax2tf.dtensor.mesh_of: mesh should be a jax.sharding.Mesh, an AbstractMesh or a "
            f"tf.experimental.dtensor.Mesh, got {type(mesh).__name__}"
        )
    sizes = dict(mesh.shape)
    for axis in sizes:
        if not isinstance(axis, str):
            raise LayoutError(
                f"jax2tf.dtensor.mesh_of: the axis {axis!r} should have a text for its name, as "
                "DTensor's have; name it when you make the mesh"
            )
    names = list(devices) if devices is not None else _devices(mesh)
    if len(names) != math.prod(sizes.values()):
        raise LayoutError(
            f"jax2tf.dtensor.mesh_of: the mesh {_text(sizes)} has {math.prod(sizes.values())} "
            f"devices, and `devices` names {len(names)}"
        )
    _require_devices(sizes, names)
    return tf.experimental.dtensor.create_mesh(list(sizes.items()), devices=names)


def layout_of(
    sharding: object, rank: int, mesh: tf.experimental.dtensor.Mesh
) -> tf.experimental.dtensor.Layout:
    """The DTensor layout of a JAX sharding, for arrays of the given rank.

    >>> from jax.sharding import AbstractMesh, PartitionSpec
    >>> small = AbstractMesh((1, 1), ("data", "model"))
    >>> layout_of(PartitionSpec("data"), 2, small).sharding_specs
    ['data', 'unsharded']

    Args:
      sharding: a jax.sharding.NamedSharding or a PartitionSpec. None replicates the array.
      rank: the number of dimensions.
      mesh: a mesh that `mesh_of` takes.

    Raises:
      LayoutError: DTensor has no such layout. The sharding has a dimension over several axes of the
        mesh, an axis that the mesh lacks or has in another size, or more dimensions than `rank`.
    """
    where = "jax2tf.dtensor.layout_of"
    remedy = "give the number of dimensions of the array"
    rank = option_checks.whole_number(rank, f"{where}: rank", 0, remedy)
    return layout_on(mesh_of(mesh), sharding, rank, where)


def layout_on(
    mesh: tf.experimental.dtensor.Mesh,
    sharding: object,
    rank: int,
    where: str,
    open_dims: Iterable[int] = (),
) -> PyTree:
    """Like `layout_of`, for a DTensor mesh.

    Args:
      mesh: a DTensor mesh.
      sharding: as for `layout_of`.
      rank: as for `layout_of`.
      where: the public function and the argument, for messages.
      open_dims: the dimensions that may be sharded in any way.
    """
    dtensor = tf.experimental.dtensor
    spec = _spec(mesh, sharding, where)
    if len(spec) > rank:
        raise LayoutError(
            f"{where}: the sharding {spec} is of arrays with {len(spec)} dimensions or more, and "
            f"the array has {rank}; leave out what there is no dimension for"
        )
    axes = [_axis(mesh, part, where) for part in spec] + [None] * (rank - len(spec))
    specs = [dtensor.UNSHARDED if axis is None else axis for axis in axes]
    if all(axis is None for axis in axes):
        # No MATCH beside a named axis: DTensor 2.21 aborts the process if the dimension is already
        # sharded over that axis. Only one, as DTensor refuses two; the others are replicated.
        for dim in sorted(open_dims)[:1]:
            specs[dim] = dtensor.MATCH
    return dtensor.Layout(specs, mesh)


def jax_mesh_of(mesh: tf.experimental.dtensor.Mesh) -> JaxMesh:
    """A JAX mesh with the axes of a JAX or DTensor mesh, for shardings that only name axes."""
    if isinstance(mesh, JaxMesh):
        return mesh
    names = tuple(mesh.dim_names)
    return AbstractMesh(tuple(map(mesh.dim_size, names)), names, axis_types=_auto(names))


def named_sharding(mesh: JaxMesh, sharding: object) -> PyTree:
    """A PartitionSpec as a NamedSharding over the mesh; anything else is returned as it is."""
    return NamedSharding(mesh, sharding) if isinstance(sharding, PartitionSpec) else sharding


def is_sharding(node: PyTree) -> bool:
    """Whether a node of a tree is a JAX sharding, or None."""
    return node is None or isinstance(node, jax.sharding.Sharding | PartitionSpec)


def require_even(
    layout: tf.experimental.dtensor.Layout, shape: Sequence[int | None], where: str
) -> None:
    """Raises a LayoutError if a layout cannot split a dimension into equal parts."""
    for dim, (size, axis) in enumerate(zip(shape, layout.sharding_specs, strict=True)):
        parts = 1 if axis == tf.experimental.dtensor.UNSHARDED else layout.mesh.dim_size(axis)
        if size is not None and size % parts:
            raise LayoutError(
                f"{where}: dimension {dim} of shape {tuple(shape)} does not go into {parts} equal "
                f"parts, one for each device of the axis {axis!r} of the mesh "
                f"{_text(_sizes(layout.mesh))}. What to do: pad it, or leave it whole there"
            )


def _spec(mesh: tf.experimental.dtensor.Mesh, sharding: object, where: str) -> PartitionSpec:
    if sharding is None:
        return PartitionSpec()
    if isinstance(sharding, PartitionSpec):
        spec = sharding
    elif isinstance(sharding, NamedSharding):
        spec = sharding.spec
        _require_same_axes(mesh, sharding, where)
    else:
        raise LayoutError(
            f"{where}: got {sharding!r}, and DTensor's layouts name the axes of a mesh; use a "
            "jax.sharding.NamedSharding or a PartitionSpec"
        )
    if spec.unreduced:
        raise LayoutError(
            f"{where}: the sharding {spec} holds parts of a sum, and a DTensor holds values; sum "
            "them before"
        )
    return spec


def _require_same_axes(
    mesh: tf.experimental.dtensor.Mesh, sharding: NamedSharding, where: str
) -> None:
    jax_sizes, dtensor_sizes = dict(sharding.mesh.shape), _sizes(mesh)
    used = [axis for part in sharding.spec for axis in _named_in(part)]
    for axis in used:
        size = jax_sizes[axis]
        if size > 1 and dtensor_sizes.get(axis, size) != size:
            raise LayoutError(
                f"{where}: the sharding is over the mesh {_text(jax_sizes)}, and the DTensor mesh "
                f"is {_text(dtensor_sizes)}; make both of the same axes"
            )


def _axis(mesh: tf.experimental.dtensor.Mesh, part: object, where: str) -> str | None:
    """The axis of the mesh over which a dimension is sharded, or None."""
    sizes = _sizes(mesh)
    axes = _named_in(part)
    for axis in axes:
        if axis not in sizes:
            raise LayoutError(
                f"{where}: the sharding names the axis {axis!r}, and the DTensor mesh is "
                f"{_text(sizes)}; make it with that axis"
            )
    long = [axis for axis in axes if sizes[axis] > 1] or axes[:1]
    if len(long) > 1:
        size = math.prod(sizes[axis] for axis in long)
        raise LayoutError(
            f"{where}: the sharding spreads one dimension over the axes {', '.join(long)} of the "
            f"mesh {_text(sizes)}, and DTensor spreads a dimension over one. What to do: make the "
            f"mesh with one axis of {size} devices in their place, or leave one of them out"
        )
    return long[0] if long else None


def _named_in(part: object) -> list[PyTree]:
    if part is None or part is PartitionSpec.UNCONSTRAINED:
        return []
    return list(part) if isinstance(part, tuple) else [part]


def _devices(mesh: JaxMesh) -> list[str]:
    if isinstance(mesh, AbstractMesh):
        kind = tf.experimental.dtensor.preferred_device_type()
        return [f"{kind}:{i}" for i in range(math.prod(dict(mesh.shape).values()))]
    return [f"{_KINDS[d.platform]}:{d.id}" for d in np.ravel(mesh.devices)]


def _require_devices(sizes: Mapping[str, int], names: Sequence[str]) -> None:
    existing = {d.name.removeprefix("/device:") for d in tf.config.list_logical_devices()}
    missing = [name for name in names if name.removeprefix("/device:") not in existing]
    if missing:
        raise LayoutError(
            f"jax2tf.dtensor.mesh_of: the mesh {_text(sizes)} needs the devices "
            f"{_few(names)}, and TensorFlow has no {_few(missing)}. What to do: give `devices`, or "
            "before TensorFlow is used make logical devices of the CPU, "
            "tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], "
            f"[tf.config.LogicalDeviceConfiguration()] * {len(names)})"
        )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]}"


def _sizes(mesh: tf.experimental.dtensor.Mesh) -> dict[str, int]:
    return {name: mesh.dim_size(name) for name in mesh.dim_names}


def _text(sizes: Mapping[PyTree, int]) -> str:
    return f"({', '.join(f'{axis!r}: {size}' for axis, size in sizes.items())})"


def _auto(names: Sequence[str]) -> tuple[AxisType, ...]:
    return (AxisType.Auto,) * len(names)
