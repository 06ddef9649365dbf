"""Bounds of what is handed to JAX as symbolic dimensions: it multiplies powers out."""

from __future__ import annotations

import math
import re

# Sizes have 31 bits: that of b^31 has them for every b but 1. JAX multiplies (a + b)^n out, and a
# power of a power has the product of both exponents.
_LARGEST = 31
_EXPONENT = re.compile(r"\^\s*(\d+)")


def refuse_large_powers(text: str) -> None:
    """Refuses powers with which JAX would be busy for hours.

    Raises:
      ValueError: an exponent, or the product of those in one dimension, is too large.
    """
    # JAX's own error says of a number of thousands of digits that it cannot be read.
    exponents = [int(digits[:6]) for digits in _EXPONENT.findall(text)]
    if math.prod(exponents) > _LARGEST:
        raise ValueError(
            f"the exponents in {text!r} should be at most {_LARGEST} together (their product), as "
            f"sizes have 31 bits, got {' * '.join(map(str, exponents))}. What to do: give the "
            "dimension a name of its own"
        )
