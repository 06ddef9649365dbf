"""Carriers: the dtypes in which ops compute if TensorFlow has no kernel for the operands' dtype.

There is one table for each kind of op, and a rule names the table of its op. A dtype that is not in
a table has a kernel. `Target.computes_in` says which kernels an engine lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType

Carriers: TypeAlias = Mapping[DType, DType]


def carrier_of(carriers: Carriers, dtype: DType) -> DType:
    """The carrier of `dtype`: `dtype` itself if there is a kernel."""
    return carriers.get(dtype, dtype)


FLOAT8 = frozenset(
    {
        dtypes.float8_e4m3b11fnuz,
        dtypes.float8_e4m3fn,
        dtypes.float8_e4m3fnuz,
        dtypes.float8_e5m2,
        dtypes.float8_e5m2fnuz,
    }
)
INT4 = frozenset({dtypes.int4, dtypes.uint4})

# --- Carriers that hold every value of the dtype: for ops that move elements. ----------------

# XLA packs two 4-bit integers in a byte. uint4 is not carried in uint8: on a GPU, TensorFlow 2.21
# ends the process at a Cast between the two.
HOLDS_INT4 = dict.fromkeys(INT4, dtypes.int8)
# float8 is not carried in float16, where the smallest numbers of float8_e5m2 are subnormal and
# processors may flush them to zero.
HOLDS_FLOAT8 = dict.fromkeys(FLOAT8, dtypes.bfloat16)
HOLDS_NARROW = HOLDS_FLOAT8 | HOLDS_INT4

TILED = HOLDS_NARROW | {dtypes.uint16: dtypes.int32}
PADDED_WITHOUT_BOOL = HOLDS_NARROW | {dtypes.bool_: dtypes.int32}
# For targets that have neither Pad nor PadV2 of the dtype.
PADDED_WIDE = {dtypes.uint32: dtypes.int64}
# tf.vectorized_map stacks the results of a function for each row.
STACKED = HOLDS_INT4 | {
    dtypes.uint16: dtypes.int32,
    dtypes.float8_e4m3fn: dtypes.bfloat16,
    dtypes.float8_e5m2: dtypes.bfloat16,
}
# XLA's reducing ops, when TensorFlow calls them.
REDUCED_BY_XLA = HOLDS_NARROW | {dtypes.bool_: dtypes.uint8}
# Every engine has the ops of a loop in these dtypes, which have as many bits or are exact.
CARRIED_ROUND_A_LOOP = {
    **dict.fromkeys((dtypes.bfloat16, dtypes.float16), dtypes.float32),
    **dict.fromkeys(
        (*INT4, dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16, dtypes.uint32), dtypes.int32
    ),
    dtypes.uint64: dtypes.int64,
}

# The complex dtypes of the same precision.
COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}

# --- Carriers that give the same result, cast back: for ops that compute. ---------------------

# Integers wrap when they are cast back. XLA also computes float8 in float16, one op at a time. A
# function that XLA composes of several ops rounds after each op, and so do the rules.
COMPUTED = dict.fromkeys(FLOAT8, dtypes.float16) | dict.fromkeys(INT4, dtypes.int32)
# Comparisons and sorts; on some paths XlaVariadicSort or TopKV2 support fewer dtypes.
COMPARED = COMPUTED | {dtypes.bool_: dtypes.int32}
SORTED = COMPARED | {dtypes.uint16: dtypes.int32}
# Negation, signs and arithmetic shifts.
SIGNED = COMPUTED | {
    dtypes.uint8: dtypes.int8,
    dtypes.uint16: dtypes.int16,
    dtypes.uint32: dtypes.int32,
    dtypes.uint64: dtypes.int64,
}
# Functions that take several ops and round once.
IN_FLOAT32 = dict.fromkeys((*FLOAT8, dtypes.bfloat16, dtypes.float16), dtypes.float32)
# The dtypes for which TensorFlow's CPU kernels compute a remainder.
REMAINDER = {
    **IN_FLOAT32,
    **dict.fromkeys((*INT4, dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16), dtypes.int32),
    dtypes.uint32: dtypes.int64,
}
# XLA has kernels of Cumsum and Cumprod only for 32 and 64 bits. Integers wrap in the same way in
# every wider dtype; narrow floats are rounded once, at the end.
ACCUMULATED = COMPUTED | CARRIED_ROUND_A_LOOP
# MatMul, on every device and in every mode. Integers wrap in the same way at every width. Float8 is
# exact in float32, which XLA uses too. A bool is true if any product is. The float16 kernels
# accumulate in float16 on some processors, while JAX rounds each sum once.
MULTIPLIED = {
    **dict.fromkeys((*FLOAT8, dtypes.float16), dtypes.float32),
    **dict.fromkeys(
        (*INT4, dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16, dtypes.uint32), dtypes.int32
    ),
    dtypes.bool_: dtypes.int32,
    dtypes.uint64: dtypes.int64,
}

# --- Dtypes with the same number of bits. -----------------------------------------------------

UNSIGNED = {
    dtypes.int8: dtypes.uint8,
    dtypes.int16: dtypes.uint16,
    dtypes.int32: dtypes.uint32,
    dtypes.int64: dtypes.uint64,
}
SIGNED_INDICES = {dtypes.uint32: dtypes.int32, dtypes.uint64: dtypes.int64}
# The bits of a float as a signed integer: among floats of one sign, their order is the same.
BITS = {
    dtypes.bfloat16: dtypes.int16,
    dtypes.float16: dtypes.int16,
    dtypes.float32: dtypes.int32,
    dtypes.float64: dtypes.int64,
}
