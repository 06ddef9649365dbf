"""What a file has otherwise than one of the same program that was written anew."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
      text: what differs, in words.
      tensors: the names of the tensors that it makes others, in the file written anew.
    """

    text: str
    tensors: tuple[str, ...]

    @property
    def is_missing(self) -> bool:
        """Whether the file has no op of that name."""
        return self.text.endswith(" is missing")

    @property
    def is_of_sizes(self) -> bool:
        """Whether one of the two has only an open size where the other has a number."""
        return all(part.endswith(OPEN) for part in self.text.split("; "))


# The end of the text of a difference that is only of sizes.
OPEN = "(an open size)"
