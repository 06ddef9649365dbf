"""Fast Fourier transforms: each type, over one to three dimensions, of every kind of length."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    COMPLEX,
    Arg,
    Family,
    Normal,
    Uniform,
    Values,
    define,
    edge_values,
)

family = Family("fft")

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


@family.builder
def transforms_of_every_length() -> None:
    """Each type of transform over one to three dimensions, of each dtype."""
    for dtype in COMPLEX:
        for lengths in _LENGTHS:
            for fft_type, argument in {
                "fft": Normal((2, *lengths), dtype),
                "ifft": Normal((2, *lengths), dtype),
                "rfft": Normal((2, *lengths), _REAL_OF[dtype]),
                "irfft": Normal((2, *_half(lengths)), dtype),
            }.items():
                define(
                    "fft",
                    f"{fft_type}_{'x'.join(map(str, lengths))}",
                    lambda x, type=fft_type, lengths=lengths: lax.fft(x, type, lengths),
                    [argument],
                    dtype=argument.dtype,
                    params={"fft_type": fft_type, "fft_lengths": lengths},
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


@family.builder
def transforms_of_batches() -> None:
    """Complex transforms with none, one or two dimensions of batches, and of no elements."""
    for name, (shape, lengths) in _SHAPES.items():
        for fft_type in ("fft", "ifft"):
            define(
                "fft",
                f"{fft_type}_{name}",
                lambda x, type=fft_type, lengths=lengths: lax.fft(x, type, lengths),
                [Normal(shape, _C64)],
                dtype=_C64,
                params={"fft_type": fft_type},
                ulps=_ULPS,
                scale="array",
            )


@family.builder
def transforms_at_edges() -> None:
    """Transforms of an infinity and of NaN, and of the finite edges of float32."""
    for fft_type, argument in {
        "fft": Values([1, np.inf, 0, -1], _C64),
        "ifft": Values([1, np.nan, 0, -1], _C64),
        "rfft": Values(edge_values(_F32)[np.isfinite(edge_values(_F32))], _F32),
    }.items():
        define(
            "fft",
            f"{fft_type}_not_finite" if fft_type != "rfft" else "rfft_edges",
            lambda x, type=fft_type: lax.fft(x, type, x.shape),
            [argument],
            dtype=argument.dtype,
            ulps=_ULPS,
            scale="array",
        )


@family.builder
def phases_of_real_numbers() -> None:
    """Phases of the points that are real: 0 or pi, never -pi. JAX makes their imaginary part 0."""
    for size in (1, 2, 8, 9, 300, 315):
        ends = np.array([0] if size % 2 else [0, size // 2])
        for name, argument in {
            "": Normal((4, size), _F32),
            "_below_zero": Uniform((4, size), _F32, low=-1.0, high=-0.5),
            "_above_zero": Uniform((4, size), _F32, low=0.5, high=1.0),
        }.items():
            define(
                "fft",
                f"rfft_phases_of_{size}{name}",
                lambda x, ends=ends: jnp.angle(jnp.fft.rfft(x))[:, ends],
                [argument],
                dtype=_F32,
                params={"fft_type": "rfft", "fft_lengths": (size,)},
            )


# Public functions: name, case, function, argument.

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


@family.builder
def public_functions() -> None:
    """Frequencies, shifts, cosine transforms and spectra; transforms of four axes."""
    for name, case, fun, argument in _PUBLIC:
        _define_public(name, case, fun, argument)


@family.builder
def functions_of_one_axis() -> None:
    """Functions of jax.numpy.fft that transform one axis, with each of their options."""
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        argument = _SIGNAL if name in ("rfft", "ihfft") else _WAVE
        function = getattr(jnp.fft, name)
        for case, fun in {
            "": function,
            "axis": lambda x, f=function: f(x, axis=0),
            "cropped": lambda x, f=function: f(x, n=5),
            "padded": lambda x, f=function: f(x, n=11),
            "ortho": lambda x, f=function: f(x, norm="ortho"),
            "forward": lambda x, f=function: f(x, norm="forward"),
        }.items():
            _define_public(name, case, fun, argument)


@family.builder
def functions_of_several_axes() -> None:
    """Functions of jax.numpy.fft that transform several axes, with each of their options."""
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        argument = _CUBE if name.startswith("rfft") else _COMPLEX_CUBE
        function = getattr(jnp.fft, name)
        for case, fun in {
            "": function,
            "sizes": lambda x, f=function: f(x, s=(5, 3), axes=(0, 1)),
            "ortho": lambda x, f=function: f(x, axes=(2, 0), norm="ortho"),
        }.items():
            _define_public(name, case, fun, argument)


def _define_public(name: str, case: str, fun: Callable[..., Any], argument: Arg) -> None:
    define(
        name,
        f"numpy_{case}".rstrip("_"),
        fun,
        [argument],
        dtype=argument.dtype,
        ulps=2 * _ULPS,
        scale="array",
    )


@family.builder
def batches_and_gradients() -> None:
    """A transform in vmap, and gradients of real transforms."""
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
