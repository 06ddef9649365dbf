"""Arrays: shapes, creation, joining, selection, slicing, gathering, scattering.

Each module registers its names; nothing is taken from the package itself.
"""

from __future__ import annotations

from tf_substrates.numpy.arrays import (  # noqa: F401
    blocks,
    creation,
    gathering,
    joining,
    ordering,
    scattering,
    selection,
    shaping,
    slicing,
)
