"""Turns a per-device program (shard_map) into one program over whole arrays.

    whole arrays -> split by the specs -> vmap over each axis of the mesh -> joined by the specs

Operands get a leading dimension for each axis that their spec names, and the body is vmapped over
these dimensions with the axes' names. Its ops become batched ops, and its collectives become those
of `collectives`. An operand whose spec does not name an axis is the same for all devices along that
axis and stays as it is. No devices are needed. The graph of a large mesh has as many nodes as the
graph of a small one, and an axis with one device adds no node.

If the program stays partitioned, `in_parts` marks the leading dimensions of the split operands and
of the results as sharded over the devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import batching

from jax2tf._src import compat
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import refusals
from jax2tf._src.lowering.emit.mesh import collectives
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.tracing.jaxprs import inner_jaxprs
from jax2tf._src.tracing.primitives import by_primitive, jit_p, named, shard_map_p
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Array, Dim, Param, Shape, aval_of

Sizes = Mapping[Hashable, int]


def as_program_of_all(
    eqn: jex_core.JaxprEqn, outer: Sizes | None = None, *, stays_in_parts: bool = False
) -> Callable[..., list[Array]]:
    """Makes a JAX function without shard_map of a shard_map equation and its operands.

    Args:
      eqn: the equation.
      outer: the sizes of the mesh axes that an enclosing shard_map has already vmapped.
      stays_in_parts: whether `in_parts` says how the leading dimensions are sharded.
    """
    params = eqn.params
    mesh_sizes = dict(params["mesh"].shape)
    axes = [axis for axis in mesh_sizes if axis in params["newly_manual_axes"]]
    long = [axis for axis in axes if mesh_sizes[axis] > 1]
    sizes = {**(outer or {}), **{axis: mesh_sizes[axis] for axis in axes}}
    body = Body(sizes, stays_in_parts)
    in_names, out_names = ([_names(s) for s in params[key]] for key in ("in_specs", "out_specs"))

    def run(*operands: Array) -> list[Array]:
        split = [
            spread(_split(x, names, long, sizes), names)
            for x, names in zip(operands, in_names, strict=True)
        ]
        results = program(*split)
        avals = [aval_of(v) for v in eqn.outvars]
        return [
            _joined(spread(y, names), names, long, aval.shape)
            for y, names, aval in zip(results, out_names, avals, strict=True)
        ]

    def spread(x: Array, names: Sequence[Sequence[Hashable]]) -> Array:
        leading = [axis for axis in long if axis in _flat(names)]
        if not (stays_in_parts and leading):
            return x
        # Axes that the compiler or an inner shard_map partitions may shard the other dimensions.
        others = OPEN if set(mesh_sizes).difference(sizes) else None
        parts = (*leading, *[others] * (x.ndim - len(leading)))
        return in_parts_p.bind(x, mesh=tuple(mesh_sizes.items()), parts=parts)

    def of_one_device(*args: Array) -> list[Array]:
        return body.run(params["jaxpr"], (), args)

    program: Callable[..., list[Array]] = of_one_device
    for axis in reversed(long):
        program = _vmapped(program, axis, sizes, in_names, out_names)
    return run


def _vmapped(
    program: Callable[..., list[Array]],
    axis: Hashable,
    sizes: Sizes,
    in_names: Sequence[Sequence[Sequence[Hashable]]],
    out_names: Sequence[Sequence[Sequence[Hashable]]],
) -> Callable[..., list[Array]]:
    """The program of all devices along a mesh axis."""

    def each(_: Param, *args: Array) -> list[Array]:
        return [
            y
            if axis in _flat(names)
            else collectives.over_axes(collectives.FIRST, [y], [axis], sizes)
            for y, names in zip(program(*args), out_names, strict=True)
        ]

    in_axes = [0 if axis in _flat(names) else None for names in in_names]
    out_axes = [0 if axis in _flat(names) else None for names in out_names]
    # vmap needs an operand with the dimension, and possibly no other operand has it.
    devices = np.zeros(sizes[axis], bool)
    mapped = jax.vmap(each, (0, *in_axes), out_axes, axis_name=axis, axis_size=sizes[axis])
    return lambda *args: mapped(devices, *args)


def without_programs(jaxpr: jex_core.ClosedJaxpr) -> Callable[..., list[Array]]:
    """Makes a JAX function of a closed jaxpr, with each shard_map as a program over whole arrays.

    The function takes the jaxpr's constants as its first argument, and has no shardings.
    """
    body = Body({})
    return lambda consts, *args: body.run(jaxpr.jaxpr, consts, args)


# Returns its array unchanged. `parts` names the mesh axis that shards each dimension, None for a
# dimension that is whole on every device, OPEN if either is allowed. `mesh` has the sizes of all
# axes.
in_parts_p = jex_core.Primitive("in_parts")
OPEN = jax.sharding.PartitionSpec.UNCONSTRAINED


def _same(x: Array, **_: object) -> Array:
    return x


in_parts_p.def_abstract_eval(_same)


def _batched(
    operands: Sequence[Array],
    dims: Sequence[int],
    *,
    mesh: tuple[tuple[Hashable, int], ...],
    parts: tuple[Hashable, ...],
) -> tuple[Array, int]:
    (x,), (dim,) = operands, dims
    return in_parts_p.bind(x, mesh=mesh, parts=(*parts[:dim], OPEN, *parts[dim:])), dim


batching.primitive_batchers[in_parts_p] = _batched


class Body:
    """Evaluates the jaxprs of a per-device program, inside the vmaps over the mesh axes.

    Args:
      sizes: the sizes of the axes that are vmapped or have one device.
      stays_in_parts: see `as_program_of_all`.
    """

    def __init__(self, sizes: Sizes, stays_in_parts: bool = False):
        self._sizes = sizes
        self._stays_in_parts = stays_in_parts
        self._jitted: dict[Identity, Callable[..., list[Array]]] = {}

    def run(
        self, jaxpr: jex_core.Jaxpr, consts: Sequence[Array], args: Sequence[Array]
    ) -> list[Array]:
        """The results of a jaxpr on one device."""
        return jaxprs.evaluate(jaxpr, consts, args, self._results)

    def _results(self, eqn: jex_core.JaxprEqn, operands: list[Array]) -> Sequence[Array]:
        primitive = eqn.primitive
        if primitive is shard_map_p:
            inner = as_program_of_all(eqn, self._sizes, stays_in_parts=self._stays_in_parts)
            return inner(*operands)
        if primitive in traits.SHARDS and self._stays_in_parts:
            return [_constrained(operands[0], eqn)]
        if primitive in _UNCHANGED:
            return operands
        if primitive is lax.axis_index_p:
            return [self._axis_index(eqn)]
        if primitive in _COLLECTIVES:
            return self._collective(eqn, operands)
        if primitive is jit_p:
            return self._call(eqn.params["jaxpr"], operands)
        if primitive in traits.DERIVES:
            # JAX applied their derivative rules before lowering; only the function is left.
            called = jaxprs.called(eqn)
            return self.run(called.jaxpr, called.consts, operands)
        if compat.primitives.is_collective(eqn) and next(inner_jaxprs(eqn), None) is None:
            raise _unknown(eqn)
        params = self._params(eqn)

        def bind(*operands: Array) -> Sequence[Array]:
            return jaxprs.bind(primitive, operands, params)

        return (_one_by_one(bind) if _runs_one_by_one(eqn) else bind)(*operands)

    def _axis_index(self, eqn: jex_core.JaxprEqn) -> Array:
        axis = eqn.params["axis_name"]
        return np.zeros((), np.int32) if self._sizes[axis] == 1 else lax.axis_index(axis)

    def _collective(self, eqn: jex_core.JaxprEqn, operands: list[Array]) -> list[Array]:
        params = dict(eqn.params)
        axes = params.pop("axes", None) or params.pop("axis_name")
        axes = axes if isinstance(axes, tuple) else (axes,)
        collective = _COLLECTIVES[eqn.primitive](**params)
        # Other collectives of several operands apply to each operand separately.
        is_of_all = eqn.primitive is lax.ragged_all_to_all_p
        together = [operands] if is_of_all else [[x] for x in operands]
        return [collectives.over_axes(collective, xs, axes, self._sizes) for xs in together]

    def _call(self, jaxpr: jex_core.ClosedJaxpr, operands: list[Array]) -> Sequence[Array]:
        """The results of an inner jitted function, which stays one function for all its calls."""
        key = Identity(jaxpr.jaxpr)
        if key not in self._jitted:
            run = partial(self.run, jaxpr.jaxpr, jaxpr.consts)
            self._jitted[key] = jax.jit(lambda *args: run(args))
        return self._jitted[key](*operands)

    def _params(self, eqn: jex_core.JaxprEqn) -> dict[str, Param]:
        """The params of an equation without references to the mesh."""
        params = {k: None if k in _OF_THE_MESH else v for k, v in eqn.params.items()}
        if not any(map(_speaks_of_the_mesh, inner_jaxprs(eqn))):
            return params
        return jaxprs.map_inner(params, self._traced_again)

    def _traced_again(self, jaxpr: jaxprs.AnyJaxpr) -> jaxprs.AnyJaxpr:
        """Traces the jaxpr again, as this class evaluates it."""
        inner = jaxprs.closed(jaxpr)
        specs = [
            jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in inner.in_avals
        ]
        again = jax.make_jaxpr(lambda *args: self.run(inner.jaxpr, inner.consts, args))(*specs)
        return again if inner is jaxpr else again.jaxpr


# These primitives say where a value is, or how it varies between devices.
_UNCHANGED = traits.SHARDS | frozenset(named("pvary"))
_OF_THE_MESH = frozenset({"sharding", "out_sharding"})
_MAKERS: dict[str, Callable[..., collectives.Collective]] = {
    "psum": collectives.psum,
    "psum_invariant": collectives.psum,
    "pmax": collectives.pmax,
    "pmin": collectives.pmin,
    "ppermute": collectives.ppermute,
    "pbroadcast": collectives.pbroadcast,
    "all_gather": collectives.all_gather,
    "all_gather_invariant": collectives.all_gather,
    "reduce_scatter": collectives.reduce_scatter,
    "all_to_all": collectives.all_to_all,
    "ragged_all_to_all": collectives.ragged_all_to_all,
}
_COLLECTIVES = by_primitive(_MAKERS)
# Primitives that the program over whole arrays does not contain.
ELIMINATED = frozenset({*_UNCHANGED, *_COLLECTIVES, lax.axis_index_p, shard_map_p})


def _constrained(x: Array, eqn: jex_core.JaxprEqn) -> Array:
    """Applies a sharding constraint over mesh axes that the compiler partitions."""
    params = eqn.params
    sharding = params["dst_sharding" if "dst_sharding" in params else "sharding"]
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return x
    open_dims = params.get("unconstrained_dims", ())
    spec = [*sharding.spec, *[None] * (x.ndim - len(sharding.spec))]
    parts = tuple(OPEN if i in open_dims else part for i, part in enumerate(spec))
    if all(part in (None, OPEN) for part in parts):
        return x
    return in_parts_p.bind(x, mesh=tuple(sharding.mesh.shape.items()), parts=parts)


_ONE_BY_ONE = frozenset(named("rng_bit_generator", "pure_callback"))


def _runs_one_by_one(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation has to run for each device in turn, because its vmap would differ.

    XLA's generator would draw everything from the key of the first device. A callback takes the
    arrays of one device, whatever its vmap_method allows.
    """
    if eqn.primitive in traits.TAKES_KEYS:
        keys = aval_of(eqn.invars[0])
        return "rbg" in str(keys.dtype)
    return eqn.primitive in _ONE_BY_ONE


