"""Rows of results, one a cell: JSON lines, as `pandas.read_json(..., lines=True)` reads them.

A row is a dict with the keys of `COLUMNS`. An infinite error is written `Infinity`.
`harnesses.cell.journal` writes and reads the files.
"""

from typing import Any

from harnesses.cell.cells import Cell

# One a cell, with the keys of `COLUMNS`.
Row = dict[str, Any]

# Between the `key=value`s of the column params; values hold commas.
PARAMS_SEPARATOR = "; "

# What a row says of its cell.
CELL_FIELDS = ("harness", "device", "lowering", "mode")

COLUMNS = (
    "harness",
    "family",
    "primitive",
    "dtype",
    "x64",
    "device",
    "lowering",
    "mode",
    "outcome",  # pass | mismatch | error | crash | timeout
    "phase",  # of an error: trace (JAX itself) | lower | run
    "exception",  # of an error: the name of its type
    "message",  # of everything but a pass
    "ulps",  # the largest error seen; null where nothing could be compared
    "tolerance",
    "culprit",  # beyond one ULP: jax | judged | both | neither; null where nobody can tell
    "jax_ulps",  # how far JAX is from the third opinion there
    "judged_ulps",
    "opinion",  # who the third is; see `harnesses.engine.opinion`
    "example",  # the element over which the two dispute most, in numbers
    "nodes",  # of the graph that the cell's function was lowered to; null where there is none
    "seconds",
    "params",
    "limitation",  # the id of the limitation that explains the outcome
    "verdict",  # ok | red
    "jax",
    "tensorflow",  # null on JAX's own side
    "python",
    "processor",  # which of PROCESSOR_FEATURES it has
    "impl",
    "database",  # the version of the harnesses
    "impl_versions",  # of a converter that does not end in TensorFlow: what it is made of
)

# Every row says these. The others are null where they say nothing, and in rows of an earlier judge
# that did not know them yet.
NEEDED = (
    *CELL_FIELDS,
    *("family", "primitive", "dtype", "x64", "outcome", "seconds", "params", "verdict"),
    *("jax", "python"),
)

# What decides which kernels TensorFlow's oneDNN runs, as Linux names it; results depend on that.
PROCESSOR_FEATURES = ("avx512f", "avx512_bf16", "amx_bf16")

# Those that are the same for every cell of a run.
VERSIONS = ("jax", "tensorflow", "python", "processor", "impl")

# What a row says where a cell did not get that far.
UNKNOWN: Row = dict.fromkeys(COLUMNS)


def row_of(cell: Cell, run: Row, **observed: Any) -> Row:
    """The row of a cell: what it is, what was `observed`, and the `versions` of the run."""
    harness = cell.harness
    return (
        UNKNOWN
        | {
            "harness": harness.name,
            "family": harness.family,
            "primitive": harness.primitive,
            "dtype": harness.dtype.name,
            "x64": harness.x64,
            "device": cell.device,
            "lowering": cell.lowering,
            "mode": cell.mode,
            "params": PARAMS_SEPARATOR.join(
                f"{key}={value}" for key, value in harness.params.items()
            ),
        }
        | observed
        | run
    )
