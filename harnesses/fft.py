"""Fast Fourier transforms: each type, over one to three dimensions, of every kind of length."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import COMPLEX, Arg, Normal, Values, define, edge_values

# Errors of a transform grow with the logarithm of its length and are spread over the array.
_ULPS = 4
_REAL_OF = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}

# Powers of two, odd lengths, primes, a composite, one.
_LENGTHS: tuple[tuple[int, ...], ...] = (
    (1,),
    (2,),
    (7,),
    (8,),
    (13,),
    (36,),
    (101,),
    (4, 5),
    (5, 4),
    (1, 6),
    (3, 4, 5),
    (4, 3, 6),
)


def _half(lengths: tuple[int, ...]) -> tuple[int, ...]:
    return (*lengths[:-1], lengths[-1] // 2 + 1)


for _dtype in COMPLEX:
    _real = _REAL_OF[_dtype]
    for _lengths in _LENGTHS:
        for _type, _argument in {
            "fft": Normal((2, *_lengths), _dtype),
            "ifft": Normal((2, *_lengths), _dtype),
            "rfft": Normal((2, *_lengths), _real),
            "irfft": Normal((2, *_half(_lengths)), _dtype),
        }.items():
            define(
                "fft",
                f"{_type}_{'x'.join(map(str, _lengths))}",
                lambda x, type=_type, lengths=_lengths: lax.fft(x, type, lengths),
                [_argument],
                dtype=_argument.dtype,
                params={"fft_type": _type, "fft_lengths": _lengths},
                ulps=_ULPS,
                scale="array",
            )

_C64, _F32 = np.dtype("complex64"), np.dtype("float32")
_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "no_batch": ((6,), (6,)),
    "batches": ((2, 3, 6), (6,)),
    "empty_batch": ((0, 6), (6,)),
    "no_elements": ((2, 0), (0,)),
    "whole": ((3, 4, 5), (3, 4, 5)),
}
for _name, (_shape, _lengths) in _SHAPES.items():
    for _type in ("fft", "ifft"):
        define(
            "fft",
            f"{_type}_{_name}",
            lambda x, type=_type, lengths=_lengths: lax.fft(x, type, lengths),
            [Normal(_shape, _C64)],
            dtype=_C64,
            params={"fft_type": _type},
            ulps=_ULPS,
            scale="array",
        )
for _type, _edge_argument in {
    "fft": Values([1, np.inf, 0, -1], _C64),
    "ifft": Values([1, np.nan, 0, -1], _C64),
    "rfft": Values(edge_values(_F32)[np.isfinite(edge_values(_F32))], _F32),
}.items():
    define(
        "fft",
        f"{_type}_not_finite" if _type != "rfft" else "rfft_edges",
        lambda x, type=_type: lax.fft(x, type, x.shape),
        [_edge_argument],
        dtype=_edge_argument.dtype,
        ulps=_ULPS,
        scale="array",
    )

# jax.numpy.fft: name, case, function, argument.

_SIGNAL, _WAVE = Normal((3, 8), _F32), Normal((3, 8), _C64)
_CUBE, _COMPLEX_CUBE = Normal((3, 4, 6), _F32), Normal((3, 4, 6), _C64)
_PUBLIC: list[tuple[str, str, Callable[..., Any], Arg]] = [
    ("fftfreq", "", lambda x: x + jnp.fft.fftfreq(8, d=0.5), _SIGNAL),
    ("rfftfreq", "", lambda x: x[:, :5] + jnp.fft.rfftfreq(8, d=0.5), _SIGNAL),
    ("fftshift", "", jnp.fft.fftshift, _SIGNAL),
    ("fftshift", "axes", lambda x: jnp.fft.fftshift(x, axes=1), _CUBE),
    ("ifftshift", "", jnp.fft.ifftshift, _CUBE),
    ("ifftshift", "axes", lambda x: jnp.fft.ifftshift(x, axes=(0, 2)), _CUBE),
    ("fft", "of_integers", jnp.fft.fft, Normal((8,), np.int32)),
    ("fftn", "four_axes", jnp.fft.fftn, Normal((2, 3, 2, 4), _C64)),
    ("ifftn", "four_axes", jnp.fft.ifftn, Normal((2, 3, 2, 4), _C64)),
    ("rfftn", "four_axes", jnp.fft.rfftn, Normal((2, 3, 2, 4), _F32)),
    ("irfftn", "four_axes", jnp.fft.irfftn, Normal((2, 3, 2, 4), _C64)),
    ("dct", "", jax.scipy.fft.dct, _SIGNAL),
    ("dct", "axis_ortho", lambda x: jax.scipy.fft.dct(x, axis=0, norm="ortho"), _SIGNAL),
    ("dctn", "", jax.scipy.fft.dctn, _CUBE),
    ("idct", "", jax.scipy.fft.idct, _SIGNAL),
    ("idct", "ortho", lambda x: jax.scipy.fft.idct(x, n=5, norm="ortho"), _SIGNAL),
    ("idctn", "", jax.scipy.fft.idctn, _CUBE),
    ("fftconvolve", "full", lambda x: jax.scipy.signal.fftconvolve(x, x[:, :3]), _SIGNAL),
    (
        "fftconvolve",
        "valid",
        lambda x: jax.scipy.signal.fftconvolve(x, x[:, :3], mode="valid", axes=[1]),
        _SIGNAL,
    ),
    ("stft", "", lambda x: jax.scipy.signal.stft(x, nperseg=8), Normal((32,), _F32)),
    ("csd", "", lambda x: jax.scipy.signal.csd(x, x[::-1], nperseg=8), Normal((32,), _F32)),
    ("welch", "", lambda x: jax.scipy.signal.welch(x, nperseg=8), Normal((32,), _F32)),
    (
        "istft",
        "",
        lambda x: jax.scipy.signal.istft(x, nperseg=8),
        Normal((5, 6), _C64),
    ),
]
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _argument = _SIGNAL if _name in ("rfft", "ihfft") else _WAVE
    _function = getattr(jnp.fft, _name)
    _PUBLIC += [
        (_name, "", _function, _argument),
        (_name, "axis", lambda x, f=_function: f(x, axis=0), _argument),
        (_name, "cropped", lambda x, f=_function: f(x, n=5), _argument),
        (_name, "padded", lambda x, f=_function: f(x, n=11), _argument),
        (_name, "ortho", lambda x, f=_function: f(x, norm="ortho"), _argument),
        (_name, "forward", lambda x, f=_function: f(x, norm="forward"), _argument),
    ]
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    _argument = _CUBE if _name.startswith("rfft") else _COMPLEX_CUBE
    _function = getattr(jnp.fft, _name)
    _PUBLIC += [
        (_name, "", _function, _argument),
        (_name, "sizes", lambda x, f=_function: f(x, s=(5, 3), axes=(0, 1)), _argument),
        (_name, "ortho", lambda x, f=_function: f(x, axes=(2, 0), norm="ortho"), _argument),
    ]
for _public_name, _case, _fun, _public_argument in _PUBLIC:
    define(
        _public_name,
        f"numpy_{_case}".rstrip("_"),
        _fun,
        [_public_argument],
        dtype=_public_argument.dtype,
        ulps=2 * _ULPS,
        scale="array",
    )

# Transformed programs.

define(
    "fft",
    "vmap",
    jax.vmap(lambda x: lax.fft(x, "fft", (6,)), 1),
    [Normal((6, 3), _C64)],
    dtype=_C64,
    ulps=_ULPS,
    scale="array",
)
define(
    "fft",
    "gradient_rfft",
    jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)),
    [Normal((7,), _F32)],
    dtype=_F32,
    ulps=2 * _ULPS,
    scale="array",
)
define(
    "fft",
    "gradient_irfft",
    jax.grad(lambda x: jnp.sum(jnp.fft.irfft(x + 1j * x) ** 3)),
    [Normal((7,), _F32)],
    dtype=_F32,
    ulps=2 * _ULPS,
    scale="array",
)
