"""Holds a program with an open dimension against JAX: converted once, and run for several sizes.

A program that is made smaller has equations of fixed sizes. One size stands for the open dimension;
where it, or a multiple of it, stands in shapes and params, the open dimension is put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from harnesses.cell.cells import Cell
from harnesses.engine.compare import Comparison, compare, severity
from harnesses.engine.judge import Judge, phase, result_of_jax
from harnesses.engine.shrinking import programs
from harnesses.engine.shrinking.options import OPEN
from harnesses.engine.shrinking.programs import Change, Program
from harnesses.harness import Harness

# The sizes that the open dimension has, one after the other.
_SIZES = (OPEN, 1, 2)


class OpenJudge(Judge):
    """Compares what one graph gives for several sizes of the open dimension."""

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        args = tuple(jax.tree.leaves(harness.make_args()))
        function = _of_any_size(harness, args)
        batches = tuple(tuple(_of_size(x, size) for x in args) for size in _SIZES)
        try:
            return batches, [result_of_jax(function, batch) for batch in batches]
        # Whatever JAX says of an equation that takes no other size.
        except Exception as error:
            return batches, error

    def _run(self, cell: Cell, args: tuple) -> Any:
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(
                    _of_any_size(cell.harness, args[0]),
                    cell.lowering,
                    with_gradient=True,
                    polymorphic_shapes=[", ".join(map(_dimension, x.shape)) for x in args[0]],
                )
                specs = [tf.TensorSpec(list(map(_size, x.shape)), x.dtype) for x in args[0]]
                graph = tf.function(converted, autograph=False)
                self._inspect(cell, graph.get_concrete_function(*specs).graph)
            with phase("run"):
                return [
                    [self._tensorflow.to_numpy(y) for y in graph(*map(tf.constant, batch))]
                    for batch in args
                ]

    def _question(self, cell: Cell, args: tuple) -> tuple[Callable[..., Any], tuple] | None:
        return None

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        each = zip(args, expected, actual, strict=True)
        return max((compare(cell.harness, *of_size) for of_size in each), key=severity)


def is_open(size: int) -> bool:
    """Whether a size is `OPEN` or a multiple: it stands for an open size."""
    return size > 0 and size % OPEN == 0


def _of_any_size(harness: Harness, args: Sequence[np.ndarray]) -> Callable[..., list[Any]]:
    """The program as a function that takes any size of the open dimension."""
    program = harness.fun
    if not isinstance(program, Program):
        program = programs.program_of(program, args, inlined=True)

    def function(*given: Any) -> list[Any]:
        return programs.evaluated(
            program.closed, Change(sizes=_Sizes(_open_of(args, given))), *given
        )

    return function


def _open_of(args: Sequence[np.ndarray], given: Sequence[Any]) -> Any:
    """The size that the open dimension has in some arguments."""
    pairs = zip(args, given, strict=True)
    sizes = [(n, m) for x, y in pairs for n, m in zip(x.shape, y.shape, strict=True) if is_open(n)]
    return next((m // (n // OPEN) for n, m in sorted(sizes, key=lambda pair: pair[0])), OPEN)


class _Sizes(Mapping[int, Any]):
    """The size that is put in place of each multiple of the open one."""

    def __init__(self, size: Any) -> None:
        self._size = size

    def __getitem__(self, n: int) -> Any:
        if not is_open(n):
            raise KeyError(n)
        return self._size * (n // OPEN)

    def __iter__(self) -> Iterator[int]:
        yield OPEN

    def __len__(self) -> int:
        return 1


def _of_size(array: np.ndarray, size: int) -> np.ndarray:
    """The first indices of the open dimensions."""
    for axis, n in enumerate(array.shape):
        if is_open(n):
            array = array.take(range(n // OPEN * size), axis)
    return array


def _dimension(n: int) -> str:
    if not is_open(n):
        return str(n)
    return "b" if n == OPEN else f"{n // OPEN}*b"


def _size(n: int) -> int | None:
    return None if is_open(n) else n
