"""Results: one row a cell, as JSON lines that pandas reads (`pandas.read_json(..., lines=True)`).

A row is a dict with the keys of `COLUMNS`. An infinite error is written `Infinity`.
`harnesses.engine.journal` writes and reads them.
"""

import functools
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from harnesses.engine.cells import Cell
from harnesses.engine.converters import converter, is_converter
from harnesses.engine.journal import Row

# Between the `key=value`s of the column params; values hold commas.
PARAMS_SEPARATOR = "; "

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
    "impl_versions",  # of a converter that does not end in TensorFlow: what it is made of
)

# What decides which kernels TensorFlow's oneDNN runs, as Linux names it; results depend on that.
PROCESSOR_FEATURES = ("avx512f", "avx512_bf16", "amx_bf16")
_CPUINFO = Path("/proc/cpuinfo")

# Those that are the same for every cell of a run.
VERSIONS = ("jax", "tensorflow", "python", "processor", "impl")

# What a row says where a cell did not get that far.
_UNKNOWN: Row = dict.fromkeys(COLUMNS)


def versions(impl: str | None) -> Row:
    """The columns that are the same for every cell of a run; no `impl` on JAX's own side."""
    direct = is_converter(impl)
    run = {
        "jax": jax.__version__,
        "tensorflow": tensorflow_version() if impl and not direct else None,
        "python": platform.python_version(),
        "processor": processor(),
        "impl": impl,
    }
    return run | {"impl_versions": converter(impl).versions()} if impl and direct else run


def processor() -> str:
    """Those of PROCESSOR_FEATURES that this machine has; none where only Linux could tell."""
    text = _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return " ".join(feature for feature in PROCESSOR_FEATURES if feature in flags)


@functools.cache  # asking costs a second
def tensorflow_version() -> str:
    """TensorFlow's version, without importing it, whichever distribution brought it."""
    providers = metadata.packages_distributions().get("tensorflow", ["tensorflow"])
    return metadata.version(sorted(providers)[0])


def row_of(cell: Cell, run: Row, **observed: Any) -> Row:
    """The row of a cell: what it is, what was `observed`, and the `versions` of the run."""
    harness = cell.harness
    return (
        _UNKNOWN
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
