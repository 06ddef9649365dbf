"""jax.lax, but for what acts across devices."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.functions import family
from harnesses.harness import Bools, Integers, Normal, Uniform, Values, define_functions, each, use

X = Normal((3, 4), "float32")
Y = Normal((3, 4), "float32")
V = Normal((4,), "float32")
UNIT = Uniform((3, 4), "float32", 0.05, 0.95)
POSITIVE = Uniform((3, 4), "float32", 0.5, 4)
LESS = Uniform((3, 4), "float32", 0.2, 0.5)
MASK = Bools((3, 4))
INTS = Integers((3, 4), "int32", -9, 9)
SHIFT = Integers((3, 4), "int32", 0, 9)
WORDS = Integers((3, 4), "uint32")
SQUARE = Normal((3, 3), "float32")
IMAGE = Normal((1, 2, 5, 6), "float32")
KERNEL = Normal((3, 2, 2, 3), "float32")
INDEX = Integers((), "int32", -2, 4)
ROWS = Values([[0], [2], [7]], "int32")
KEY = Values([1, 2, 3, 4], np.uint32)
GROUPS = Values([1, 0, 2], "int32")

_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)
_SCATTERED = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
_GROUPED = lax.RaggedDotDimensionNumbers(
    dot_dimension_numbers=(((1,), (1,)), ((), ())),
    lhs_ragged_dimensions=[0],
    rhs_group_dimensions=[0],
)


def _solve(matvec: Any, b: Any) -> Any:
    return jnp.linalg.solve(jax.jacobian(matvec)(b), b)


def _rows(call: Any) -> Any:
    return jax.vmap(call, axis_name="rows")


def _numbers_of_rows(call: Any) -> Any:
    return lambda: jax.vmap(lambda _: jnp.asarray(call()), axis_name="rows")(jnp.arange(3))


USES = {
    # One argument, element by element.
    **each(
        "abs asinh atan bessel_i0e bessel_i1e cbrt ceil conj cos cosh erf erfc exp exp2 expm1 "
        "floor imag is_finite logistic neg real reciprocal round sign sin sinh square "
        "stop_gradient tan tanh",
        use(X),
    ),
    **each("imag real", use(Normal((3, 4), "complex64"))),
    **each("acos asin atanh erf_inv log log1p", use(UNIT)),
    **each("digamma lgamma rsqrt sqrt", use(POSITIVE)),
    "acosh": use(Uniform((3, 4), "float32", 1, 4)),
    **each("bitwise_not clz population_count", use(INTS)),
    **each("log2 one_minus_square", use(UNIT).but(jax_versions=">=0.12")),
    # Several, element by element.
    **each(
        "add atan2 complex div eq ge gt le lt max min mul ne nextafter pow rem sub",
        use(UNIT, X),
    ),
    **each(
        "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical",
        use(INTS, SHIFT),
    ),
    "mulhi": use(WORDS, WORDS),
    "betainc": use(POSITIVE, LESS, UNIT),
    **each("igamma igamma_grad_a igammac random_gamma_grad", use(POSITIVE, UNIT)),
    "polygamma": use(2.0, POSITIVE),
    "zeta": use(Uniform((3, 4), "float32", 1.5, 4), POSITIVE),
    "clamp": use(-0.5, X, 0.5),
    "integer_pow": use(X, -3),
    "polynomial": use(X, [1.0, -2.0, 3.0]).but(jax_versions=">=0.12"),
    "reduce_precision": use(X, 5, 6),
    "select": use(MASK, X, Y),
    "select_n": use(Integers((3, 4), "int32", 0, 3), X, Y, UNIT),
    # Dtypes.
    "bitcast_convert_type": use(X, jnp.int32),
    "convert_element_type": use(X, jnp.int32),
    # Shapes.
    "broadcast": use(X, (2,)),
    "broadcast_in_dim": use(V, (3, 4), (1,)),
    "broadcast_like": use(V, X),
    "broadcast_to_rank": use(V, 3),
    "broadcasted_iota": use(jnp.int32, (3, 4), 1),
    "collapse": use(X, 0, 2),
    "concatenate": use([X, Y], 1),
    "empty": use((2, 3), jnp.float32).but(then=jnp.zeros_like),
    "expand_dims": use(X, (0, 2)),
    "full": use((2, 3), Normal((), "float32")),
    "full_like": use(X, 2.0),
    "iota": use(jnp.int32, 5),
    "pad": use(X, 7.0, ((1, 2, 1), (0, -1, 0))),
    "reshape": use(X, (2, 6)),
    "rev": use(X, (0,)),
    "shape_as_value": use((2, 3)),
    "split": use(X, (1, 3), 1),
    "squeeze": use(Normal((3, 1), "float32"), (1,)),
    "stack": use([X, Y]),
    "tile": use(X, (2, 1)),
    "transpose": use(X, (1, 0)),
    "unstack": use(X),
    # Contractions and convolutions.
    "batch_matmul": use(Normal((2, 3, 4), "float32"), Normal((2, 4, 2), "float32")),
    "dot": use(X, V),
    "dot_general": use(X, Y, (((1,), (1,)), ((), ()))),
    "ragged_dot": use(X, Normal((3, 4, 2), "float32"), GROUPS),
    "ragged_dot_general": use(X, Normal((3, 4, 2), "float32"), GROUPS, _GROUPED),
    "scaled_dot": use(
        Normal((4, 32), "float8_e4m3fn"),
        Normal((32, 3), "float8_e4m3fn"),
        lhs_scale=Uniform((4, 1), "bfloat16", 0.5, 2),
        rhs_scale=Uniform((1, 3), "bfloat16", 0.5, 2),
        preferred_element_type=jnp.float32,
    ),
    "conv": use(IMAGE, KERNEL, (1, 2), "SAME"),
    "conv_general_dilated": use(IMAGE, KERNEL, (2, 1), "VALID", rhs_dilation=(2, 1)),
    "conv_general_dilated_local": use(
        Normal((1, 2, 4), "float32"), Normal((3, 4, 3), "float32"), (1,), "VALID", (2,)
    ),
    "conv_general_dilated_patches": use(IMAGE, (2, 2), (1, 1), "SAME"),
    "conv_transpose": use(
        Normal((1, 4, 5, 2), "float32"), Normal((2, 3, 2, 3), "float32"), (2, 2), "SAME"
    ),
    "conv_with_general_padding": use(IMAGE, KERNEL, (1, 1), ((1, 0), (0, 2)), None, None),
    # Reductions, scans, windows.
    **each("argmax argmin", use(X, 1, jnp.int32)),
    **each("cumlogsumexp cummax cummin cumprod cumsum", use(X, 1)),
    "associative_scan": use(lambda a, b: a * b + b, X),
    "reduce": use(X, 0.5, lambda a, b: a * b + a + b, (1,)),
    **each("reduce_max reduce_min reduce_prod reduce_sum", use(X, (1,))),
    **each("reduce_and reduce_or", use(MASK, (1,))),
    "reduce_xor": use(INTS, (1,)),
    "reduce_window": use(X, 0.0, lax.add, (2, 2), (1, 2), "SAME"),
    # Sorting.
    **each("approx_max_k approx_min_k", use(Normal((2, 16), "float32"), 3)),
    "sort": use(X),
    "sort_key_val": use(INTS, X),
    "top_k": use(X, 2),
    # Indexing.
    "dynamic_index_in_dim": use(X, INDEX, 1),
    "dynamic_slice": use(X, (INDEX, INDEX), (2, 3)),
    "dynamic_slice_in_dim": use(X, INDEX, 2, 1),
    "dynamic_update_index_in_dim": use(X, V, INDEX, 0),
    "dynamic_update_slice": use(X, Normal((2, 2), "float32"), (INDEX, INDEX)),
    "dynamic_update_slice_in_dim": use(X, Normal((3, 2), "float32"), INDEX, 1),
    "gather": use(X, ROWS, _ROWS, (1, 4), mode="clip"),
    "index_in_dim": use(X, 1, 1),
    "index_take": use(X, [Values([0, 2], "int32")], (0,)),
    **each(
        "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub",
        use(X, ROWS, Y, _SCATTERED),
    ),
    "scatter_apply": use(X, ROWS, jnp.sin, _SCATTERED, update_shape=(3, 4)),
    "slice": use(X, (1, 0), (3, 4), (1, 2)),
    "slice_in_dim": use(X, 1, 4, 2, 1),
    # Control.
    "after_all": use().but(then=lambda token: 1.0),
    "cond": use(Bools(()), lambda x: x + 1, lambda x: x * 2, X).but(dtype="float32"),
    "custom_linear_solve": use(
        lambda x: jnp.float32([[4, 1, 0], [1, 3, 1], [0, 1, 5]]) @ x,
        Normal((3,), "float32"),
        _solve,
        symmetric=True,
    ),
    "custom_root": use(
        lambda x: x * x - 2.0,
        Uniform((), "float32", 1, 2),
        lambda f, x: lax.fori_loop(0, 6, lambda _, y: y - f(y) / (2 * y), x),
        lambda g, y: y / g(jnp.ones_like(y)),
    ),
    "composite": use(jnp.sin, "my.sine").but(then=lambda sine: sine(jnp.arange(3.0))),
    "fft": use(X, "rfft", (4,)),
    "fori_loop": use(0, 4, lambda i, x: x * 0.5 + i, X),
    "map": use(lambda row: row.sum(), X),
    "create_token": use().but(then=lambda token: 1.0),
    "optimization_barrier": use(X),
    "platform_dependent": use(X, cpu=jnp.sin, default=jnp.cos),
    "scan": use(lambda c, x: (c + x, c * x), V, X),
    "switch": use(INDEX, [jnp.sin, jnp.cos, jnp.tanh], X).but(dtype="float32"),
    "while_loop": use(lambda x: x.sum() < 50, lambda x: x * 2, POSITIVE),
    "dce_sink": use(X).but(then=lambda _: 1.0),
    "stage": use(X),
    # Over an axis that vmap names.
    **each("all_gather pmean", use(X, "rows").but(within=_rows)),
    **each(
        "pmax pmin psum",
        use(X, "rows").but(within=_rows),
        use(Normal((3, 4), "complex64"), "rows").but(within=_rows),
    ),
    "all_to_all": use(SQUARE, "rows", 0, 0).but(within=_rows),
    **each("axis_index axis_size", use("rows").but(dtype="int32", within=_numbers_of_rows)),
    "psum_scatter": use(SQUARE, "rows").but(within=_rows),
    "pshuffle": use(X, "rows", (2, 0, 1)).but(within=_rows),
    "ppermute": use(X, "rows", ((0, 2), (1, 0), (2, 1))).but(within=_rows),
    "pswapaxes": use(SQUARE, "rows", 0).but(within=_rows),
    # Random bits.
    "rng_bit_generator": use(KEY, (3, 4)),
    "rng_uniform": use(0.0, 1.0, (3, 4)).but(then=lambda r: (r >= 0) & (r < 1)),
}


@family.builder
def functions_of_lax() -> None:
    """Functions of jax.lax."""
    define_functions(
        "jax.lax",
        USES,
        ulps={
            "betainc": 33,
            "digamma": 9,
            "igamma_grad_a": 14,
            "igammac": 7,
            "lgamma": 15,
            "polygamma": 8,
        },
    )
