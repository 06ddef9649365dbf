"""The judge of converters that do not end in TensorFlow; it needs no TensorFlow."""

import re
from typing import Any

import jax
import numpy as np

from harnesses.cell.cells import Cell
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import Row
from harnesses.engine.converters import Converter, converter
from harnesses.engine.judge import Judge, phase


class ConverterJudge(Judge):
    """Runs cells against one converter."""

    def __init__(self, impl: str | type[Converter]):
        super().__init__(None)
        self._converter = (converter(impl) if isinstance(impl, str) else impl)()

    def _observe(self, cell: Cell) -> Row:
        declined = self._converter.declines(cell.harness)
        if declined is not None:
            return {"outcome": INAPPLICABLE, "message": declined}
        return super()._observe(cell)

    def _run(self, cell: Cell, args: tuple) -> Any:
        device = jax.default_device(jax.devices(cell.device)[0])
        with jax.enable_x64(cell.harness.x64), device:
            with phase("lower"):
                model = self._converter.convert(cell.harness.fun, args)
            with phase("run"):
                return jax.tree.map(np.asarray, self._converter.call(model, args))

    def _message_of(self, error: BaseException) -> str:
        words = str(error)
        for pattern, replacement in self._converter.noise:
            words = re.sub(pattern, replacement, words)
        return words
