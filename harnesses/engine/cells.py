"""Cells: which harness runs where and how, and the options that choose among them."""

import fnmatch
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harnesses.engine.adapter import DEFAULT_LOWERINGS, ON_JAX, ON_NUMPY
from harnesses.harness import CALL_TF, CONVERT, SUBSTRATES, Harness, all_harnesses

DEVICES = ("cpu", "gpu", "tpu")
MODE_NAMES = ("eager", "graph", "compiled")
# Modes that a run has only when it asks for them; see `harnesses.engine.transformed`. Runs and
# limitations say "gradient" for those of derivatives; the round trip through a SavedModel, which
# is slow, a run has to name.
GRADIENT, SAVED_GRADIENT = "gradient", "gradient_saved"
GRADIENT_MODES = ("gradient_eager", "gradient_graph", "gradient_compiled")
POLY = "poly"
TRANSFORMED_MODES = (*GRADIENT_MODES, SAVED_GRADIENT, POLY)
# So are engines that read TensorFlow graphs; see `harnesses.engine.consumers`.
SAVEDMODEL = "savedmodel"
CONSUMER_MODES = (SAVEDMODEL, "litert", "onnx", "openvino", "tfjs")
# And programs of meshes; see `harnesses.engine.meshes`. Each has a lowering of its own.
DTENSOR, PARTITIONED_NATIVE = "dtensor", "partitioned_native"
MESH_LOWERINGS = {DTENSOR: "no_xla", PARTITIONED_NATIVE: "native"}
MESH_MODES = tuple(MESH_LOWERINGS)
MESH_FAMILY = "sharding"
ASKED_MODES = TRANSFORMED_MODES + CONSUMER_MODES + MESH_MODES
# How JAX runs a TensorFlow function; all but the first inside jax.jit. Such a cell has the lowering
# "call_tf".
CALL_TF_MODES = ("op_by_op", "jit", "grad", "jvp", "vmap")
DERIVATIVES = frozenset({"grad", "jvp"})
# How a program written against TensorFlow runs on a substrate, which is the lowering of such a
# cell; on NumPy in the first of them alone.
EAGER, ROUND_TRIP = "eager", "round_trip"
SUBSTRATE_MODES = (EAGER, "jit", "grad", "jvp", "vmap", ROUND_TRIP)
SUBSTRATE_LOWERINGS = (ON_NUMPY, ON_JAX)
# The tag of a harness that is about the exception that TensorFlow raises, in eager mode.
RAISES = "raises"
# What a cell of JAX's own side has for a lowering and a mode.
JAX_SIDE = "jax"
# And one of a converter that does not end in TensorFlow; see `harnesses.engine.converters`.
DIRECT = "direct"


@dataclass(frozen=True)
class Cell:
    """A harness on a device through a lowering in a mode: the unit that is run and judged."""

    harness: Harness
    device: str
    lowering: str
    mode: str

    def __str__(self) -> str:
        return f"{self.harness.name}-{self.device}-{self.lowering}-{self.mode}"


def modes_of(harness: Harness, lowering: str) -> tuple[str, ...]:
    """The modes of a harness: those of derivatives only where it has some (tags "not_grad" ...)."""
    if lowering in (JAX_SIDE, DIRECT):
        return (lowering,)
    if harness.direction == CONVERT:
        return MODE_NAMES
    if lowering == ON_NUMPY or RAISES in harness.tags:
        return (EAGER,)
    modes = CALL_TF_MODES if harness.direction == CALL_TF else SUBSTRATE_MODES
    return tuple(mode for mode in modes if f"not_{mode}" not in harness.tags)


def direction_of(lowering: str) -> str:
    """The direction that cells of a lowering belong to."""
    if lowering in SUBSTRATE_LOWERINGS:
        return SUBSTRATES
    return CALL_TF if lowering == CALL_TF else CONVERT


