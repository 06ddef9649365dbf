"""The traits of each primitive of JAX, in one table.

A primitive without traits is listed in `NONE`; every primitive with a rule needs an entry in one of
the two. Readers ask by name: `eqn.primitive in traits.MOVES`.
"""

from __future__ import annotations

import math

from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.tracing.primitives import named

# The traits of each primitive: names of the sets below, where comments explain them.
TRAITS: dict[str, str] = {
    "abs": "WIDENS",
    "acos": "FLOATS",
    "acosh": "FLOATS",
    "add": "BINARY ARITHMETIC COMMUTES SUMS WRAPS",
    "add_any": "BINARY COMMUTES SUMS WRAPS",
    "and": "BINARY COMMUTES WRAPS KEEPS_RANGE",
    "approx_top_k": "WIDENS",
    "argmax": "WIDENS KEEPS_RANGE",
    "argmin": "WIDENS KEEPS_RANGE",
    "asin": "FLOATS",
    "asinh": "FLOATS",
    "atan": "FLOATS",
    "atan2": "BINARY FLOATS",
    "atanh": "FLOATS",
    "broadcast_in_dim": "MOVES REARRANGES",
    "cbrt": "FLOATS",
    "ceil": "FLOATS",
    "clamp": "WIDENS KEEPS_RANGE",
    "closed_call": "CALLS",
    "clz": "READS_BITS",
    "complex": "BINARY",
    "composite": "CALLS",
    "concatenate": "MOVES",
    "cond": "CONTROL_FLOW",
    "convert_element_type": "CASTS",
    "copy": "MOVES IDENTITY",
    "cos": "FLOATS",
    "cosh": "FLOATS",
    "cumlogsumexp": "FLOATS",
    "cummax": "WIDENS KEEPS_RANGE",
    "cummin": "WIDENS KEEPS_RANGE",
    "cumprod": "WRAPS MULTIPLIES",
    "cumsum": "WRAPS",
    "custom_jvp_call": "CALLS DERIVES",
    "custom_partitioning": "CALLS",
    "custom_vjp_call": "CALLS DERIVES",
    "debug_callback": "DEBUG_CALLBACKS",
    "debug_print": "DEBUG_CALLBACKS",
    "device_put": "IDENTITY ANNOTATES",
    "div": "BINARY ARITHMETIC WIDENS",
    "dynamic_slice": "MOVES",
    "dynamic_update_slice": "MOVES",
    "eigh": "EIGENVALUES",
    "eq": "BINARY COMPARES COMMUTES WRAPS",
    "eq_to": "BINARY WRAPS",
    "erf": "FLOATS",
    "erf_inv": "FLOATS",
    "erfc": "FLOATS",
    "eval_jaxpr": "CALLS",
    "exp": "FLOATS",
    "exp2": "FLOATS",
    "expm1": "FLOATS",
    "floor": "FLOATS",
    "gather": "MOVES",
    "ge": "BINARY COMPARES WIDENS",
    "gt": "BINARY COMPARES WIDENS",
    "igamma": "BINARY",
    "igamma_grad_a": "BINARY",
    "igammac": "BINARY",
    "integer_pow": "WRAPS MULTIPLIES",
    "io_callback": "CALLBACKS_WITH_VALUES",
    "is_finite": "FLOATS",
    "jit": "CALLS",
    "le": "BINARY COMPARES WIDENS",
    "le_to": "BINARY WIDENS",
    "log": "FLOATS",
    "log1p": "FLOATS",
    "log2": "FLOATS",
    "logistic": "FLOATS",
    "lt": "BINARY COMPARES WIDENS",
    "lt_to": "BINARY WIDENS",
    "max": "BINARY ARITHMETIC COMMUTES WIDENS KEEPS_RANGE",
    "min": "BINARY ARITHMETIC COMMUTES WIDENS KEEPS_RANGE",
    "mul": "BINARY ARITHMETIC COMMUTES WRAPS MULTIPLIES",
    "mulhi": "BINARY COMMUTES",
    "name": "MOVES IDENTITY ANNOTATES",
    "ne": "BINARY COMPARES COMMUTES WRAPS",
    "neg": "WRAPS",
    "nextafter": "BINARY",
    "not": "WRAPS",
    "one_minus_square": "FLOATS",
    "optimization_barrier": "MOVES IDENTITY ANNOTATES",
    "or": "BINARY COMMUTES WRAPS KEEPS_RANGE",
    "pad": "MOVES",
    "polygamma": "BINARY",
    "polynomial": "FLOATS",
    "population_count": "READS_BITS",
    "pow": "BINARY FLOATS",
    "pure_callback": "CALLBACKS_WITH_VALUES",
    "random_bits": "DRAWS TAKES_KEYS",
    "random_fold_in": "DRAWS TAKES_KEYS",
    "random_gamma": "TAKES_KEYS",
    "random_split": "DRAWS TAKES_KEYS",
    "reduce_and": "REDUCES WRAPS KEEPS_RANGE",
    "reduce_max": "REDUCES WIDENS KEEPS_RANGE",
    "reduce_min": "REDUCES WIDENS KEEPS_RANGE",
    "reduce_or": "REDUCES WRAPS KEEPS_RANGE",
    "reduce_precision": "CASTS",
    "reduce_prod": "REDUCES WRAPS MULTIPLIES",
    "reduce_sum": "REDUCES WRAPS",
    "reduce_window_max": "WINDOWS",
    "reduce_window_min": "WINDOWS",
    "reduce_window_sum": "WINDOWS",
    "reduce_xor": "REDUCES WRAPS KEEPS_RANGE",
    "rem": "BINARY WIDENS KEEPS_RANGE",
    "remat2": "CALLS",
    "reshape": "MOVES REARRANGES",
    "reshard": "SHARDS",
    "rev": "MOVES REARRANGES",
    "round": "FLOATS",
    "rsqrt": "FLOATS",
    "scan": "CONTROL_FLOW",
    "select_and_gather_add": "WINDOWS",
    "select_and_scatter_add": "WINDOWS",
    "select_n": "WRAPS KEEPS_RANGE",
    "sharding_constraint": "SHARDS",
    "shift_left": "BINARY WRAPS",
    "shift_right_arithmetic": "BINARY READS_BITS",
    "shift_right_logical": "BINARY READS_BITS",
    "sign": "WIDENS KEEPS_RANGE",
    "sin": "FLOATS",
    "sinh": "FLOATS",
    "slice": "MOVES",
    "sort": "WIDENS KEEPS_RANGE",
    "split": "MOVES",
    "sqrt": "FLOATS",
    "square": "WRAPS MULTIPLIES",
    "squeeze": "MOVES REARRANGES",
    "stack": "MOVES",
    "stop_gradient": "MOVES IDENTITY",
    "sub": "BINARY ARITHMETIC WRAPS",
    "svd": "EIGENVALUES",
    "tan": "FLOATS",
    "tanh": "FLOATS",
    "threefry2x32": "DRAWS",
    "tile": "MOVES",
    "top_k": "WIDENS KEEPS_RANGE",
    "transpose": "MOVES REARRANGES",
    "unstack": "MOVES",
    "while": "CONTROL_FLOW",
    "xor": "BINARY COMMUTES WRAPS KEEPS_RANGE",
    "zeta": "BINARY",
}

