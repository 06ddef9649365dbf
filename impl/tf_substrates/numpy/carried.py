"""What loops carry: structures of tensors, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as xp

from tf_substrates.numpy import nest
from tf_substrates.numpy.tensors import convert, wrap


def converted(structure: Any) -> Any:
    """The structure with tensors for leaves; TensorArrays carry their own.

    Values that are made of tensors, such as distributions, are put together of these.
    """
    return nest.map_structure(
        lambda leaf: leaf if hasattr(leaf, "_as_carry") else wrap(convert(leaf)),
        structure,
        expand_composites=True,
    )


def arrays_of(structure: Any) -> list:
    """The leaves, composite values taken apart, as JAX's arrays, which loops carry."""
    return [
        leaf if hasattr(leaf, "_as_carry") else xp.asarray(convert(leaf))
        for leaf in nest.flatten(structure, True)
    ]