def mesh_modes_of(harness: Harness, lowering: str) -> tuple[str, ...]:
    """The modes of meshes that a harness has through a lowering; none outside of their family."""
    if harness.family != MESH_FAMILY:
        return ()
    return tuple(mode for mode, own in MESH_LOWERINGS.items() if own == lowering)


def sampled(harnesses: Sequence[Harness], count: int) -> list[Harness]:
    """`count` of the harnesses, in their order.

    The hash of the name decides, so a sample stays the same when harnesses are added around it, and
    a larger one contains a smaller.
    """
    ranked = sorted(harnesses, key=lambda harness: zlib.crc32(harness.name.encode()))
    names = {harness.name for harness in ranked[:count]}
    return [harness for harness in harnesses if harness.name in names]


@dataclass(frozen=True)
class Selection:
    """Which cells a run takes. An empty tuple means all (of lowerings: `DEFAULT_LOWERINGS`)."""

    family: tuple[str, ...] = ()
    primitive: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    device: tuple[str, ...] = ("cpu",)
    lowering: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    side: str = "tensorflow"
    direction: str = CONVERT
    sample: int | None = None
    shard: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether every harness runs in every mode, so that absence proves something."""
        side = DIRECT if self.side == DIRECT else "tensorflow"
        default = Selection(
            device=self.device, lowering=self.lowering, direction=self.direction, side=side
        )
        return self == default

    def harnesses(self) -> list[Harness]:
        """The chosen harnesses, in the order of the database."""
        database = all_harnesses(direction=self.direction)
        chosen = [harness for harness in database if self._takes(harness)]
        if self.sample is not None:
            chosen = sampled(chosen, self.sample)
        if self.shard is not None:
            index, count = (int(part) for part in self.shard.split("/"))
            chosen = chosen[index - 1 :: count]
        return chosen

    def cells(self) -> list[Cell]:
        """The chosen cells; those of one harness follow each other."""
        return list(self._cells())

    def _takes(self, harness: Harness) -> bool:
        return (
            (not self.family or harness.family in self.family)
            and (not self.primitive or harness.primitive in self.primitive)
            and (not self.dtype or harness.dtype.name in self.dtype)
            and (not self.name or any(fnmatch.fnmatchcase(harness.name, n) for n in self.name))
        )

    def _cells(self) -> Iterator[Cell]:
        lowerings = self.lowering or DEFAULT_LOWERINGS
        if self.direction == CALL_TF:
            lowerings = (CALL_TF,)
        if self.direction == SUBSTRATES:
            lowerings = self.lowering or SUBSTRATE_LOWERINGS
        if self.side in (JAX_SIDE, DIRECT):
            lowerings = (self.side,)
        for harness in self.harnesses():
            for device in self.device:
                for lowering in lowerings:
                    for mode in self._modes(harness, lowering):
                        yield Cell(harness, device, lowering, mode)
                for lowering in self.lowering or MESH_LOWERINGS.values():
                    for mode in self._mesh_modes(harness, lowering):
                        yield Cell(harness, device, lowering, mode)

    def _modes(self, harness: Harness, lowering: str) -> Iterator[str]:
        for mode in modes_of(harness, lowering):
            if not self.mode or mode in (*self.mode, JAX_SIDE, DIRECT):
                yield mode
        if lowering not in (JAX_SIDE, DIRECT) and harness.direction == CONVERT:
            asked = (*self.mode, *(GRADIENT_MODES if GRADIENT in self.mode else ()))
            of_lowering = [mode for mode in ASKED_MODES if mode not in MESH_MODES]
            yield from (mode for mode in of_lowering if mode in asked)

    def _mesh_modes(self, harness: Harness, lowering: str) -> Iterator[str]:
        if self.side not in (JAX_SIDE, DIRECT) and harness.direction == CONVERT:
            yield from (mode for mode in mesh_modes_of(harness, lowering) if mode in self.mode)
