"""`reshape`, `broadcast_in_dim`, `transpose`, `squeeze` and `rev`: each shape that needs care."""

from functools import partial

from jax import lax

from harnesses.arrays import family
from harnesses.arrays.normal import define_cases, define_normal

_SHAPES_OF_RESHAPE = {
    "flatten": ((2, 3, 2), (12,)),
    "to_scalar": ((1, 1), ()),
    "from_scalar": ((), (1, 1, 1)),
    "with_ones": ((2, 3), (2, 1, 3, 1)),
    "empty": ((0, 3), (3, 0, 2)),
    "same": ((2, 3), (2, 3)),
}


@family.builder
def reshapes() -> None:
    """`reshape` to other ranks, of empty operands, and with `dimensions`."""
    define_cases("reshape", lax.reshape, ["new_sizes"], _SHAPES_OF_RESHAPE)
    for dimensions in [(1, 0), (0, 1)]:
        define_normal(
            "reshape",
            f"dimensions_{'_'.join(map(str, dimensions))}",
            partial(lax.reshape, new_sizes=(2, 6), dimensions=dimensions),
            (4, 3),
            params={"dimensions": dimensions},
        )


# (operand's shape, result's shape, broadcast_dimensions)
_BROADCASTS = {
    "scalar": ((), (2, 3), ()),
    "scalar_to_scalar": ((), (), ()),
    "scalar_to_ones": ((), (1, 1), ()),
    "leading": ((3,), (2, 3), (1,)),
    "trailing": ((2,), (2, 3), (0,)),
    "middle": ((2, 4), (2, 3, 4), (0, 2)),
    "one_expanded": ((2, 1, 4), (2, 3, 4), (0, 1, 2)),
    "leading_and_one_expanded": ((1, 4), (2, 3, 4), (1, 2)),
    "spread_and_one_expanded": ((2, 1), (2, 3, 4, 5), (0, 2)),
    "ones_in_front": ((2, 3), (1, 1, 2, 3), (2, 3)),
    "ones_behind": ((2, 3), (2, 3, 1), (0, 1)),
    "ones_around": ((2, 3), (1, 2, 1, 3, 1), (1, 3)),
    "nothing": ((2, 3), (2, 3), (0, 1)),
    "to_empty": ((1, 3), (0, 3), (0, 1)),
    "of_empty": ((0,), (2, 0), (1,)),
    "rank_9": ((2, 1, 2, 1, 2), (2, 2, 1, 2, 2, 2, 2, 2, 2), (0, 2, 4, 6, 8)),
}


@family.builder
def broadcasts() -> None:
    """`broadcast_in_dim` along new dimensions and along those of size 1."""
    define_cases(
        "broadcast_in_dim", lax.broadcast_in_dim, ["shape", "broadcast_dimensions"], _BROADCASTS
    )


_PERMUTATIONS = {
    "identity": ((2, 3, 4), (0, 1, 2)),
    "matrix": ((2, 3), (1, 0)),
    "reversed": ((2, 3, 4), (2, 1, 0)),
    "scalar": ((), ()),
    "ones": ((1, 3, 1), (2, 1, 0)),
    "empty": ((0, 3), (1, 0)),
    "rank_10": ((2, 1) * 5, (9, 1, 8, 2, 7, 3, 6, 4, 5, 0)),
}


@family.builder
def transposes() -> None:
    """`transpose` by each kind of permutation."""
    define_cases("transpose", lax.transpose, ["permutation"], _PERMUTATIONS)


# (operand's shape, dimensions)
_SQUEEZES = {
    "nothing": ((1, 2), ()),
    "all": ((1, 1), (0, 1)),
    "one_of_two": ((1, 3, 1), (2,)),
    "negative": ((2, 1), (-1,)),
    "empty": ((0, 1), (1,)),
}


@family.builder
def squeezes() -> None:
    """`squeeze` of no dimension, of all, and of a negative one."""
    define_cases("squeeze", lax.squeeze, ["dimensions"], _SQUEEZES)


# (operand's shape, dimensions)
_REVERSALS = {
    "nothing": ((2, 3), ()),
    "first": ((3, 2), (0,)),
    "last": ((3, 2), (1,)),
    "all": ((2, 3, 2), (0, 1, 2)),
    "empty": ((0, 3), (0, 1)),
    "rank_9": ((2, 1, 3, 1, 2, 1, 2, 1, 2), (0, 2, 8)),
}


@family.builder
def reversals() -> None:
    """`rev` along no dimension, along some and along all."""
    define_cases("rev", lax.rev, ["dimensions"], _REVERSALS)
