"""tf.math and tf.bitwise: elementwise functions of one and of several operands."""

from harnesses.harness import Uniform
from harnesses.substrates import family
from harnesses.substrates.asking import (
    BOOL,
    COMPLEX,
    EVERY,
    FLOAT64,
    FLOATS,
    INEXACT,
    INTS,
    KINDS,
    NO_DERIVATIVES,
    NUMERIC,
    REALS,
    SHAPE,
    WIDE,
    ask,
    ask_raises,
    between,
    edges,
    indices,
    normal,
    values,
)

SIGNED = ("int8", "int16", "int32", "int64")
PAIR = normal(SHAPE, SHAPE)

# Functions of one operand: between which values it is asked, and for which dtypes.
_UNARY = {
    "math.abs": ((0.1, 2), (*FLOATS, *SIGNED, *COMPLEX)),
    "math.acos": ((-0.9, 0.9), INEXACT),
    "math.acosh": ((1.1, 3), INEXACT),
    "math.angle": ((0.1, 2), WIDE),
    "math.asin": ((-0.9, 0.9), INEXACT),
    "math.asinh": ((-3, 3), INEXACT),
    "math.atan": ((-0.8, 0.8), INEXACT),
    "math.atanh": ((-0.8, 0.8), INEXACT),
    "math.bessel_i0": ((-3, 3), FLOAT64),
    "math.bessel_i0e": ((-3, 3), FLOAT64),
    "math.bessel_i1": ((-3, 3), FLOAT64),
    "math.bessel_i1e": ((-3, 3), FLOAT64),
    "math.ceil": ((-3, 3), FLOATS),
    "math.conj": ((-3, 3), (*FLOATS, *COMPLEX, "int32")),
    "math.cos": ((-3, 3), INEXACT),
    "math.cosh": ((-3, 3), INEXACT),
    "math.digamma": ((0.5, 4), FLOAT64),
    "math.erf": ((-2, 2), FLOATS),
    "math.erfc": ((-2, 2), FLOATS),
    "math.erfcinv": ((0.2, 1.8), FLOAT64),
    "math.erfinv": ((-0.9, 0.9), FLOAT64),
    "math.exp": ((-3, 3), INEXACT),
    "math.expm1": ((-3, 3), INEXACT),
    "math.floor": ((-3, 3), FLOATS),
    "math.imag": ((-3, 3), WIDE),
    "math.is_finite": ((-3, 3), FLOATS),
    "math.is_inf": ((-3, 3), FLOATS),
    "math.is_nan": ((-3, 3), FLOATS),
    "math.is_non_decreasing": ((-3, 3), REALS),
    "math.is_strictly_increasing": ((-3, 3), REALS),
    "math.l2_normalize": ((-3, 3), FLOAT64),
    "math.lbeta": ((0.5, 3), FLOAT64),
    "math.lgamma": ((0.5, 4), FLOAT64),
    "math.log": ((0.1, 3), INEXACT),
    "math.log1p": ((-0.5, 3), INEXACT),
    "math.log_sigmoid": ((-3, 3), FLOATS),
    "math.ndtri": ((0.1, 0.9), FLOAT64),
    "math.negative": ((-3, 3), (*INEXACT, *SIGNED)),
    "math.real": ((-3, 3), WIDE),
    "math.reciprocal": ((0.5, 3), INEXACT),
    "math.reciprocal_no_nan": ((0.5, 3), WIDE),
    "math.rint": ((-3, 3), FLOAT64),
    "math.round": ((-3, 3), (*FLOATS, "int32")),
    "math.rsqrt": ((0.5, 3), INEXACT),
    "math.sigmoid": ((-3, 3), INEXACT),
    "math.sign": ((0.5, 3), (*INEXACT, *SIGNED)),
    "math.sin": ((-3, 3), INEXACT),
    "math.sinh": ((-3, 3), INEXACT),
    "math.softplus": ((-3, 3), FLOATS),
    "math.softsign": ((-3, 3), FLOATS),
    "math.sqrt": ((0.5, 3), INEXACT),
    "math.square": ((-3, 3), (*INEXACT, "int32", "int64")),
    "math.tan": ((-1, 1), INEXACT),
    "math.tanh": ((-3, 3), INEXACT),
}


