"""tf.math, one element at a time: arithmetic, comparisons, special functions, conversions.

Each module registers its names; nothing is taken from the package itself.
"""

from __future__ import annotations

from tf_substrates.numpy.math import (  # noqa: F401
    arithmetic,
    bits,
    complex_numbers,
    conversions,
    elementwise,
    logic,
    operators,
    special_functions,
)
