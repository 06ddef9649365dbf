"""Functions that JAX writes as a few ops, whose derivatives are not those of these ops."""

from __future__ import annotations

import numpy as np

from jax2tf._src.stablehlo.evaluator import Step
from jax2tf._src.util.typing import PyTree


def is_one(value: PyTree) -> bool:
    """Whether a value is the constant 1."""
    return isinstance(value, np.ndarray) and bool((value == 1).all())


def is_arc_sine(step: Step) -> bool:
    """Whether the op is atan2(x, sqrt((1 - x) * (1 + x))), as lax.asin is written."""
    to_difference = step.chain(1, "sqrt", "multiply", "subtract")
    to_sum = step.chain(1, "sqrt", "multiply", "add")
    if to_difference is None or to_sum is None or not _is_of_floats(step):
        return False
    one, x = to_difference[-1].operands
    ones, xs = [one], [step.op.operands[0], x]
    for number in to_sum[-1].operands:
        (xs if number == x else ones).append(number)
    values = [step.environment[number] for number in ones]
    return len(set(xs)) == 1 and len(xs) == 3 and all(map(is_one, values))


def is_of_complex_sine(step: Step) -> bool:
    """Whether the op ends lax.sin or lax.cos of complex numbers.

    One part of the result is 0 where the real part of the operand is 0, and a product elsewhere,
    which would be NaN where the other factor is infinite.
    """
    chains = step.chain(0, "compare"), step.chain(1, "complex"), step.chain(2, "complex")
    if any(chain is None for chain in chains):
        return False
    ((test,), (at_zero,), (elsewhere,)) = chains  # type: ignore[misc]
    parts = list(zip(at_zero.operands, elsewhere.operands, strict=True))
    differing = [x for x, y in parts if x != y]
    is_equality = test.attributes["comparison_direction"] == "EQ"
    zeros = (*differing, test.operands[1])
    return is_equality and len(differing) == 1 and all(_is_zero(step, n) for n in zeros)


def _is_zero(step: Step, number: int) -> bool:
    """Whether all elements of a value are the constant 0."""
    op = step.evaluator.program.definitions.get(number)
    if op is not None and op.name.endswith("broadcast_in_dim"):
        number = op.operands[0]
    value = step.environment.get(number)
    return isinstance(value, np.ndarray) and not value.any()


def log_of_sum_of(step: Step) -> tuple[PyTree, PyTree] | None:
    """The x and y of jnp.logaddexp, which softplus is made of; None for another selection.

    It is max(x, y) + log1p(exp(-abs(x - y))), or x + y where x - y is no number.
    """
    to_largest = step.chain(2, "add", "maximum")
    to_difference = step.chain(2, "add", "log_plus_one", "exponential", "negate", "abs", "subtract")
    to_sum, to_test = step.chain(1, "add"), step.chain(0, "compare")
    if to_largest is None or to_difference is None or to_sum is None or to_test is None:
        return None
    (difference,), (test,) = to_difference[-1].results, to_test
    tests = test.operands == (difference,) * 2
    if not tests or test.attributes["comparison_direction"] != "NE" or not _is_of_floats(step):
        return None
    x, y = (step.environment[number] for number in to_difference[-1].operands)
    pairs = ([step.environment[n] for n in op.operands] for op in (to_largest[-1], *to_sum))
    return (x, y) if all(_are_same(x, u) and _are_same(y, v) for u, v in pairs) else None


def _is_of_floats(step: Step) -> bool:
    return step.result.dtype.kind not in "ciub"


def _are_same(x: PyTree, y: PyTree) -> bool:
    """Whether two values are one, or equal constants."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return np.array_equal(x, y)
    return x is y
