"""Forms: how graphs are written for what reads them, where several ways give the same numbers."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

# How every graph is written, because an engine misreads the other way, and both cost the same.
# A comment "Form: NAME" in a rule says which lines are written so.
FORMS: Mapping[str, str] = {
    "as_it_is_fused": (
        "ops in the order in which engines look for what they have one op for: LiteRT for gelu, "
        "ONNX Runtime and OpenVINO for layer normalisation"
    ),
    "atan2_of_arrays": "LiteRT's converter fails on an Atan2 of an array and a scalar",
    "bools_by_comparison": "OpenVINO makes no bools of the int32 of a TopK by a Cast",
    "constants_reversed": (
        "OpenVINO would reverse the constant kernels of transposed convolutions in each call"
    ),
    "indices_as_the_result": (
        "OpenVINO's converter moves the transpose of what is gathered from a vector into the "
        "gather, and gives it an axis that the vector has not"
    ),
    "last_axis_by_number": ("TensorFlow.js counts no axes of a Cumsum from the end"),
    "logic_for_choice": (
        "OpenVINO refuses a choice between bools one of which is the condition itself"
    ),
    "logarithm_of_half": (
        "LiteRT's kernel takes the logarithm of the largest numbers of float32 for infinite"
    ),
    "minimum_of_maximum": (
        "LiteRT makes Relu6, which it has for floats only, of a maximum of 0 and what is at most 6"
    ),
    "numbers_first": (
        "OpenVINO's Maximum of a NaN and a number is the second operand: the number comes first"
    ),
    "smaller_for_larger": (
        "OpenVINO takes a NaN for larger than every number in a Greater or a GreaterEqual; a Less "
        "and a LessEqual are right"
    ),
    "strides_by_gather": "OpenVINO takes other elements in a strided slice of integers",
}

# Ops that graphs without XLA ops, which are for engines, hold only for a target that lists them in
# `own_ops`: an engine lacks each. By type, with the dtypes; all dtypes where none is named. So are
# all XLA ops.
NOT_IN_EVERY_ENGINE: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("Acos", "Asin", "Atan", "Atanh", "Cosh", "Sinh", "Tan"), ()),
    **dict.fromkeys(("Expm1", "Log1p", "Erf", "Erfc"), ()),
    # It is Equal, Less and more of the bits of a float.
    "Bitcast": ("float32",),
    "BroadcastTo": ("complex64", "complex128"),
    **dict.fromkeys(("Case", "EnsureShape"), ()),
    **dict.fromkeys(("Cumprod", "CumulativeLogsumexp"), ("float32", "int32")),
    **dict.fromkeys(("TruncateDiv", "TruncateMod"), ()),
}

# LiteRT's delegate reduces no arrays of more dimensions, and no graph without XLA ops does.
MOST_DIMENSIONS_IN_EVERY_ENGINE: Mapping[str, int] = dict.fromkeys(
    ("All", "Any", "Max", "Min", "Prod", "Sum"), 6
)


class Optimization(enum.StrEnum):
    """What makes a graph faster, and changes a result by its rounding at most.

    `Target.without_optimizations` leaves some out.
    """

    # A choice repeats its condition or a side: with a BroadcastTo before it, LiteRT takes three
    # times as long.
    BROADCAST_CHOICES = enum.auto()
    # An op of two arrays repeats one of them: a bias needs no Reshape and no BroadcastTo before it
    # is added.
    BROADCAST_OPERANDS = enum.auto()
    # XLA compiles the generator of many random bits whose number is known: TensorFlow runs it as
    # over a hundred ops, each of which goes through memory.
    COMPILED_DRAWS = enum.auto()
    # XLA compiles loops of small ops, with the small ops around them, inside of a graph: TensorFlow
    # takes longer to start a small op than to compute it.
    COMPILED_RUNS = enum.auto()
    # TensorFlow's kernels run a jitted function that has eigenvalues of symmetric matrices or
    # singular values: on a CPU the loops of XLA take 10 to 200 times as long.
    EIGENVALUES_BY_KERNELS = enum.auto()
    # In a function that XLA compiles, TopKV2 takes the largest of float32 itself and not of its
    # bits: XLA has a kernel for floats, and sorts integers whole.
    FLOATS_IN_TOP_K = enum.auto()
    # A reshape infers the one size of its shape that is unknown: no op computes it, and LiteRT
    # plans its memory, which it cannot do behind a shape that the run computes.
    INFERRED_SIZES = enum.auto()
    # Loops, linear algebra, sorts and random draws of constants are computed at conversion: an
    # engine would compute them in each call.
    KNOWN_RESULTS = enum.auto()
    # A product of an array of many dimensions and a matrix is one MatMul: TensorFlow's
    # BatchMatMulV2 takes 1.5 times as long, and for few rows 3 times.
    ROWS_OF_ONE_MATRIX = enum.auto()
    # Where XLA does not compile, TopKV2 sorts by one integer key along the last axis: on a CPU that
    # takes a part of the time of XlaVariadicSort.
    SORTS_BY_TOP_K = enum.auto()
    # TensorFlow does not search loops and branches without side effects for ops to put in order:
    # that takes as long as to make the ops, and an op for each result.
    UNORDERED_BODIES = enum.auto()


# Those that pay whatever reads the graph.
FOR_EVERY_READER = frozenset(
    {
        Optimization.BROADCAST_CHOICES,
        Optimization.BROADCAST_OPERANDS,
        Optimization.INFERRED_SIZES,
        Optimization.KNOWN_RESULTS,
    }
)
