"""What is left of jax.scipy: signals, optimization, interpolation, rotations; jax.ops."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.spatial.transform import Rotation

from harnesses.functions import family
from harnesses.harness import Integers, Normal, Uniform, Values, define_functions, each, use

X = Normal((5, 4), "float32")
SIGNAL = Normal((32,), "float32")
SHORT = Normal((5,), "float32")
KERNEL = Normal((3, 2), "float32")
FREQUENCIES = Normal((5, 7), "complex64")
QUATERNION = Values([0.5, 0.5, -0.5, 0.5], "float32")
# Of the vectors [0, 0, 0], [0.5, 0, 1] and [1, -1, 0]. To ask JAX for them starts its backends, and
# a process that has only imported the harnesses may yet be forked.
# Of the vectors [0, 0, 0], [0.5, 0, 1] and [1, -1, 0]. To ask JAX for them starts its backends, and
# a process that has only imported the harnesses may yet be forked.
ROTATIONS = Rotation(
    Values(
        [[0, 0, 0, 1], [0.2371811, 0, 0.4743622, 0.8477768], [0.4593627, -0.4593627, 0, 0.7602446]],
        "float32",
    )
)


def _minimum(result: Any) -> Any:
    # Not the value there: it is zero but for rounding.
    return result.x


@family.builder
def clusters_integrals_and_interpolation() -> None:
    """Clusters, the trapezoidal rule, and interpolation on a grid."""
    define_functions("jax.scipy.cluster.vq", {"vq": use(X, Normal((3, 4), "float32"))})
    define_functions("jax.scipy.integrate", {"trapezoid": use(X, dx=0.5)})
    define_functions(
        "jax.scipy.interpolate",
        {
            "RegularGridInterpolator": use((np.arange(5.0), np.arange(4.0)), X).but(
                then=lambda interpolate: interpolate(np.float32([[1.2, 2.7], [3.5, 0.1]]))
            )
        },
    )


@family.builder
def images_at_coordinates() -> None:
    """Images interpolated at coordinates, by each mode beyond their edges."""
    define_functions(
        "jax.scipy.ndimage",
        {
            "map_coordinates": [
                use(
                    X, [Uniform((6,), "float32", -1, 6), Uniform((6,), "float32", 0, 3)], 1, mode
                ).but(case=mode)
                for mode in ("constant", "nearest", "mirror", "reflect", "wrap")
            ]
        },
    )


@family.builder
def minima() -> None:
    """The minimum that optimize.minimize finds."""
    define_functions(
        "jax.scipy.optimize",
        {
            "minimize": use(
                lambda x: jnp.sum((x - jnp.arange(3.0)) ** 2),
                Normal((3,), "float32"),
                method="BFGS",
            ).but(then=_minimum, ulps=16)
        },
    )


@family.builder
def signals() -> None:
    """Convolutions, correlations and spectra of signals."""
    define_functions(
        "jax.scipy.signal",
        {
            **each("convolve correlate fftconvolve", use(SIGNAL, SHORT)),
            **each("convolve2d correlate2d", use(X, KERNEL, mode="same")),
            "csd": use(SIGNAL, SIGNAL, nperseg=8),
            "detrend": use(SIGNAL),
            "istft": use(FREQUENCIES),
            **each("stft welch", use(SIGNAL, nperseg=8)),
        },
    )


@family.builder
def rotations() -> None:
    """Rotations made and read in each representation, and interpolated."""
    define_functions(
        "jax.scipy.spatial.transform",
        {
            "Rotation": use(QUATERNION).but(
                then=lambda rotation: (
                    rotation.apply(jnp.arange(3.0)),
                    rotation.as_matrix(),
                    rotation.as_rotvec(),
                    rotation.inv().as_quat(),
                    rotation.magnitude(),
                )
            ),
            "Rotation.from_euler": use("xyz", Uniform((3,), "float32", -1, 1)).but(
                then=lambda rotation: (rotation.as_euler("zyx"), rotation.as_mrp())
            ),
            "Rotation.from_rotvec": use(Uniform((2, 3), "float32", -1, 1)).but(
                then=lambda rotation: (rotation.as_quat(), rotation.mean().as_matrix())
            ),
            "Rotation.from_matrix": use(np.eye(3)[[1, 2, 0]]).but(
                then=lambda rotation: rotation.as_quat()
            ),
            "Slerp.init": use(np.float32([0, 1, 2]), ROTATIONS).but(
                then=lambda slerp: slerp(jnp.float32([0.5, 1.7])).as_quat()
            ),
        },
        ulps={"Rotation.from_rotvec": 12},
    )


@family.builder
def segment_reductions() -> None:
    """The reductions of segments in jax.ops."""
    define_functions(
        "jax.ops",
        {
            name: use(X, Integers((5,), "int32", -1, 4), 3)
            for name in ("segment_max", "segment_min", "segment_prod", "segment_sum")
        },
    )
