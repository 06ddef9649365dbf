"""Conversions between dtypes: convert_element_type, bitcast_convert_type, reduce_precision.

4-bit integers are made inside the function in all cases but one: TensorFlow passes them to compiled
code wrongly, and that should not hide what the conversions do.
"""

import functools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.harness import (
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOATS,
    INT2,
    INT4,
    INTS,
    NUMERIC,
    UINTS,
    WITHOUT_TENSORFLOW,
    Family,
    Integers,
    Normal,
    Values,
    define,
    edge_values,
    is_complex,
    is_integer,
    without_subnormals,
)

family = Family("conversions")

CONVERTIBLE = (*NUMERIC, *BOOL, *FLOAT8, *INT4)


@functools.cache
def telling_values(dtype: np.dtype) -> np.ndarray:
    """Numbers of `dtype` that conversions could get wrong: edges, ends of other dtypes, ties."""
    if dtype in FLOAT8:
        return np.arange(256, dtype=np.uint8).view(dtype)
    if dtype in INT4 or dtype in BOOL:
        return edge_values(dtype)
    if is_integer(dtype):
        rng = np.random.default_rng(0)
        shifts = np.arange(dtype.itemsize * 8).astype(dtype)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        anywhere = rng.integers(low, high, shifts.size, dtype, endpoint=True) >> shifts
        around = [2**p + d for p in range(dtype.itemsize * 8) for d in (-1, 0, 1)]
        return np.concatenate(
            [
                edge_values(dtype),
                anywhere,
                np.array([n for n in around if low <= n <= high], dtype),
            ]
        )
    powers = 2.0 ** np.array([1, 2, 3, 4, 7, 8, 10, 11, 15, 16, 24, 31, 32, 53, 63, 64])
    ends = np.concatenate([powers, powers - 1, powers + 1, np.nextafter(powers, 0)])
    # Ties and their neighbours, for rounding to formats with 2, 3, 7 and 10 bits of mantissa.
    ties = [1 + 2.0**-bits * part for bits in (2, 3, 7, 10) for part in (0.5, 0.49, 0.51, 1.5, 2.5)]
    # Around the largest numbers of float8, float16, bfloat16 and float32, and their smallest.
    ends_of_others = [
        edge
        for other in (*FLOAT8, *FLOATS)
        for edge in (
            float(ml_dtypes.finfo(other).max),
            float(ml_dtypes.finfo(other).smallest_normal),
        )
    ]
    scales = np.array([0.24, 0.26, 0.5, 0.99, 1.0, 1.01, 1.04, 1.07, 1.13])
    sizes = np.outer([edge for edge in ends_of_others if edge < 1e300], scales).ravel()
    numbers = np.concatenate([ends, ties, sizes, [0.3, 1.7, 2.5, 3.5, 100.4]])
    numbers = np.concatenate([numbers, -numbers])
    if is_complex(dtype):
        numbers = numbers + 1j * numbers[::-1]
    with np.errstate(all="ignore"):
        return np.concatenate([edge_values(dtype), numbers.astype(dtype)])


def _carrier(dtype: np.dtype) -> np.dtype:
    """The dtype in which values of `dtype` enter and leave the function."""
    return np.dtype(np.int8) if dtype in INT4 else dtype


def _convert(old: np.dtype, new: np.dtype, x):
    x = lax.convert_element_type(x, old)
    return lax.convert_element_type(lax.convert_element_type(x, new), _carrier(new))


@family.builder
def conversions_between_all_dtypes() -> None:
    """Every dtype to every dtype, of numbers that conversions could get wrong."""
    for old in CONVERTIBLE:
        for new in CONVERTIBLE:
            values = telling_values(old)
            if old == jnp.bfloat16 and new == np.bool_:
                # Whether a subnormal bfloat16 is zero is not the same in every version of JAX.
                values = without_subnormals(values)
            define(
                "convert_element_type",
                f"to_{new.name}",
                functools.partial(_convert, old, new),
                [Values(values.astype(_carrier(old)), _carrier(old))],
                dtype=old,
                params={"new_dtype": new.name},
                x64=True,
            )