# Primitives with a rule and without traits.
NONE = """
after_all bessel_i0e bessel_i1e bitcast_convert_type cholesky cholesky_update conj
conv_general_dilated create_token custom_linear_solve dce_sink digamma dim_as_value dot_general
eig empty empty2 fft geqp3 geqrf hessenberg householder_product imag inspect_sharding iota
iota_2x32_shape layout_constraint lgamma lu lu_pivots_to_permutation ormqr platform_index pmax
pmin psum qr ragged_dot_general random_clone random_seed random_unwrap random_wrap real reduce
reduce_window regularized_incomplete_beta rng_bit_generator rng_uniform scaled_dot
scaled_matmul_wrapper scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub schur
select_and_scatter shard_map symmetric_product triangular_solve tridiagonal tridiagonal_solve
xla_metadata_value
"""


def _having(trait: str) -> frozenset[jex_core.Primitive]:
    return frozenset(named(*(name for name, line in TRAITS.items() if trait in line.split())))


# Each element of a result is an element of an array operand, or the fill value of a gather.
MOVES = _having("MOVES")
# The result has all elements of the one operand, in other places or several times.
REARRANGES = _having("REARRANGES")
# Each result is the operand with the same index.
IDENTITY = _having("IDENTITY")
# An identity with information for a compiler, a device or a transformation of JAX.
ANNOTATES = _having("ANNOTATES")
# An identity that says how an array is sharded over the devices of a mesh.
SHARDS = _having("SHARDS")
# The result is the operand, rounded to another dtype or to fewer bits.
CASTS = _having("CASTS")

