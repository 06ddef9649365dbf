"""What the small regions of reductions and scatters compute."""

from __future__ import annotations

from jax2tf._src.stablehlo.program import Region

_COMMUTATIVE = {"add", "multiply", "minimum", "maximum", "and", "or", "xor"}


def combiner(region: Region) -> str:
    """The name of the one op that a region applies to its two arguments; "second" if it returns
    the second one; "" for another region.
    """
    if len(region.arguments) != 2 or len(region.results) != 1:
        return ""
    (result,) = region.results
    if not region.ops:
        return "second" if result == region.arguments[1] else ""
    if len(region.ops) != 1:
        return ""
    (op,) = region.ops
    name = op.name.removeprefix("stablehlo.")
    if op.results != (result,):
        return ""
    if op.operands == region.arguments:
        return name
    is_swapped = op.operands == region.arguments[::-1]
    return name if is_swapped and name in _COMMUTATIVE else ""
