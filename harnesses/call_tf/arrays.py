"""Shapes, indexing, gathering and scattering, sorting."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import EVERY, FLOATS, NO_DERIVATIVES, ask, indices, normal
from harnesses.harness import Normal


def _at_rows(function):
    return lambda x, updates: function(x, [[0], [2]], updates)


_X = normal((3, 4))
_XY = normal((3, 4), (3, 4))

_OF_ONE_ARRAY = {
    "tf.broadcast_to": lambda x: tf.broadcast_to(x, [2, 3, 4]),
    "tf.concat": lambda x: tf.concat([x, x], 1),
    "tf.expand_dims": lambda x: tf.expand_dims(x, 1),
    "tf.identity": tf.identity,
    "tf.identity_n": lambda x: tf.identity_n([x, x]),
    "tf.ones_like": tf.ones_like,
    "tf.pad": lambda x: tf.pad(x, [[1, 2], [0, 1]]),
    "tf.repeat": lambda x: tf.repeat(x, 2, 1),
    "tf.reshape": lambda x: tf.reshape(x, [2, 6]),
    "tf.reverse": lambda x: tf.reverse(x, [1]),
    "tf.roll": lambda x: tf.roll(x, 1, 1),
    "tf.slice": lambda x: tf.slice(x, [1, 0], [2, 3]),
    "tf.split": lambda x: tf.split(x, 2, 1),
    "tf.squeeze": lambda x: tf.squeeze(x[:, :1], 1),
    "tf.stack": lambda x: tf.stack([x, x], 1),
    "tf.strided_slice": lambda x: x[::2, 1:-1],
    "tf.tile": lambda x: tf.tile(x, [2, 1]),
    "tf.transpose": tf.transpose,
    "tf.unstack": lambda x: tf.unstack(x, axis=1),
    "tf.where": lambda x: tf.where(tf.constant([[True], [False], [True]]), x, tf.ones_like(x)),
    "tf.zeros_like": tf.zeros_like,
    "tf.stop_gradient": tf.stop_gradient,
    "tf.rank": tf.rank,
    "tf.shape": tf.shape,
    "tf.size": tf.size,
    "tf.ensure_shape": lambda x: tf.ensure_shape(x, [3, None]),
    "tf.meshgrid": lambda x: tf.meshgrid(x[0], x[:, 0]),
}


@family.builder
def functions_of_one_array() -> None:
    """Functions of one array, and its padding by reflection."""
    for name, function in _OF_ONE_ARRAY.items():
        tags = NO_DERIVATIVES if name in ("tf.rank", "tf.shape", "tf.size") else ()
        ask(name, function, _X, dtypes=EVERY, tags=tags)
    for mode in ("REFLECT", "SYMMETRIC"):
        ask("tf.pad", lambda x, m=mode: tf.pad(x, [[1, 2], [0, 1]], m), _X, case=mode.lower())


_I = indices(2, 0, 2)


@family.builder
def gathers() -> None:
    """Elements and rows taken by index."""
    ask("tf.gather", tf.gather, lambda d: [Normal((3, 4), d), _I], dtypes=EVERY)
    ask("tf.gather", lambda x, i: tf.gather(x, i, axis=1), lambda d: [Normal((3, 4), d), _I],
        case="axis")  # fmt: skip
    ask("tf.gather", lambda x, i: tf.gather(x, i, batch_dims=1, axis=1),
        lambda d: [Normal((3, 4), d), indices([[0, 1], [3, 3], [2, 0]])],
        case="batched")  # fmt: skip
    ask("tf.gather_nd", tf.gather_nd,
        lambda d: [Normal((3, 4), d), indices([[0, 1], [2, 3]])], dtypes=EVERY)  # fmt: skip


@family.builder
def partitions() -> None:
    """Rows chosen by a constant mask, parted and joined."""
    ask("tf.boolean_mask", lambda x: tf.boolean_mask(x, [True, False, True]), _X)
    ask("tf.dynamic_partition", lambda x: tf.dynamic_partition(x, [0, 1, 0], 2), _X)
    ask("tf.dynamic_stitch", lambda x: tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:]]), _X)


@family.builder
def scatters() -> None:
    """Updates written by index."""
    ask("tf.scatter_nd", lambda i, x: tf.scatter_nd(i, x, [5, 4]),
        lambda d: [indices([[0], [4], [0]]), Normal((3, 4), d)],
        dtypes=("float32", "bfloat16", "int32"))  # fmt: skip
    for name in ("add", "sub", "update", "max", "min"):
        ask(
            f"tf.tensor_scatter_nd_{name}",
            _at_rows(getattr(tf, f"tensor_scatter_nd_{name}")),
            lambda d: [Normal((3, 4), d), Normal((2, 4), d)],
            dtypes=("float32", "int32"),
        )


@family.builder
def ranges_and_fills() -> None:
    """Arrays made from indices, or from the elements of another one."""
    ask("tf.one_hot", lambda i: tf.one_hot(i, 4), [_I], dtypes=["int32"])
    ask("tf.sequence_mask", lambda i: tf.sequence_mask(i, 4), [_I], dtypes=["int32"])
    ask("tf.range", lambda x: tf.range(3.0) + x[0, :3], _X)
    ask("tf.linspace", lambda x: tf.linspace(x[0, 0], x[0, 1], 5), _X)
    ask("tf.fill", lambda x: tf.fill([2, 3], x[0, 0]), _X, dtypes=EVERY)
    ask("tf.eye", lambda x: tf.eye(4) + x[0], _X)


@family.builder
def sorting() -> None:
    """Reversed sequences, searches, sorts and histograms."""
    ask(
        "tf.reverse_sequence",
        lambda x, i: tf.reverse_sequence(x, i, 1),
        lambda d: [Normal((3, 4), d), _I],
    )
    ask("tf.searchsorted", lambda x: tf.searchsorted(tf.sort(x), x), _X,
        dtypes=("float32", "int32"), tags=NO_DERIVATIVES)  # fmt: skip
    ask("tf.sort", tf.sort, _X, dtypes=(*FLOATS, "int32"))
    ask("tf.argsort", tf.argsort, _X, dtypes=("float32", "int32"), tags=NO_DERIVATIVES)
    ask("tf.unique", lambda x: tf.unique(x)[1], [_I], dtypes=["int32"])
    ask("tf.histogram_fixed_width", lambda x: tf.histogram_fixed_width(x, [-2.0, 2.0], 4), _X,
        tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def space_and_batch() -> None:
    """Blocks of an image moved into the batch and back."""
    ask("tf.space_to_batch_nd", lambda x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]),
        normal((1, 4, 4, 2)))  # fmt: skip
    ask("tf.batch_to_space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]]),
        normal((4, 2, 2, 2)))  # fmt: skip


@family.builder
def contractions() -> None:
    """Sums of products, and a norm."""
    ask(
        "tf.tensordot",
        lambda x, y: tf.tensordot(x, y, [[1], [1]]),
        _XY,
        dtypes=("float32", "complex64"),
    )
    ask(
        "tf.einsum", lambda x, y: tf.einsum("ij,kj->ik", x, y), _XY, dtypes=("float32", "complex64")
    )
    ask("tf.norm", tf.norm, _X)
