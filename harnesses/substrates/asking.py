"""`ask`: adds a program written against TensorFlow to the database.

A program is a function of the module `tf` and of tensors, so that TensorFlow and the substrates run
the same one. Nothing here imports TensorFlow.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesses.harness import (
    Normal,
    Uniform,
    Values,
    define,
    edge_values,
    is_complex,
    is_float,
    without_subnormals,
)
from harnesses.harness.arguments import Arg
from harnesses.harness.definition import Check

Program = Callable[..., Any]
Makers = Callable[[str], Sequence[Arg]] | Sequence[Arg]

FLOAT32 = ("float32",)
FLOAT64 = ("float32", "float64")
FLOATS = ("float32", "float64", "bfloat16", "float16")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS = FLOATS + INTS
NUMERIC = REALS + COMPLEX
BOOL = ("bool",)
EVERY = NUMERIC + BOOL
# For what moves values, one dtype of each kind.
KINDS = ("float32", "float64", "bfloat16", "complex64", "int32", "int64", "uint8", "bool")
WIDE = ("float32", "float64", "complex64", "complex128")

# Eigen, NumPy and XLA are different programs for the same function. Most agree within:
ULPS: Mapping[str, int] = {
    "float32": 32,
    "float64": 32,
    "bfloat16": 3,
    "float16": 6,
    "complex64": 64,
    "complex128": 64,
}

NO_DERIVATIVES = ("not_grad", "not_jvp")
SHAPE = (3, 4)


def ask(
    op: str,
    args: Makers,
    program: Program | None = None,
    *,
    dtypes: Sequence[str] = FLOAT32,
    case: str = "",
    ulps: int | Mapping[str, int] | None = None,
    scale: str = "array",
    tags: tuple[str, ...] = (),
    check: Check | None = None,
    **options: Any,
) -> None:
    """Asks about a function of TensorFlow with arguments (of a dtype) for each of the dtypes.

    Args:
      op: the function's public name, without its leading `tf.`.
      args: makers of the tensors, or a function of a dtype's name that gives them.
      program: a function of `tf` and of the tensors; by default it calls `op` with them.
      dtypes: the names of the dtypes.
      case: what is special about this use.
      ulps: the tolerance, as of `define`; by default `ULPS`.
      scale: as of `define`.
      tags: as of `define`. Integers get no derivatives anyway.
      check: as of `define`.
      **options: keywords of the default program's call.
    """
    for dtype in dtypes:
        made = list(args(dtype) if callable(args) else args)
        define(
            f"tf.{op}",
            case,
            program or call(op, **options),
            made,
            dtype=dtype,
            ulps=ULPS if ulps is None else ulps,
            scale=scale,
            tags=_all_tags(tags, made),
            check=check,
            x64=True,
        )


def _all_tags(tags: tuple[str, ...], args: Sequence[Arg]) -> tuple[str, ...]:
    """The tags, and those of what operands of these dtypes, or none, leave nothing to ask."""
    if not args:
        return (*tags, *NO_DERIVATIVES, "not_vmap")
    differentiable = any(is_float(a.dtype) or is_complex(a.dtype) for a in args)
    return tags if differentiable else tags + NO_DERIVATIVES


def ask_raises(op: str, case: str, program: Program) -> None:
    """Asks which exception a program, which takes no tensors, raises."""
    define(
        f"tf.{op}",
        f"raises_{case}",
        program,
        [],
        dtype="float32",
        tags=("raises",),
        x64=True,
    )


def call(op: str, *more: Any, **options: Any) -> Program:
    """A program that calls the function of that name with the tensors and `more`."""

    def program(tf: Any, *args: Any) -> Any:
        function = tf
        for part in op.split("."):
            function = getattr(function, part)
        return function(*args, *more, **options)

    return program


def normal(*shapes: tuple[int, ...]) -> Callable[[str], list[Arg]]:
    """Arguments of these shapes, with normal values."""
    return lambda dtype: [Normal(shape, dtype) for shape in shapes]


def between(low: float, high: float, *shapes: tuple[int, ...]) -> Callable[[str], list[Arg]]:
    """Arguments of these shapes, with values between two bounds."""
    return lambda dtype: [Uniform(shape, dtype, low, high) for shape in shapes]


def edges(dtype: str) -> list[Arg]:
    """One argument: the values of the dtype at which semantics differ.

    Without subnormal numbers: TensorFlow's kernels take those for zero, and so does XLA.
    """
    return [Values(without_subnormals(edge_values(dtype)), dtype)]


def values(*given: Any) -> Callable[[str], list[Arg]]:
    """Arguments of the given values."""
    return lambda dtype: [Values(value, dtype) for value in given]


def indices(given: Any, dtype: str = "int32") -> Values:
    """An argument of the given whole numbers."""
    return Values(given, dtype)
