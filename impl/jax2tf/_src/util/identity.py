"""Keys of caches that stand for one object, or for the memory of one array.

An id or an address is not enough: once the object is gone, another one may get it. These keys hold
a reference to their object, so that it lives as long as the cache's entry.
"""

from __future__ import annotations

import dataclasses

import numpy as np


class Identity:
    """A key for the object `value`, equal only to keys of the same object."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __repr__(self) -> str:
        return f"Identity({self.value!r})"


@dataclasses.dataclass(frozen=True)
class SameElements:
    """A key for an array, equal to those of arrays that read the same memory in the same way.

    An address does not suffice: views of one array (its transpose, a slice, another dtype) may have
    the same address and different elements.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    array: np.ndarray = dataclasses.field(compare=False, repr=False)

    @classmethod
    def of(cls, array: np.ndarray) -> SameElements:
        address = array.__array_interface__["data"][0]
        return cls(address, array.shape, array.strides, array.dtype, array)
