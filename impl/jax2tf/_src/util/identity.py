"""Keys of caches that stand for one object, or for the memory of one array.

An id or an address alone is no key: it names another object once its own is gone. These keys hold
what they stand for, so that a cache keeps it alive as long as its entry.
"""

from __future__ import annotations

import dataclasses

import numpy as np


class Identity:
    """A key for `held`, equal to the keys of that same object alone."""

    __slots__ = ("held",)

    def __init__(self, held: object):
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.held is other.held

    def __repr__(self) -> str:
        return f"Identity({self.held!r})"


@dataclasses.dataclass(frozen=True)
class SameElements:
    """A key for an array, equal to those of arrays that read the same memory in the same way.

    Views of one array (its transpose, a part of it, itself as another dtype) may begin at the same
    address, and have different elements all the same.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    held: np.ndarray = dataclasses.field(compare=False, repr=False)

    @classmethod
    def of(cls, array: np.ndarray) -> SameElements:
        address = array.__array_interface__["data"][0]
        return cls(address, array.shape, array.strides, array.dtype, array)
