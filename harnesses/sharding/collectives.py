"""Collectives between the devices of a mesh of eight, over its axes, in groups, of every dtype."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from harnesses.harness import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTS,
    UINTS,
    Arg,
    Bools,
    Integers,
    Normal,
    define,
    is_integer,
)
from harnesses.sharding import family
from harnesses.sharding.meshes import on_each

_GROUPS = [[0, 2, 5, 7], [1, 3, 4, 6]]
_ROUND = [(i, (i + 1) % 8) for i in range(8)]
_SOME = [(0, 3), (3, 1), (6, 6)]
_BOTH = ("a", "b")
_WHOLE = P("a", "b")

# By primitive and case: the program, the mesh, and the specs of argument and result. The argument
# is an array of 16 rows and 32 columns.
_Case = tuple[Callable[[Any], Any], str, P, P]
_VARYING: dict[tuple[str, str], _Case] = {
    ("psum", "rows"): (lambda x: lax.psum(x, "a"), "4x2", _WHOLE, P(None, "b")),
    ("psum", "columns"): (lambda x: lax.psum(x, "b"), "4x2", _WHOLE, P("a")),
    ("psum", "both"): (lambda x: lax.psum(x, _BOTH), "4x2", _WHOLE, P()),
    ("psum", "three"): (
        lambda x: lax.psum(x, ("a", "c")), "2x2x2", P("a", ("b", "c")), P(None, "b"),
    ),
    ("psum", "one_device"): (lambda x: lax.psum(x, "a"), "1", P("a"), P()),
    ("psum", "of_the_same"): (lambda x: lax.psum(x, _BOTH), "4x2", P(), P()),
    ("psum", "of_a_tree"): (lambda x: lax.psum((x, x[0], 1), "a"), "8", P("a"), P()),
    ("pmax", "rows"): (lambda x: lax.pmax(x, "a"), "4x2", _WHOLE, P(None, "b")),
    ("pmin", "both"): (lambda x: lax.pmin(x, _BOTH), "4x2", _WHOLE, P()),
    ("ppermute", "round"): (lambda x: lax.ppermute(x, "a", _ROUND), "8", P("a"), P("a")),
    ("ppermute", "some"): (lambda x: lax.ppermute(x, "a", _SOME), "8", P("a"), P("a")),
    ("ppermute", "both"): (lambda x: lax.ppermute(x, _BOTH, _SOME), "4x2", _WHOLE, _WHOLE),
    ("pshuffle", ""): (
        lambda x: lax.pshuffle(x, "a", [3, 0, 2, 1]), "4x2", _WHOLE, _WHOLE,
    ),
    ("all_gather", "untiled"): (lambda x: lax.all_gather(x, "a"), "4x2", _WHOLE, P(None, "a", "b")),
    ("all_gather", "tiled"): (
        lambda x: lax.all_gather(x, "b", axis=1, tiled=True), "4x2", _WHOLE, P("a", "b"),
    ),
    ("all_gather", "reordered"): (
        lambda x: lax.all_gather(x, ("b", "a"), axis=1), "4x2", _WHOLE, P("a", None, "b"),
    ),
    ("all_to_all", "tiled"): (
        lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True), "8", P("a"), P(None, "a"),
    ),
    ("all_to_all", "untiled"): (
        lambda x: lax.all_to_all(x.reshape(2, 8, 4), "a", 1, 2), "8", P("a"), P("a"),
    ),
    ("all_to_all", "both"): (
        lambda x: lax.all_to_all(x, _BOTH, 1, 0, tiled=True), "4x2", _WHOLE, _WHOLE,
    ),
    ("pswapaxes", ""): (
        lambda x: lax.pswapaxes(x.reshape(2, 8, 4), "a", 1), "8", P("a"), P("a"),
    ),
    ("axis_index", ""): (
        lambda x: x + lax.axis_index("a").astype(x.dtype), "4x2", _WHOLE, _WHOLE,
    ),
    ("axis_index", "both"): (
        lambda x: x + lax.axis_index(("b", "a")).astype(x.dtype), "4x2", _WHOLE, _WHOLE,
    ),
    ("pvary", ""): (
        lambda x: lax.pcast(x[:1], "a", to="varying") + lax.axis_index("a").astype(x.dtype),
        "8", P(), P("a"),
    ),
}  # fmt: skip
_SUMS: dict[tuple[str, str], _Case] = {
    ("psum_scatter", "tiled"): (
        lambda x: lax.psum_scatter(x, "b", scatter_dimension=1, tiled=True), "4x2", _WHOLE, _WHOLE,
    ),
    ("psum_scatter", "untiled"): (
        lambda x: lax.psum_scatter(x.reshape(2, 8, 4), "a", scatter_dimension=1),
        "8", P("a"), P("a"),
    ),
    ("psum_scatter", "both"): (
        lambda x: lax.psum_scatter(x, _BOTH, scatter_dimension=1, tiled=True),
        "4x2", _WHOLE, _WHOLE,
    ),
    ("pmean", "both"): (lambda x: lax.pmean(x, _BOTH), "4x2", _WHOLE, P()),
}  # fmt: skip
_GROUPED: dict[tuple[str, str], _Case] = {
    ("psum", "groups"): (
        lambda x: lax.psum(x, "a", axis_index_groups=_GROUPS), "8", P("a"), P("a"),
    ),
    ("pmax", "groups"): (
        lambda x: lax.pmax(x, "a", axis_index_groups=_GROUPS), "8", P("a"), P("a"),
    ),
    ("pmin", "groups"): (
        lambda x: lax.pmin(x, "a", axis_index_groups=_GROUPS), "8", P("a"), P("a"),
    ),
    ("all_gather", "groups"): (
        lambda x: lax.all_gather(x, "a", axis_index_groups=_GROUPS, tiled=True),
        "8", P("a"), P("a"),
    ),
    ("all_to_all", "groups"): (
        lambda x: lax.all_to_all(x, "a", 1, 0, axis_index_groups=_GROUPS, tiled=True),
        "8", P("a"), P("a"),
    ),
    ("psum_scatter", "groups"): (
        lambda x: lax.psum_scatter(
            x, "a", scatter_dimension=1, axis_index_groups=_GROUPS, tiled=True
        ),
        "8", P("a"), P("a"),
    ),
}  # fmt: skip

_SHAPE = (16, 32)
_WITH_TERMS = frozenset({"psum", "pmean", "psum_scatter"})


def _argument(dtype: Any) -> Arg:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return Bools(_SHAPE)
    return Integers(_SHAPE, dtype) if is_integer(dtype) else Normal(_SHAPE, dtype)


def _define(cases: Mapping[tuple[str, str], _Case], dtypes: Sequence[Any], **options: Any) -> None:
    for (primitive, case), (program, mesh, given, made) in cases.items():
        for dtype in dtypes:
            define(
                primitive,
                case,
                on_each(program, mesh, given, made, **options),
                [_argument(dtype)],
                dtype=dtype,
                params={"mesh": mesh},
                # The terms of a sum cancel, and the devices' order of adding is open.
                scale="array" if primitive in _WITH_TERMS else "element",
            )


@family.builder
def collectives_over_axes_and_in_groups() -> None:
    """Collectives over each choice of a mesh's axes, and between groups of devices."""
    _define(_VARYING, (jnp.float32, jnp.int32))
    _define(_SUMS, (jnp.float32, jnp.int32))
    _define(_GROUPED, (jnp.float32, jnp.int32), check_vma=False)


