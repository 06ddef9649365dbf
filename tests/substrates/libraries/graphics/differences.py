"""What of TensorFlow Graphics' programs is not equal to TensorFlow's, and why."""

from __future__ import annotations

from tests.substrates.libraries.differences import NO_DERIVATIVES, Difference
from tests.substrates.libraries.programs import GRAD

DIFFERENCES = [
    NO_DERIVATIVES,
    Difference(
        "a loop runs as long as a traced value says, of which JAX has no derivative in reverse",
        (GRAD,),
        "^ValueError: Reverse-mode differentiation does not work for lax.while_loop",
        ("math.math_helpers.double_factorial", "math.spherical_harmonics.rotate_zonal_harmonics"),
    ),
]