# Computes each element of one result from one element of each of two operands.
BINARY = _having("BINARY")
# A sum, difference, product, quotient, maximum or minimum of two operands.
ARITHMETIC = _having("ARITHMETIC")
# A comparison of two operands that returns bools, except comparisons in the total order.
COMPARES = _having("COMPARES")
# The two operands may be exchanged.
COMMUTES = _having("COMMUTES")
# The sum of two operands.
SUMS = _having("SUMS")
# Combines the elements along the dimensions of the param `axes`.
REDUCES = _having("REDUCES")
# Combines the elements of windows by a function that is not a jaxpr.
WINDOWS = _having("WINDOWS")
# A function of floats whose result in a wider dtype is the same number before rounding.
FLOATS = _having("FLOATS")

# For integers: the lowest bits of a result only depend on the lowest bits of the operands, so
# signed, unsigned and wider dtypes give the same bits.
WRAPS = _having("WRAPS")
# For integers: multiplies elements, so that a product may need twice the bits.
MULTIPLIES = _having("MULTIPLIES")
# For integers: depends on the bits of an element and on their number.
READS_BITS = _having("READS_BITS")
# A wider dtype gives the same number, or a number that rounds to the result.
WIDENS = _having("WIDENS")
# For integers: a result is in the range of the operands' dtype, whatever dtype computes it.
KEEPS_RANGE = _having("KEEPS_RANGE")

# Returns random bits of a counter-based generator.
DRAWS = _having("DRAWS")
# Draws with typed keys, which are its first operand.
TAKES_KEYS = _having("TAKES_KEYS")
# Computes eigenvalues or singular values: loops in XLA, kernels in TensorFlow.
EIGENVALUES = _having("EIGENVALUES")

# Calls one jaxpr with its own operands; see `jaxprs.called`.
CALLS = _having("CALLS")
# A call whose derivative is a function of the user.
DERIVES = _having("DERIVES")
# A loop or a branch, which calls jaxprs with some of its operands; see `jaxprs.Scan` and `While`.
CONTROL_FLOW = _having("CONTROL_FLOW")
# Calls a Python function that returns values.
CALLBACKS_WITH_VALUES = _having("CALLBACKS_WITH_VALUES")
# Calls a Python function of jax.debug, which returns no values.
DEBUG_CALLBACKS = _having("DEBUG_CALLBACKS")
CALLBACKS = CALLBACKS_WITH_VALUES | DEBUG_CALLBACKS

# The number that, as one of these operands, makes the result the other operand, up to -0.
NEUTRAL: dict[jex_core.Primitive, tuple[float, tuple[int, ...]]] = {
    lax.add_p: (0, (0, 1)),
    lax.div_p: (1, (1,)),
    lax.max_p: (-math.inf, (0, 1)),
    lax.min_p: (math.inf, (0, 1)),
    lax.mul_p: (1, (0, 1)),
    lax.sub_p: (0, (1,)),
}
# The index of the first operand that holds positions of elements.
POSITIONS: dict[jex_core.Primitive, int] = {
    lax.dynamic_slice_p: 1,
    lax.dynamic_update_slice_p: 2,
    lax.gather_p: 1,
}
# The param with the dimension along which elements are sorted.
ORDERED_ALONG: dict[jex_core.Primitive, str] = {
    lax.approx_top_k_p: "reduction_dimension",
    lax.sort_p: "dimension",
    lax.top_k_p: "axis",
}
