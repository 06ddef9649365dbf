"""Collectives between the devices of a mesh, as functions of the values of all devices.

A per-device program is lowered as one program over arrays with a leading dimension for each mesh
axis (see `device_programs`), which JAX's vmap adds. This module defines the collectives under that
vmap. Each is a function of the stacked values of all participating devices, in the order of their
indices: `(n, *shape)` -> `(n, *shape of the result)`, without the leading dimension if all devices
get the same result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex_core
from jax.interpreters import batching

from jax2tf._src.util.typing import Array, Aval, Param

Stacked = jax.Array


@dataclasses.dataclass(frozen=True)
class Collective:
    """A collective on the stacked values of the devices.

    Attributes:
      function: maps the stacked operands to the stacked results.
      is_replicated: whether all devices get the same result, which has no leading dimension.
      of_unvarying: `(value, size) -> value`, the contribution of an axis of this size along which
        the operand does not vary. If None, the value is repeated along the axis.
    """

    function: Callable[..., jax.Array]
    is_replicated: bool = False
    of_unvarying: Callable[[Array, int], Array] | None = None


# Groups of device numbers; None is one group of all devices.
Groups: TypeAlias = Sequence[Sequence[int]] | None


def over_axes(
    collective: Collective,
    operands: Sequence[Array],
    axes: Sequence[Hashable],
    sizes: Mapping[Hashable, int],
) -> Array:
    """Applies the collective over mesh axes, inside a vmap for each axis longer than 1.

    Args:
      collective: the collective.
      operands: the values on one device.
      axes: the names of the axes; the first one varies slowest in the index of a device.
      sizes: the number of devices along each axis.
    """
    names = tuple(axis for axis in axes if sizes[axis] > 1)
    if not names and collective.of_unvarying is not None:
        return collective.of_unvarying(operands[0], 1)
    return _bind(operands, _State(collective, names, tuple(sizes[axis] for axis in names)))


@dataclasses.dataclass(frozen=True)
class _State:
    """A collective some of whose axes are already dimensions of the operands.

    The operands have the dimensions `[vmapped][stacked][value]`: the axes that take no part, the
    axes that take part, and their own dimensions.

    Attributes:
      collective: the collective to apply when all axes are dimensions.
      axes: the axes that take part, in the order of the index of a device, with their `sizes`.
      vmapped: the number of leading dimensions for axes that take no part.
      stacked: the axes that are already dimensions, in the order of the dimensions.
    """

    collective: Collective
    axes: tuple[Hashable, ...]
    sizes: tuple[int, ...]
    vmapped: int = 0
    stacked: tuple[Hashable, ...] = ()

    @property
    def pending(self) -> tuple[Hashable, ...]:
        return tuple(axis for axis in self.axes if axis not in self.stacked)

    def without(self, axis: Hashable) -> _State:
        """The state in which this axis no longer takes part."""
        kept = {a: n for a, n in zip(self.axes, self.sizes, strict=True) if a != axis}
        return dataclasses.replace(self, axes=tuple(kept), sizes=tuple(kept.values()))

    def apply(self, *operands: Array) -> jax.Array:
        """The result, with its dimensions in the order of the operands'."""
        run = self._run
        for _ in range(self.vmapped):
            run = jax.vmap(run)
        return run(*operands)

    def _run(self, *operands: Array) -> jax.Array:
        order = [self.stacked.index(axis) for axis in self.axes]
        rank = len(order)
        stacked = (jnp.transpose(x, (*order, *range(rank, x.ndim))) for x in operands)
        result = self.collective.function(
            *(x.reshape(math.prod(self.sizes), *x.shape[rank:]) for x in stacked)
        )
        if self.collective.is_replicated:
            return result
        result = result.reshape(*self.sizes, *result.shape[1:])
        return jnp.transpose(result, (*np.argsort(order), *range(rank, result.ndim)))


_over_mesh_p = jex_core.Primitive("collective_over_mesh")


def _bind(operands: Sequence[Array], state: _State) -> jax.Array:
    return _over_mesh_p.bind(*operands, state=state) if state.pending else state.apply(*operands)


