"""A bound on powers in symbolic dimensions, because JAX expands them."""

from __future__ import annotations

import math
import re

# Sizes have 31 bits, so b^31 is too large for every b except 1. JAX expands (a + b)^n, and a power
# of a power has the product of both exponents.
_LARGEST = 31
_EXPONENT = re.compile(r"\^\s*(\d+)")


def refuse_large_powers(text: str) -> None:
    """Refuses powers that JAX would expand for hours.

    Raises:
      ValueError: the product of the exponents in the text is too large.
    """
    # Six digits suffice, and Python's int() refuses thousands of digits.
    exponents = [int(digits[:6]) for digits in _EXPONENT.findall(text)]
    if math.prod(exponents) > _LARGEST:
        raise ValueError(
            f"the exponents in {text!r} should be at most {_LARGEST} together (their product), as "
            f"sizes have 31 bits, got {' * '.join(map(str, exponents))}. What to do: give the "
            "dimension a name of its own"
        )
