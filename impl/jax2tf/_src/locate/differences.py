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
