"""Files with fewer bits: how much each layer loses, and how much of the outputs' error it makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.locate import exactness
from jax2tf._src.locate.program import Program, Values, as_numpy, operands_of, results_of
from jax2tf._src.tracing import jaxprs
from jax2tf._src.util.typing import Option

# The options that give a file fewer bits, and those that only such files have.
_OPTIONS = ("quantize", "compress_to_fp16")
_WITH_THEM = ("representative_data", "integer_io")
# A layer begins with one of these, if an operand is a parameter and another one is not.
_FIRST = (
    *(lax.dot_general_p, lax.conv_general_dilated_p, lax.gather_p),
    *(lax.scan_p, lax.while_p),
)
# Signal to noise that is written for a result without an error.
_MOST = 200.0


@dataclasses.dataclass(frozen=True)
class Layer:
    """What a layer loses in a file with fewer bits.

    A layer is a product with a parameter (a matrix, a filter, a table of rows, what a loop reads),
    and the equations up to the next one.

    Attributes:
      name: the parameter, such as `"['layers'][7]"`; "inputs" for what comes before the first one.
      source: the user's line of its first equation.
      first: the number of its first equation.
      last: that of its last one.
      signal_to_noise: that of its result against JAX's, in dB, which the layers before it have a
        part in; 200 for a result without an error.
      own: the same against what JAX makes of the file's operands: what the layer itself loses.
      share: the part of the outputs' error (its power) that comes from this layer.
      saturated: the share of elements of its results that are at the end of what their tensor
        holds, where JAX's lie beyond it.
    """

    name: str
    source: str
    first: int
    last: int
    signal_to_noise: float
    own: float
    share: float
    saturated: float


def are_fewer(options: Mapping[str, Option]) -> bool:
    """Whether options give a file fewer bits."""
    return any(options.get(name) for name in _OPTIONS)


def without(options: Mapping[str, Option]) -> dict[str, Option]:
    """The options of the same file with all bits."""
    return {k: v for k, v in options.items() if k not in (*_OPTIONS, *_WITH_THEM)}


def layers(
    program: Program,
    other: Values,
    ends: Mapping[jex_core.Var, tuple[float, float]],
) -> tuple[Layer, ...]:
    """The layers in the program's order; those without a result that can be read are left out.

    Args:
      program: the program.
      other: the results that were read from the file.
      ends: the least and the largest number that the tensor of a result holds, for integers.
    """
    found: list[Layer] = []
    powers: list[float] = []
    state = program.given()
    reference = program.outputs(program.reference)
    for name, first, last in _parts(program):
        own = dict(state)
        for eqn in program.equations[first : last + 1]:
            _run(eqn, own)
            _run(eqn, state)
            state.update((v, as_numpy(other[v])) for v in eqn.outvars if v in other)
        read = [v for eqn in program.equations[first : last + 1] for v in eqn.outvars if v in other]
        floats = [v for v in read if exactness.is_inexact(as_numpy(own[v]).dtype)]
        if not floats:
            continue
        v = floats[-1]
        actual, expected = as_numpy(other[v]), as_numpy(own[v])
        right = as_numpy(program.reference[v])
        moved = (exactness.wide(right) + exactness.wide(actual) - exactness.wide(expected)).astype(
            right.dtype
        )
        made = next(i for i, eqn in enumerate(program.equations) if v in eqn.outvars)
        alone = program.outputs_with({v: moved}, made + 1)
        powers.append(sum(_power(alone[name], reference[name]) for name in reference))
        found.append(
            Layer(
                *(name, compat.jaxprs.user_source(program.equations[first]), first, last),
                *(signal_to_noise(actual, right), signal_to_noise(actual, expected)),
                *(0.0, _saturated(program, floats, other, ends)),
            )
        )
    total = sum(powers)
    return tuple(
        dataclasses.replace(layer, share=power / total if total else 0.0)
        for layer, power in zip(found, powers, strict=True)
    )


def _run(eqn: jex_core.JaxprEqn, values: Values) -> None:
    values.update(zip(eqn.outvars, results_of(eqn, operands_of(eqn, values)), strict=True))


def layer_of(program: Program, index: int, together: Sequence[int] = ()) -> str:
    """The parameters that an equation reads, or else those computed together with it read.

    If they read none, it is the parameter of the layer before them, as far as there are layers.
    """
    reads = {i: names for i, names, _ in _reads(program)}
    names = reads.get(index) or [name for i in together for name in reads.get(i, ())]
    own = [name for name in dict.fromkeys(names) if name != _CONSTANT]
    if own:
        return ", ".join(own)
    parts = _parts(program)
    around = (name for name, first, last in parts if first <= index <= last)
    return next(around, "") if len(parts) > 1 else ""


def _parts(program: Program) -> list[tuple[str, int, int]]:
    """Each layer with its first and last equation."""
    begins = _begins(program)
    if not begins or begins[0][1] > 0:
        begins = [("inputs", 0), *begins]
    ends = [index for _, index in begins[1:]] + [len(program.equations)]
    pairs = zip(begins, ends, strict=True)
    return [(name, first, end - 1) for (name, first), end in pairs if end > first]


def _begins(program: Program) -> list[tuple[str, int]]:
    """The parameter of each layer, and its first equation."""
    return [
        (names[0], index)
        for index, names, is_only in _reads(program)
        if not is_only and program.equations[index].primitive in _FIRST
    ]


# The name of an array that is no parameter.
_CONSTANT = "a constant"


def _reads(program: Program) -> Iterator[tuple[int, list[str], bool]]:
    """The equations that read parameters: the number, the parameters, whether only these."""
    invars = program.closed.jaxpr.invars
    # The parameter from which a variable is made, as far as only parameters make it.
    names = {v: path or "params" for v, path in zip(invars, program.paths, strict=False)}
    constants = dict.fromkeys(program.closed.jaxpr.constvars, _CONSTANT)
    of_params: dict[jex_core.Var, str] = {**names, **constants}
    for index, eqn in enumerate(program.equations):
        variables = list(jaxprs.variables(eqn.invars))
        known = [of_params[v] for v in variables if v in of_params]
        is_only = len(known) == len(variables)
        if is_only:
            of_params.update((v, known[0] if known else _CONSTANT) for v in eqn.outvars)
        if known:
            yield index, known, is_only


def signal_to_noise(actual: np.ndarray, expected: np.ndarray) -> float:
    """The power of the numbers over that of their errors, in dB, of those that are finite."""
    noise = _power(actual, expected)
    signal = _power(expected, np.zeros_like(expected))
    if noise == 0:
        return _MOST
    return float(np.clip(10 * np.log10(signal / noise) if signal else -_MOST, -_MOST, _MOST))


def _power(actual: np.ndarray, expected: np.ndarray) -> float:
    """The mean square of the differences where both are finite."""
    a, e = exactness.wide(actual), exactness.wide(expected)
    finite = np.isfinite(a) & np.isfinite(e)
    if actual.shape != expected.shape or not finite.any():
        return 0.0
    return float(np.mean(np.abs(a[finite] - e[finite]) ** 2))


def _saturated(
    program: Program,
    results: Sequence[jex_core.Var],
    other: Values,
    ends: Mapping[jex_core.Var, tuple[float, float]],
) -> float:
    shares = (
        _beyond(as_numpy(other[v]), as_numpy(program.reference[v]), ends.get(v)) for v in results
    )
    return max(shares, default=0.0)


def _beyond(actual: np.ndarray, expected: np.ndarray, ends: tuple[float, float] | None) -> float:
    """The share of elements that JAX has beyond the ends; without ends, infinite only there."""
    if ends is None:
        return float(np.mean(np.isinf(actual) & np.isfinite(expected)))
    # Half a step beyond the last number that is held is rounded, not cut.
    half = (ends[1] - ends[0]) / 510
    above = (actual >= ends[1]) & (expected > ends[1] + half)
    below = (actual <= ends[0]) & (expected < ends[0] - half)
    return float(np.mean(above | below))


def worst(found: Sequence[Layer]) -> list[Layer]:
    """The layers that make most of the outputs' error, the worst first."""
    return sorted(found, key=lambda layer: (-layer.share, layer.first))


def table(found: Sequence[Layer]) -> list[str]:
    """The layers as lines of text."""
    if not found:
        return []
    rows = [HEADS, *map(cells, found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    return [
        "  ".join(
            cell.ljust(width) if i in (0, len(HEADS) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


HEADS = (
    *("layer", "equations", "signal to noise", "of its own", "of the error", "saturated"),
    "line",
)


def cells(layer: Layer) -> tuple[str, ...]:
    """The columns of a layer as text."""
    return (
        layer.name,
        f"{layer.first}-{layer.last}",
        f"{layer.signal_to_noise:.1f} dB",
        f"{layer.own:.1f} dB",
        f"{100 * layer.share:.1f}%",
        f"{100 * layer.saturated:.1f}%",
        layer.source,
    )
