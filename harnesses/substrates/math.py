"""tf.math and tf.bitwise: elementwise functions of one and of several operands."""

from harnesses.harness import Uniform
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
for _op, (_bounds, _dtypes) in _UNARY.items():
    ask(_op, between(*_bounds, SHAPE), dtypes=_dtypes)

# At the edges of floats what matters is which of them are NaN, infinite or zero.
_NO_EDGES = {"math.l2_normalize", "math.lbeta", "math.conj", "math.real", "math.imag"}
_EAGER_AND_JIT = (*NO_DERIVATIVES, "not_vmap", "not_round_trip")
for _op in _UNARY:
    if _op in _NO_EDGES:
        continue
    ask(_op, edges, case="edges", scale="element", tags=(*_EAGER_AND_JIT, "any_zero_sign"))

# Functions of two operands that take values of any size.
for _op, _dtypes in {
    "math.add": NUMERIC,
    "math.subtract": NUMERIC,
    "math.multiply": NUMERIC,
    "math.maximum": REALS,
    "math.minimum": REALS,
    "math.squared_difference": (*INEXACT, "int32", "int64"),
    "math.multiply_no_nan": WIDE,
    "math.atan2": FLOATS,
}.items():
    ask(_op, PAIR, dtypes=_dtypes)
for _op, _dtypes in {
    "math.equal": EVERY,
    "math.not_equal": EVERY,
    "math.greater": REALS,
    "math.greater_equal": REALS,
    "math.less": REALS,
    "math.less_equal": REALS,
    "math.nextafter": FLOAT64,
}.items():
    ask(_op, PAIR, dtypes=_dtypes, tags=NO_DERIVATIVES)
