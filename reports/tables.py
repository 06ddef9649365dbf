"""`python -m reports tables`: what is supported, as Markdown made of the ledger and the database.

- jax_primitives_coverage.md: the primitives, their harnesses and dtypes, and what JAX itself lacks.
- primitives_with_limited_support.md: what the lowering to TensorFlow does not do, or not exactly.
- no_xla_limitations.md: what of that holds without XLA ops.
- gradients.md: the same for derivatives.
- shape_polymorphism.md: the same for batches of unknown size.
- stablehlo.md: the same for files of jax.export that are loaded.
- meshes.md: the same for programs of meshes, on the devices of one and as modules for one.
- consumers.md: what the engines that read TensorFlow graphs make of it.
- ops.md: which of TensorFlow's ops these engines take.

The limitations are written as data into the implementation, too, for who asks it to explain.

They are the same on every version of Python, JAX and TensorFlow: a limitation that holds for some
versions alone stands in them with that condition. On which versions the whole matrix was run, and
how it went, is kept in proved.json beside them, and rewritten from the results of a full run.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell.cells import Cell
from harnesses.cell.names import JAX_SIDE
from harnesses.cell.rows import row_of
from harnesses.harness import Harness, all_harnesses
from limitations.ledger import Limitation, load, load_uncovered
from reports import engine_rows, explained, proofs, rendering, results, support
from reports.benchmarks.files import (
    benchmark_files,
    endurance_files,
    engine_files,
    growth_files,
    located_files,
    memory_files,
    overhead_files,
    twin_files,
)
from reports.columns import COLUMNS, PROVED, WITHOUT_XLA, is_about_columns
from reports.consumers import consumer_files, is_of_engines
from reports.dtype_names import TRIED, dtypes_text, legend
from reports.explained import explained_files
from reports.op_tables import op_table_files
from reports.proofs import Places
from reports.results import Row

COVERAGE = "jax_primitives_coverage.md"
LIMITED_SUPPORT = "primitives_with_limited_support.md"
NO_XLA_LIMITATIONS = WITHOUT_XLA.table

# By the name of the figures, what makes their files.
MEASURED = {
    "benchmarks": benchmark_files,
    "engines": engine_files,
    "growth": growth_files,
    "memory": memory_files,
    "endurance": endurance_files,
    "call_tf_overhead": overhead_files,
    "twins": twin_files,
    "located": located_files,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a table is not current"
    )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        help="results of full runs, for the versions; default: all of this checkout",
    )
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the tables' folder")
    parser.add_argument(
        "--data",
        type=Path,
        help="the folder of what the wheel carries; default: the package's, or that of --into",
    )


def main(options: argparse.Namespace, console: Console) -> int:
    harnesses, ledger = all_harnesses(jax_version=None), load()
    proved = rendering.read_data("proved", options.into)
    if not options.check:
        files = results.default_files() if options.results is None else options.results
        proved = proofs.with_proofs(proved, files, harnesses, ledger, console)
    texts = _all_files(harnesses, ledger, proved, options.into)
    data = _carried(harnesses, ledger, proved, options.into)
    written = [(texts, options.into), (data, _data_folder(options))]
    if options.check:
        stale = [path for files, folder in written for path in rendering.stale(files, folder)]
        return _check(stale, console)
    for files, folder in written:
        for path in rendering.write(files, folder):
            console.print(f"wrote {path}", soft_wrap=True)
    return 0


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    proved = rendering.read_data("proved", folder)
    return _all_files(all_harnesses(jax_version=None), load(), proved, folder)


def carried_files() -> dict[str, str]:
    """What the wheel carries of the ledger, by file name, for `explained.FOLDER`."""
    proved = rendering.read_data("proved")
    return _carried(all_harnesses(jax_version=None), load(), proved, rendering.TABLES)


def _carried(
    harnesses: Sequence[Harness],
    ledger: Sequence[Limitation],
    proved: Mapping[str, Any],
    folder: Path,
) -> dict[str, str]:
    kept = rendering.read_data(engine_rows.NAME, folder)
    data = support.gather(harnesses, ledger, proved, kept)
    return explained_files(ledger, _View(harnesses).matched) | support.carried(data)


def _all_files(
    harnesses: Sequence[Harness],
    ledger: Sequence[Limitation],
    proved: Mapping[str, Any],
    folder: Path,
) -> dict[str, str]:
    texts = table_files(harnesses, ledger, load_uncovered(), proved)
    texts |= consumer_files(harnesses, ledger, rendering.read_data(engine_rows.NAME, folder))
    texts |= op_table_files(dtypes_text)
    for name, files_of in MEASURED.items():
        figures = rendering.read_data(name, folder)
        texts |= files_of(figures) if figures else {}
    return texts


def _data_folder(options: argparse.Namespace) -> Path:
    """Where what the wheel carries goes: tables written elsewhere leave the package alone."""
    if options.data is not None:
        return options.data
    return explained.FOLDER if options.into == rendering.TABLES else options.into


def _check(stale: Sequence[Path], console: Console) -> int:
    for path in stale:
        console.print(
            f"{path} is stale: not what the ledger, the harnesses and the templates give. "
            "Write it anew with: python -m reports tables",
            style="red",
            soft_wrap=True,
        )
    return 1 if stale else 0


def table_files(
    harnesses: Sequence[Harness],
    limitations: Sequence[Limitation],
    uncovered: Mapping[str, str],
    proved: Mapping[str, Any],
) -> dict[str, str]:
    """The files of the tables, by name."""
    runs, seen = proved.get("runs", []), proved.get("seen", [])
    places = Places.of(runs, seen)
    view = _View(harnesses)
    jax_side = [limitation for limitation in limitations if limitation.side == JAX_SIDE]
    ours = [limitation for limitation in limitations if limitation.side != JAX_SIDE]
    elsewhere = (is_about_columns, is_of_engines)
    own_side = [entry for entry in ours if not any(told(entry) for told in elsewhere)]
    failures = [limitation for limitation in own_side if limitation.expect != "mismatch"]
    differences = [limitation for limitation in own_side if limitation.expect == "mismatch"]
    without_xla = [
        entry for entry in own_side if not entry.lowerings or "no_xla" in entry.lowerings
    ]
    alone = [entry for entry in without_xla if entry.lowerings and "xla" not in entry.lowerings]
    common = {
        "runs": [run | {"since": proofs.added_since(run, harnesses)} for run in runs],
        "groups": legend(),
        "harnesses": len(harnesses),
        "seen": seen,
        "lacking_places": places.lacking(),
    }
    of_columns = {column.name: proved.get(column.name, []) for column in PROVED}
    counted = {
        column.name: [
            run | {"since": proofs.added_since(run, column.asked(harnesses))}
            for run in of_columns[column.name]
        ]
        for column in PROVED
    }
    devices = {run["device"] for run in runs} or {"cpu"}
    return {
        COVERAGE: rendering.render(
            COVERAGE,
            primitives=view.primitives(jax_side, devices),
            lacking=view.rows(jax_side, places),
            uncovered=_by_reason(uncovered),
            **common,
        ),
        LIMITED_SUPPORT: rendering.render(
            LIMITED_SUPPORT,
            failures=view.rows(failures, places),
            differences=view.rows(differences, places),
            limitations=len(own_side),
            **common,
        ),
        NO_XLA_LIMITATIONS: rendering.render(
            NO_XLA_LIMITATIONS,
            alone=view.rows(alone, places),
            shared=view.rows([entry for entry in without_xla if entry not in alone], places),
            column=counted[WITHOUT_XLA.name],
            **common,
        ),
        **{
            column.table: rendering.render(
                column.table,
                limited=view.rows(
                    [entry for entry in ours if column.is_spoken_of(entry)],
                    Places.of(of_columns[column.name], seen),
                ),
                column=counted[column.name],
                **common,
            )
            for column in COLUMNS
        },
        "proved.json": json.dumps({"runs": runs, "seen": seen, **of_columns}, indent=1) + "\n",
    }


# --- Rows of the tables ---------------------------------------------------------------------


@dataclass(frozen=True)
class PrimitiveRow:
    """A primitive and what of it was asked."""

    primitive: str
    file: str
    harnesses: int
    supported: str
    untried: str


@dataclass(frozen=True)
class LimitationRow:
    """What a limitation says about one of its primitives."""

    primitive: str
    expect: str
    reason: str
    link: str | None
    dtypes: str
    devices: str
    lowerings: str
    modes: str
    versions: str
    ulps: str
    file: str
    example: str
    more: int


class _View:
    """The database by primitive, and which of it a limitation is about, whatever the versions."""

    def __init__(self, harnesses: Sequence[Harness]):
        self._of: dict[str, list[tuple[Harness, Row]]] = collections.defaultdict(list)
        for harness in harnesses:
            self._of[harness.primitive].append((harness, _row_on(harness, "cpu")))

    def primitives(
        self, jax_side: Sequence[Limitation], devices: Iterable[str]
    ) -> list[PrimitiveRow]:
        """Every primitive with a harness; `devices` are those that were tried."""
        by_primitive: dict[str, list[Limitation]] = collections.defaultdict(list)
        for limitation in jax_side:
            for primitive in limitation.primitive:
                by_primitive[primitive].append(limitation)
        rows = []
        for primitive, entries in sorted(self._of.items()):
            tried = {harness.dtype.name for harness, _ in entries}
            lacking = by_primitive[primitive]
            supported = {
                harness.dtype.name
                for harness, _ in entries
                if not all(_jax_lacks(harness, device, lacking) for device in devices)
            }
            untried = {dtype.name for dtype in TRIED} - tried
            file = _file(entries[0][0])
            rows.append(
                PrimitiveRow(
                    primitive, file, len(entries), dtypes_text(supported), dtypes_text(untried)
                )
            )
        return rows

    def rows(self, limitations: Sequence[Limitation], places: Places) -> list[LimitationRow]:
        """One row for each primitive of each limitation, by primitive.

        `places` says of which devices and lowerings whole runs are kept.
        """
        rows = [
            self._row(primitive, limitation, places)
            for limitation in limitations
            for primitive in limitation.primitive
        ]
        return sorted(rows, key=lambda row: row.primitive)

    def matched(self, primitive: str, limitation: Limitation) -> list[Harness]:
        """The harnesses of a primitive that a limitation speaks of, whatever the versions."""
        anywhere = _anywhere(limitation)
        return [harness for harness, row in self._of[primitive] if anywhere.matches(row)]

    def _row(self, primitive: str, limitation: Limitation, places: Places) -> LimitationRow:
        matched = self.matched(primitive, limitation)
        return LimitationRow(
            primitive=primitive,
            expect=limitation.expect,
            reason=limitation.reason,
            link=limitation.link,
            dtypes=dtypes_text({harness.dtype.name for harness in matched}),
            devices=places.text(limitation.devices),
            lowerings=places.text(limitation.lowerings),
            modes=_or_all(limitation.modes),
            versions=_versions_text(limitation),
            ulps="" if limitation.ulps is None else f"{limitation.ulps:g}",
            file=_file(matched[0]) if matched else "",
            example=matched[0].name if matched else "",
            more=len(matched) - 1,
        )


def _anywhere(limitation: Limitation) -> Limitation:
    """The limitation without its conditions on the place and the versions of a run."""
    return dataclasses.replace(
        limitation,
        devices=(),
        lowerings=(),
        modes=(),
        jax=None,
        tensorflow=None,
        processor=None,
        side=JAX_SIDE,
    )


def _jax_lacks(harness: Harness, device: str, jax_side: Sequence[Limitation]) -> bool:
    """Whether no version of JAX can run the harness on the device."""
    # One that names versions leaves others, on which JAX can.
    always = [limitation for limitation in jax_side if limitation.jax is None]
    return any(limitation.matches(_row_on(harness, device)) for limitation in always)


def _row_on(harness: Harness, device: str) -> Row:
    """A row of JAX's own side, of no version in particular."""
    return row_of(Cell(harness, device, JAX_SIDE, JAX_SIDE), {"jax": None, "tensorflow": None})


def _file(harness: Harness) -> str:
    return harness.where.partition(":")[0]


def _by_reason(uncovered: Mapping[str, str]) -> list[tuple[str, str]]:
    """The primitives that share a reason, as one text, and the reason."""
    by_reason: dict[str, list[str]] = collections.defaultdict(list)
    for primitive, reason in sorted(uncovered.items()):
        by_reason[reason].append(primitive)
    return [(", ".join(primitives), reason) for reason, primitives in by_reason.items()]


def _or_all(names: Sequence[str]) -> str:
    return ", ".join(names) or "all"


def _versions_text(limitation: Limitation) -> str:
    conditions = {
        "JAX": limitation.jax,
        "TensorFlow": limitation.tensorflow,
        "processor": limitation.processor,
    }
    return ", ".join(f"{name} `{c}`" for name, c in conditions.items() if c) or "all"
