"""The judge of the engines: a harness is converted, handed to the engine and run there."""

import gc
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from harnesses.cell.cells import Cell
from harnesses.cell.names import SAVEDMODEL
from harnesses.cell.rows import Row
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from harnesses.engine.judge import Judge, phase


class ConsumerJudge(Judge):
    """Runs cells of the engines, whose names are the modes."""

    def __init__(self, impl: str | None):
        super().__init__(impl)
        self._engine: Any = None
        # TensorFlow collects garbage at each SavedModel, in which it would look at all that is
        # imported: that takes longer than most conversions.
        gc.freeze()

    def run(self, cell: Cell) -> Row:
        """As `Judge.run`."""
        self._engine = consumers.engine(cell.mode)
        return super().run(cell)

    def _run(self, cell: Cell, args: tuple) -> Any:
        harness = cell.harness
        # No device: one that a graph names is one more thing for an engine to misunderstand.
        with jax.enable_x64(harness.x64), jax.default_device(jax.devices("cpu")[0]):
            with phase("lower"):
                model, tree = self._model(cell, args)
            with phase("run"):
                results = model([np.asarray(leaf) for leaf in jax.tree.leaves(args)])
        return jax.tree.unflatten(tree, results)

    def _model(self, cell: Cell, args: tuple) -> tuple[consumers.Model, Any]:
        """The harness in the engine, and the tree of its results."""
        fun = cell.harness.fun
        if cell.mode in consumers.OF_FUNCTIONS:
            tree = jax.tree.structure(jax.eval_shape(fun, *args))
            return self._engine.convert_function(fun, args), tree
        graph = graph_of(self._converted(cell), jax.tree.map(_spec, args))
        return self._engine.convert(graph), graph.tree

    def _converted(self, cell: Cell) -> Any:
        if cell.mode == SAVEDMODEL:
            return self._adapter.convert(cell.harness.fun, cell.lowering)
        return self._adapter.convert_for(cell.harness.fun, cell.mode)

    def _message_of(self, error: BaseException) -> str:
        return consumers.words_of(error, self._engine)


def _spec(leaf: Any) -> tf.TensorSpec:
    return tf.TensorSpec(leaf.shape, leaf.dtype)
