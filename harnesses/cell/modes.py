"""The modes: how a cell is run, one entry each.

To add a mode, add an entry, the judge that it names, and a column in reports where it has a table
of its own. `harnesses.cell.names` has the names by group.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnesses.harness.place import PREFIX

# Directions; `harnesses.harness` says what each means.
_CONVERT, _CALL_TF, _SUBSTRATES = "convert", "call_tf", "substrates"

# Groups of modes.
PLAIN = "plain"  # what a run takes unless it asks for others
GRADIENT, SAVED_GRADIENT, POLY, UNDER = "gradient", "gradient_saved", "poly", "under"
STABLEHLO = "stablehlo"
TAPES = "tapes"  # of programs: derivatives that they take themselves
ENGINE, MESH = "engine", "mesh"
SIDE = "side"  # of cells that have one lowering and one mode, which have the same name


@dataclass(frozen=True)
class Mode:
    """How a cell is run.

    Attributes:
      name: unique in its direction.
      group: modes that a run, or a limitation, may ask for together.
      judge: the module in `harnesses.engine` and the class that runs and compares its cells: a
        `Judge` that takes the implementation's name. Modes of one judge share JAX's results.
      says: what is run, in the words of tables.
      direction: which function of the implementation is asked.
      lowering: the only lowering that its cells have; None where they have several.
    """

    name: str
    group: str
    judge: str
    says: str
    direction: str = _CONVERT
    lowering: str | None = None

    def judge_class(self) -> Any:
        """The class of the judge, which may import TensorFlow."""
        module, _, name = self.judge.partition(":")
        return getattr(importlib.import_module(f"{PREFIX}harnesses.engine.{module}"), name)


_JUDGE = "judge:Judge"
_GRADIENTS = "transformed:GradientJudge"
_UNDER = "transformations:TransformedJudge"
_ENGINES = "consumers.judge:ConsumerJudge"
_CALLS = "call_tf:CallTfJudge"
_PROGRAMS = "substrates:SubstrateJudge"

_ALL = (
    Mode("eager", PLAIN, _JUDGE, "op by op"),
    Mode("graph", PLAIN, _JUDGE, "in a tf.function"),
    Mode("compiled", PLAIN, _JUDGE, "in a tf.function that XLA compiles"),
    Mode("gradient_eager", GRADIENT, _GRADIENTS, "the vjp, through a tape in eager mode"),
    Mode("gradient_graph", GRADIENT, _GRADIENTS, "the vjp, through a tape in a graph"),
    Mode("gradient_compiled", GRADIENT, _GRADIENTS, "the vjp, through a tape, compiled"),
    # The round trip is slow: a run has to name it.
    Mode("gradient_saved", SAVED_GRADIENT, _GRADIENTS, "the vjp of a restored SavedModel"),
    Mode("poly", POLY, "transformed:PolyJudge", "one graph for batches of 1, 2 and 7"),
    Mode(
        *("stablehlo", STABLEHLO, "stablehlo:StableHloJudge"),
        "as a file of jax.export that is loaded, and what is converted of that",
    ),
    Mode("under_jit", UNDER, _UNDER, "called through jax.jit"),
    Mode("under_vmap", UNDER, _UNDER, "its vmap along the first axis"),
    Mode("under_in_axes", UNDER, _UNDER, "its vmap along the last axis"),
    Mode("under_jvp", UNDER, _UNDER, "its jvp"),
    Mode("under_vjp", UNDER, _UNDER, "its vjp, transposed by JAX"),
    Mode("under_jacobian", UNDER, _UNDER, "its jacobian"),
    Mode("under_remat", UNDER, _UNDER, "its gradient through jax.checkpoint"),
    Mode("under_scan", UNDER, _UNDER, "the body of a lax.scan"),
    Mode("under_cond", UNDER, _UNDER, "the branch of a lax.cond that is taken"),
    Mode("savedmodel", ENGINE, _ENGINES, "saved, restored and called"),
    Mode("litert", ENGINE, _ENGINES, "in LiteRT"),
    Mode("onnx", ENGINE, _ENGINES, "in ONNX Runtime"),
    Mode("openvino", ENGINE, _ENGINES, "in OpenVINO"),
    Mode("tfjs", ENGINE, _ENGINES, "in TensorFlow.js"),
    Mode("dtensor", MESH, "meshes:DTensorJudge", "on eight devices", lowering="no_xla"),
    Mode(
        *("partitioned_native", MESH, "meshes:PartitionedNativeJudge", "what the module says"),
        lowering="native",
    ),
    Mode("op_by_op", PLAIN, _CALLS, "op by op", _CALL_TF, _CALL_TF),
    Mode("jit", PLAIN, _CALLS, "inside jax.jit", _CALL_TF, _CALL_TF),
    Mode("grad", PLAIN, _CALLS, "its gradient inside jax.jit", _CALL_TF, _CALL_TF),
    Mode("jvp", PLAIN, _CALLS, "its jvp inside jax.jit", _CALL_TF, _CALL_TF),
    Mode("vmap", PLAIN, _CALLS, "its vmap inside jax.jit", _CALL_TF, _CALL_TF),
    Mode("eager", PLAIN, _PROGRAMS, "op by op", _SUBSTRATES),
    Mode("jit", PLAIN, _PROGRAMS, "inside jax.jit", _SUBSTRATES, "on_jax"),
    Mode("grad", PLAIN, _PROGRAMS, "its gradient", _SUBSTRATES, "on_jax"),
    Mode("jvp", PLAIN, _PROGRAMS, "its jvp", _SUBSTRATES, "on_jax"),
    Mode("vmap", PLAIN, _PROGRAMS, "its vmap", _SUBSTRATES, "on_jax"),
    Mode("round_trip", PLAIN, _PROGRAMS, "as a TensorFlow function", _SUBSTRATES, "on_jax"),
    Mode("tape", TAPES, _PROGRAMS, "its gradient by its own tape", _SUBSTRATES, "on_jax"),
    Mode("tape_jit", TAPES, _PROGRAMS, "its tape inside jax.jit", _SUBSTRATES, "on_jax"),
    Mode("tape_while", TAPES, _PROGRAMS, "its tape in a while_loop", _SUBSTRATES, "on_jax"),
    Mode("tape_map", TAPES, _PROGRAMS, "its tape in a map_fn", _SUBSTRATES, "on_jax"),
    Mode("accumulator", TAPES, _PROGRAMS, "its forward accumulator", _SUBSTRATES, "on_jax"),
    Mode("tape_jacobian", TAPES, _PROGRAMS, "the Jacobian by its tape", _SUBSTRATES, "on_jax"),
    Mode("tape_second", TAPES, _PROGRAMS, "its tape in a tape", _SUBSTRATES, "on_jax"),
    # JAX itself, and converters that do not end in TensorFlow (`harnesses.engine.converters`).
    Mode("jax", SIDE, _JUDGE, "by JAX itself", lowering="jax"),
    Mode("jax", SIDE, _CALLS, "by JAX itself", _CALL_TF, "jax"),
    Mode("jax", SIDE, _PROGRAMS, "by JAX itself", _SUBSTRATES, "jax"),
    Mode("direct", SIDE, "converters.judge:ConverterJudge", "by the converter", lowering="direct"),
)

# By direction and name.
MODES: Mapping[tuple[str, str], Mode] = {(mode.direction, mode.name): mode for mode in _ALL}


def names_of(*groups: str, direction: str = _CONVERT) -> tuple[str, ...]:
    """The names of the modes of these groups, in the order of the table."""
    return tuple(m.name for m in _ALL if m.direction == direction and m.group in groups)
