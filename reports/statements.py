"""Sentences of the documentation that are made of data.

Between two marks of a page stands what a function here makes of the ledger, the harnesses and the
rows that are kept:

    <!-- made: bfloat16 -->ONNX Runtime holds no arrays of bfloat16 ...<!-- end -->

`python -m reports check` says where another text stands, and with `--write` writes it anew.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from harnesses.cell.names import CONSUMER_MODES, UNDER_MODES
from harnesses.engine.consumers import NO_ARRAYS_OF
from harnesses.harness import CALL_TF, Harness, all_harnesses
from limitations import ledger, tolerances
from reports import engine_rows, rendering
from reports.consumers import ENGINE_NAMES, FAMILIES

DOCS = Path(__file__).parents[1] / "docs"

_MADE = re.compile(r"(<!-- made: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages(folder: Path = DOCS) -> dict[Path, str]:
    """The pages that hold a made sentence, each with the text that it should have."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))}
    return {path: _MADE.sub(_renewed, text) for path, text in texts.items() if _MADE.search(text)}


def stale(folder: Path = DOCS) -> list[Path]:
    """The pages of which a made sentence is not what the data give."""
    return [p for p, text in pages(folder).items() if p.read_text(encoding="utf-8") != text]


def write(folder: Path = DOCS) -> list[Path]:
    """Writes the made sentences anew; returns the pages that changed."""
    changed = stale(folder)
    for path in changed:
        path.write_text(pages(folder)[path], encoding="utf-8")
    return changed


def _renewed(match: re.Match[str]) -> str:
    begin, name, _, end = match.groups()
    return begin + STATEMENTS[name]() + end


def _bfloat16() -> str:
    """Which engines hold arrays of bfloat16, and what passes in those that do."""
    holds = [mode for mode in CONSUMER_MODES[1:] if "bfloat16" not in NO_ARRAYS_OF[mode]]
    without = [ENGINE_NAMES[mode] for mode in CONSUMER_MODES[1:] if mode not in holds]
    passed = [f"in {ENGINE_NAMES[mode]} {_passed(mode, 'bfloat16')}" for mode in holds]
    return (
        f"{_and(without)} hold no arrays of bfloat16. Of the harnesses of bfloat16 that were run, "
        f"{_and(passed)} give JAX's result."
    )


def _passed(mode: str, dtype: str) -> str:
    """`619 of 709`: of the harnesses of a dtype that have a row of the engine, those that pass."""
    kept = rendering.read_data(engine_rows.NAME)
    letters = [
        engine_rows.letter(kept, harness.name, mode)
        for harness in _harnesses()
        if harness.dtype.name == dtype and harness.family in FAMILIES
    ]
    ran = [letter for letter in letters if letter != engine_rows.NOT_RUN]
    return f"{ran.count(engine_rows.PASSED)} of {len(ran)}"


def _cells_under() -> str:
    """How many cells a run of all transformations has."""
    return f"{len(_harnesses()) * len(UNDER_MODES):,} cells"


def _modes_under() -> str:
    return f"{len(UNDER_MODES)} modes"


def _called_functions() -> str:
    """How many of TensorFlow's functions are called from JAX."""
    called = all_harnesses(jax_version=None, direction=CALL_TF)
    return f"{len({harness.primitive for harness in called})} TensorFlow functions"


def _culprits() -> str:
    """How many cells differ from JAX's result, and who is further from the exact one."""
    kept = rendering.read_data("culprits")
    cells, differing, off = kept["cells"], kept["differing"], kept["counts"]
    return (
        f"Of {cells:,} cells of the matrix, {differing:,} differ from JAX by more than one ULP. A "
        f"third computation with more digits finds JAX wrong in {off['jax']} of these, jax2tf in "
        f"{off['judged']}, both in {off['both']}, and neither by more than one ULP in "
        f"{off['neither']}; of the others it knows no better."
    )


def _furthest() -> str:
    """The largest differences of results that pass, which the ledger's tolerances are made of."""
    (kept,) = tolerances.load(ledger.FOLDER)
    furthest = []
    for dtype in ("float32", "float64"):
        seen = {name: ulps for (name, of), ulps in kept.ulps.items() if of == dtype}
        name = max(seen, key=seen.__getitem__)
        furthest.append(f"{seen[name] / tolerances.MARGIN:.0f} ULPs in {dtype} (`{name}`)")
    return f"up to {_and(furthest)}"


@functools.cache
def _harnesses() -> list[Harness]:
    return all_harnesses(jax_version=None)


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


STATEMENTS: Mapping[str, Callable[[], str]] = {
    "bfloat16": _bfloat16,
    "cells_under": _cells_under,
    "modes_under": _modes_under,
    "called_functions": _called_functions,
    "culprits": _culprits,
    "furthest": _furthest,
}
