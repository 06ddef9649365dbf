"""`ask`: adds a TensorFlow function to the database."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesses.harness import Normal, Uniform, define, is_complex, is_float
from harnesses.harness.arguments import Arg, Values

FLOAT32 = ("float32",)
FLOATS = ("float32", "float64", "bfloat16")
INEXACT = ("float32", "float64", "bfloat16", "complex64")
NUMERIC = ("float32", "float64", "bfloat16", "complex64", "int32")
INTS = ("int32", "int8", "uint16")
EVERY = ("float32", "bfloat16", "complex64", "int32", "uint8", "bool")

# TensorFlow's kernels and XLA's code for the same op are different programs. Most agree within:
ULPS: Mapping[str, int] = {
    "float32": 32,
    "float64": 32,
    "bfloat16": 2,
    "float16": 2,
    "complex64": 64,
    "complex128": 64,
}

NO_DERIVATIVES = ("not_grad", "not_jvp")


def ask(
    op: str,
    fun: Callable[..., Any],
    args: Callable[[Any], Sequence[Arg]] | Sequence[Arg],
    *,
    dtypes: Sequence[str] = FLOAT32,
    case: str = "",
    ulps: int | Mapping[str, int] | None = None,
    scale: str = "array",
    tags: tuple[str, ...] = (),
    x64: bool = True,
) -> None:
    """Asks about a TensorFlow function with arguments (of a dtype) for each of the dtypes.

    Integers have no derivatives; neither have ops with the tags "not_grad" and "not_jvp".
    """
    for dtype in dtypes:
        made = args(dtype) if callable(args) else args
        differentiable = any(is_float(a.dtype) or is_complex(a.dtype) for a in made)
        define(
            op,
            case,
            fun,
            made,
            dtype=dtype,
            ulps=ULPS if ulps is None else ulps,
            scale=scale,
            tags=tags if differentiable else tags + NO_DERIVATIVES,
            x64=x64,
        )


def normal(*shapes: tuple[int, ...]) -> Callable[[Any], list[Arg]]:
    """Arguments of these shapes, with normal values."""
    return lambda dtype: [Normal(shape, dtype) for shape in shapes]


def between(low: float, high: float, *shapes: tuple[int, ...]) -> Callable[[Any], list[Arg]]:
    """Arguments of these shapes, with values between two bounds."""
    return lambda dtype: [Uniform(shape, dtype, low, high) for shape in shapes]


def indices(*values: Any) -> Values:
    """An argument of the given 32-bit whole numbers."""
    return Values(list(values) if len(values) != 1 else values[0], "int32")


def with_arguments(function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
    """The function of its first argument, with the others given."""
    return lambda x: function(x, *more)
