"""Values moved onto the devices of a mesh, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import jax
import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.errors import LayoutError
from jax2tf._src.api.module import scope_name
from jax2tf._src.dtensor.layouts import is_sharding, layout_on, mesh_of, require_even
from jax2tf._src.tracing import arguments
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.option_checks import shown
from jax2tf._src.util.typing import KeyPath, PyTree


def place(tree: PyTree, shardings: PyTree, mesh: tf.experimental.dtensor.Mesh) -> PyTree:
    """The arrays of a tree as DTensors.

    >>> from jax.sharding import AbstractMesh, PartitionSpec
    >>> placed = place({"x": np.ones([4, 3])}, PartitionSpec("data"), AbstractMesh((1,), ("data",)))
    >>> tf.experimental.dtensor.fetch_layout(placed["x"]).sharding_specs
    ['data', 'unsharded']

    Args:
      tree: a pytree of arrays, tensors, or DTensors, which are sharded again. In a tf.function, of
        its tensors.
      shardings: a pytree prefix of `tree`, of jax.sharding.NamedShardings, PartitionSpecs, and None
        for replicated leaves.
      mesh: a mesh that `mesh_of` takes.

    Raises:
      LayoutError: DTensor has no such layout (see `layout_of`), or a dimension cannot be split into
        equal parts. The message names the leaf by its path.
    """
    return _each(_placed, tree, shardings, mesh, "jax2tf.dtensor.place")


def variables(tree: PyTree, shardings: PyTree, mesh: tf.experimental.dtensor.Mesh) -> PyTree:
    """The arrays of a tree as variables over a mesh, which tapes watch and checkpoints save.

    >>> from jax.sharding import AbstractMesh, PartitionSpec
    >>> mesh = AbstractMesh((1,), ("model",))
    >>> params = variables({"w": np.ones([3, 4])}, {"w": PartitionSpec(None, "model")}, mesh)
    >>> params["w"].layout.sharding_specs, params["w"].name
    (['unsharded', 'model'], 'w:0')

    Args:
      tree: as for `place`.
      shardings: as for `place`.
      mesh: as for `place`.

    Returns:
      The tree with a tf.experimental.dtensor.DVariable at each leaf, named by its path. Variables
      of integers are not trainable.

    Raises:
      LayoutError: in the same cases as `place`.
    """

    def variable(
        value: PyTree, layout: tf.experimental.dtensor.Layout, path: str, where: str
    ) -> PyTree:
        placed = _placed(value, layout, path, where)
        trainable = placed.dtype.is_floating or placed.dtype.is_complex
        name = scope_name(path or "parameters")
        return tf.experimental.dtensor.DVariable(placed, trainable=trainable, name=name)

    return _each(variable, tree, shardings, mesh, "jax2tf.dtensor.variables")


def values(tree: PyTree) -> PyTree:
    """The whole arrays of a tree of DTensors and variables over a mesh, as numpy arrays.

    >>> from jax.sharding import AbstractMesh
    >>> values(place({"x": np.ones([2])}, None, AbstractMesh((1,), ("data",))))
    {'x': array([1., 1.], dtype=float32)}

    Args:
      tree: a pytree; leaves that are not on a mesh are taken as they are.
    """

    def value(path: KeyPath, leaf: PyTree) -> np.ndarray:
        dtensor = tf.experimental.dtensor
        where = f"jax2tf.dtensor.values: {jax.tree_util.keystr(path) or 'the array'}"
        is_tensor = isinstance(leaf, tf.Tensor | tf.Variable)
        tensor = tf.convert_to_tensor(leaf) if is_tensor else _tensor(leaf, where)
        if dtensor.is_dtensor(tensor):
            mesh = dtensor.fetch_layout(tensor).mesh
            whole = dtensor.Layout.replicated(mesh, tensor.shape.rank)
            tensor = dtensor.relayout(tensor, whole)
        return tensor.numpy()

    return jax.tree_util.tree_map_with_path(value, arguments.unwrap(tree))


@dataclasses.dataclass(frozen=True)
class OnMesh:
    """Shardings in a graph that DTensor runs: see target.Placement."""

    mesh: tf.experimental.dtensor.Mesh

    def placed(self, tensor: PyTree, sharding: object, open_dims: Iterable[int] = ()) -> PyTree:
        """The tensor in the layout of a sharding."""
        open_dims = set(open_dims)
        if len(open_dims) == tensor.shape.rank:
            return tensor
        where = "jax2tf.dtensor.convert: a constraint inside of the function"
        layout = layout_on(self.mesh, sharding, tensor.shape.rank, where, open_dims)
        return tf.experimental.dtensor.relayout(tensor, layout)

    def whole(self, tensor: PyTree) -> PyTree:
        """The tensor, replicated on every device."""
        dtensor = tf.experimental.dtensor
        return dtensor.relayout(tensor, dtensor.Layout.replicated(self.mesh, tensor.shape.rank))


def put(tensor: tf.Tensor, layout: tf.experimental.dtensor.Layout) -> PyTree:
    """An eager tensor of one device, sharded over a mesh; each device gets only its part."""
    dtensor, mesh = tf.experimental.dtensor, layout.mesh
    if mesh.num_local_devices() < mesh.size:
        # With several hosts, each has the whole value and reaches only its own devices.
        whole = dtensor.copy_to_mesh(tensor, dtensor.Layout.replicated(mesh, tensor.shape.rank))
        return dtensor.relayout(whole, layout)
    value = tensor.numpy()
    sizes = [
        size if axis == dtensor.UNSHARDED else size // mesh.dim_size(axis)
        for size, axis in zip(value.shape, layout.sharding_specs, strict=True)
    ]
    return dtensor.pack([value[_block(at, sizes)] for at in layout.offset_to_shard()], layout)


def _block(at: PyTree, sizes: list[int]) -> tuple[slice, ...]:
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(at, sizes, strict=True))


def _each(
    make: PyTree, tree: PyTree, shardings: PyTree, mesh: tf.experimental.dtensor.Mesh, function: str
) -> PyTree:
    """The tree with `make(leaf, layout, path, where)` at each leaf."""
    mesh = mesh_of(mesh)
    tree = arguments.unwrap(tree)
    leaf_shardings = _broadcast(shardings, tree, function)
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    results = []
    for (path, leaf), sharding in zip(leaves, leaf_shardings, strict=True):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        where = f"{function}: {name or 'the array'}"
        tensor = leaf if isinstance(leaf, tf.Tensor | tf.Variable) else _tensor(leaf, where)
        layout = layout_on(mesh, sharding, tensor.shape.rank, where)
        require_even(layout, tensor.shape, where)
        results.append(make(tensor, layout, name, where))
    return jax.tree.unflatten(structure, results)


def _broadcast(shardings: PyTree, tree: PyTree, function: str) -> list[PyTree]:
    """A sharding for each leaf of the tree."""
    leaf_shardings: list[PyTree] = []

    def add(sharding: PyTree, part: PyTree) -> None:
        leaf_shardings.extend([sharding] * len(jax.tree.leaves(part)))

    try:
        jax.tree.map(add, shardings, tree, is_leaf=is_sharding)
    except (ValueError, TypeError) as error:
        raise LayoutError(
            f"{function}: shardings should be a PartitionSpec, a NamedSharding, None, or a pytree "
            f"prefix of these for {jax.tree.structure(tree)}, got {shown(shardings)}; give a dict "
            "of arrays the same keys"
        ) from error
    return leaf_shardings


def _placed(value: PyTree, layout: tf.experimental.dtensor.Layout, path: str, where: str) -> PyTree:
    tensor = tf.convert_to_tensor(value)
    if not tf.executing_eagerly() or tf.experimental.dtensor.is_dtensor(tensor):
        return tf.experimental.dtensor.relayout(tensor, layout)
    return put(tensor, layout)


def _tensor(leaf: PyTree, where: str) -> tf.Tensor:
    if isinstance(leaf, jax.Array) and dtypes.is_key(leaf.dtype):
        leaf = compat.jaxprs.data_of_keys(leaf)
    try:
        return tf.constant(np.asarray(leaf), dtypes.to_tf(dtypes.jax_dtype(leaf)))
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{where}: {error}. What to do: leave what is no array out") from None
