"""Numbers of each dtype at which kernels differ."""

import ml_dtypes
import numpy as np

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "float32", "float64")
NUMBERS = (*INTEGERS, *FLOATS)

_GREAT = (1e4, 2.0**24 + 1, 1e30, np.inf, np.nan)
_SMALL = (0.0, 1e-8, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 20.0, 100.0)


def numbers(dtype: str) -> np.ndarray:
    """A vector: the ends of the range, numbers around zero, and NaN, infinities."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind == np.bool_:
        return np.array([True, False, False, True])
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        middle = [0, 1, 2, 3, 5, 7, 8, 17, 100, 127]
        # Some kernels take integers of 64 bits for two halves.
        middle += [n for n in (2**31 - 1, 2**31, 2**32 - 1, 2**32 + 3) if n < ends.max]
        low = [-n for n in middle if ends.min < 0] + [ends.min, ends.min + 1]
        return np.array([*middle, *low, ends.max - 1, ends.max, ends.max // 2, ends.max // 3], kind)
    ends = ml_dtypes.finfo(kind)
    edges = [float(ends.max), float(ends.tiny)]
    with np.errstate(over="ignore"):
        positive = np.array([*_SMALL, *_GREAT, *edges]).astype(kind)
    return np.concatenate([positive, -positive])


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A column and a row, which make all pairs of the numbers."""
    x = numbers(dtype)
    return x[:, None], x[None, :]


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Integers of the whole range, with an odd seed at most 2**32 + 10, or numbers about 1."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind == np.bool_:
        return generator.random(shape) < 0.5
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        numbers = generator.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)
        # Some kernels take integers of 64 bits for two halves.
        return numbers % kind.type(2**32 + 11) if seed % 2 and kind.itemsize == 8 else numbers
    return generator.normal(size=shape).astype(kind)
