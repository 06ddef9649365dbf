"""jax.numpy.fft and jax.scipy.fft."""

from harnesses.functions import family
from harnesses.harness import Normal, define_functions, each, use

X = Normal((4, 6), "float32")
C = Normal((4, 6), "complex64")


@family.builder
def fourier_transforms() -> None:
    """Functions of jax.numpy.fft and of jax.scipy.fft."""
    define_functions(
        "jax.numpy.fft",
        {
            **each("fft fft2 fftn fftshift ihfft rfft rfft2 rfftn", use(X)),
            **each("hfft ifft ifft2 ifftn ifftshift irfft irfft2 irfftn", use(C)),
            **each("fftfreq rfftfreq", use(7, 0.5)),
        },
    )
    define_functions("jax.scipy.fft", each("dct dctn idct idctn", use(X)))
