"""What a file has otherwise than one of the same program that was written anew."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np


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


def with_names_of(
    fresh: Path, path: Path, format_name: str, tensors: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """The tensors of a file, by their names in one that was written anew.

    Only in ONNX files may the same ops have other names.
    """
    if format_name != "onnx":
        return tensors
    module = importlib.import_module("jax2tf._src.locate.onnx_tensors")
    names = module.names_in(path, fresh)
    return {names.get(name, name): tensor for name, tensor in tensors.items()}
