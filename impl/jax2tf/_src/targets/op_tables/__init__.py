"""Which of TensorFlow's ops an engine takes: a file for each target, found by trying.

`python -m harnesses probe TARGET` tries a use of each op with each dtype in the engine and writes
the file: what the engine makes of it, in words, and the versions that were tried. `lacks` reads
from it what a target lacks.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterable, Mapping, Sequence

from jax2tf._src.util.lru import cached

# Ops whose inputs are of several dtypes, none of which says whether the op is taken.
OF_SEVERAL_DTYPES = ("StatelessCase", "StatelessIf", "StatelessWhile", "TensorListReserve")

# How the outcome of a use begins where the engine gives TensorFlow's numbers, and how what it
# says of special numbers does.
_TAKES = "takes"
_AT = "; differs at "


@cached
def uses(target: str) -> Mapping[str, Mapping[str, str]]:
    """By use of an op and dtype, what the engine of a target makes of it, in words.

    A use is the type of an op, or that and what is special in it: "Conv2D: in groups".
    """
    file = importlib.resources.files(__name__).joinpath(f"{target}.json")
    rows = json.loads(file.read_text(encoding="utf-8"))["uses"]
    return {
        use: {dtype: outcome for outcome, dtypes in row.items() for dtype in dtypes}
        for use, row in rows.items()
    }


def taken(target: str, ops: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Those of the ops that the engine of a target takes, with the dtypes for which it does."""
    known = {op: row for op, row in uses(target).items() if op in set(ops)}
    found = {
        op: tuple(dtype for dtype, outcome in row.items() if outcome.startswith(_TAKES))
        for op, row in known.items()
    }
    return {op: dtypes for op, dtypes in found.items() if dtypes}


def lacks(
    target: str, needs: Sequence[str] = (), edges: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """The ops that the engine of a target does not take, with the dtypes for which it does not.

    An op that it takes with no dtype has none named: it is lacking for all.

    Args:
      target: the name of the target.
      needs: the uses that rules make of an op, where these are not the plain one: an op is lacking
        where one of them is not taken.
      edges: ops that are lacking too where their plain use loses special numbers, each with the
        kind of these.
    """
    known = uses(target)
    special = {use.partition(":")[0] for use in needs}
    lacking: dict[str, list[str]] = {}
    for use in [*(op for op in known if ":" not in op and op not in special), *needs]:
        op = use.partition(":")[0]
        edge = (edges or {}).get(use)
        for dtype, outcome in known[use].items():
            lost = edge is not None and edge in outcome.partition(_AT)[2]
            if (lost or not outcome.startswith(_TAKES)) and dtype not in lacking.get(op, ()):
                lacking.setdefault(op, []).append(dtype)
    return {
        op: () if len(dtypes) == len(known[op]) else tuple(dtypes)
        for op, dtypes in lacking.items()
        if op not in OF_SEVERAL_DTYPES or len(dtypes) == len(known[op])
    }
