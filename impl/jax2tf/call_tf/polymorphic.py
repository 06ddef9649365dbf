"""Shapes of results where those of arguments are symbolic (jax2tf.convert, polymorphic_shapes).

TensorFlow's shape inference knows that a dimension depends on the arguments' ("None"), but not how.
With sizes for the dimension variables it gives sizes for the results; from as many as needed
follows the formula, if it is a polynomial in which no variable has a power (b, 2*b + 1, b*t). Some
more sizes have to confirm it, and the lowered call checks it again whenever it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import tensorflow as tf
from jax import export

from jax2tf import dims
from jax2tf.call_tf.functions import Described, Signature
from jax2tf.dtypes import to_tf
from jax2tf.typing import Dim

# Each variable takes two sizes for the formula and a third one to confirm it. Functions that halve
# or quarter a dimension see sizes that they can divide.
_SIZES = (24, 48, 120)

_MAX_VARIABLES = 4


def result_shapes(signature: Signature) -> list[tuple[Dim, ...]] | None:
    """Symbolic shapes of the results, or None if no formula fits."""
    variables = _variables(signature.avals)
    ranks = [t.shape.rank for t in signature.outputs]
    if len(variables) > _MAX_VARIABLES or None in ranks:
        return None
    names = list(variables)
    grid = list(itertools.product(_SIZES[:2], repeat=len(names)))
    # Sizes of different variables differ, so that broadcasting does not take one for another.
    confirming = [tuple(_SIZES[2] + 12 * ((i + shift) % 7) for i in range(len(names)))
                  for shift in (0, 3)]  # fmt: skip
    try:
        shapes = {sizes: _sizes(signature, names, sizes) for sizes in (*grid, *confirming)}
    except (ValueError, tf.errors.InvalidArgumentError):
        return None
    results = []
    for i, rank in enumerate(ranks):
        shape: list[Dim] = []
        for axis in range(rank):
            seen = {sizes: shape_list[i][axis] for sizes, shape_list in shapes.items()}
            formula = _multilinear(seen, len(names))
            if formula is None:
                return None
            shape.append(_dimension(formula, [variables[name] for name in names]))
        results.append(tuple(shape))
    return results


def _variables(avals: Sequence[Described]) -> dict[str, Dim]:
    """The dimension variables in the shapes of `avals`, as symbolic dimensions."""
    symbolic = [d for aval in avals for d in aval.shape if export.is_symbolic_dim(d)]
    names = sorted({name for d in symbolic for name in d.get_vars()})
    return {name: export.symbolic_shape(name, scope=symbolic[0].scope)[0] for name in names}


def _sizes(
    signature: Signature, names: Sequence[str], sizes: Sequence[int]
) -> list[list[int | None]]:
    """The shapes of the results where the variables have these sizes."""
    values: dims.Values = dict(zip(names, sizes, strict=True))
    specs = [
        tf.TensorSpec([dims.evaluate(d, values) for d in aval.shape], to_tf(aval.dtype))
        for aval in signature.avals
    ]
    function = tf.function(lambda *tensors: signature.function.run(tensors), autograph=False)
    return [t.shape.as_list() for t in function.get_concrete_function(*specs).structured_outputs]


def _multilinear(
    seen: dict[tuple[int, ...], int | None], n: int
) -> dict[tuple[int, ...], int] | None:
    """Integer coefficients of the products of distinct variables that give all that was seen."""
    if None in seen.values():
        return None
    low, high = _SIZES[:2]
    # Interpolation, one variable after the other: f = f(low) + (x - low) * slope.
    table: dict[tuple[int, ...], Dim] = {
        corner: seen[tuple((low, high)[bit] for bit in corner)]
        for corner in itertools.product((0, 1), repeat=n)
    }
    for variable in range(n):
        for corner in [c for c in table if c[variable] == 0]:
            upper = (*corner[:variable], 1, *corner[variable + 1 :])
            slope, rest = divmod(table[upper] - table[corner], high - low)
            if rest:
                return None
            table[corner], table[upper] = table[corner] - low * slope, slope
    for sizes, size in seen.items():
        if size != sum(c * _product(sizes, corner) for corner, c in table.items()):
            return None
    return {corner: c for corner, c in table.items() if c}


def _product(sizes: Sequence[Dim], chosen: Sequence[int]) -> Dim:
    product: Dim = 1
    for size, bit in zip(sizes, chosen, strict=True):
        product = product * size if bit else product
    return product


def _dimension(formula: dict[tuple[int, ...], int], variables: Sequence[Dim]) -> Dim:
    return sum(c * _product(variables, corner) for corner, c in formula.items())