@family.builder
def conversions_of_special_shapes() -> None:
    """Shapes that a kernel could trip over."""
    for new in (*FLOATS[1:3], *INTS[::3], *BOOL, *COMPLEX[:1], *FLOAT8[1:2]):
        for case, shape in {"scalar": (), "empty": (0, 3)}.items():
            define(
                "convert_element_type",
                f"{case}_to_{new.name}",
                functools.partial(lax.convert_element_type, new_dtype=new),
                [Normal(shape, np.float32)],
                dtype=np.float32,
                params={"new_dtype": new.name},
                x64=True,
            )


@family.builder
def conversions_to_the_same_dtype() -> None:
    """Conversions that no cast has to make."""
    for dtype in (*FLOATS, *INTS, *BOOL, *COMPLEX):
        define(
            "convert_element_type",
            "to_itself",
            functools.partial(lax.convert_element_type, new_dtype=dtype),
            [Values(edge_values(dtype), dtype)],
            dtype=dtype,
            params={"new_dtype": dtype.name},
        )


# The dtype of one operand, and that of the other.
PROMOTIONS = {
    np.int32: np.float32,
    np.uint8: np.int8,
    np.int16: jnp.bfloat16,
    np.float16: jnp.bfloat16,
    np.uint32: np.int32,
    np.float32: np.complex64,
    np.bool_: np.int32,
}


@family.builder
def conversions_with_and_without_x64() -> None:
    """What asks for 64-bit dtypes, and promotions, with these dtypes and without."""
    for x64 in (False, True):
        case = "with_x64" if x64 else "without_x64"
        _conversions_to_64_bits(case, x64)
        _promotions_by_python_numbers(case, x64)
        _promotions_by_arrays(case, x64)


def _conversions_to_64_bits(case: str, x64: bool) -> None:
    """With 64-bit dtypes switched off, what asks for them gets 32 bits."""
    for name in ("int64", "uint64", "float64", "complex128"):
        new = np.dtype(name)
        # 2**31 is what int32 cannot hold, and uint32 can.
        define(
            "convert_element_type",
            f"to_{name}_{case}",
            functools.partial(lax.convert_element_type, new_dtype=new),
            [Values([0.0, -1.5, 2.0**31, -(2.0**31), 2.0**40, np.nan, np.inf], np.float32)],
            dtype=np.float32,
            params={"new_dtype": name},
            x64=x64,
        )


def _promotions_by_python_numbers(case: str, x64: bool) -> None:
    """With 64-bit dtypes switched on, Python numbers are 64 bits wide and weak all the same."""
    for scalar in (True, 3, 2.5, 1j):
        define(
            "convert_element_type",
            f"promotes_python_{type(scalar).__name__}_{case}",
            lambda x, scalar=scalar: (x + scalar, jnp.asarray(scalar), jnp.array([scalar, 1])),
            [Integers((4,), np.int8, -5, 5)],
            dtype=np.int8,
            x64=x64,
        )


def _promotions_by_arrays(case: str, x64: bool) -> None:
    for old, new in PROMOTIONS.items():
        old, new = np.dtype(old), np.dtype(new)
        define(
            "convert_element_type",
            f"promotes_with_{new.name}_{case}",
            lambda x, y: jnp.stack(jnp.promote_types(x.dtype, y.dtype) and (x + y, y + x)),
            [Normal((3,), old), Normal((3,), new)],
            dtype=old,
            x64=x64,
        )


@family.builder
def dtypes_without_kernels() -> None:
    """Dtypes for which TensorFlow has a name and no kernel, or no name."""
    for dtype in (*FLOAT4, *INT2, *WITHOUT_TENSORFLOW):
        define(
            "convert_element_type",
            "there_and_back",
            functools.partial(_convert, np.dtype(np.float32), dtype),
            [Values([0.0, 1.0, -1.0, 0.5], np.float32)],
            dtype=dtype,
            params={"new_dtype": dtype.name},
        )


@family.builder
def int4_arguments_and_results() -> None:
    """A 4-bit integer as an argument and as a result."""
    for dtype in INT4:
        define(
            "convert_element_type",
            "from_argument",
            lambda x: lax.convert_element_type(x, np.int32),
            [Values(np.arange(1, 8), dtype)],
            dtype=dtype,
            params={"new_dtype": "int32"},
        )
        define(
            "convert_element_type",
            "to_result",
            functools.partial(lax.convert_element_type, new_dtype=dtype),
            [Values(np.arange(1, 8), np.int32)],
            dtype=dtype,
            params={"new_dtype": dtype.name},
        )


def _bits(dtype: np.dtype) -> int:
    return 4 if dtype in INT4 else 8 * dtype.itemsize


