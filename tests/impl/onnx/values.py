"""Arrays for tests: the numbers of a dtype that are special, and shapes that are."""

import numpy as np

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)
DTYPES = ("bool", *NUMBERS)


def special(dtype, shape=(2, 3, 4), seed=0):
    """An array whose elements are the ends of the dtype, zeros, NaN, infinities and some others."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    random = np.random.RandomState(seed)
    if dtype.kind == "b":
        return random.rand(*shape) < 0.5
    numbers = random.randint(0, 100, count).astype(dtype)
    marked = random.permutation(count)[: len(_ends(dtype))]
    numbers[marked] = _ends(dtype)[: len(marked)]
    return numbers.reshape(shape)


def _ends(dtype):
    if dtype.kind != "f":
        known = np.iinfo(dtype)
        return np.array([known.min, known.max, 0, 1, known.max - 1, known.min + 1], dtype)
    known = np.finfo(dtype)
    some = [np.nan, np.inf, -np.inf, -0.0, 0.0, known.max, known.min, known.smallest_subnormal]
    return np.array([*some, known.tiny, -1.5], dtype)
