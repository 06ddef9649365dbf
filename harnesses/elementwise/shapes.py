"""Scalars beside arrays, empty arrays, and constant operands."""

from typing import Any

import numpy as np
from jax import lax

from harnesses.elementwise import family
from harnesses.elementwise.asking import ULPS
from harnesses.harness import Normal, Values, define, edge_values

_UNARY_OF_MANY_OPS = {
    "cbrt": lax.cbrt,
    "clz": lax.clz,
    "exp2": lax.exp2,
    "logistic": lax.logistic,
    "neg": lax.neg,
    "nextafter": lambda x: lax.nextafter(x, x + 1),
    "population_count": lax.population_count,
    "round": lax.round,
    "sign": lax.sign,
    "tanh": lax.tanh,
}


@family.builder
def empty_arrays_and_scalars() -> None:
    """Empty arrays and scalars for functions of one operand."""
    for primitive, function in _UNARY_OF_MANY_OPS.items():
        dtype = "uint8" if primitive in ("clz", "population_count") else "bfloat16"
        for case, shape in {"empty": (0, 3), "scalar": ()}.items():
            define(primitive, case, function, [Normal(shape, dtype)], dtype=dtype)


_BINARY_OF = {
    "float32": ("add", "atan2", "div", "eq", "max", "min", "mul", "nextafter", "pow", "rem", "sub"),
    "int32": ("add", "div", "ge", "max", "rem", "shift_left", "shift_right_logical"),
    "uint8": ("div", "rem", "shift_right_arithmetic"),
    "complex64": ("add", "div", "eq", "max", "pow"),
    "bool": ("ge", "max"),
}


@family.builder
def scalars_beside_arrays() -> None:
    """A scalar beside an array on either side, two scalars, two empty arrays."""
    for dtype, names in _BINARY_OF.items():
        for name in names:
            scalar, array = Normal((), dtype), Normal((2, 3), dtype)
            for case, args in {
                "scalar_first": [scalar, array],
                "scalar_second": [array, scalar],
                "scalars": [scalar, scalar],
                "empty": [Normal((0, 3), dtype), Normal((0, 3), dtype)],
            }.items():
                ulps = ULPS.get(name, {}).get(dtype)
                define(name, case, getattr(lax, name), args, dtype=dtype, ulps=ulps)


# A constant operand is known at conversion: what it rules out needs no care.


def _with_constant(name: str, constant: float, dtype: str, first: bool = False) -> None:
    def function(x: Any) -> Any:
        value = np.array(constant).astype(dtype)
        return getattr(lax, name)(*((value, x) if first else (x, value)))

    case = f"constant_{constant}".replace("-", "minus_").replace(".", "_")
    values = edge_values(dtype)
    define(
        name,
        f"{case}_first" if first else case,
        function,
        [Values(values, dtype)],
        dtype=dtype,
    )


@family.builder
def constant_integers() -> None:
    """Constant divisors, and constant distances of shifts."""
    for name, constants in {
        "div": (0, 1, 3, -1),
        "rem": (0, 1, 3, -1),
        "shift_left": (0, 4, 31, 32, 33, -1),
        "shift_right_arithmetic": (0, 4, 31, 32, 33, -1),
        "shift_right_logical": (0, 4, 31, 32, 33, -1),
    }.items():
        for constant in constants:
            _with_constant(name, constant, "int32")


@family.builder
def constant_bounds() -> None:
    """max and min with a constant on either side."""
    for name in ("max", "min"):
        for dtype in ("float32", "bfloat16"):
            for first in (False, True):
                for constant in (0.0, float("nan"), float("inf")):
                    _with_constant(name, constant, dtype, first)


# One number for a whole array, in two steps, as norms have it: what changes nothing may be left
# out, and zeros, NaNs and infinities say whether it changed nothing.
_REPEATED = {
    "add": (0.0, -0.0),
    "sub": (0.0, -0.0),
    "mul": (1.0, 0.0, -1.0),
}


def _beside_repeated(name: str, number: float, dtype: str, first: bool) -> None:
    def function(x: Any) -> Any:
        of_rows = lax.broadcast_in_dim(np.array(number).astype(dtype), x.shape[:1], ())
        repeated = lax.broadcast_in_dim(of_rows, x.shape, (0,))
        return getattr(lax, name)(*((repeated, x) if first else (x, repeated)))

    case = f"repeated_{number}".replace("-", "minus_").replace(".", "_")
    values = np.stack([edge_values(dtype)] * 2, 1)
    define(name, f"{case}_first" if first else case, function, [Values(values, dtype)], dtype=dtype)


@family.builder
def repeated_numbers() -> None:
    """An array beside one number that is broadcast to its shape, on either side."""
    for name, numbers in _REPEATED.items():
        for dtype in ("float32", "int32"):
            for number in numbers:
                for first in (False, True):
                    _beside_repeated(name, number, dtype, first)
