"""`convert`: a JAX function as a function that DTensor runs on a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax

from jax2tf._src import compat
from jax2tf._src.api.convert import convert as convert_for_one_device
from jax2tf._src.api.errors import ConversionError, LayoutError
from jax2tf._src.dtensor.layouts import (
    is_sharding,
    jax_mesh_of,
    layout_on,
    mesh_of,
    named_sharding,
    require_even,
)
from jax2tf._src.dtensor.ops import OPS
from jax2tf._src.dtensor.placing import OnMesh, put
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import arguments, functions
from jax2tf._src.tracing.arguments import Argument
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.trace import spans_devices
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.tf_decorators import without_autograph
from jax2tf._src.util.typing import PyTree


def convert(
    fun_jax: Callable[..., PyTree],
    mesh: tf.experimental.dtensor.Mesh,
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    **options: PyTree,
) -> Callable[..., PyTree]:
    """Makes a JAX function run on the devices of a mesh, by DTensor.

    The result takes DTensors and variables over the mesh (`place`, `variables`) and returns
    DTensors. Called eagerly it takes arrays of one device too, and shards them as their shardings
    say. In a tf.function all tensors have to be on the mesh already.

    The shardings of jax.jit (`in_shardings`, `out_shardings`), `jax.lax.with_sharding_constraint`
    and `jax.reshard` become DTensor's Relayout; DTensor chooses all other shardings. Per-device
    programs (jax.shard_map, jax.pmap) run as one program over whole arrays. Any tape gets JAX's
    gradients.

    >>> import jax.numpy as jnp
    >>> from jax.sharding import AbstractMesh, PartitionSpec
    >>> mesh = AbstractMesh((1, 1), ("data", "model"))
    >>> f = convert(
    ...     lambda w, x: jnp.tanh(x @ w),
    ...     mesh,
    ...     in_shardings=(PartitionSpec(None, "model"), PartitionSpec("data")),
    ... )
    >>> y = f(tf.ones([3, 4]), tf.ones([2, 3]))
    >>> tf.experimental.dtensor.is_dtensor(y), y.shape
    (True, TensorShape([2, 4]))

    Args:
      fun_jax: a function that `jax2tf.convert` takes, jitted with shardings or not.
      mesh: a mesh that `mesh_of` takes. The shardings in `fun_jax` name axes of this mesh.
      in_shardings: the shardings of the arguments, as jax.jit takes them or as PartitionSpecs, for
        a function that was not jitted with shardings.
      out_shardings: the same for the results.
      **options: other options of `jax2tf.convert`, except `target`, `enable_xla` and those of
        native serialization.

    Raises:
      LayoutError: the mesh has more devices than TensorFlow.
      ValueError: shardings for a function that is jitted with static arguments or by a library, or
        an option that is not taken.

    The returned function raises the errors of jax2tf.convert's. UnsupportedPrimitiveError names a
    primitive whose op DTensor cannot shard; LayoutError an argument or a constraint whose sharding
    DTensor does not have; ConversionError an argument of one device that a tape watches.
    """
    refused = sorted(_FIXED.intersection(options))
    if refused:
        raise ValueError(
            f"jax2tf.dtensor.convert: it takes no {', '.join(refused)}; DTensor has ops of its own "
            "choice. Leave the option out"
        )
    option_checks.callable_(fun_jax, "jax2tf.dtensor.convert: fun_jax")
    option_checks.options_of(convert_for_one_device, options, "jax2tf.dtensor.convert", own=_FIXED)
    return _OnMesh(fun_jax, mesh, in_shardings, out_shardings, options).function()


_FIXED = frozenset(
    {
        "enable_xla",
        "native_serialization",
        "native_serialization_disabled_checks",
        "native_serialization_platforms",
        "target",
    }
)


def target_of(mesh: tf.experimental.dtensor.Mesh) -> Target:
    """The target of graphs that DTensor runs on a mesh."""
    return Target(
        "dtensor",
        ops=OPS,
        quirks=quirks_of("dtensor"),
        # For two layers with gradients, sharing did not shorten DTensor's compilation.
        shares_repeats=False,
        placement=OnMesh(mesh),
    )


class _OnMesh:
    """A function on a mesh, made from the arguments of `convert`."""

    def __init__(
        self,
        fun: Callable[..., PyTree],
        mesh: tf.experimental.dtensor.Mesh,
        in_shardings: PyTree,
        out_shardings: PyTree,
        options: dict[str, PyTree],
    ):
        self._mesh = mesh_of(mesh)
        jitted = _jitted(fun, jax_mesh_of(mesh), in_shardings, out_shardings)
        self._function = Function(jitted)
        self._converted = convert_for_one_device(
            self._function.fun, target=target_of(self._mesh), **options
        )
        self._layouts: Lru[list[PyTree]] = Lru(functions.KEPT_TRACES)
        self._graphs: Lru[_Graph] = Lru(functions.KEPT_TRACES)

    def function(self) -> Callable[..., PyTree]:
        """The function that users call."""

        @without_autograph
        def on_mesh(*args: PyTree, **kwargs: PyTree) -> PyTree:
            return self._call(args, kwargs)

        for name in ("__name__", "__qualname__", "__doc__", "__signature__"):
            setattr(on_mesh, name, getattr(self._converted, name))
        return on_mesh

    def _call(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> PyTree:
        args, kwargs = arguments.plain(args, kwargs, self._function)
        paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
        leaves = [Argument(path, value, self._function) for path, value in paths]
        key = (tree, *((str(leaf.shape), leaf.dtype) for leaf in leaves))
        layouts = self._layouts.value(key, lambda: self._layouts_of(tree, leaves))
        if not tf.executing_eagerly():
            return self._converted(*functions.values(args), **functions.values(kwargs))
        values = [
            self._on_mesh(value, leaf, layout)
            for (_, value), leaf, layout in zip(paths, leaves, layouts, strict=True)
        ]
        graph = self._graphs.value(key, lambda: _Graph(self._converted, tree))
        try:
            with tf.experimental.dtensor.default_mesh(self._mesh):
                return graph(values)
        except tf.errors.OpError as error:
            error.add_note(
                f"jax2tf.dtensor.convert({self._function.name}): DTensor could not run it on the "
                "mesh. Where it says that it cannot spread an op, make the operand whole: "
                "jax.lax.with_sharding_constraint(x, PartitionSpec())"
            )
            raise

    def _on_mesh(
        self, value: PyTree, leaf: Argument, layout: tf.experimental.dtensor.Layout
    ) -> PyTree:
        dtensor = tf.experimental.dtensor
        if isinstance(value, dtensor.DVariable) or dtensor.is_dtensor(value):
            return value
        if compat.tapes.tape_watches([leaf.tensor()]):
            raise ConversionError(
                f"jax2tf.dtensor.convert({self._function.name}): a tape watches argument "
                f"{leaf.path}, which is no DTensor, and would see nothing of the mesh. What to do: "
                "make it by jax2tf.dtensor.place or jax2tf.dtensor.variables, and watch that"
            )
        return put(leaf.tensor(), layout)

    def _layouts_of(self, tree: PyTree, leaves: Sequence[Argument]) -> list[PyTree]:
        """The layouts for arguments that are not on the mesh yet, each checked."""
        layouts = []
        for leaf, sharding in zip(leaves, self._shardings(tree, leaves), strict=True):
            where = f"jax2tf.dtensor.convert({self._function.name}): argument {leaf.path}"
            layout = layout_on(self._mesh, sharding, leaf.shape.rank, where)
            require_even(layout, leaf.shape, where)
            layouts.append(layout)
        return layouts

    def _shardings(self, tree: PyTree, leaves: Sequence[Argument]) -> list[PyTree]:
        """The shardings of the arguments in jax.jit; None for an argument without one."""
        if any(None in leaf.shape for leaf in leaves):
            return [None] * len(leaves)  # in a graph, which shards them when it runs
        specs = [
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
            for leaf in leaves
        ]
        args, kwargs = jax.tree.unflatten(tree, specs)
        shardings = compat.jitted.shardings_of(self._function.trace(args, kwargs))[: len(leaves)]
        return [sharding if spans_devices(sharding) else None for sharding in shardings]


class _Graph:
    """A converted function of flattened arguments, as one tf.function."""

    def __init__(self, converted: Callable[..., PyTree], tree: PyTree):
        self._converted, self._tree = converted, tree
        self._out_tree: PyTree = None
        self._run = tf.function(self._flat, autograph=False)

    def __call__(self, leaves: Sequence[PyTree]) -> PyTree:
        results = self._run(*leaves)
        return functions.values(jax.tree.unflatten(self._out_tree, results))

    def _flat(self, *leaves: PyTree) -> list[tf.Tensor]:
        args, kwargs = functions.values(jax.tree.unflatten(self._tree, leaves))
        results = functions.without_opaque_leaves(self._converted(*args, **kwargs))
        flat, self._out_tree = jax.tree.flatten(results)
        return flat


def _jitted(
    fun: Callable[..., PyTree],
    mesh: tf.experimental.dtensor.Mesh,
    in_shardings: PyTree,
    out_shardings: PyTree,
) -> Callable[..., PyTree]:
    """The function with the shardings of its arguments and results, if there are any."""
    named = functools.partial(
        jax.tree.map, functools.partial(named_sharding, mesh), is_leaf=is_sharding
    )
    shardings = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    shardings = {name: value for name, value in shardings.items() if value is not None}
    for name, value in shardings.items():
        for leaf in jax.tree.leaves(value, is_leaf=is_sharding):
            if not is_sharding(leaf):
                raise LayoutError(
                    f"jax2tf.dtensor.convert: {name} should be a tree of PartitionSpecs, "
                    f"jax.sharding.NamedShardings and None, got {option_checks.shown(leaf)} in it"
                )
    if not shardings:
        return fun
    if not Function(fun).can_be_jitted:
        raise ValueError(
            "jax2tf.dtensor.convert: fun_jax is jitted, with static arguments or by a library, and "
            "in_shardings and out_shardings are beside it; give them to its jax.jit"
        )
    return jax.jit(fun, **{name: named(value) for name, value in shardings.items()})
