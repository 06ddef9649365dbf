"""A cell: a harness on a device through a lowering in a mode."""

from dataclasses import dataclass

from harnesses.cell.names import (
    CALL_TF_MODES,
    DIRECT,
    EAGER,
    JAX_SIDE,
    MESH_FAMILY,
    MESH_LOWERINGS,
    MODE_NAMES,
    ON_JAX,
    ON_NUMPY,
    RAISES,
    SUBSTRATE_LOWERINGS,
    SUBSTRATE_MODES,
    TAPE_MODES,
)
from harnesses.harness import CALL_TF, CONVERT, SUBSTRATES, Harness


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


def tape_modes_of(harness: Harness, lowering: str) -> tuple[str, ...]:
    """The modes of tapes that a program has on a substrate."""
    tags = harness.tags
    if lowering != ON_JAX or RAISES in tags or "not_grad" in tags:
        return ()
    compiled = ("tape_jit", "tape_while", "tape_map") if "not_jit" in tags else ()
    left_out = {*compiled, *(("accumulator",) if "not_jvp" in tags else ())}
    return tuple(mode for mode in TAPE_MODES if mode not in left_out)


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
