"""Decides which constants are weights, and quantises weights to integers."""

from __future__ import annotations

import numpy as np

# Constants that are smaller or have one dimension may be numbers such as 1e-8, or the 0.9999 of a
# schedule, which float16 rounds to 0 and to 1.
_LEAST_ELEMENTS = 1024
_LEAST_RANK = 2


def is_weight(array: np.ndarray) -> bool:
    """Whether a constant may be stored in fewer bits."""
    return (
        array.dtype == np.float32
        and array.ndim >= _LEAST_RANK
        and array.size >= _LEAST_ELEMENTS
        and bool(np.isfinite(array).all())
    )


# The fractions of the largest number that are tried as the range. With 4 bits, a smaller range that
# clips the largest numbers often has the smaller error.
_CUTS = {8: (1.0,), 4: (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)}


def quantized(weights: np.ndarray, bits: int, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The scales along an axis, with the rank of the weights, and the integers.

    Each index of the axis has the scale with the least sum of squared errors. Without an axis there
    is one scale for all.
    """
    most = 2 ** (bits - 1) - 1
    others = tuple(i for i in range(weights.ndim) if i != axis)
    largest = np.abs(weights).max(others, keepdims=True)
    best: tuple[np.ndarray, ...] | None = None
    for cut in _CUTS[bits]:
        scales = np.where(largest == 0, np.float32(1), largest * np.float32(cut / most))
        numbers = np.clip(np.rint(weights / scales), -most, most)
        # The squares of large errors are infinities, of which none is the least.
        with np.errstate(over="ignore"):
            error = np.square(numbers * scales - weights).sum(others, keepdims=True)
        if best is None:
            best = scales, numbers.astype(np.int8), error
        else:
            better = error < best[2]
            tried = scales, numbers.astype(np.int8), error
            best = tuple(np.where(better, new, old) for new, old in zip(tried, best, strict=True))
    assert best is not None, "_CUTS is not empty"
    return best[0], best[1]


def in_half_bytes(numbers: np.ndarray) -> np.ndarray:
    """Integers of 4 bits packed into bytes, the first of each pair in the lower half."""
    flat = numbers.reshape(-1)
    flat = np.append(flat, np.zeros(flat.size % 2, np.int8)) & 0x0F
    return (flat[::2] | (flat[1::2] << 4)).view(np.uint8)