# By primitive: the program of a device of a mesh of eight, the spec of the result, and the dtypes.
_WORDS = (*INTS, *UINTS)
_MOVED = (*BOOL, *_WORDS, *FLOATS, *COMPLEX)
_PLAIN: dict[str, tuple[Callable[[Any], Any], P, Sequence[np.dtype]]] = {
    "psum": (lambda x: lax.psum(x, "a"), P(), _MOVED),
    "pmean": (lambda x: lax.pmean(x, "a"), P(), (*FLOATS, *COMPLEX)),
    "pmax": (lambda x: lax.pmax(x, "a"), P(), (*BOOL, *_WORDS, *FLOATS)),
    "pmin": (lambda x: lax.pmin(x, "a"), P(), (*BOOL, *_WORDS, *FLOATS)),
    "ppermute": (lambda x: lax.ppermute(x, "a", _SOME), P("a"), _MOVED),
    "all_gather": (lambda x: lax.all_gather(x, "a"), P(None, "a"), _MOVED),
    "all_to_all": (lambda x: lax.all_to_all(x, "a", 1, 1, tiled=True), P("a"), _MOVED),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
        P("a"),
        (*_WORDS, *FLOATS, *COMPLEX),
    ),
}


@family.builder
def collectives_of_every_dtype() -> None:
    """Each collective between eight devices, of every dtype that it takes."""
    for primitive, (program, out, dtypes) in _PLAIN.items():
        _define({(primitive, ""): (program, "8", P("a"), out)}, dtypes)
