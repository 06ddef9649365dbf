"""Exports networks and language models of the zoo to ONNX where `import tensorflow` raises.

    python -m tests.zoo.without_tensorflow FOLDER

Each is exported with sizes that are known and, where it has a batch, with open ones. `export`
compares the results of ONNX Runtime with those of JAX. The program prints a line of JSON for each.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

if __name__ == "__main__":
    sys.modules["tensorflow"] = None  # type: ignore[assignment]

import jax
import jax.export
import numpy as np

import jax2tf
from tests.zoo.program import PROGRAMS, Program
from tests.zoo.programs import language_models, networks

FIELDS = (networks, language_models)

# One is a size that JAX's broadcasting treats differently; the other is in no program's arguments.
BATCHES = (1, 5)


def cases() -> list[tuple[str, bool]]:
    """The programs by name, and whether their batch is open."""
    fields = [field.__name__ for field in FIELDS]
    return [
        (name, is_open)
        for name, program in PROGRAMS.items()
        if program.build.__module__ in fields
        for is_open in (False, True)[: 1 + (program.batch is not None)]
    ]


def error_of(program: Program, is_open: bool, path: pathlib.Path) -> str:
    """The error of an export; empty if there is none."""
    try:
        _export(program, is_open, path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _export(program: Program, is_open: bool, path: pathlib.Path) -> None:
    fun, args = program.build()
    specs = _specs(program, args)
    inputs = [i for i, spec in enumerate(specs) if spec is not None]
    params = [arg for arg, spec in zip(args, specs, strict=True) if spec is None]

    def of_inputs(params: Sequence[Any], *given: Any) -> Any:
        first, second = iter(params), iter(given)
        return fun(*(next(first if spec is None else second) for spec in specs))

    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), _dtype(x)), args)
    if is_open:
        shapes = jax.export.symbolic_args_specs(
            shapes, program.batch, constraints=program.constraints
        )
    given = [tuple(args[i] for i in inputs)]
    if is_open:
        given = [_resized(args, shapes, inputs, size) for size in BATCHES]
    jax2tf.export(
        of_inputs,
        params,
        tuple(shapes[i] for i in inputs),
        path,
        verify=given,
        progress=False,
        widen_bfloat16=any(_dtype(leaf) == "bfloat16" for leaf in jax.tree.leaves(args)),
    )


def _dtype(x: Any) -> Any:
    """The dtype of an array, or of the array that JAX makes of a number."""
    return jax.dtypes.result_type(x)


def _specs(program: Program, args: tuple) -> Sequence[str | None]:
    """The polymorphic shape of each argument; that of parameters is None."""
    batch = program.batch or ["parameters", *[""] * (len(args) - 1)]
    if isinstance(batch, str):
        return [batch] * len(args)
    return [None if spec in (None, "parameters") else spec for spec in batch]


def _resized(args: tuple, shapes: Any, inputs: Sequence[int], size: int) -> tuple:
    """The inputs, repeated to another size of the open dimensions."""

    def resized(x: Any, described: jax.ShapeDtypeStruct) -> np.ndarray:
        for axis, dim in enumerate(described.shape):
            if not isinstance(dim, int):
                x = np.take(x, np.arange(size) % x.shape[axis], axis)
        return x

    return tuple(jax.tree.map(resized, args[i], shapes[i]) for i in inputs)


if __name__ == "__main__":
    for name, is_open in cases():
        path = pathlib.Path(sys.argv[1]) / f"{name}_{is_open}.onnx"
        print(json.dumps([name, is_open, error_of(PROGRAMS[name], is_open, path)]), flush=True)
