"""The ledger as data that the wheel carries: `jax2tf.explain` tells users what may touch them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from harnesses.cell.names import CONSUMER_MODES, GRADIENT, GRADIENT_MODES, JAX_SIDE, POLY, STABLEHLO
from harnesses.harness import Harness
from limitations.ledger import Limitation

FOLDER = Path(__file__).parents[1] / "impl/jax2tf/_src/explain"

# What users run: a limitation of other modes (derivatives, batches) is not of the function itself.
_RUN = frozenset({"eager", "graph", "compiled", "savedmodel"})


def explained_files(
    limitations: Sequence[Limitation], matched: Callable[[str, Limitation], list[Harness]]
) -> dict[str, str]:
    """The file of the limitations of each primitive, with the dtypes and targets they hold for.

    `matched` gives the harnesses of a primitive that a limitation speaks of.
    """
    entries = [
        {
            "primitive": primitive,
            "dtypes": dtypes,
            "where": where,
            "expect": limitation.expect,
            "reason": limitation.reason,
        }
        for limitation in limitations
        if limitation.side != JAX_SIDE and (where := _where(limitation))
        for primitive in limitation.primitive
        if (dtypes := sorted({h.dtype.name for h in matched(primitive, limitation)}))
    ]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    return {"limitations.json": f"[\n{lines}\n]\n"}


def _where(limitation: Limitation) -> list[str]:
    """The engines, or the op sets, for which it holds on a CPU; also the columns of `supports`."""
    if limitation.devices and "cpu" not in limitation.devices:
        return []
    engines = [mode for mode in limitation.modes if mode in CONSUMER_MODES and mode not in _RUN]
    if not {GRADIENT, *GRADIENT_MODES}.isdisjoint(limitation.modes):
        engines.append(GRADIENT)
    engines += [mode for mode in (POLY, STABLEHLO) if mode in limitation.modes]
    if limitation.modes and not _RUN.intersection(limitation.modes):
        return engines
    return engines + [
        op_set
        for op_set in ("xla", "no_xla")
        if not limitation.lowerings or op_set in limitation.lowerings
    ]
