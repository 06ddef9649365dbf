"""Dtypes that stand in for others, where TensorFlow has no kernel for the dtype of the operands.

One table for each kind of op; a dtype that a table leaves out has a kernel. A rule names the table
of its op. What the kernels of an engine lack stands with its target (`Target.computes_in`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import tensorflow as tf

Carriers: TypeAlias = Mapping[tf.DType, tf.DType]


def carrier_of(carriers: Carriers, dtype: tf.DType) -> tf.DType:
    """The dtype that stands in for `dtype`: itself where there is a kernel."""
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

# --- What holds every value of another dtype: for ops that move elements. --------------------

# XLA packs two 4-bit integers in a byte. Not uint8 for uint4: TensorFlow 2.21 ends the process over
# a Cast from the one to the other on a GPU.
HOLDS_INT4 = dict.fromkeys(INT4, tf.int8)
# Not float16 for float8: there float8_e5m2's smallest numbers are subnormal, which processors may
# flush to zero.
HOLDS_FLOAT8 = dict.fromkeys(FLOAT8, tf.bfloat16)
HOLDS_NARROW = HOLDS_FLOAT8 | HOLDS_INT4

TILED = HOLDS_NARROW | {tf.uint16: tf.int32}
PADDED_WITHOUT_BOOL = HOLDS_NARROW | {tf.bool: tf.int32}
# For targets that pad neither with zeros nor with other numbers in the dtype itself.
PADDED_WIDE = {tf.uint32: tf.int64}
# tf.vectorized_map stacks what a function gives for each row.
STACKED = HOLDS_INT4 | {
    tf.uint16: tf.int32,
    tf.as_dtype("float8_e4m3fn"): tf.bfloat16,
    tf.as_dtype("float8_e5m2"): tf.bfloat16,
}
# XLA's reducing ops, as TensorFlow calls them.
REDUCED_BY_XLA = HOLDS_NARROW | {tf.bool: tf.uint8}
# In which every engine has the ops of a loop: of as many bits, or exact.
CARRIED_ROUND_A_LOOP = {
    **dict.fromkeys((tf.bfloat16, tf.float16), tf.float32),
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32), tf.int32),
    tf.uint64: tf.int64,
}

# The complex numbers of as many places.
COMPLEX = {tf.float32: tf.complex64, tf.float64: tf.complex128}

# --- What gives the same result, cast back: for ops that compute. ----------------------------

# Integers wrap when they are cast back. XLA too computes float8 in float16, op by op: functions
# that it composes of several ops round after each, and so do the rules.
COMPUTED = dict.fromkeys(FLOAT8, tf.float16) | dict.fromkeys(INT4, tf.int32)
# Comparisons; sorts, which XlaVariadicSort or TopKV2 have for fewer on some path.
COMPARED = COMPUTED | {tf.bool: tf.int32}
SORTED = COMPARED | {tf.uint16: tf.int32}
# Signs and shifts that keep the sign.
SIGNED = COMPUTED | {
    tf.uint8: tf.int8,
    tf.uint16: tf.int16,
    tf.uint32: tf.int32,
    tf.uint64: tf.int64,
}
# Functions that are several ops, and round once.
IN_FLOAT32 = dict.fromkeys((*FLOAT8, tf.bfloat16, tf.float16), tf.float32)
# Where TensorFlow's CPU kernels have a remainder.
REMAINDER = {
    **IN_FLOAT32,
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16), tf.int32),
    tf.uint32: tf.int64,
}
# XLA has kernels of Cumsum and Cumprod for 32 and 64 bits only. Integers wrap alike in any dtype of
# at least as many bits; narrow floats are rounded once, at the end.
ACCUMULATED = COMPUTED | CARRIED_ROUND_A_LOOP
# MatMul, on every device and in every mode. Integers wrap alike at every width; float8 is exact in
# float32, as XLA computes it; a bool is true where any product is. For float16 there are kernels,
# which on some processors add up in float16; JAX rounds each sum once.
MULTIPLIED = {
    **dict.fromkeys((*FLOAT8, tf.float16), tf.float32),
    **dict.fromkeys((*INT4, tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32), tf.int32),
    tf.bool: tf.int32,
    tf.uint64: tf.int64,
}

# --- What has as many bits. -------------------------------------------------------------------

UNSIGNED = {tf.int8: tf.uint8, tf.int16: tf.uint16, tf.int32: tf.uint32, tf.int64: tf.uint64}
SIGNED_INDICES = {tf.uint32: tf.int32, tf.uint64: tf.int64}
# The bits of a float as an integer, which orders floats of one sign.
BITS = {
    tf.bfloat16: tf.int16,
    tf.float16: tf.int16,
    tf.float32: tf.int32,
    tf.float64: tf.int64,
}