@family.builder
def functions_of_one_operand() -> None:
    """Functions of one operand, within the bounds that the table gives."""
    for op, (bounds, dtypes) in _UNARY.items():
        ask(op, between(*bounds, SHAPE), dtypes=dtypes)


_NO_EDGES = {"math.l2_normalize", "math.lbeta", "math.conj", "math.real", "math.imag"}
_EAGER_AND_JIT = (*NO_DERIVATIVES, "not_vmap", "not_round_trip")


@family.builder
def functions_at_edges() -> None:
    """Functions of one operand at the edges of floats: which results are NaN, infinite or zero."""
    for op in _UNARY:
        if op not in _NO_EDGES:
            ask(op, edges, case="edges", scale="element", tags=(*_EAGER_AND_JIT, "any_zero_sign"))


@family.builder
def functions_of_two_operands() -> None:
    """Functions of two operands that take values of any size."""
    for op, dtypes in {
        "math.add": NUMERIC,
        "math.subtract": NUMERIC,
        "math.multiply": NUMERIC,
        "math.maximum": REALS,
        "math.minimum": REALS,
        "math.squared_difference": (*INEXACT, "int32", "int64"),
        "math.multiply_no_nan": WIDE,
        "math.atan2": FLOATS,
    }.items():
        ask(op, PAIR, dtypes=dtypes)


@family.builder
def comparisons() -> None:
    """Comparisons, and the next representable number."""
    for op, dtypes in {
        "math.equal": EVERY,
        "math.not_equal": EVERY,
        "math.greater": REALS,
        "math.greater_equal": REALS,
        "math.less": REALS,
        "math.less_equal": REALS,
        "math.nextafter": FLOAT64,
    }.items():
        ask(op, PAIR, dtypes=dtypes, tags=NO_DERIVATIVES)


@family.builder
def functions_of_two_positive_operands() -> None:
    """Divisions, powers, and special functions of two operands."""
    for op, dtypes in {
        "math.divide": (*INEXACT, "int32", "int8", "uint8"),
        "math.divide_no_nan": WIDE,
        "math.truediv": (*INEXACT, "int32", "int8", "uint8"),
        "math.floordiv": REALS,
        "math.floormod": (*FLOATS, "int32", "int64"),
        "truncatediv": ("int32", "int64", "uint8"),
        "truncatemod": ("float32", "float64", "int32", "int64"),
        "realdiv": INEXACT,
        "math.pow": (*INEXACT, "int32", "int64"),
        "math.xdivy": WIDE,
        "math.xlogy": WIDE,
        "math.xlog1py": WIDE,
        "math.zeta": FLOAT64,
        "math.igamma": FLOAT64,
        "math.igammac": FLOAT64,
    }.items():
        wide = {"ulps": 512} if op in ("math.igamma", "math.igammac", "math.zeta") else {}
        ask(op, between(1.5, 4, SHAPE, SHAPE), dtypes=dtypes, **wide)


@family.builder
def polygamma_and_betainc() -> None:
    """Polygamma and the incomplete beta function, whose operands have bounds of their own."""
    ask("math.polygamma", between(1, 3, SHAPE),
        lambda tf, x: tf.math.polygamma(tf.ones_like(x) * 2, x),
        dtypes=FLOAT64, ulps=512)  # fmt: skip
    ask("math.betainc",
        lambda d: [Uniform(SHAPE, d, 1, 3), Uniform(SHAPE, d, 1, 3), Uniform(SHAPE, d)],
        dtypes=FLOAT64, ulps=512)  # fmt: skip
    ask("math.betainc", lambda d: [Uniform(SHAPE, d)],
        lambda tf, x: tf.math.betainc(tf.ones_like(x) * 2, tf.ones_like(x) * 3, x), case="of_x",
        dtypes=FLOAT64, ulps=512)  # fmt: skip


