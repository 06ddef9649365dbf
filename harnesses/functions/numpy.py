"""jax.numpy, without its submodules."""

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.functions import family
from harnesses.harness import Bools, Integers, Normal, Uniform, Values, define_functions, each, use

X = Normal((3, 4), "float32")
Y = Normal((3, 4), "float32")
COLUMN = Normal((3, 1), "float32")
TALL = Normal((4, 2), "float32")
V = Normal((5,), "float32")
W = Normal((5,), "float32")
SQUARE = Normal((3, 3), "float32")
LONG = Normal((16,), "float32")
UNIT = Uniform((3, 4), "float32", 0.05, 0.95)
ABOVE_ONE = Uniform((3, 4), "float32", 1.0, 4.0)
GAPS = Values([1.0, np.nan, -2.0, 3.0, np.nan, 0.5, 0.0, 3.0], "float32", (4, 4))
SORTED = Values([-1.5, -0.5, 0.0, 0.25, 1.0], "float32")
COMPLEX = Normal((3, 4), "complex64")
INTS = Integers((3, 4), "int32", -9, 9)
NATURALS = Integers((3, 4), "int32", 1, 9)
REPEATED = Values([3, 1, 3, 2, 1, 0], "int32")
MASK = Bools((3, 4))


USES = {
    # One argument, element by element.
    **each(
        "abs absolute angle arcsinh arctan around array asarray asinh atan cbrt ceil conj "
        "conjugate copy cos cosh deg2rad degrees exp exp2 expm1 fabs floor i0 imag iscomplex "
        "isfinite isinf isnan isneginf isposinf isreal nan_to_num negative positive rad2deg "
        "radians real reciprocal rint round sign signbit sin sinc sinh spacing square tan "
        "tanh trunc frexp modf",
        use(X),
    ),
    **each("acos arccos arcsin arctanh asin atanh log log10 log1p log2 sqrt", use(UNIT)),
    **each("acosh arccosh", use(ABOVE_ONE)),
    **each("bitwise_count bitwise_invert bitwise_not invert", use(INTS)),
    "logical_not": use(MASK),
    # Two arguments, element by element.
    **each(
        "add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin "
        "fmod greater greater_equal heaviside hypot isclose less less_equal logaddexp "
        "logaddexp2 maximum minimum mod multiply nextafter not_equal pow power remainder "
        "subtract true_divide",
        use(UNIT, X),
    ),
    **each(
        "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm "
        "left_shift right_shift",
        use(INTS, NATURALS),
    ),
    **each("logical_and logical_or logical_xor", use(MASK, Bools((4,)))),
    "ldexp": use(X, INTS),
    # Reductions and scans.
    **each(
        "amax amin argmax argmin average count_nonzero cumprod cumsum max mean median min "
        "nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar "
        "prod ptp std sum var",
        use(X, axis=1),
        use(GAPS, axis=0).but(case="nan"),
    ),
    **each("nanargmax nanargmin", use(X, axis=1)),
    **each("all any", use(MASK, axis=0)),
    **each("cumulative_prod cumulative_sum", use(X, axis=1, include_initial=True)),
    **each("nanpercentile percentile", use(GAPS, np.float32([25, 60]), axis=1)),
    **each("nanquantile quantile", use(X, 0.3), use(X, 0.6, method="nearest").but(case="at")),
    "minmax": use(X, axis=1).but(jax_versions=">=0.12"),
    "trapezoid": use(X, dx=0.5),
    "trace": use(SQUARE),
    **each("corrcoef cov", use(X)),
    "diff": use(X, 2),
    "ediff1d": use(V, to_end=1.0),
    "gradient": use(X),
    # Products.
    "convolve": use(V, LONG),
    "correlate": use(V, LONG, mode="same"),
    "cross": use(SQUARE, SQUARE),
    **each("dot matmul", use(X, TALL)),
    "einsum": use("ij,kj->ik", X, Y),
    **each("inner kron outer", use(X, Y)),
    "matvec": use(X, Normal((4,), "float32")),
    "vecmat": use(Normal((3,), "float32"), X),
    "tensordot": use(X, TALL, 1),
    **each("vdot vecdot", use(COMPLEX, COMPLEX)),
    # Shapes.
    **each("atleast_1d atleast_2d atleast_3d", use(V), use(X).but(case="matrix")),
    **each("column_stack dstack hstack vstack", use([X, Y])),
    **each("concat concatenate stack", use([X, Y], axis=1)),
    **each("flip fliplr flipud matrix_transpose ravel rot90 squeeze transpose", use(X)),
    **each("array_split hsplit split", use(TALL, 2)),
    "vsplit": use(X, 3),
    "dsplit": use(Normal((2, 2, 4), "float32"), 2),
    "append": use(X, V),
    "block": use([[X, COLUMN], [Normal((1, 5), "float32")]]),
    "broadcast_arrays": use(X, COLUMN),
    "broadcast_to": use(COLUMN, (2, 3, 4)),
    "delete": use(V, 2),
    "expand_dims": use(X, 1),
    "insert": use(V, 2, 7.0),
    "moveaxis": use(X, 0, 1),
    "pad": use(X, ((1, 0), (2, 1)), mode="reflect"),
    "permute_dims": use(X, (1, 0)),
    "repeat": use(X, 2, axis=1),
    "reshape": use(X, (2, 6)),
    "resize": use(X, (5, 4)),
    "roll": use(X, 3),
    "rollaxis": use(X, 1),
    "swapaxes": use(X, 0, 1),
    "tile": use(X, (2, 1)),
    "unstack": use(X, axis=1),
    # What a shape or a number tells.
    "arange": use(1, 9, 3),
    **each("bartlett blackman hamming hanning identity", use(7)),
    "kaiser": use(7, 2.5),
    **each("diag_indices tril_indices triu_indices", use(3)),
    **each("diag_indices_from tril_indices_from triu_indices_from", use(SQUARE)),
    **each("ones_like zeros_like", use(X)),
    # JAX may leave in an empty array what it finds in memory.
    "empty_like": use(X).but(then=jnp.zeros_like),
    **each("eye tri", use(3, 4, 1)),
    "fromfunction": use(lambda i, j: 2 * i - j, (2, 3)),
    "full": use((2, 3), Normal((), "float32")),
    "full_like": use(X, 2),
    **each("geomspace linspace logspace", use(Uniform((), "float32", 1, 2), 5.0, 7)),
    **each("empty indices ones zeros", use((2, 3))),
    **each("ix_ meshgrid", use(V, W)),
    "mask_indices": use(3, jnp.triu, size=6),
    **each("tril triu", use(X, 1)),
    "vander": use(V, 4),
    **each("ndim shape size iscomplexobj isrealobj isscalar", use(X).but(then=jnp.asarray)),
    # Indices and conditions.
    "argpartition": use(LONG, 4).but(then=lambda order: jnp.sort(order[:4])),
    "partition": use(LONG, 4).but(then=lambda parted: jnp.sort(parted[:4])),
    **each("argsort sort", use(X)),
    "sort_complex": use(COMPLEX),
    "argwhere": use(MASK, size=12, fill_value=-1),
    "choose": use(Values([0, 2, 1, 1], "int32"), [Normal((4,), "float32")] * 3, mode="clip"),
    "clip": use(X, -0.5, 0.5),
    "compress": use(Bools((3,)), X, axis=0, size=3),
    **each("diag diagonal", use(X)),
    "diagflat": use(V),
    "digitize": use(X, SORTED),
    "extract": use(MASK, X, size=12),
    "fill_diagonal": use(X, 7.0, inplace=False),
    **each("flatnonzero nonzero", use(MASK, size=12)),
    "interp": use(X, SORTED, V),
    "lexsort": use([Normal((6,), "float32"), REPEATED]),
    "piecewise": use(X, [MASK, Bools((3, 4))], [jnp.sin, jnp.cos, 2.0]),
    "place": use(X, MASK, V, inplace=False),
    "put": use(X, REPEATED, 2.0, inplace=False),
    "put_along_axis": use(X, Integers((3, 1), "int32", 0, 4), 7.0, axis=1, inplace=False),
    "ravel_multi_index": use([REPEATED, REPEATED], (4, 5), mode="clip"),
    "searchsorted": use(SORTED, X),
    "select": use([MASK, Bools((3, 4))], [X, Y], 7.0),
    "take": use(X, REPEATED),
    "take_along_axis": use(X, Integers((3, 2), "int32", 0, 4), axis=1),
    "top_k": use(X, 2).but(jax_versions=">=0.12"),
    "unravel_index": use(REPEATED, (2, 3)),
    "where": use(MASK, X, Y),
    # Sets and counts.
    "bincount": use(REPEATED, length=5),
    "histogram": use(X, 5),
    "histogram2d": use(V, W, 3),
    "histogramdd": use(Normal((6, 2), "float32"), 3),
    "histogram_bin_edges": use(X, 5),
    **each(
        "intersect1d setdiff1d setxor1d union1d",
        use(REPEATED, Values([1, 2, 7], "int32"), size=6, fill_value=-1),
    ),
    "isin": use(REPEATED, Values([1, 2], "int32")),
    **each(
        "unique unique_all unique_counts unique_inverse unique_values",
        use(REPEATED, size=5, fill_value=-1).but(then=jax.tree.leaves),
    ),
    # Polynomials.
    "poly": use(V),
    **each("polyadd polymul polysub", use(V, Normal((3,), "float32"))),
    **each("polyder polyint", use(V, 2)),
    "polydiv": use(V, Values([1.0, 2.0], "float32")),
    "polyfit": use(SORTED, V, 2),
    "polyval": use(V, X),
    "roots": use(Values([1.0, -6.0, 11.0, -6.0], "float32"), strip_zeros=False),
    # Bits and functions of functions.
    "packbits": use(MASK),
    "unpackbits": use(Integers((3, 4), "uint8")),
    "unwrap": use(Uniform((16,), "float32", -3, 3)),
    **each("allclose array_equal array_equiv", use(X, Y)),
    "apply_along_axis": use(jnp.cumsum, 0, X),
    "apply_over_axes": use(jnp.sum, X, [0, 1]),
    "astype": use(X, jnp.int32),
    "frompyfunc": use(jnp.add, 2, 1).but(
        then=lambda add: add.outer(jnp.arange(3), jnp.arange(2)), dtype="int32"
    ),
    "ufunc": use(lambda x, y: x + y, 2, 1).but(
        then=lambda add: add(jnp.arange(6).reshape(2, 3), 1), dtype="int32"
    ),
    "vectorize": use(jnp.dot, signature="(n),(n)->()").but(
        then=lambda dots: dots(jnp.ones((4, 3)), jnp.arange(3.0))
    ),
    # Types as casts.
    **each(
        "bfloat16 bool bool_ complex64 float16 float32 float8_e4m3b11fnuz float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int8 single csingle",
        use(X),
    ),
    **each("uint16 uint32 uint8", use(NATURALS)),
    **each(
        "cdouble complex128 complex_ double float64 float_ int64 int_ uint uint64",
        use(NATURALS).but(x64=True),
    ),
}


@family.builder
def functions_of_numpy() -> None:
    """Functions of jax.numpy."""
    define_functions(
        "jax.numpy",
        USES,
        ulps={"polyfit": 9, "roots": 64},
    )