def _bitcast(old: np.dtype, new: np.dtype, x):
    x = lax.convert_element_type(x, old)
    return lax.convert_element_type(lax.bitcast_convert_type(x, new), _carrier(new))


def _bitcast_operand(old: np.dtype, new: np.dtype) -> np.ndarray:
    values = telling_values(old)
    if old.name == "float8_e5m2":
        # Its other NaNs have a case of their own.
        values = values[~np.isnan(values) | np.isin(values.view(np.uint8), [0x7E, 0xFE])]
    if _bits(old) >= _bits(new):
        return values
    parts = _bits(new) // _bits(old)
    return np.resize(values, (max(values.size // parts, 2), parts))


BITCASTABLE = (*FLOATS, *INTS, *UINTS[1:2], *UINTS[3:], *FLOAT8[1:4], *INT4)


@family.builder
def bitcasts_between_widths() -> None:
    """Every width to every width; of one width, floats and integers of both signs."""
    for old in BITCASTABLE:
        for new in BITCASTABLE:
            values = _bitcast_operand(old, new).astype(_carrier(old))
            define(
                "bitcast_convert_type",
                f"to_{new.name}",
                functools.partial(_bitcast, old, new),
                [Values(values, _carrier(old))],
                dtype=old,
                params={"new_dtype": new.name},
                x64=True,
            )


@family.builder
def bitcasts_of_special_values_and_shapes() -> None:
    """Payloads of NaN, dtypes to themselves, scalars and empty arrays."""
    # float8_e5m2 alone of float8 has NaNs of several payloads.
    payloads = np.array([0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF], np.uint8).view(FLOAT8[3])
    define(
        "bitcast_convert_type",
        "payload_of_nan",
        functools.partial(lax.bitcast_convert_type, new_dtype=np.uint8),
        [Values(payloads, FLOAT8[3])],
        dtype=FLOAT8[3],
        params={"new_dtype": "uint8"},
    )
    for dtype in (*BOOL, *COMPLEX):
        define(
            "bitcast_convert_type",
            "to_itself",
            functools.partial(lax.bitcast_convert_type, new_dtype=dtype),
            [Values(edge_values(dtype), dtype)],
            dtype=dtype,
            params={"new_dtype": dtype.name},
        )
    for case, shape, new in [
        ("scalar_to_narrower", (), np.uint8),
        ("empty_to_narrower", (0, 2), np.uint8),
        ("empty_to_wider", (0, 2), np.float64),
        ("matrix_to_scalar", (2,), np.int64),
    ]:
        define(
            "bitcast_convert_type",
            case,
            functools.partial(lax.bitcast_convert_type, new_dtype=new),
            [Normal(shape, np.float32)],
            dtype=np.float32,
            params={"new_dtype": np.dtype(new).name},
            x64=True,
        )


@family.builder
def views() -> None:
    """`view` as a dtype of the same width and of another."""
    for old, new in [
        (np.float32, np.int32),
        (np.float32, np.int16),
        (np.uint8, np.float32),
        (np.bool_, np.uint8),
        (np.uint8, np.bool_),
        (np.complex64, np.float32),
        (np.float32, np.complex64),
    ]:
        old, new = np.dtype(old), np.dtype(new)
        define(
            "view",
            f"as_{new.name}",
            lambda x, new=new: x.view(new),
            [Integers((3, 8), old, 0, 2) if old != np.complex64 else Normal((3, 8), old)],
            dtype=old,
            params={"new_dtype": new.name},
        )


# (exponent_bits, mantissa_bits): of float16, bfloat16, float32, float64, float8, and what is odd.
FORMATS = [
    *((5, 10), (8, 7), (8, 23), (11, 52), (5, 2), (4, 3), (3, 4)),
    *((2, 1), (1, 0), (1, 5), (3, 0), (5, 0), (8, 0), (6, 20), (8, 3), (4, 60), (15, 5)),
]


@family.builder
def reduced_precisions() -> None:
    """`reduce_precision` to each format of `FORMATS`."""
    for exponent_bits, mantissa_bits in FORMATS:
        for dtype in FLOATS:
            define(
                "reduce_precision",
                f"exponent_{exponent_bits}_mantissa_{mantissa_bits}",
                functools.partial(
                    lax.reduce_precision, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
                ),
                [Values(telling_values(dtype), dtype)],
                dtype=dtype,
                params={"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits},
            )
