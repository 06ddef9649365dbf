"""The same elements in another order along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.tensors import convert, static_value


@op("reverse", static=True)
def reverse(tensor: Any, axis: Any, name: Any = None) -> Any:
    x = convert(tensor)
    axes = [
        one_axis(a, len(x.shape), "tf.reverse") for a in np.ravel(static_value(axis, "An axis"))
    ]
    return xp.flip(x, tuple(axes)) if axes else x


@op("roll", static=True)
def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Any:
    x = convert(input)
    axes = [one_axis(a, len(x.shape), "tf.roll") for a in np.ravel(static_value(axis, "An axis"))]
    by = convert(shift).reshape(-1)
    for i, a in enumerate(axes):
        x = xp.roll(x, by[i], a)
    return x


@op("math.invert_permutation", static=True)
def invert_permutation(x: Any, name: Any = None) -> Any:
    at = convert(x)
    if isinstance(at, np.ndarray) and sorted(at.tolist()) != list(range(at.size)):
        raise invalid_argument(f"{at.tolist()} is not a permutation [Op:InvertPermutation]")
    return xp.argsort(at).astype(at.dtype)


@op("reverse_sequence")
def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: Any = None
) -> Any:
    """Reverses the first elements of each sequence, as many as its length."""
    x, lengths = convert(input), convert(seq_lengths)
    seq = one_axis(0 if seq_axis is None else seq_axis, len(x.shape), "tf.reverse_sequence")
    batch = one_axis(0 if batch_axis is None else batch_axis, len(x.shape), "tf.reverse_sequence")
    place = np.arange(x.shape[seq])
    source = xp.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
    shape = [1] * len(x.shape)
    shape[batch], shape[seq] = x.shape[batch], x.shape[seq]
    source = source if batch < seq else source.T
    return xp.take_along_axis(x, source.reshape(shape), seq)
