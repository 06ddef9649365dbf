"""tf.math: elementwise functions, reductions, scans, segments."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import (
    EVERY,
    FLOATS,
    INEXACT,
    INTS,
    NUMERIC,
    ask,
    between,
    indices,
    normal,
    with_arguments,
)
from harnesses.harness import Normal, Uniform


def _with_one(function):
    return lambda x: function(x, tf.ones_like(x))


def _in_segments(function):
    return lambda x, i: function(x, i, 3)


_SHAPE = (3, 4)
_PAIR = normal(_SHAPE, _SHAPE)

# Functions of one argument: where it lies, and for which dtypes.
_UNARY = {
    "abs": ((0.1, 2), FLOATS),
    "acos": ((-0.9, 0.9), FLOATS),
    "acosh": ((1.1, 3), FLOATS),
    "angle": ((0.1, 2), ("float32", "complex64")),
    "asin": ((-0.9, 0.9), FLOATS),
    "asinh": ((-3, 3), FLOATS),
    "atan": ((-3, 3), FLOATS),
    "atanh": ((-0.9, 0.9), FLOATS),
    "bessel_i0": ((-3, 3), ("float32", "float64")),
    "bessel_i0e": ((-3, 3), ("float32", "float64")),
    "bessel_i1": ((-3, 3), ("float32", "float64")),
    "bessel_i1e": ((-3, 3), ("float32", "float64")),
    "ceil": ((-3, 3), FLOATS),
    "conj": ((-3, 3), INEXACT),
    "cos": ((-3, 3), INEXACT),
    "cosh": ((-3, 3), INEXACT),
    "digamma": ((0.5, 4), ("float32", "float64")),
    "erf": ((-2, 2), FLOATS),
    "erfc": ((-2, 2), FLOATS),
    "erfcinv": ((0.2, 1.8), ("float32", "float64")),
    "erfinv": ((-0.9, 0.9), ("float32", "float64")),
    "exp": ((-3, 3), INEXACT),
    "expm1": ((-3, 3), INEXACT),
    "floor": ((-3, 3), FLOATS),
    "imag": ((-3, 3), ("complex64",)),
    "invert_permutation": None,
    "is_finite": ((-3, 3), FLOATS),
    "is_inf": ((-3, 3), FLOATS),
    "is_nan": ((-3, 3), FLOATS),
    "is_non_decreasing": ((-3, 3), FLOATS),
    "is_strictly_increasing": ((-3, 3), FLOATS),
    "lbeta": ((0.5, 3), ("float32",)),
    "lgamma": ((0.5, 4), ("float32", "float64")),
    "log": ((0.1, 3), INEXACT),
    "log1p": ((-0.5, 3), INEXACT),
    "log_sigmoid": ((-3, 3), FLOATS),
    "ndtri": ((0.1, 0.9), ("float32", "float64")),
    "negative": ((-3, 3), NUMERIC),
    "real": ((-3, 3), ("complex64",)),
    "reciprocal": ((0.5, 3), INEXACT),
    "reciprocal_no_nan": ((0.5, 3), INEXACT),
    "rint": ((-3, 3), ("float32", "float64")),
    "round": ((-3, 3), FLOATS),
    "rsqrt": ((0.5, 3), INEXACT),
    "sigmoid": ((-3, 3), INEXACT),
    "sign": ((0.5, 3), FLOATS),
    "sin": ((-3, 3), INEXACT),
    "sinh": ((-3, 3), INEXACT),
    "softplus": ((-3, 3), FLOATS),
    "softsign": ((-3, 3), FLOATS),
    "sqrt": ((0.5, 3), INEXACT),
    "square": ((-3, 3), NUMERIC),
    "tan": ((-1, 1), INEXACT),
    "tanh": ((-3, 3), INEXACT),
}
_SPECIAL = {
    "bessel_j0": (0.5, 3),
    "bessel_j1": (0.5, 3),
    "bessel_k0": (0.5, 3),
    "bessel_k1": (0.5, 3),
    "bessel_y0": (0.5, 3),
    "bessel_y1": (0.5, 3),
    "dawsn": (-2, 2),
    "expint": (0.5, 3),
    "fresnel_cos": (-2, 2),
    "fresnel_sin": (-2, 2),
    "spence": (0.5, 3),
}


@family.builder
def functions_of_one_argument() -> None:
    """Functions of one argument, where they are defined."""
    for name, how in _UNARY.items():
        if how is not None:
            bounds, dtypes = how
            ask(f"tf.math.{name}", getattr(tf.math, name), between(*bounds, _SHAPE), dtypes=dtypes)
    for name, bounds in _SPECIAL.items():
        ask(f"tf.math.special.{name}", getattr(tf.math.special, name), between(*bounds, _SHAPE))
    ask(
        "tf.math.invert_permutation",
        tf.math.invert_permutation,
        [indices(2, 0, 1)],
        dtypes=["int32"],
    )


_OF_TWO_NUMBERS = {
    "add": NUMERIC,
    "subtract": NUMERIC,
    "multiply": NUMERIC,
    "maximum": FLOATS + INTS,
    "minimum": FLOATS + INTS,
    "squared_difference": NUMERIC,
    "equal": EVERY,
    "not_equal": EVERY,
    "greater": FLOATS + INTS,
    "greater_equal": FLOATS + INTS,
    "less": FLOATS + INTS,
    "less_equal": FLOATS + INTS,
    "multiply_no_nan": FLOATS,
    "atan2": FLOATS,
}


@family.builder
def functions_of_two_numbers() -> None:
    """Functions of two arguments."""
    for name, dtypes in _OF_TWO_NUMBERS.items():
        ask(f"tf.math.{name}", getattr(tf.math, name), _PAIR, dtypes=dtypes)


_OF_TWO_POSITIVE_NUMBERS = {
    "divide": INEXACT,
    "divide_no_nan": FLOATS,
    "truediv": INEXACT,
    "floordiv": (*FLOATS, "int32"),
    "floormod": (*FLOATS, "int32"),
    "mod": (*FLOATS, "int32"),
    "pow": INEXACT,
    "xdivy": FLOATS,
    "xlogy": FLOATS,
    "xlog1py": FLOATS,
    "zeta": ("float32",),
    "polygamma": (),
    "nextafter": (),
}


@family.builder
def functions_of_two_positive_numbers() -> None:
    """Functions of two arguments, at positive numbers."""
    for name, dtypes in _OF_TWO_POSITIVE_NUMBERS.items():
        ask(
            f"tf.math.{name}",
            getattr(tf.math, name),
            between(1.5, 4, _SHAPE, _SHAPE),
            dtypes=dtypes,
        )
    for name in ("igamma", "igammac"):
        ask(
            f"tf.math.{name}",
            getattr(tf.math, name),
            between(1.5, 4, _SHAPE, _SHAPE),
            dtypes=("float32", "float64"),
            ulps=256,
        )
    ask("tf.math.nextafter", tf.math.nextafter, _PAIR, tags=("not_grad", "not_jvp"))


@family.builder
def functions_of_several_arguments() -> None:
    """Functions of a given order, of three arguments, of lists and of scalars."""
    ask(
        "tf.math.polygamma",
        lambda x: tf.math.polygamma(tf.fill(x.shape, 2.0), x),
        between(1, 3, _SHAPE),
    )
    ask(
        "tf.math.betainc",
        tf.math.betainc,
        [
            Uniform(_SHAPE, "float32", 1, 3),
            Uniform(_SHAPE, "float32", 1, 3),
            Uniform(_SHAPE, "float32"),
        ],
    )
    ask("tf.math.add_n", lambda x, y: tf.math.add_n([x, y]), _PAIR, dtypes=NUMERIC)
    ask("tf.math.accumulate_n", lambda x, y: tf.math.accumulate_n([x, y]), _PAIR)
    ask("tf.math.scalar_mul", lambda x: tf.math.scalar_mul(2, x), normal(_SHAPE), dtypes=NUMERIC)


@family.builder
def logic_and_bits() -> None:
    """Logical functions of bools, bitwise ones of integers."""
    for name in ("logical_and", "logical_or", "logical_xor"):
        ask(f"tf.math.{name}", getattr(tf.math, name), _PAIR, dtypes=["bool"])
    ask("tf.math.logical_not", tf.math.logical_not, normal(_SHAPE), dtypes=["bool"])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        ask(f"tf.bitwise.{name}", getattr(tf.bitwise, name), _PAIR, dtypes=INTS)
    ask("tf.bitwise.invert", tf.bitwise.invert, normal(_SHAPE), dtypes=INTS)
    for name in ("left_shift", "right_shift"):
        ask(
            f"tf.bitwise.{name}",
            _with_one(getattr(tf.bitwise, name)),
            normal(_SHAPE),
            dtypes=INTS,
        )


@family.builder
def bounds_and_casts() -> None:
    """Bounds, norms and other dtypes."""
    ask("tf.clip_by_value", lambda x: tf.clip_by_value(x, -0.5, 0.5), normal(_SHAPE), dtypes=FLOATS)
    ask("tf.clip_by_norm", lambda x: tf.clip_by_norm(x, 1.0), normal(_SHAPE))
    ask("tf.clip_by_global_norm", lambda x, y: tf.clip_by_global_norm([x, y], 1.0), _PAIR)
    ask("tf.math.l2_normalize", lambda x: tf.math.l2_normalize(x, 1), normal(_SHAPE))
    ask("tf.cast", lambda x: tf.cast(x, tf.float32), normal(_SHAPE), dtypes=EVERY)
    ask("tf.saturate_cast", lambda x: tf.saturate_cast(x * 100, tf.uint8), normal(_SHAPE),
        tags=("not_grad", "not_jvp"))  # fmt: skip
    ask("tf.complex", tf.complex, _PAIR)
    ask(
        "tf.bitcast",
        lambda x: tf.bitcast(x, tf.int32),
        normal(_SHAPE),
        tags=("not_grad", "not_jvp"),
    )


_REDUCTIONS = {
    "reduce_sum": NUMERIC,
    "reduce_mean": INEXACT,
    "reduce_prod": NUMERIC,
    "reduce_max": FLOATS + INTS,
    "reduce_min": FLOATS + INTS,
    "reduce_logsumexp": FLOATS,
    "reduce_std": ("float32", "float64"),
    "reduce_variance": ("float32", "float64"),
    "reduce_euclidean_norm": ("float32", "float64"),
    "argmax": (*FLOATS, "int32"),
    "argmin": (*FLOATS, "int32"),
    "cumsum": NUMERIC,
    "cumprod": NUMERIC,
    "cumulative_logsumexp": ("float32", "float64"),
    "count_nonzero": (*FLOATS, "int32"),
}


@family.builder
def reductions_and_scans() -> None:
    """Reductions and scans along the last axis."""
    for name, dtypes in _REDUCTIONS.items():
        ask(
            f"tf.math.{name}",
            with_arguments(getattr(tf.math, name), 1),
            normal(_SHAPE),
            dtypes=dtypes,
        )
    for name in ("reduce_all", "reduce_any"):
        ask(f"tf.math.{name}", with_arguments(getattr(tf.math, name), 1), normal(_SHAPE),
            dtypes=["bool"])  # fmt: skip
    ask("tf.math.cumsum", lambda x: tf.math.cumsum(x, 1, exclusive=True, reverse=True),
        normal(_SHAPE), case="exclusive_reverse", dtypes=NUMERIC)  # fmt: skip


@family.builder
def counts() -> None:
    """Counts, and the largest elements."""
    ask("tf.math.top_k", lambda x: tf.math.top_k(x, 2), normal(_SHAPE), dtypes=(*FLOATS, "int32"))
    ask("tf.math.in_top_k", lambda x: tf.math.in_top_k(tf.constant([0, 1, 2]), x, 2),
        normal(_SHAPE), tags=("not_grad", "not_jvp"))  # fmt: skip
    ask("tf.math.confusion_matrix", lambda x: tf.math.confusion_matrix(x, x, 4), [indices(0, 1, 3)],
        dtypes=["int32"])  # fmt: skip
    ask("tf.math.bincount", lambda x: tf.math.bincount(x, minlength=4, maxlength=4),
        [indices(0, 1, 3)], dtypes=["int32"])  # fmt: skip
    ask(
        "tf.math.zero_fraction", tf.math.zero_fraction, normal(_SHAPE), tags=("not_grad", "not_jvp")
    )


@family.builder
def segments() -> None:
    """Reductions of segments."""
    for name in ("sum", "mean", "prod", "max", "min"):
        ask(
            f"tf.math.unsorted_segment_{name}",
            _in_segments(getattr(tf.math, f"unsorted_segment_{name}")),
            [Normal(_SHAPE, "float32"), indices(0, 2, 0)],
        )
        ask(
            f"tf.math.segment_{name}",
            with_arguments(getattr(tf.math, f"segment_{name}"), [0, 0, 1]),
            normal(_SHAPE),
        )
    ask("tf.math.unsorted_segment_sqrt_n",
        lambda x, i: tf.math.unsorted_segment_sqrt_n(x, i, 3),
        [Normal(_SHAPE, "float32"), indices(0, 2, 0)])  # fmt: skip
