"""tf.signal.dct and idct: discrete cosine transforms of types 1 to 4, by Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, require

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


@op("signal.dct")
def dct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, name: Any = None
) -> Any:
    """The cosine transform of the last axis, cut or filled with zeros to `n`.

    Raises:
      NotImplementedError: the axis is not the last.
      ValueError: there is no such type or norm, or `n` is not positive.
    """
    x = convert(input)
    _validate(x, type, n, axis, norm)
    x = require("RFFT", x, ("float32", "float64"))
    if n is not None:
        kept = x[..., :n]
        rest = xp.zeros((*kept.shape[:-1], n - kept.shape[-1]), x.dtype)
        x = xp.concatenate([kept, rest], -1)
    return _TRANSFORMS[type](x, norm == "ortho").astype(x.dtype)


@op("signal.idct")
def idct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, name: Any = None
) -> Any:
    """The inverse of `dct`, but for a factor of twice the length where `norm` is None."""
    x = convert(input)
    _validate(x, type, n, axis, norm)
    return convert(dct(x, _INVERSE[type], n, axis, norm))


def _validate(x: Any, kind: int, n: Any, axis: int, norm: Any) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if kind not in _INVERSE:
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if kind == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x.shape[-1] < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def _turns(size: int) -> Any:
    """Quarter turns over the length: exp(-i pi k / 2 size)."""
    return np.exp(-0.5j * np.pi * np.arange(size) / max(size, 1))


def _complex(x: Any) -> Any:
    return np.complex128 if x.dtype == np.float64 else np.complex64


def _spectrum(x: Any) -> Any:
    """The Fourier transform over twice the length, of which the first half is used."""
    size = x.shape[-1]
    return xp.fft.fft(x, 2 * size)[..., :size]


def _first(x: Any, ortho: bool) -> Any:
    return xp.real(xp.fft.rfft(xp.concatenate([x, x[..., -2:0:-1]], -1)))


def _second(x: Any, ortho: bool) -> Any:
    size = x.shape[-1]
    result = 2 * xp.real(_spectrum(x) * _turns(size).astype(_complex(x)))
    return result * _weights(size).astype(x.dtype) if ortho else result


def _third(x: Any, ortho: bool) -> Any:
    size = x.shape[-1]
    if ortho:
        # The transpose of the second type's matrix, whose first row has half the weight here.
        x = x * _weights(size).astype(x.dtype) * np.asarray([2] + [1] * (size - 1), x.dtype)
    turned = xp.real(_spectrum(x * _turns(size).astype(_complex(x))))
    return 2 * turned - x[..., :1]


def _fourth(x: Any, ortho: bool) -> Any:
    size = x.shape[-1]
    wide = xp.concatenate([x, xp.zeros_like(x)], -1)
    result = _second(wide, False)[..., 1::2]
    return result * np.asarray(np.sqrt(0.5 / size), x.dtype) if ortho else result


def _weights(size: int) -> Any:
    weights = np.full(size, np.sqrt(0.5 / size))
    weights[0] = np.sqrt(0.25 / size)
    return weights


_TRANSFORMS = {1: _first, 2: _second, 3: _third, 4: _fourth}