@family.builder
def operands_of_zero() -> None:
    """An operand that is zero, where these functions are defined to be."""
    for op in ("xlogy", "xlog1py", "xdivy", "multiply_no_nan", "divide_no_nan"):
        ask(f"math.{op}", values([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 0.0, 3.0]), case="zeros",
            dtypes=FLOAT64, tags=NO_DERIVATIVES, scale="element")  # fmt: skip


@family.builder
def derivatives_by_convention() -> None:
    """Derivatives where a slope jumps or is infinite, and where operands are equal."""
    for op in ("abs", "softsign", "reciprocal_no_nan"):
        ask(f"math.{op}", values([0.0, 1.0, -2.0]), case="derivative_at_0", dtypes=FLOAT64)
    ask("math.sqrt", values([0.0, 1.0, 4.0]),
        lambda tf, x: tf.where(x > 0, tf.math.sqrt(x), 0), case="not_chosen",
        dtypes=FLOAT64)  # fmt: skip
    ask("math.pow", values([-2.0, 0.0, 3.0], [2.0, 2.0, 2.0]), case="negative_base", dtypes=FLOAT64)
    ask("math.minimum", values([0.0, 1.0, -2.0], [0.0, 1.0, 3.0]), case="equal", dtypes=FLOAT64)
    ask("clip_by_value", values([0.0, 1.0, -2.0, 2.0]), case="at_limits", clip_value_min=-2,
        clip_value_max=1, dtypes=FLOAT64)  # fmt: skip


@family.builder
def broadcasts() -> None:
    """Two operands that broadcast."""
    for op in ("add", "maximum", "divide", "less"):
        ask(f"math.{op}", normal((3, 1), (4,)), case="broadcast",
            tags=NO_DERIVATIVES if op == "less" else ())  # fmt: skip


@family.builder
def sums_and_polynomials() -> None:
    """Sums of several tensors, multiples, and polynomials."""
    ask("math.add_n", PAIR, lambda tf, x, y: tf.math.add_n([x, y]), dtypes=INEXACT)
    ask("math.accumulate_n", PAIR, lambda tf, x, y: tf.math.accumulate_n([x, y]), dtypes=FLOAT64)
    ask("math.scalar_mul", normal(SHAPE), lambda tf, x: tf.math.scalar_mul(2, x), dtypes=NUMERIC)
    ask("math.polyval", PAIR, lambda tf, x, y: tf.math.polyval([x, y, x], y), dtypes=FLOAT64)


@family.builder
def functions_of_bools_and_bits() -> None:
    """Logic, the inverse of a permutation, and functions of bits."""
    for op in ("logical_and", "logical_or", "logical_xor"):
        ask(f"math.{op}", PAIR, dtypes=BOOL)
    ask("math.logical_not", normal(SHAPE), dtypes=BOOL)
    ask("math.invert_permutation", [indices([2, 0, 1])], dtypes=["int32"])

    for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        ask(f"bitwise.{op}", PAIR, dtypes=INTS)
    ask("bitwise.invert", normal(SHAPE), dtypes=INTS)
    for op in ("left_shift", "right_shift"):
        ask(f"bitwise.{op}", normal(SHAPE),
            lambda tf, x, op=op: getattr(tf.bitwise, op)(x, tf.ones_like(x)),
            dtypes=INTS)  # fmt: skip


@family.builder
def clips() -> None:
    """Values and norms that are clipped."""
    ask("clip_by_value", normal(SHAPE), clip_value_min=-0.5, clip_value_max=0.5, dtypes=FLOATS)
    ask("clip_by_value", normal(SHAPE), clip_value_min=-1, clip_value_max=2, dtypes=("int32",),
        case="int")  # fmt: skip
    ask("clip_by_norm", normal(SHAPE), clip_norm=1.0, dtypes=FLOAT64)
    ask("clip_by_norm", normal(SHAPE), clip_norm=1.0, axes=[1], case="axes", dtypes=FLOAT64)


