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
    ratio = x.dtype.itemsize / wanted.itemsize
    if ratio < 1 and (not x.shape or x.shape[-1] * ratio != 1):
        raise invalid_argument(
            f"Cannot bitcast from {x.dtype.name} to {wanted.name}: the last dimension of"
            f" {list(x.shape)} must be {int(1 / ratio)} [Op:Bitcast]"
        )
    if JAX_MODE:
        return _bitcast_on_jax(xp.asarray(x), wanted)
    contiguous = np.ascontiguousarray(x).reshape(x.shape)
    if ratio == 1:
        return contiguous.view(wanted)
    if ratio > 1:
        return contiguous[..., None].view(wanted)
    return contiguous.view(wanted)[..., 0]


def _bitcast_on_jax(x: Any, wanted: np.dtype) -> Any:
    """XLA has no bits of complex numbers: those of their parts, one after the other, are theirs."""
    if "c" not in (x.dtype.kind, wanted.kind) or x.dtype == wanted:
        return jax.lax.bitcast_convert_type(x, wanted)
    rank, ratio = len(x.shape), x.dtype.itemsize / wanted.itemsize
    if x.dtype.kind == "c":
        x = xp.stack([xp.real(x), xp.imag(x)], -1)
    part = wanted.type(0).real.dtype if wanted.kind == "c" else wanted
    found = _bytes(x, rank - (ratio < 1))
    # A byte is a byte of one dimension less.
    split = (part.itemsize,) if part.itemsize > 1 else ()
    shape = (*found.shape[:-1], found.shape[-1] // part.itemsize, *split)
    parts = jax.lax.bitcast_convert_type(found.reshape(shape), part)
    if wanted.kind == "c":
        parts = jax.lax.complex(parts[..., 0::2], parts[..., 1::2])
    return parts if ratio > 1 else parts[..., 0]


def _bytes(x: Any, rank: int) -> Any:
    """The bytes of an array, those of all axes from `rank` on in the last one."""
    return jax.lax.bitcast_convert_type(x, np.uint8).reshape((*x.shape[:rank], -1))
