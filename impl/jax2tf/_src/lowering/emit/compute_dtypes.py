"""Carriers: the dtypes in which ops compute if TensorFlow has no kernel for the operands' dtype.

There is one table for each kind of op, and a rule names the table of its op. A dtype that is not in
a table has a kernel. `Target.computes_in` says which kernels an engine lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import tensorflow as tf

Carriers: TypeAlias = Mapping[tf.DType, tf.DType]


def carrier_of(carriers: Carriers, dtype: tf.DType) -> tf.DType:
    """The carrier of `dtype`: `dtype` itself if there is a kernel."""
    return carriers.get(dtype, dtype)


FLOAT8 = frozenset(
    {
        tf.as_dtype("float8_e4m3b11fnuz"),
        tf.as_dtype("float8_e4m3fn"),
        tf.as_dtype("float8_e4m3fnuz"),
        tf.as_dtype("float8_e5m2"),
        tf.as_dtype("float8_e5m2fnuz"),
    }
)
INT4 = frozenset({tf.as_dtype("int4"), tf.as_dtype("uint4")})

# --- Carriers that hold every value of the dtype: for ops that move elements. ----------------

# XLA packs two 4-bit integers in a byte. uint4 is not carried in uint8: on a GPU, TensorFlow 2.21
# ends the process at a Cast between the two.
HOLDS_INT4 = dict.fromkeys(INT4, tf.int8)
# float8 is not carried in float16, where the smallest numbers of float8_e5m2 are subnormal and
# processors may flush them to zero.
HOLDS_FLOAT8 = dict.fromkeys(FLOAT8, tf.bfloat16)
HOLDS_NARROW = HOLDS_FLOAT8 | HOLDS_INT4

TILED = HOLDS_NARROW | {tf.uint16: tf.int32}
PADDED_WITHOUT_BOOL = HOLDS_NARROW | {tf.bool: tf.int32}
# For targets that have neither Pad nor PadV2 of the dtype.
PADDED_WIDE = {tf.uint32: tf.int64}
# tf.vectorized_map stacks the results of a function for each row.
STACKED = HOLDS_INT4 | {
    tf.uint16: tf.int32,
    tf.as_dtype("float8_e4m3fn"): tf.bfloat16,
    tf.as_dtype("float8_e5m2"): tf.bfloat16,
}
# XLA's reducing ops, when TensorFlow calls them.
REDUCED_BY_XLA = HOLDS_NARROW | {tf.bool: tf.uint8}
# Every engine has the ops of a loop in these dtypes, which have as many bits or are exact.
CARRIED_ROUND_A_LOOP = {
    **dict.fromkeys((tf.bfloat16, tf.float16), tf.float32),
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32), tf.int32),
    tf.uint64: tf.int64,
}

# The complex dtypes of the same precision.
COMPLEX = {tf.float32: tf.complex64, tf.float64: tf.complex128}

# --- Carriers that give the same result, cast back: for ops that compute. ---------------------

# Integers wrap when they are cast back. XLA also computes float8 in float16, one op at a time. A
# function that XLA composes of several ops rounds after each op, and so do the rules.
COMPUTED = dict.fromkeys(FLOAT8, tf.float16) | dict.fromkeys(INT4, tf.int32)
# Comparisons and sorts; on some paths XlaVariadicSort or TopKV2 support fewer dtypes.
COMPARED = COMPUTED | {tf.bool: tf.int32}
SORTED = COMPARED | {tf.uint16: tf.int32}
# Negation, signs and arithmetic shifts.
SIGNED = COMPUTED | {
    tf.uint8: tf.int8,
    tf.uint16: tf.int16,
    tf.uint32: tf.int32,
    tf.uint64: tf.int64,
}
# Functions that take several ops and round once.
IN_FLOAT32 = dict.fromkeys((*FLOAT8, tf.bfloat16, tf.float16), tf.float32)
# The dtypes for which TensorFlow's CPU kernels compute a remainder.
REMAINDER = {
    **IN_FLOAT32,
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16), tf.int32),
    tf.uint32: tf.int64,
}
# XLA has kernels of Cumsum and Cumprod only for 32 and 64 bits. Integers wrap in the same way in
# every wider dtype; narrow floats are rounded once, at the end.
ACCUMULATED = COMPUTED | CARRIED_ROUND_A_LOOP
# MatMul, on every device and in every mode. Integers wrap in the same way at every width. Float8 is
# exact in float32, which XLA uses too. A bool is true if any product is. The float16 kernels
# accumulate in float16 on some processors, while JAX rounds each sum once.
MULTIPLIED = {
    **dict.fromkeys((*FLOAT8, tf.float16), tf.float32),
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32), tf.int32),
    tf.bool: tf.int32,
    tf.uint64: tf.int64,
}

# --- Dtypes with the same number of bits. -----------------------------------------------------

UNSIGNED = {tf.int8: tf.uint8, tf.int16: tf.uint16, tf.int32: tf.uint32, tf.int64: tf.uint64}
SIGNED_INDICES = {tf.uint32: tf.int32, tf.uint64: tf.int64}
# The bits of a float as a signed integer: among floats of one sign, their order is the same.
BITS = {
    tf.bfloat16: tf.int16,
    tf.float16: tf.int16,
    tf.float32: tf.int32,
    tf.float64: tf.int64,
}