for _op, _dtypes in {
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
    _wide = {"ulps": 512} if _op in ("math.igamma", "math.igammac", "math.zeta") else {}
    ask(_op, between(1.5, 4, SHAPE, SHAPE), dtypes=_dtypes, **_wide)
ask("math.polygamma", between(1, 3, SHAPE), lambda tf, x: tf.math.polygamma(tf.ones_like(x) * 2, x),
    dtypes=FLOAT64, ulps=512)  # fmt: skip
ask("math.betainc", lambda d: [Uniform(SHAPE, d, 1, 3), Uniform(SHAPE, d, 1, 3), Uniform(SHAPE, d)],
    dtypes=FLOAT64, ulps=512)  # fmt: skip
ask("math.betainc", lambda d: [Uniform(SHAPE, d)],
    lambda tf, x: tf.math.betainc(tf.ones_like(x) * 2, tf.ones_like(x) * 3, x), case="of_x",
    dtypes=FLOAT64, ulps=512)  # fmt: skip
# An operand that is zero, where these functions are defined to be.
for _op in ("xlogy", "xlog1py", "xdivy", "multiply_no_nan", "divide_no_nan"):
    ask(f"math.{_op}", values([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 0.0, 3.0]), case="zeros",
        dtypes=FLOAT64, tags=NO_DERIVATIVES, scale="element")  # fmt: skip
# Where a slope jumps or is infinite, and where operands are equal: derivatives by convention.
for _op in ("abs", "softsign", "reciprocal_no_nan"):
    ask(f"math.{_op}", values([0.0, 1.0, -2.0]), case="derivative_at_0", dtypes=FLOAT64)
ask("math.sqrt", values([0.0, 1.0, 4.0]),
    lambda tf, x: tf.where(x > 0, tf.math.sqrt(x), 0), case="not_chosen",
    dtypes=FLOAT64)  # fmt: skip
ask("math.pow", values([-2.0, 0.0, 3.0], [2.0, 2.0, 2.0]), case="negative_base", dtypes=FLOAT64)
ask("math.minimum", values([0.0, 1.0, -2.0], [0.0, 1.0, 3.0]), case="equal", dtypes=FLOAT64)
ask("clip_by_value", values([0.0, 1.0, -2.0, 2.0]), case="at_limits", clip_value_min=-2,
    clip_value_max=1, dtypes=FLOAT64)  # fmt: skip
for _op in ("add", "maximum", "divide", "less"):
    ask(f"math.{_op}", normal((3, 1), (4,)), case="broadcast",
        tags=NO_DERIVATIVES if _op == "less" else ())  # fmt: skip
ask("math.add_n", PAIR, lambda tf, x, y: tf.math.add_n([x, y]), dtypes=INEXACT)
ask("math.accumulate_n", PAIR, lambda tf, x, y: tf.math.accumulate_n([x, y]), dtypes=FLOAT64)
ask("math.scalar_mul", normal(SHAPE), lambda tf, x: tf.math.scalar_mul(2, x), dtypes=NUMERIC)
ask("math.polyval", PAIR, lambda tf, x, y: tf.math.polyval([x, y, x], y), dtypes=FLOAT64)
for _op in ("logical_and", "logical_or", "logical_xor"):
    ask(f"math.{_op}", PAIR, dtypes=BOOL)
ask("math.logical_not", normal(SHAPE), dtypes=BOOL)
ask("math.invert_permutation", [indices([2, 0, 1])], dtypes=["int32"])

for _op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    ask(f"bitwise.{_op}", PAIR, dtypes=INTS)
ask("bitwise.invert", normal(SHAPE), dtypes=INTS)
for _op in ("left_shift", "right_shift"):
    ask(f"bitwise.{_op}", normal(SHAPE),
        lambda tf, x, op=_op: getattr(tf.bitwise, op)(x, tf.ones_like(x)), dtypes=INTS)  # fmt: skip

ask("clip_by_value", normal(SHAPE), clip_value_min=-0.5, clip_value_max=0.5, dtypes=FLOATS)
ask("clip_by_value", normal(SHAPE), clip_value_min=-1, clip_value_max=2, dtypes=("int32",),
    case="int")  # fmt: skip
ask("clip_by_norm", normal(SHAPE), clip_norm=1.0, dtypes=FLOAT64)
ask("clip_by_norm", normal(SHAPE), clip_norm=1.0, axes=[1], case="axes", dtypes=FLOAT64)
for _dtype in ("float32", "float64", "bfloat16", "int32", "uint8", "bool", "complex64"):
    # C++ leaves open which unsigned number a negative one becomes.
    _made = between(0, 9, SHAPE) if _dtype == "uint8" else normal(SHAPE)
    ask("cast", _made, lambda tf, x, to=_dtype: tf.cast(x, to), case=f"to_{_dtype}",
        dtypes=KINDS, tags=() if _dtype in INEXACT else NO_DERIVATIVES)  # fmt: skip
for _dtype in ("uint8", "int8", "int32", "float32"):
    ask("saturate_cast", normal(SHAPE),
        lambda tf, x, to=_dtype: tf.saturate_cast(x * 100, to), case=f"to_{_dtype}",
        dtypes=("float32", "float64", "int32", "int64"), tags=NO_DERIVATIVES)  # fmt: skip
ask("dtypes.complex", PAIR, dtypes=FLOAT64)
for _from, _to in (("float32", "int32"), ("float64", "int64"), ("int32", "uint8"),
                   ("complex64", "float32"), ("complex128", "uint8"), ("float64", "complex64"),
                   ("bfloat16", "uint16")):  # fmt: skip
    ask("bitcast", normal(SHAPE), lambda tf, x, to=_to: tf.bitcast(x, to), case=f"to_{_to}",
        dtypes=[_from], tags=NO_DERIVATIVES)  # fmt: skip

# --- What is refused -------------------------------------------------------------------------

for _op in ("add", "multiply", "maximum", "less", "pow"):
    ask_raises(
        f"math.{_op}",
        "two_dtypes",
        lambda tf, op=_op: getattr(tf.math, op)(tf.constant(1.0), tf.zeros([1], tf.int64)),
    )
    ask_raises(f"math.{_op}", "shapes",
               lambda tf, op=_op: getattr(tf.math, op)(tf.ones([2]), tf.ones([3])))  # fmt: skip
for _op in ("exp", "sqrt", "sin", "log", "floor", "erf", "lgamma", "is_nan", "softplus"):
    ask_raises(f"math.{_op}", "integers", lambda tf, op=_op: getattr(tf.math, op)(tf.constant([1])))
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
ask_raises("bitcast", "sizes", lambda tf: tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.int32))
ask_raises("clip_by_value", "two_dtypes",
           lambda tf: tf.clip_by_value(tf.constant([1]), tf.constant(0.5), 2))  # fmt: skip
