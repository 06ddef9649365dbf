"""Shapes of results for arguments of symbolic shapes (jax2tf.convert, polymorphic_shapes).

TensorFlow's shape inference knows that a dimension depends on the arguments ("None"), but not how.
With sizes for the dimension variables it infers sizes of the results. Enough such samples determine
the formula, if it is a polynomial in which no variable has a power (b, 2*b + 1, b*t). More samples
have to confirm it, and the lowered call checks it each time it runs.

The shapes in a SavedModel's graph are fixed when it is saved, and stay unknown for arguments of
known shapes. Such a function is run with small arguments of the sampled sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from jax import export

from jax2tf._src import dims
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import trial_runs
from jax2tf._src.call_tf.functions import Described, Signature
from jax2tf._src.util.dtypes import to_tf
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Dim


class _Sizes(NamedTuple):
    """Sizes that the dimension variables take in samples.

    `low` and `high` determine the formula; larger sizes, `step` apart, confirm it. All of them are
    divisible by 4, for functions that halve or quarter a dimension.
    """

    low: int
    high: int
    confirming: int
    step: int


_INFERRED = _Sizes(24, 48, 120, 12)
# A model with windows or strides may not take the small sizes.
_RUN = (_Sizes(4, 8, 12, 4), _INFERRED)

_MAX_VARIABLES = 4

_Samples = dict[tuple[int, ...], list[list[int | None]]]


def result_shapes(signature: Signature) -> list[tuple[Dim, ...]] | None:
    """Symbolic shapes of the results, or None if no formula fits."""
    named = variables(signature.avals)
    ranks = [t.shape.rank for t in signature.outputs]
    if len(named) > _MAX_VARIABLES or None in ranks:
        return None
    try:
        samples = {
            point: _inferred(signature, dict(zip(named, point, strict=True)))
            for point in _points(_INFERRED, len(named))
        }
    except (ValueError, tf.errors.InvalidArgumentError):
        return None
    if not any(size is None for shapes in samples.values() for shape in shapes for size in shape):
        return _fitted(samples, _INFERRED, list(named.values()))
    return next(filter(None, (_by_runs(signature, sizes, named) for sizes in _RUN)), None)


def variables(avals: Sequence[Described]) -> dict[str, Dim]:
    """The dimension variables in the shapes of `avals`, as symbolic dimensions."""
    symbolic = [d for aval in avals for d in aval.shape if export.is_symbolic_dim(d)]
    names = sorted({name for d in symbolic for name in d.get_vars()})
    return {name: export.symbolic_shape(name, scope=symbolic[0].scope)[0] for name in names}


def stated_shape(shape: Sequence[Dim], signature: Signature) -> tuple[Dim, ...]:
    """A shape of output_shape_dtype, with the arguments' dimension variables of the same names.

    The user's dimensions have another scope than those of jax2tf.convert.

    Raises:
      CallTfError: the arguments have no dimension of one of the names.
    """
    named = variables(signature.avals)
    result: list[Dim] = []
    for dim in shape:
        if isinstance(dim, int):
            result.append(dim)
            continue
        unknown = sorted(dim.get_vars() - named.keys())
        if unknown:
            raise CallTfError(
                f"jax2tf.call_tf({signature.function.name}): output_shape_dtype names the "
                f"dimension {', '.join(unknown)}, and those of the arguments are "
                f"{', '.join(named)}. What to do: write the shapes of the results in these names"
            )
        scope = next(iter(named.values())).scope
        result += export.symbolic_shape(str(dim), scope=scope)
    return tuple(result)


def _points(sizes: _Sizes, n: int) -> list[tuple[int, ...]]:
    grid = itertools.product((sizes.low, sizes.high), repeat=n)
    # Different variables get different sizes, so that broadcasting cannot confuse them.
    more = [
        tuple(sizes.confirming + sizes.step * ((i + shift) % 7) for i in range(n))
        for shift in (0, 3)
    ]
    return [*grid, *more]


def _specs(signature: Signature, values: dims.Values) -> list[tf.TensorSpec]:
    """Specs of the arguments, with these values for the variables."""
    return [
        tf.TensorSpec([dims.evaluate(d, values) for d in aval.shape], to_tf(aval.dtype))
        for aval in signature.avals
    ]


def _inferred(signature: Signature, values: dims.Values) -> list[list[int | None]]:
    """The shapes of the results, as TensorFlow infers them."""
    function = tf.function(lambda *tensors: signature.function.run(tensors), autograph=False)
    concrete = function.get_concrete_function(*_specs(signature, values))
    return [t.shape.as_list() for t in concrete.structured_outputs]


def _by_runs(
    signature: Signature, sizes: _Sizes, named: dict[str, Dim]
) -> list[tuple[Dim, ...]] | None:
    samples: _Samples = {}
    for point in _points(sizes, len(named)):
        specs = _specs(signature, dict(zip(named, point, strict=True)))
        shapes = trial_runs.result_shapes(signature, specs)
        if shapes is None:
            return None
        samples[point] = shapes
    return _fitted(samples, sizes, list(named.values()))


def _fitted(samples: _Samples, sizes: _Sizes, named: Sequence[Dim]) -> list[tuple[Dim, ...]] | None:
    """The shapes as formulas in the variables, or None if no formula fits all samples."""
    results = []
    for i, first in enumerate(next(iter(samples.values()))):
        shape: list[Dim] = []
        for axis in range(len(first)):
            of_axis = {point: shapes[i][axis] for point, shapes in samples.items()}
            formula = _multilinear(of_axis, sizes, len(named))
            if formula is None:
                return None
            shape.append(_dimension(formula, named))
        results.append(tuple(shape))
    return results


def _multilinear(
    samples: dict[tuple[int, ...], int | None], sizes: _Sizes, n: int
) -> dict[tuple[int, ...], int] | None:
    """Integer coefficients of the products of distinct variables that give all samples, or None."""
    low, high = sizes.low, sizes.high
    # Interpolation, one variable after the other: f = f(low) + (x - low) * slope.
    table: dict[tuple[int, ...], Dim] = {
        corner: samples[tuple((low, high)[bit] for bit in corner)]
        for corner in itertools.product((0, 1), repeat=n)
    }
    for variable in range(n):
        for corner in [c for c in table if c[variable] == 0]:
            upper = (*corner[:variable], 1, *corner[variable + 1 :])
            slope, rest = divmod(table[upper] - table[corner], high - low)
            if rest:
                return None
            table[corner], table[upper] = table[corner] - low * slope, slope
    for point, size in samples.items():
        if size != sum(c * _product(point, corner) for corner, c in table.items()):
            return None
    return {corner: c for corner, c in table.items() if c}


def _product(sizes: Sequence[Dim], chosen: Sequence[int]) -> Dim:
    product: Dim = 1
    for size, bit in zip(sizes, chosen, strict=True):
        product = product * size if bit else product
    return product


def _dimension(formula: dict[tuple[int, ...], int], variables: Sequence[Dim]) -> Dim:
    return sum(c * _product(variables, corner) for corner, c in formula.items())
