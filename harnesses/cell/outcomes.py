"""A cell that does not apply, and who is wrong where JAX and the judged differ.

The outcomes themselves stand at the column `outcome` of `harnesses.cell.rows`.
"""

from collections.abc import Mapping
from typing import Any

# The harness has no such cell: JAX itself cannot, or the mode asks for what the harness has not.
INAPPLICABLE = "inapplicable"

# The culprits that a third opinion names; see `harnesses.engine.opinion`.
JAX, JUDGED, BOTH, NEITHER = "jax", "judged", "both", "neither"
_WORDS = {
    JAX: "JAX is wrong",
    JUDGED: "{judged} is wrong",
    BOTH: "both are wrong",
    NEITHER: "neither is wrong",
}


def in_words(row: Mapping[str, Any]) -> str:
    """What the third opinion of a row is; empty if there is none."""
    if not row["culprit"]:
        return ""
    judged = row["impl"] or JUDGED
    return (
        f"{_WORDS[row['culprit']].format(judged=judged)}: by {row['opinion']}, JAX is off by "
        f"{row['jax_ulps']:.4g} ULPs and {judged} by {row['judged_ulps']:.4g}"
    )