@family.builder
def casts() -> None:
    """Casts, saturating casts, complex numbers of two parts, and bitcasts."""
    for dtype in ("float32", "float64", "bfloat16", "int32", "uint8", "bool", "complex64"):
        # C++ leaves open which unsigned number a negative one becomes.
        made = between(0, 9, SHAPE) if dtype == "uint8" else normal(SHAPE)
        ask("cast", made, lambda tf, x, to=dtype: tf.cast(x, to), case=f"to_{dtype}",
            dtypes=KINDS, tags=() if dtype in INEXACT else NO_DERIVATIVES)  # fmt: skip
    for dtype in ("uint8", "int8", "int32", "float32"):
        ask("saturate_cast", normal(SHAPE),
            lambda tf, x, to=dtype: tf.saturate_cast(x * 100, to), case=f"to_{dtype}",
            dtypes=("float32", "float64", "int32", "int64"), tags=NO_DERIVATIVES)  # fmt: skip
    ask("dtypes.complex", PAIR, dtypes=FLOAT64)
    for source, to in (("float32", "int32"), ("float64", "int64"), ("int32", "uint8"),
                       ("complex64", "float32"), ("complex128", "uint8"), ("float64", "complex64"),
                       ("bfloat16", "uint16")):  # fmt: skip
        ask("bitcast", normal(SHAPE), lambda tf, x, to=to: tf.bitcast(x, to), case=f"to_{to}",
            dtypes=[source], tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with dtypes, shapes or values that do not fit."""
    for op in ("add", "multiply", "maximum", "less", "pow"):
        ask_raises(
            f"math.{op}",
            "two_dtypes",
            lambda tf, op=op: getattr(tf.math, op)(tf.constant(1.0), tf.zeros([1], tf.int64)),
        )
        ask_raises(f"math.{op}", "shapes",
                   lambda tf, op=op: getattr(tf.math, op)(tf.ones([2]), tf.ones([3])))  # fmt: skip
    for op in ("exp", "sqrt", "sin", "log", "floor", "erf", "lgamma", "is_nan", "softplus"):
        ask_raises(f"math.{op}", "integers",
                   lambda tf, op=op: getattr(tf.math, op)(tf.constant([1])))  # fmt: skip
    ask_raises("math.negative", "bools", lambda tf: tf.math.negative(tf.constant(True)))
    ask_raises("math.logical_and", "integers",
               lambda tf: tf.math.logical_and(tf.constant(1), tf.constant(0)))  # fmt: skip
    ask_raises("math.floordiv", "by_zero", lambda tf: tf.math.floordiv(tf.constant([1]), 0))
    ask_raises("math.floormod", "by_zero", lambda tf: tf.math.floormod(tf.constant([1]), 0))
    ask_raises("math.pow", "negative_power", lambda tf: tf.math.pow(tf.constant([2]), -1))
    ask_raises("math.add_n", "nothing", lambda tf: tf.math.add_n([]))
    ask_raises("math.add_n", "shapes", lambda tf: tf.math.add_n([tf.ones([2]), tf.ones([3])]))
    ask_raises("bitwise.invert", "floats", lambda tf: tf.bitwise.invert(tf.constant([1.0])))
    ask_raises("dtypes.complex", "two_dtypes",
               lambda tf: tf.complex(tf.constant(1.0), tf.constant(1.0, tf.float64)))  # fmt: skip
    ask_raises("cast", "unknown_dtype", lambda tf: tf.cast(1.0, "float31"))
    ask_raises("bitcast", "sizes",
               lambda tf: tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.int32))  # fmt: skip
    ask_raises("clip_by_value", "two_dtypes",
               lambda tf: tf.clip_by_value(tf.constant([1]), tf.constant(0.5), 2))  # fmt: skip
