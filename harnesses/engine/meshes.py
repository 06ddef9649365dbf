"""The judges of programs of meshes, in modes of their own that a run has to ask for.

    dtensor              the converted function on the devices of a mesh, by TensorFlow's DTensor,
                         its arguments spread over them as the harness says
    partitioned_native   what the module of the native lowering says of its mesh, after a round trip
                         through a SavedModel, against the module that jax.export makes

A module for several devices does not run in parts on one CPU. What can be proved here is that it is
partitioned as JAX's own: see `harnesses.engine.partitioned_text`. A harness whose values all are on
one device is inapplicable in both.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import tensorflow as tf
from jax.extend import core as jex_core
from jax.sharding import PartitionSpec

from harnesses.cell.cells import Cell
from harnesses.engine import graphs, modes
from harnesses.engine.compare import Comparison
from harnesses.engine.judge import Inapplicable, Judge, phase
from harnesses.engine.partitioned_text import PartitionedText, read
from harnesses.harness import Harness

# The platform whose modules stay programs of each device; no other has partitions to run them on.
_PLATFORM = "tpu"


class PartitionedNativeJudge(Judge):
    """Compares what two modules say: that of a converted function, and JAX's own."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        args = harness.make_args()
        try:
            with _groups_of_numbers():
                exported = jax.export.export(jax.jit(harness.fun), platforms=[_PLATFORM])(*args)
        except Exception as error:
            return args, error
        if exported.nr_devices == 1:
            return args, Inapplicable("its values are on one device, and so is its module")
        # JAX leaves unused arguments out of its module, and a converted function keeps them.
        used = exported.module_kept_var_idx
        expected = read(exported.mlir_module_serialized, range(len(used)))
        leaves = len(jax.tree.leaves(args))
        # Counted from the last: a converted function may pass constants before its arguments.
        return args, ([i - leaves for i in used], expected)

    def _run(self, cell: Cell, args: tuple) -> Any:
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(
                    cell.harness.fun,
                    cell.lowering,
                    with_gradient=False,
                    native_serialization_platforms=(_PLATFORM,),
                )
                tensors = tuple(map(tf.constant, args))
                restored: Any = modes.restored(converted, tensors)
                graph = restored.get_concrete_function(*tensors).graph
                self._inspect(cell, graph)
            with phase("run"):
                return _module_of(graph)

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        used, should = expected
        serialized, is_shardy = actual
        said = read(serialized, used)
        return Comparison(0.0, 0, _problem(said, should, is_shardy))


class DTensorJudge(Judge):
    """Compares what DTensor computes on a mesh with what JAX computes on as many devices."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        args, expected = super()._arguments_and_expected(harness)
        if isinstance(expected, Exception):
            return args, expected
        mesh = _Placements(harness, args).mesh
        if mesh is None:
            return args, Inapplicable("it has no program of the devices of a mesh")
        return args, expected

    def _run(self, cell: Cell, args: tuple) -> Any:
        with jax.enable_x64(cell.harness.x64):
            with phase("lower"):
                placements = _Placements(cell.harness, args)
                converted = self._adapter.convert_for_mesh(
                    cell.harness.fun, placements.mesh, in_shardings=placements.specs
                )
            # A call makes the graph, and DTensor spreads its ops when it first runs.
            with phase("run"):
                return jax.tree.map(modes.whole, converted(*args))


# --- Modules ---------------------------------------------------------------------------------


class ModuleError(AssertionError):
    """A graph has another number of modules than one."""


def _module_of(graph: tf.Graph) -> tuple[bytes, bool]:
    """The one module in a graph, and whether TensorFlow is told that its shardings are Shardy's."""
    modules = [node for node in graphs.nodes(graph) if node.op == "XlaCallModule"]
    if len(modules) != 1:
        raise ModuleError(f"the graph holds {len(modules)} XlaCallModule ops, but should hold one")
    attributes = modules[0].attr
    return attributes["module"].s, attributes["use_shardy_partitioner"].b


def _problem(said: PartitionedText, should: PartitionedText, is_shardy: bool) -> str | None:
    if is_shardy != (should.partitioner == "shardy"):
        return f"use_shardy_partitioner={is_shardy}, but the shardings are {should.partitioner}'s"
    return said.difference(should)


@contextlib.contextmanager
def _groups_of_numbers() -> Iterator[None]:
    """JAX writes groups of devices as numbers, as TensorFlow's StableHLO has them.

    A newer JAX names axes of the mesh instead; an older one has nothing to choose.
    """
    name = "jax_use_rgv3"
    before = jax.config.values.get(name)
    if before is None:
        yield
        return
    jax.config.update(name, False)
    try:
        yield
    finally:
        jax.config.update(name, before)


# --- Placements ------------------------------------------------------------------------------


class _Placements:
    """The mesh of a harness, and how its arguments are spread over it.

    Attributes:
      mesh: that of its first program of each device; None where there is none.
      specs: for each argument that such a program takes as it is, the spec of the program. DTensor
        spreads a dimension over one axis: where a spec has several, the first is taken. An argument
        that something else is done with before is whole on every device.
    """

    def __init__(self, harness: Harness, args: tuple):
        self.mesh: Any = None
        jaxpr = jax.make_jaxpr(harness.fun)(*args).jaxpr
        specs = self._specs(jaxpr, range(len(jaxpr.invars)), {})
        leaves = [specs.get(i, PartitionSpec()) for i in range(len(jaxpr.invars))]
        self.specs = jax.tree.unflatten(jax.tree.structure(args), leaves)

    def _specs(
        self, jaxpr: jex_core.Jaxpr, numbers: Sequence[int | None], found: dict[int, Any]
    ) -> dict[int, Any]:
        """The specs by the number of the argument, of those that come in under these numbers."""
        number_of = {
            variable: n for variable, n in zip(jaxpr.invars, numbers, strict=True) if n is not None
        }
        for eqn in jaxpr.eqns:
            inner = [
                None if isinstance(atom, jex_core.Literal) else number_of.get(atom)
                for atom in eqn.invars
            ]
            if eqn.primitive.name == "shard_map":
                self.mesh = self.mesh or eqn.params["mesh"]
                for number, spec in zip(inner, eqn.params["in_specs"], strict=True):
                    if number is not None:
                        found.setdefault(number, self._of_one_axis(spec))
            else:
                for called in jax.tree.leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
                    if _is_jaxpr(called):
                        of_jaxpr: Any = getattr(called, "jaxpr", called)
                        same = len(of_jaxpr.invars) == len(inner) and eqn.primitive.name == "jit"
                        self._specs(
                            of_jaxpr, inner if same else [None] * len(of_jaxpr.invars), found
                        )
        return found

    def _of_one_axis(self, spec: PartitionSpec) -> PartitionSpec:
        sizes = dict(self.mesh.shape)

        def axis(part: Any) -> Any:
            several = part if isinstance(part, tuple) else (part,)
            return next((name for name in several if sizes.get(name, 1) > 1), None)

        return PartitionSpec(*map(axis, spec))


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, jex_core.Jaxpr | jex_core.ClosedJaxpr)