def _abstract_eval(*operands: jax.Array, state: _State) -> Aval:
    pending, start = state.pending, state.vmapped
    sizes = dict(zip(state.axes, state.sizes, strict=True))
    missing = [sizes[axis] for axis in pending]
    whole = [
        jax.ShapeDtypeStruct((*x.shape[:start], *missing, *x.shape[start:]), x.dtype)
        for x in operands
    ]
    stacked = dataclasses.replace(state, stacked=(*pending, *state.stacked))
    result = jax.eval_shape(stacked.apply, *whole)
    shape = list(result.shape)
    if not state.collective.is_replicated:
        del shape[start : start + len(pending)]
    return jax.core.ShapedArray(tuple(shape), result.dtype)


_over_mesh_p.def_abstract_eval(_abstract_eval)


def _batch(
    axis_data: Param, operands: Sequence[jax.Array], dims: Sequence[int | None], *, state: _State
) -> tuple[jax.Array, int | None]:
    """Makes a mesh axis a dimension of the operands; JAX calls this at each vmap."""
    axis, size, place = axis_data.name, axis_data.size, state.vmapped
    unvarying = all(dim is None for dim in dims)
    if axis not in state.pending:
        if unvarying:
            return _bind(operands, state), None
        outer = dataclasses.replace(state, vmapped=place + 1)
        return _bind(_with_dimension(operands, dims, 0, size), outer), 0
    of_unvarying = state.collective.of_unvarying
    if unvarying and of_unvarying is not None:
        return _bind([of_unvarying(x, size) for x in operands], state.without(axis)), None
    inner = dataclasses.replace(state, stacked=(axis, *state.stacked))
    result = _bind(_with_dimension(operands, dims, place, size), inner)
    return result, None if state.collective.is_replicated else place


def _with_dimension(
    operands: Sequence[jax.Array], dims: Sequence[int | None], place: int, size: int
) -> list[jax.Array]:
    """Moves the vmapped dimension to `place`; operands without that dimension are repeated."""
    return [
        jnp.moveaxis(x, dim, place)
        if dim is not None
        else jnp.broadcast_to(jnp.expand_dims(x, place), (*x.shape[:place], size, *x.shape[place:]))
        for x, dim in zip(operands, dims, strict=True)
    ]


batching.fancy_primitive_batchers[_over_mesh_p] = _batch


FIRST = Collective(lambda x: x[0], is_replicated=True, of_unvarying=lambda x, _: x)


def psum(*, axis_index_groups: Groups = None) -> Collective:
    """The sum."""
    return _reduction(lambda x, axis: jnp.sum(x, axis, dtype=x.dtype), _times, axis_index_groups)


def pmax(*, axis_index_groups: Groups = None) -> Collective:
    """The maximum."""
    return _reduction(jnp.max, lambda x, _: x, axis_index_groups)


def pmin(*, axis_index_groups: Groups = None) -> Collective:
    """The minimum."""
    return _reduction(jnp.min, lambda x, _: x, axis_index_groups)


def ppermute(*, perm: Sequence[tuple[int, int]]) -> Collective:
    """The value that another device sends, or zeros if none does."""

    def function(x: Stacked) -> jax.Array:
        n = x.shape[0]
        source = np.full(n, n)
        for sender, receiver in perm:
            source[receiver] = sender
        shift = (np.arange(n) - source) % n
        if (source < n).all() and (shift == shift[0]).all():
            return jnp.roll(x, int(shift[0]), 0)
        if (source == n).any():
            x = jnp.concatenate([x, jnp.zeros_like(x[:1])])
        return _taken(x, source)

    return Collective(function)


def pbroadcast(*, source: int, axis_index_groups: Groups = None) -> Collective:
    """The value of one device."""
    groups = axis_index_groups
    if groups is None:
        return Collective(lambda x: x[source], is_replicated=True, of_unvarying=lambda x, _: x)
    return _in_groups(lambda x: jnp.broadcast_to(x[source], x.shape), groups)


def all_gather(
    *,
    all_gather_dimension: int,
    tiled: bool,
    axis_index_groups: Groups = None,
    **_: object,
) -> Collective:
    """The values of all devices, joined along a dimension."""

    def gathered(x: Stacked) -> jax.Array:
        x = jnp.moveaxis(x, 0, all_gather_dimension)
        return _merged(x, all_gather_dimension) if tiled else x

    if axis_index_groups is None:
        return Collective(gathered, is_replicated=True)
    return _in_groups(lambda x: _repeated(gathered(x), x.shape[0]), axis_index_groups)


