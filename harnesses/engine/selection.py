"""The options that choose cells for a run."""

import fnmatch
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harnesses.cell.cells import Cell, mesh_modes_of, modes_of, tape_modes_of
from harnesses.cell.names import (
    ASKED_MODES,
    DEFAULT_LOWERINGS,
    DIRECT,
    GROUPS,
    JAX_SIDE,
    MESH_LOWERINGS,
    MESH_MODES,
    SUBSTRATE_LOWERINGS,
    UNDER_MODES,
)
from harnesses.engine import shards
from harnesses.harness import CALL_TF, CONVERT, SUBSTRATES, Harness, all_harnesses


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
            chosen = shards.shard(chosen, index, count)
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
        asked = {mode for name in self.mode for mode in (name, *GROUPS.get(name, ()))}
        if lowering == DIRECT:
            yield from [mode for mode in UNDER_MODES if mode in asked] or [DIRECT]
            return
        for mode in modes_of(harness, lowering):
            if not self.mode or mode in asked or mode == JAX_SIDE:
                yield mode
        yield from (mode for mode in tape_modes_of(harness, lowering) if mode in asked)
        if lowering != JAX_SIDE and harness.direction == CONVERT:
            of_lowering = [mode for mode in ASKED_MODES if mode not in MESH_MODES]
            yield from (mode for mode in of_lowering if mode in asked)

    def _mesh_modes(self, harness: Harness, lowering: str) -> Iterator[str]:
        if self.side not in (JAX_SIDE, DIRECT) and harness.direction == CONVERT:
            yield from (mode for mode in mesh_modes_of(harness, lowering) if mode in self.mode)
