"""`reshape`, `broadcast_in_dim`, `transpose`, `squeeze` and `rev`: each shape that needs care."""

from functools import partial

from jax import lax

from harnesses.arrays.normal import define_normal

_SHAPES_OF_RESHAPE = {
    "flatten": ((2, 3, 2), (12,)),
    "to_scalar": ((1, 1), ()),
    "from_scalar": ((), (1, 1, 1)),
    "with_ones": ((2, 3), (2, 1, 3, 1)),
    "empty": ((0, 3), (3, 0, 2)),
    "same": ((2, 3), (2, 3)),
}
for case, (shape, new) in _SHAPES_OF_RESHAPE.items():
    define_normal(
        "reshape", case, partial(lax.reshape, new_sizes=new), shape, params={"new_sizes": new}
    )
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
for case, (shape, new, dimensions) in _BROADCASTS.items():
    define_normal(
        "broadcast_in_dim",
        case,
        partial(lax.broadcast_in_dim, shape=new, broadcast_dimensions=dimensions),
        shape,
        params={"shape": new, "broadcast_dimensions": dimensions},
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
for case, (shape, permutation) in _PERMUTATIONS.items():
    define_normal(
        "transpose",
        case,
        partial(lax.transpose, permutation=permutation),
        shape,
        params={"permutation": permutation},
    )

for case, (shape, dimensions) in {
    "nothing": ((1, 2), ()),
    "all": ((1, 1), (0, 1)),
    "one_of_two": ((1, 3, 1), (2,)),
    "negative": ((2, 1), (-1,)),
    "empty": ((0, 1), (1,)),
}.items():
    define_normal(
        "squeeze",
        case,
        partial(lax.squeeze, dimensions=dimensions),
        shape,
        params={"dimensions": dimensions},
    )

for case, (shape, dimensions) in {
    "nothing": ((2, 3), ()),
    "first": ((3, 2), (0,)),
    "last": ((3, 2), (1,)),
    "all": ((2, 3, 2), (0, 1, 2)),
    "empty": ((0, 3), (0, 1)),
    "rank_9": ((2, 1, 3, 1, 2, 1, 2, 1, 2), (0, 2, 8)),
}.items():
    define_normal(
        "rev",
        case,
        partial(lax.rev, dimensions=dimensions),
        shape,
        params={"dimensions": dimensions},
    )
