"""Types that the annotations of this package share, among them readable names for Any.

TensorFlow ships no types: mypy takes `tf.Tensor` and other names of TensorFlow for Any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import numpy as np

if TYPE_CHECKING:
    from jax.extend import core as jex_core

# JAX's abstract value of an array: its shape and dtype.
Aval: TypeAlias = jax.core.ShapedArray

# JAX's arrays, and NumPy arrays that stand for constants.
Array: TypeAlias = jax.Array | np.ndarray

# An operand of an equation.
Atom: TypeAlias = "jex_core.Var | jex_core.Literal"

# Containers that jax.tree knows, with leaves of any type.
PyTree: TypeAlias = Any

# The path of a leaf in a pytree: a key for each container, of a class for each kind of container.
KeyPath: TypeAlias = tuple[Any, ...]

# A value of a module of MLIR; some versions of its class are generic.
MlirValue: TypeAlias = Any

# One dimension of a shape: an int, or a symbolic dimension of jax.export, which computes like an
# int and whose class has no public name.
Dim: TypeAlias = Any
Shape: TypeAlias = Sequence[Dim]

# The size of a dimension in a graph: an int, or a scalar int32 tensor.
Size: TypeAlias = Any

# A value of a StableHLO program while it is evaluated: an array, known sizes, a token, a tuple.
HloValue: TypeAlias = Any

# An option that is passed on as the caller passed it.
Option: TypeAlias = Any

# A param of an equation; JAX does not declare types of params.
Param: TypeAlias = Any


def aval_of(atom: Atom) -> Aval:
    """The aval of an operand that is an array, not a token or a mutable reference."""
    return cast(Aval, atom.aval)
