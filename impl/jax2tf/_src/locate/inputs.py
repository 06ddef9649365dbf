"""An input of a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class Taken:
    """An input of a file.

    Attributes:
      dtype: its dtype.
      shape: the sizes of its dimensions; None or a text for an open one.
    """

    dtype: np.dtype
    shape: tuple[int | str | None, ...]

    def takes(self, dtype: np.dtype, shape: Sequence[int | str]) -> bool:
        """Whether the input takes arrays of a dtype and of a shape with open dimensions."""
        return (
            self.dtype == dtype
            and len(self.shape) == len(shape)
            and all(
                size == given or not isinstance(size, int) or not isinstance(given, int)
                for size, given in zip(self.shape, shape, strict=True)
            )
        )

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype.name}[{sizes}]"
