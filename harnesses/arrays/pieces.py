"""What puts arrays together and cuts them: concatenate, stack, split, tile, pad, slice."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arrays import family
from harnesses.arrays.normal import define_cases, define_normal

# (operands' shapes, dimension)
_CONCATENATIONS = {
    "one_operand": ([(2, 3)], 0),
    "first": ([(1, 2), (3, 2)], 0),
    "last": ([(2, 1), (2, 2), (2, 3)], 1),
    "with_empty": ([(2, 3), (0, 3), (1, 3)], 0),
    "all_empty": ([(0, 3), (0, 3)], 1),
    "many": ([(1, 2)] * 20, 0),
    "rank_9": ([(1,) * 7 + (2, 2)] * 2, 4),
}


@family.builder
def concatenations() -> None:
    """`concatenate` of one operand to twenty, of empty ones and of rank 9."""
    for case, (shapes, dimension) in _CONCATENATIONS.items():
        define_normal(
            "concatenate",
            case,
            lambda *xs, dimension=dimension: lax.concatenate(xs, dimension),
            *shapes,
            params={"dimension": dimension},
        )


@family.builder
def stacks_along_each_axis() -> None:
    """`stack` and `unstack` along each axis."""
    for axis in (0, 1, 2, -1):
        define_normal(
            "stack",
            f"axis_{axis}".replace("-", "minus_"),
            lambda *xs, axis=axis: jnp.stack(xs, axis),
            *[(2, 3)] * 2,
            params={"axis": axis},
        )
        define_normal(
            "unstack",
            f"axis_{axis}".replace("-", "minus_"),
            partial(jnp.unstack, axis=axis),
            (2, 3, 2),
            params={"axis": axis},
        )


@family.builder
def stacks_of_special_operands() -> None:
    """`stack` and `unstack` of scalars, of equal operands, of one, and of none."""
    define_normal("stack", "scalars", lambda *xs: jnp.stack(xs), (), (), ())
    define_normal("stack", "one_operand", lambda x: jnp.stack([x]), (3,))
    define_normal("stack", "equal_operands", lambda x: jnp.stack([x] * 3), (2, 2), dtype=np.uint16)
    define_normal("stack", "empty", lambda x: jnp.stack([x, x]), (0, 2))
    define_normal("unstack", "to_scalars", jnp.unstack, (3,))
    define_normal("unstack", "none", lambda x: [x, *jnp.unstack(x)], (0, 2))


# (operand's shape, sizes, axis)
_SPLITS = {
    "equal": ((6, 2), (2, 2, 2), 0),
    "unequal": ((2, 6), (1, 5), 1),
    "one": ((3,), (3,), 0),
    "with_empty": ((4,), (0, 3, 0, 1), 0),
    "of_empty": ((0, 4), (1, 3), 1),
    "rank_9": ((1,) * 7 + (2, 3), (1, 2), 8),
}


@family.builder
def splits() -> None:
    """`split` into parts that are equal, unequal and empty."""
    define_cases("split", lax.split, ["sizes", "axis"], _SPLITS)


# (operand's shape, repetitions)
_TILES = {
    "nothing": ((2, 3), (1, 1)),
    "last": ((2, 3), (1, 2)),
    "more_dimensions": ((3,), (2, 1, 2)),
    "fewer_dimensions": ((2, 3), (2,)),
    "none": ((2, 3), (0, 2)),
    "scalar": ((), (3,)),
    "empty": ((0, 3), (2, 2)),
    "rank_9": ((1, 2) + (1,) * 7, (2, 1) + (1,) * 6 + (2,)),
}


@family.builder
def tiles() -> None:
    """`tile` by more and fewer dimensions than the operand has."""
    define_cases("tile", jnp.tile, ["reps"], _TILES)


# (operand's shape, (low, high, interior) of each dimension)
_PADDINGS: dict[str, tuple[tuple[int, ...], list[tuple[int, int, int]]]] = {
    "nothing": ((2, 3), [(0, 0, 0), (0, 0, 0)]),
    "scalar": ((), []),
    "low": ((2, 3), [(2, 0, 0), (1, 0, 0)]),
    "high": ((2, 3), [(0, 2, 0), (0, 1, 0)]),
    "interior_only": ((3, 2), [(0, 0, 1), (0, 0, 3)]),
    "interior_of_one": ((1, 3), [(0, 0, 2), (0, 0, 0)]),
    "interior_of_empty": ((0, 3), [(0, 0, 2), (1, 1, 1)]),
    "interior_and_edges": ((3, 2), [(1, 2, 1), (2, 0, 2)]),
    "negative_low": ((4, 3), [(-2, 0, 0), (-1, 0, 0)]),
    "negative_high": ((4, 3), [(0, -2, 0), (0, -1, 0)]),
    "negative_both": ((5, 5), [(-1, -2, 0), (-2, -2, 0)]),
    "negative_and_positive": ((4, 3), [(-1, 2, 0), (2, -1, 0)]),
    "negative_into_interior": ((3, 4), [(-1, -1, 1), (-2, -2, 2)]),
    "negative_to_empty": ((3, 2), [(-1, -2, 0), (0, 0, 0)]),
    "negative_beyond_operand": ((2, 2), [(3, -4, 0), (-3, 4, 0)]),
    "of_empty": ((0, 2), [(2, 1, 0), (0, 1, 0)]),
    "negative_of_empty": ((0, 2), [(3, -1, 0), (0, 0, 0)]),
    "every_dimension_of_4": ((1, 2, 1, 2), [(1, 0, 0), (0, 1, 0), (1, 1, 0), (2, 0, 0)]),
    "every_second_of_8": ((1, 2) * 4, [(1, 0, 0), (0, 0, 0)] * 4),
    "interior_of_8": ((2, 1) * 4, [(0, 0, 1), (0, 0, 0)] * 4),
    "rank_9": ((1, 2, 1) * 3, [(1, 0, 0), (0, -1, 0), (0, 1, 0)] * 3),
}


@family.builder
def paddings() -> None:
    """`pad` at the edges and inside, by amounts of either sign."""
    for case, (shape, config) in _PADDINGS.items():
        define_normal(
            "pad",
            case,
            partial(lax.pad, padding_config=config),
            shape,
            (),
            params={"padding_config": config},
        )


@family.builder
def padding_values() -> None:
    """`pad` with values that could be lost: NaN, infinity, -0."""
    for value in (np.nan, -np.inf, -0.0):
        define_normal(
            "pad",
            f"with_{value}".replace("-", "minus_").replace(".", "_"),
            lambda x, value=value: lax.pad(x, np.float32(value), [(1, 0, 1), (-1, 2, 0)]),
            (2, 3),
            params={"padding_value": value},
        )


# (operand's shape, start, limit, strides)
_SLICES = {
    "all": ((2, 3), (0, 0), (2, 3), None),
    "to_empty": ((2, 3), (1, 3), (1, 3), None),
    "of_empty": ((0, 3), (0, 1), (0, 2), None),
    "scalar": ((), (), (), None),
    "strides_of_1": ((4, 3), (1, 1), (3, 3), (1, 1)),
    "stride_does_not_divide": ((7,), (1,), (7,), (4,)),
    "stride_beyond_end": ((5, 2), (1, 0), (4, 2), (7, 1)),
    "strided_to_empty": ((5,), (2,), (2,), (3,)),
    "rank_8": ((2,) * 8, (1, 0) * 4, (2,) * 8, None),
    "rank_9": ((2, 1, 3) * 3, (1, 0, 0) * 3, (2, 1, 3) * 3, (1, 1, 2) * 3),
}


@family.builder
def slices() -> None:
    """`slice` with strides, to nothing and of nothing."""
    define_cases("slice", lax.slice, ["start_indices", "limit_indices", "strides"], _SLICES)
