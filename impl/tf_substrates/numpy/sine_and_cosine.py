"""The sine and cosine of angles within one turn, which Box and Muller's method asks for.

XLA computes either on a CPU by a function for angles of any size, which takes ten times as long as
the logarithm and the root beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

JAX_MODE = False

# A quarter of a turn in three parts. The first two have 21 bits, so that four of them are exact.
_QUARTER = tuple(
    np.float32(float.fromhex(part))
    for part in ("0x1.921fbp+0", "0x1.5110bp-22", "0x1.18469898cc517p-44")
)
_QUARTERS_OF_RADIAN = np.float32(2 / np.pi)

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 as polynomials in r**2, the highest
# power first: interpolation at Chebyshev's nodes of r**2 in [0, (pi / 4)**2].
_SINE = tuple(map(np.float32, (-1.95878657e-4, 8.33274815e-3, -1.66666647e-1)))
_COSINE = tuple(map(np.float32, (2.45479169e-5, -1.38883029e-3, 4.16666647e-2)))


def sine_and_cosine(angle: Any) -> tuple[Any, Any]:
    """The sine and cosine of angles in [0, 2 * pi], within 1.5 ULPs in float32.

    Args:
      angle: an array of float32 or float64.
    """
    if not JAX_MODE or angle.dtype != np.float32:
        return xp.sin(angle), xp.cos(angle)
    quarters = xp.round(angle * _QUARTERS_OF_RADIAN)
    rest = angle
    for part in _QUARTER:
        rest = rest - quarters * part
    square = rest * rest
    sine = _polynomial(_SINE, square) * square * rest + rest
    cosine = _polynomial(_COSINE, square) * square * square - square / 2 + 1
    quadrant = quarters.astype(np.int32)
    is_odd = (quadrant & 1) == 1
    sines = xp.where(is_odd, cosine, sine)
    cosines = xp.where(is_odd, sine, cosine)
    return (
        xp.where((quadrant & 2) == 0, sines, -sines),
        xp.where(((quadrant + 1) & 2) == 0, cosines, -cosines),
    )


def _polynomial(coefficients: tuple, x: Any) -> Any:
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value
