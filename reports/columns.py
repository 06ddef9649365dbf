"""The tables of columns beside the matrix, which a run has to name, as a mode or a lowering.

    gradients.md            their vjp, by TensorFlow's tape
    shape_polymorphism.md   their vmap, converted with a polymorphic batch
    stablehlo.md            they themselves, exported by jax.export and loaded
    transformations.md      they under jit, vmap, jvp, vjp, jacobian, remat, scan and cond
    meshes.md               programs of meshes, on the devices of one and as modules for one
    no_xla_limitations.md   they themselves, without XLA ops

A table is made of those limitations that speak of the column, and of what runs of it saw, which
proved.json keeps: by mode and versions, and by family and dtype (meshes: by primitive) for the
largest. A run may be of a sample of the harnesses; the table says of how many.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harnesses.cell import origin
from harnesses.cell.names import (
    GRADIENT,
    GRADIENT_MODES,
    JAX_SIDE,
    LOWERINGS,
    MESH_FAMILY,
    MESH_MODES,
    MODE_NAMES,
    POLY,
    SAVED_GRADIENT,
    STABLEHLO,
    UNDER,
    UNDER_MODES,
)
from harnesses.harness import Harness
from limitations.ledger import Limitation
from reports.results import Row
from reports.summary import Tally


@dataclass(frozen=True)
class Column:
    """A column of the matrix.

    Attributes:
      name: of its runs in proved.json.
      modes: those of its cells.
      others: what limitations may also say for them.
      lowerings: those of its cells; empty for all.
      family: of the harnesses that have its cells; None for every family.
    """

    name: str
    modes: tuple[str, ...]
    others: tuple[str, ...] = ()
    lowerings: tuple[str, ...] = ()
    family: str | None = None

    @property
    def table(self) -> str:
        """The name of the table's file."""
        return f"{self.name}.md"

    def is_spoken_of(self, limitation: Limitation) -> bool:
        """Whether a limitation speaks of the column, among others."""
        return not {*self.modes, *self.others}.isdisjoint(limitation.modes)

    def asked(self, harnesses: Iterable[Harness]) -> list[Harness]:
        """Those of the harnesses that have a cell in the column."""
        return [harness for harness in harnesses if self.family in (None, harness.family)]

    def runs_of(
        self, rows: Sequence[Row], harnesses: Sequence[Harness], ledger: Sequence[Limitation] = ()
    ) -> Iterable[dict]:
        """What the rows prove: a run for each device, lowering and mode that has no red cell.

        What fails in JAX itself, as the ledger says, is applicable to no implementation.
        """
        of_jax = {limitation.where for limitation in ledger if limitation.side == JAX_SIDE}
        groups: dict[tuple[str, ...], list[Row]] = collections.defaultdict(list)
        for row in rows:
            if row["mode"] in self.modes and row["lowering"] in (self.lowerings or LOWERINGS):
                groups[row["device"], row["lowering"], row["mode"]].append(row)
        for (device, lowering, mode), members in sorted(groups.items()):
            if not Tally(members).red:
                asked = self.asked(harnesses)
                there_are = sum(harness.runs_on(members[0]["jax"]) for harness in asked)
                yield {
                    "device": device,
                    "lowering": lowering,
                    "mode": mode,
                    **{name: members[0][name] for name in ("impl", "jax", "tensorflow", "python")},
                    **origin.of(members[0]),
                    **_counts(members, of_jax),
                    **self._parts(members, of_jax),
                    "of": there_are,
                }

    def _parts(self, rows: Sequence[Row], of_jax: Collection[str]) -> dict[str, Any]:
        """What the rows of each part prove: by family and dtype, or of one family by primitive."""
        if self.family is not None:
            return {"primitives": _counts_by("primitive", rows, of_jax)}
        return {
            "families": _counts_by("family", rows, of_jax),
            "dtypes": _counts_by("dtype", rows, of_jax),
        }


GRADIENTS = Column("gradients", (*GRADIENT_MODES, SAVED_GRADIENT), (GRADIENT,))
SHAPE_POLYMORPHISM = Column("shape_polymorphism", (POLY,))
LOADED = Column("stablehlo", (STABLEHLO,))
TRANSFORMATIONS = Column("transformations", UNDER_MODES, (UNDER,))
MESHES = Column("meshes", MESH_MODES, family=MESH_FAMILY)
COLUMNS = (GRADIENTS, SHAPE_POLYMORPHISM, LOADED, TRANSFORMATIONS, MESHES)
# A column of the matrix itself: its table is made of limitations of the matrix.
WITHOUT_XLA = Column("no_xla_limitations", MODE_NAMES, lowerings=("no_xla",))
PROVED = (*COLUMNS, WITHOUT_XLA)

_MODES = frozenset().union(*(column.modes + column.others for column in COLUMNS))


def is_about_columns(limitation: Limitation) -> bool:
    """Whether a limitation speaks of these columns alone, so that no other table lists it."""
    return bool(limitation.modes) and _MODES.issuperset(limitation.modes)


def without_columns(rows: Sequence[Row]) -> list[Row]:
    """The rows of the matrix itself."""
    return [row for row in rows if row["mode"] not in _MODES]


def _counts_by(key: str, rows: Sequence[Row], of_jax: Collection[str]) -> dict[str, Any]:
    parts: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        parts[row[key]].append(row)
    return {part: _counts(parts[part], of_jax) for part in sorted(parts)}


def _counts(rows: Sequence[Row], of_jax: Collection[str]) -> Mapping[str, int]:
    tally = Tally([row for row in rows if row["limitation"] not in of_jax])
    applicable = tally.cells - tally.outcomes["inapplicable"]
    return {"harnesses": len(rows), "applicable": applicable, "passed": tally.outcomes["pass"]}