def reduce_scatter(
    *,
    scatter_dimension: int,
    tiled: bool,
    axis_index_groups: Groups = None,
    **_: object,
) -> Collective:
    """The sum, split along a dimension: each device gets one part."""

    def function(x: Stacked) -> jax.Array:
        n = x.shape[0]
        total = jnp.sum(x, 0, dtype=x.dtype)
        if tiled:
            total = _split(total, scatter_dimension, n)
        return jnp.moveaxis(total, scatter_dimension, 0)

    return _in_groups(function, axis_index_groups)


def all_to_all(
    *,
    split_axis: int,
    concat_axis: int,
    axis_index_groups: Groups = None,
    tiled: bool = True,
) -> Collective:
    """Splits along one dimension, sends one part to each device, and joins along another."""
    del tiled  # jax.lax.all_to_all adds and drops dimensions outside of the primitive

    def function(x: Stacked) -> jax.Array:
        x = _split(x, split_axis + 1, x.shape[0])
        # [sender, ..., receiver, ...] -> [receiver, ..., sender, ...]
        x = jnp.moveaxis(x, split_axis + 1, 0)
        x = jnp.moveaxis(x, 1, concat_axis + 1)
        return _merged(x, concat_axis + 1)

    return _in_groups(function, axis_index_groups)


def ragged_all_to_all(*, axis_index_groups: Groups = None) -> Collective:
    """Sends rows of each device's operand to rows of each output; see jax.lax."""

    def function(
        x: Stacked,
        output: Stacked,
        input_offsets: Stacked,
        send_sizes: Stacked,
        output_offsets: Stacked,
        recv_sizes: Stacked,
    ) -> jax.Array:
        del recv_sizes  # the senders' sizes say the same
        row = jnp.arange(output.shape[1])
        # [sender, receiver, row]: the index of the sender's row, and whether it is sent.
        source = row - output_offsets[..., None]
        sent = (source >= 0) & (source < send_sizes[..., None])
        source = jnp.where(sent, source + input_offsets[..., None], 0)
        sender = jnp.argmax(sent, 0)
        rows = x[sender, jnp.take_along_axis(source, sender[None], 0)[0]]
        mask = sent.any(0).reshape(*sender.shape, *[1] * (x.ndim - 2))
        return jnp.where(mask, rows, output)

    return _in_groups(function, axis_index_groups)


def _reduction(
    reduce: Callable[..., jax.Array],
    of_unvarying: Callable[[Array, int], Array],
    groups: Groups,
) -> Collective:
    if groups is None:
        return Collective(lambda x: reduce(x, axis=0), True, of_unvarying)
    return _in_groups(lambda x: _repeated(reduce(x, axis=0), x.shape[0]), groups)


def _in_groups(function: Callable[..., jax.Array], groups: Groups) -> Collective:
    """Applies the collective within each group; None is one group of all devices in order."""
    if groups is None:
        return Collective(function)
    members = np.asarray(groups)

    def grouped(*operands: Stacked) -> jax.Array:
        results = jax.vmap(function)(*(_taken(x, members) for x in operands))
        return _taken(results.reshape(-1, *results.shape[2:]), np.argsort(members.ravel()))

    return Collective(grouped)


def _taken(x: jax.Array, devices: np.ndarray) -> jax.Array:
    """The values of the given devices."""
    return x.at[devices].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _times(x: Array, size: int) -> Array:
    return x if size == 1 else x * jnp.asarray(size, x.dtype)


def _repeated(x: jax.Array, n: int) -> jax.Array:
    return jnp.broadcast_to(x, (n, *x.shape))


def _split(x: jax.Array, axis: int, n: int) -> jax.Array:
    """Splits a dimension into `n` parts, which become a dimension before it."""
    return x.reshape(*x.shape[:axis], n, x.shape[axis] // n, *x.shape[axis + 1 :])


def _merged(x: jax.Array, axis: int) -> jax.Array:
    """Merges a dimension with the next one."""
    return x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
