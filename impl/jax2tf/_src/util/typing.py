"""Types that the annotations of this package share, among them names for what no type can say.

TensorFlow ships no types: to mypy `tf.Tensor` and its like are anything, and stand for the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import numpy as np

if TYPE_CHECKING:
    from jax.extend import core as jex_core

# What JAX knows of an array before the run.
Aval: TypeAlias = jax.core.ShapedArray

# What JAX computes with: its own arrays, and the NumPy arrays that stand for constants.
Array: TypeAlias = jax.Array | np.ndarray

# What an equation reads.
Atom: TypeAlias = "jex_core.Var | jex_core.Literal"

# Containers that jax.tree knows, with leaves of any type.
PyTree: TypeAlias = Any

# Where a leaf stands in a pytree: a key for each container, of a class for each kind of these.
KeyPath: TypeAlias = tuple[Any, ...]

# A value of a module of MLIR; some versions of its class are generic.
MlirValue: TypeAlias = Any

# One dimension of a shape: an int, or a symbolic dimension of jax.export, which computes like an
# int and whose class has no public name.
Dim: TypeAlias = Any
Shape: TypeAlias = Sequence[Dim]

# A dimension where the graph needs its value: an int, or a scalar int32 tensor that the run knows.
Size: TypeAlias = Any

# An option that is handed on as the caller gave it.
Option: TypeAlias = Any

# A param of an equation. Each primitive has its own, and JAX says of none what type it has.
Param: TypeAlias = Any


def aval_of(atom: Atom) -> Aval:
    """The aval of an array: its shape and dtype. A token or a reference of state is none."""
    return cast(Aval, atom.aval)
