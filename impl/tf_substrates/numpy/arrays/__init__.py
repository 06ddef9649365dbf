"""Arrays: shapes, creation, joining, choosing, slicing, gathering, scattering.

Each module registers its names; nothing is taken from the package itself.
"""

from __future__ import annotations

from tf_substrates.numpy.arrays import (  # noqa: F401
    blocks,
    choosing,
    creation,
    gathering,
    joining,
    ordering,
    scattering,
    shaping,
    slicing,
)
