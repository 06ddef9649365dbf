"""The judge of files of jax.export. It exports a harness, loads the file, and runs it in two ways.

First it runs the loaded function under jax.jit. Then the implementation converts the loaded
function, and the judge runs that TensorFlow function in a graph. Each result has to be JAX's own. A
harness is inapplicable if jax.export refuses it, or if it is a program for several devices.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from jax import export

from harnesses.cell.cells import Cell
from harnesses.cell.rows import Row
from harnesses.engine.compare import Comparison, compare, severity
from harnesses.engine.judge import Inapplicable, Judge, phase, result_of_jax
from harnesses.harness import Harness

_AFTER = "converted after it was loaded: "


@dataclasses.dataclass(frozen=True)
class _Exported:
    """The arguments of a harness, and the file of its function."""

    args: tuple
    blob: bytes


class StableHloJudge(Judge):
    """Runs cells of the mode stablehlo."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[Any, Any]:
        args, expected = super()._arguments_and_expected(harness)
        if isinstance(expected, Exception):
            return args, expected
        try:
            exported = export.export(jax.jit(harness.fun))(*args)
            blob = bytes(exported.serialize())
        except Exception as error:
            return args, Inapplicable(f"jax.export: {error}")
        if exported.nr_devices != 1:
            return args, Inapplicable(f"a program for {exported.nr_devices} devices")
        return _Exported(args, blob), [expected, expected]

    def _run(self, cell: Cell, args: Any) -> Any:
        with self._settings(cell):
            with phase("lower"):
                loaded = self._adapter.load(args.blob)
            with phase("run"):
                results = result_of_jax(loaded, args.args)
            with phase("lower"):
                tensors = jax.tree.map(self._tensorflow.constant, args.args)
                converted = self._adapter.convert(loaded, cell.lowering, with_gradient=True)
            return [results, self._executed(cell, "graph", converted, tensors)]

    def _question(self, cell: Cell, args: Any) -> tuple[Callable[..., Any], tuple]:
        return cell.harness.fun, args.args

    def _opinion(
        self, cell: Cell, args: Any, expected: Any, actual: Any, comparison: Comparison
    ) -> Row:
        """That of the result which is further from JAX's."""
        both = list(zip(expected, actual, strict=True))
        worse = max(both, key=lambda two: severity(compare(cell.harness, args.args, *two)))
        return super()._opinion(cell, args, *worse, comparison)

    def _compare(self, cell: Cell, args: Any, expected: Any, actual: Any) -> Comparison:
        of_loaded, after = (
            compare(cell.harness, args.args, *two) for two in zip(expected, actual, strict=True)
        )
        if after.problem is not None:
            after = dataclasses.replace(after, problem=_AFTER + after.problem)
        return max(of_loaded, after, key=severity)
