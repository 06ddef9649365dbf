"""The judges of transformed harnesses, in modes of their own that a run has to ask for.

    gradient_eager      the vjp of a harness: JAX's, and TensorFlow's through a GradientTape
    gradient_graph      the same inside a tf.function
    gradient_compiled   the same inside a tf.function with jit_compile=True
    gradient_saved      the same through what a SavedModel gives back
    poly                the vmap of a harness, converted once with a polymorphic batch, for several
                        batches

Where JAX itself does not transform a harness so (an integer has no gradient, a callback no batch)
the outcome is "inapplicable", with JAX's words for it: there is nothing to be right about.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import numpy as np
import tensorflow as tf

from harnesses.cell.cells import Cell
from harnesses.cell.names import GRADIENT, GRADIENT_MODES, SAVED_GRADIENT
from harnesses.engine import derivatives, modes
from harnesses.engine.compare import Comparison, compare, severity
from harnesses.engine.judge import Inapplicable, Judge, phase
from harnesses.engine.vjps import GRADIENT_ULPS, Vjp, vjp_of
from harnesses.harness import Harness

BATCHES = (1, 2, 7)


class GradientJudge(Judge):
    """Compares gradients along cotangents that differ from element to element."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        args = harness.make_args()
        try:
            vjp = vjp_of(harness, args)
            # Compiled by hand: thousands follow, and jax.jit would keep each of them.
            operands = vjp.primals, vjp.others, vjp.cotangents
            gradients = jax.jit(vjp.gradients).trace(*operands).lower().compile()(*operands)
        except Exception as error:
            return args, Inapplicable(str(error))
        return vjp, [np.asarray(g) for g in gradients]

    def _run(self, cell: Cell, args: tuple) -> Any:
        function, primals, others, cotangents = args
        n = len(primals) + len(others)
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(function, cell.lowering, with_gradient=True)
                if cell.mode == SAVED_GRADIENT:
                    converted = modes.restored(converted, (*primals, *others))

            def gradients(*operands: tf.Tensor) -> list[tf.Tensor]:
                at, along = operands[:n], operands[n:]
                return derivatives.gradients(converted, at, at[: len(primals)], along)

            operands = list(map(tf.constant, (*primals, *others, *cotangents)))
            return self._executed(cell, _MODES[cell.mode], gradients, operands)

    def _question(self, cell: Cell, args: tuple) -> tuple[Callable[..., Any], tuple]:
        vjp = cast(Vjp, args)
        return vjp.gradients, (vjp.primals, vjp.others, vjp.cotangents)

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        harness = dataclasses.replace(
            cell.harness, scale="array", ulps=GRADIENT_ULPS, tags=frozenset({"any_zero_sign"})
        )
        return compare(harness, args, expected, actual)


# How the tape runs in each of them.
_MODES: Mapping[str, str] = {
    **{mode: mode.removeprefix(f"{GRADIENT}_") for mode in GRADIENT_MODES},
    SAVED_GRADIENT: "eager",
}


class PolyJudge(Judge):
    """Compares what one graph gives for batches of several sizes, example by example."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        function = jax.vmap(harness.fun)
        batches = tuple(_batch(harness, size) for size in BATCHES)
        try:
            jitted: Any = jax.jit(function)
            expected = [jax.tree.map(np.asarray, jitted(*batch)) for batch in batches]
            jitted.clear_cache()
        except Exception as error:
            return batches, Inapplicable(str(error))
        return batches, expected

    def _run(self, cell: Cell, args: tuple) -> Any:
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(
                    jax.vmap(cell.harness.fun),
                    cell.lowering,
                    with_gradient=True,
                    polymorphic_shapes="b, ...",
                )
                specs = jax.tree.map(
                    lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), args[0]
                )
                graph = tf.function(converted, autograph=False)
                self._inspect(cell, graph.get_concrete_function(*specs).graph)
            with phase("run"):
                return [
                    jax.tree.map(self._tensorflow.to_numpy, graph(*map(_constants, batch)))
                    for batch in args
                ]

    def _question(self, cell: Cell, args: tuple) -> tuple[Callable[..., Any], tuple]:
        function = jax.vmap(cell.harness.fun)
        return lambda *batches: [function(*batch) for batch in batches], args

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        comparisons = [
            _compare_examples(cell.harness, *batch)
            for batch in zip(args, expected, actual, strict=True)
        ]
        return max(comparisons, key=severity)


# --- Batches ---------------------------------------------------------------------------------


def _batch(harness: Harness, size: int) -> tuple:
    examples = [harness.make_args(example) for example in range(size)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *examples)


def _constants(tree: Any) -> Any:
    return jax.tree.map(tf.constant, tree)


def _compare_examples(harness: Harness, args: tuple, expected: Any, actual: Any) -> Comparison:
    if jax.tree.map(_spec, actual) != jax.tree.map(_spec, expected):
        return compare(harness, args, expected, actual)
    size = jax.tree.leaves(args)[0].shape[0]
    trees = (args, expected, actual)
    examples = [jax.tree.map(lambda leaf, i=i: leaf[i], trees) for i in range(size)]
    return max((compare(harness, *example) for example in examples), key=severity)


def _spec(leaf: np.ndarray) -> tuple:
    return leaf.shape, leaf.dtype
