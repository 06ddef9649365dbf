"""The magnitude of complex numbers, which JAX 0.12 writes as thirty ops on their parts."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import jax
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step
from jax2tf._src.stablehlo.program import Op, TensorType, Type
from jax2tf._src.util.typing import PyTree

_ELEMENTWISE = {
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "compare", "divide", "maximum", "minimum", "multiply", "or"),
        *("select", "sqrt", "real", "imag"),
    )
}
_SCALARS = {
    f"stablehlo.{name}" for name in ("constant", "broadcast_in_dim", "dynamic_broadcast_in_dim")
}
_MOST_OPS = 64
_PARTS = (3.0, -4.0, 0.0, 1e30, 1e-30, float("inf"), float("nan"))


def magnitude_of(step: Step) -> PyTree:
    """The complex array whose magnitude a selection gives; None for another selection.

    Its last op selects infinity where a part is infinite. What the ops before compute is tried.
    """
    which, infinity, rest = map(step.definition, range(3))
    if which is None or which.name != "stablehlo.or" or rest is None:
        return None
    if infinity is None or infinity.name not in _SCALARS or rest.name != "stablehlo.multiply":
        return None
    found = _expansion(step, step.op)
    if found is None:
        return None
    root, ops = found
    value = step.environment.get(root)
    fits = value is not None and value.shape == _shape_of(step, value)
    return value if fits and _gives_magnitudes(step, root, ops) else None


def _shape_of(step: Step, value: PyTree) -> PyTree:
    """The shape of the result, whose open sizes are those of the value."""
    shape = step.result.shape
    if len(shape) != len(value.shape):
        return None
    return tuple(b if a is None else a for a, b in zip(shape, value.shape, strict=True))


def _expansion(step: Step, last: Op) -> tuple[int, Sequence[Op]] | None:
    """The one complex value that an op depends on, and the ops between, in their order."""
    definitions = step.evaluator.program.definitions
    found: dict[int, Op] = {}
    roots: set[int] = set()
    waiting = list(last.operands)
    while waiting:
        number = waiting.pop()
        op = definitions.get(number)
        if number in found:
            continue
        if op is None or len(found) > _MOST_OPS or op.name not in _ELEMENTWISE | _SCALARS:
            return None
        found[number] = op
        if op.name in ("stablehlo.real", "stablehlo.imag"):
            roots.add(op.operands[0])
        elif op.name == "stablehlo.constant":
            if not _is_one_number(op.attributes["value"]):
                return None
        else:
            waiting += op.operands[:1] if op.name in _SCALARS else op.operands
    if len(roots) != 1:
        return None
    return roots.pop(), [found[number] for number in sorted(found)]


def _is_one_number(value: np.ndarray) -> bool:
    """Whether a constant has one number everywhere, as the samples need."""
    return value.size > 0 and np.array_equal(value, np.full_like(value, value.flat[0]))


def _gives_magnitudes(step: Step, root: int, ops: Sequence[Op]) -> bool:
    """Whether the ops give lax.abs of some complex numbers."""
    parts = np.array(list(itertools.product(_PARTS, repeat=2)), step.result.dtype)
    samples = np.zeros(len(parts), np.result_type(parts.dtype, np.complex64))
    samples.real, samples.imag = parts.T
    environment: dict[int, PyTree] = {root: samples}
    with jax.ensure_compile_time_eval():
        for op in ops:
            environment[op.results[0]] = _of_samples(step, op, environment, len(samples))
        which, x, y = (environment[number] for number in step.op.operands)
        found, expected = np.where(which, x, y), np.asarray(jax.jit(lax.abs)(samples))
    return np.allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps, equal_nan=True)


def _of_samples(step: Step, op: Op, environment: dict[int, PyTree], count: int) -> PyTree:
    """The result of an op where each array has as many elements as there are samples."""
    if op.name == "stablehlo.constant":
        return np.full(count, op.attributes["value"].reshape(-1)[0])
    if op.name in _SCALARS:
        return environment[op.operands[0]]
    types = tuple(_of_size(t, count) for t in op.operand_types)
    results = tuple(_of_size(t, count) for t in op.types)
    sampled = dataclasses.replace(op, operand_types=types, types=results)
    operands = tuple(environment[number] for number in op.operands)
    return step.evaluator.results(sampled, operands, environment)[0]


def _of_size(kind: Type, count: int) -> TensorType:
    assert isinstance(kind, TensorType)
    return TensorType((count,), kind.dtype)
