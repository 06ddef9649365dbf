"""Fast Fourier transforms: the four types, over the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable

from jax import lax

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Shape

_COMPLEX: dict[tuple[lax.FftType, int], Callable[[Tensor], Tensor]] = {
    (lax.FftType.FFT, 1): ops.fft,
    (lax.FftType.FFT, 2): ops.fft2d,
    (lax.FftType.FFT, 3): ops.fft3d,
    (lax.FftType.IFFT, 1): ops.ifft,
    (lax.FftType.IFFT, 2): ops.ifft2d,
    (lax.FftType.IFFT, 3): ops.ifft3d,
}

# These take the lengths of the real side, which the shape of the complex side does not determine.
_REAL: dict[tuple[lax.FftType, int], Callable[..., Tensor]] = {
    (lax.FftType.RFFT, 1): ops.rfft,
    (lax.FftType.RFFT, 2): ops.rfft2d,
    (lax.FftType.RFFT, 3): ops.rfft3d,
    (lax.FftType.IRFFT, 1): ops.irfft,
    (lax.FftType.IRFFT, 2): ops.irfft2d,
    (lax.FftType.IRFFT, 3): ops.irfft3d,
}


@register("fft")
def _fft(ctx: Context, x: Tensor, *, fft_type: lax.FftType, fft_lengths: Shape) -> Tensor:
    key = lax.FftType(fft_type), len(fft_lengths)
    if key in _COMPLEX:
        return _COMPLEX[key](x)
    return _REAL[key](x, ctx.shape(fft_lengths))
