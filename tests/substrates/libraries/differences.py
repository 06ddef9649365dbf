"""Where programs do not give TensorFlow's result on substrates, and why: held both ways.

A place that differs and stands in no list is a failure of the run, and so is one that stands in a
list and is equal, or differs otherwise than is said there.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

NUMPY_PLACES = ("numpy", "numpy float32")


@dataclasses.dataclass(frozen=True)
class Difference:
    """Places of programs that do not give TensorFlow's result.

    Attributes:
      reason: why, for the table.
      places: where, of those of programs.
      seen: a pattern of what is seen there.
      programs: their names; none for all that `seen` is seen in.
      compiled: whether TensorFlow does not do it either when XLA compiles it: it refuses to, or
        gives another result than its own without. It is run to see that.
    """

    reason: str
    places: tuple[str, ...]
    seen: str
    programs: tuple[str, ...] = ()
    compiled: bool = False

    def names(self, program: str, place: str) -> bool:
        return place in self.places and program in self.programs

    def explains(self, program: str, place: str, wrong: str) -> bool:
        is_about = place in self.places and (not self.programs or program in self.programs)
        return is_about and re.search(self.seen, wrong) is not None


NO_DERIVATIVES = Difference(
    "NumPy has no derivatives, and refuses a tape",
    NUMPY_PLACES,
    r"^NotImplementedError: tf\.GradientTape: NumPy has no derivatives",
)


def judged(
    differences: Iterable[Difference], program: str, place: str, wrong: str, compiled: str | None
) -> tuple[str, str]:
    """The reason for what is wrong, and what is to be mended; either may be empty.

    Args:
      compiled: what differs where XLA compiles the program on TensorFlow; None if it was not asked.
    """
    differences = list(differences)
    if not wrong:
        stale = any(d.names(program, place) for d in differences)
        return "", "is equal, and stands among the differences" if stale else ""
    found = next((d for d in differences if d.explains(program, place, wrong)), None)
    if found is None:
        return "", wrong
    if found.compiled and not compiled:
        return "", f"{wrong}; and XLA compiles it on TensorFlow to TensorFlow's own result"
    return found.reason, ""