def _one_by_one(function: Callable[..., Sequence[Array]]) -> Callable[..., Sequence[Array]]:
    """Makes vmap call the function for one device after the other."""
    each = jax.custom_batching.custom_vmap(function)

    @each.def_vmap
    def _(axis_size: int, is_batched: Sequence[bool], *operands: Array) -> tuple[Array, Array]:
        batched = [x for x, b in zip(operands, is_batched, strict=True) if b]
        results = lax.map(lambda xs: each(*_replaced(operands, is_batched, xs)), batched)
        return results, jax.tree.map(lambda _: True, results)

    return each


def _replaced(
    operands: Sequence[Array], is_batched: Sequence[bool], batched: Sequence[Array]
) -> list[Array]:
    """The operands, with an element for each that is a batch."""
    elements = iter(batched)
    return [next(elements) if b else x for x, b in zip(operands, is_batched, strict=True)]


def _speaks_of_the_mesh(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether a value of the jaxpr varies over a mesh, or `Body` evaluates one of its equations."""
    values = [*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars))]
    return (
        any(compat.jaxprs.varies_over_a_mesh(v.aval) for v in values)
        or any(eqn.primitive in ELIMINATED or _runs_one_by_one(eqn) for eqn in jaxpr.eqns)
        or any(_speaks_of_the_mesh(inner) for eqn in jaxpr.eqns for inner in inner_jaxprs(eqn))
    )


def _unknown(eqn: jex_core.JaxprEqn) -> UnsupportedPrimitiveError:
    return refusals.unsupported(
        eqn,
        "it is a collective that jax2tf does not know",
        "write it with the collectives of jax.lax (psum, all_gather, ppermute, all_to_all ...)",
    )


def _names(spec: jax.sharding.PartitionSpec) -> tuple[tuple[Hashable, ...], ...]:
    """For each dimension in the spec, the mesh axes that split it."""
    return tuple(
        () if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in spec
    )


def _flat(names: Sequence[Sequence[Hashable]]) -> Iterator[Hashable]:
    return (axis for dim in names for axis in dim)


def _split(x: Array, names: Sequence[Sequence[Hashable]], axes: Shape, sizes: Sizes) -> Array:
    """Adds a leading dimension for each of `axes` that `names` contains, in the order of `axes`."""
    shape: list[Dim] = []
    places: dict[Hashable, int] = {}
    for dim, size in enumerate(x.shape):
        long = [axis for axis in (names[dim] if dim < len(names) else ()) if axis in axes]
        for axis in long:
            places[axis] = len(shape)
            shape.append(sizes[axis])
        shape.append(size // math.prod(sizes[axis] for axis in long))
    if not places:
        return x
    leading = [places[axis] for axis in axes if axis in places]
    rest = [i for i in range(len(shape)) if i not in leading]
    return jnp.transpose(x.reshape(shape), (*leading, *rest))


def _joined(y: Array, names: Sequence[Sequence[Hashable]], axes: Shape, shape: Shape) -> Array:
    """The inverse of `_split`; `shape` is the shape of the result."""
    leading = [axis for axis in axes if axis in _flat(names)]
    if not leading:
        return y
    order: list[int] = []
    for dim in range(len(shape)):
        long = [axis for axis in (names[dim] if dim < len(names) else ()) if axis in axes]
        order += [leading.index(axis) for axis in long]
        order.append(len(leading) + dim)
    return jnp.transpose(y, order).reshape(shape)
