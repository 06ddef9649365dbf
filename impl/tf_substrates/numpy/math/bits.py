"""tf.bitwise and tf.bitcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.dtype_groups import INTEGERS
from tf_substrates.numpy.math.registering import Row, register_binary, register_unary
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert

JAX_MODE = False
if JAX_MODE:
    import jax


_BITWISE: list[Row] = [
    ("bitwise.bitwise_and", xp.bitwise_and, INTEGERS, "BitwiseAnd"),
    ("bitwise.bitwise_or", xp.bitwise_or, INTEGERS, "BitwiseOr"),
    ("bitwise.bitwise_xor", xp.bitwise_xor, INTEGERS, "BitwiseXor"),
    ("bitwise.left_shift", xp.left_shift, INTEGERS, "LeftShift"),
    ("bitwise.right_shift", xp.right_shift, INTEGERS, "RightShift"),
]
register_binary(_BITWISE)
register_unary([("bitwise.invert", xp.invert, INTEGERS, "Invert")], static=("bitwise.invert",))


@op("bitcast", static=False)
def bitcast(input: Any, type: Any, name: Any = None) -> Any:
    """The same bits as another dtype; of another width they make or take a last dimension."""
    x, wanted = convert(input), dtypes.numpy_dtype(type)
    if JAX_MODE:
        return jax.lax.bitcast_convert_type(xp.asarray(x), wanted)
    ratio = x.dtype.itemsize / wanted.itemsize
    if ratio < 1 and (not x.shape or x.shape[-1] * ratio != 1):
        raise invalid_argument(
            f"Cannot bitcast from {x.dtype.name} to {wanted.name}: the last dimension of"
            f" {list(x.shape)} must be {int(1 / ratio)} [Op:Bitcast]"
        )
    contiguous = np.ascontiguousarray(x).reshape(x.shape)
    if ratio == 1:
        return contiguous.view(wanted)
    if ratio > 1:
        return contiguous[..., None].view(wanted)
    return contiguous.view(wanted)[..., 0]
