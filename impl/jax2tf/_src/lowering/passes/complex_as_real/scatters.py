"""Scatters complex numbers with a combination that needs both parts.

A scatter of JAX combines elements of one array only. Here, each update is combined with the element
at its place and written there, one index after the other, because indices may repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.complex_as_real.pair import Pair, Value
from jax2tf._src.util import scatter_windows
from jax2tf._src.util.typing import Array

# Gets elements of the operand and of the updates. `x.at[...].apply(function)` ignores the updates.
Combine = Callable[..., Pair]


def rule_of(combine: Combine) -> Callable[..., Sequence[Value]]:
    """Returns the rule of a scatter that combines elements of the operand and of the updates."""

    def rule(
        eqn: jex_core.JaxprEqn, operand: Pair, indices: Array, updates: Pair
    ) -> Sequence[Value]:
        return [combined(eqn, operand, indices, updates, combine)]

    return rule


def combined(
    eqn: jex_core.JaxprEqn, operand: Pair, indices: Array, updates: Value, combine: Combine
) -> Pair:
    """Combines the updates of a scatter with the elements of the operand at their places."""
    shape = np.shape(operand.real)
    updates_shape = np.shape(updates.real)
    if 0 in shape or 0 in updates_shape:
        return operand
    windows = eqn.params["dimension_numbers"].update_window_dims
    places = _by_index(_places(eqn, shape, indices, updates_shape), windows)
    new: Value = jax.tree.map(lambda part: _by_index(part, windows), updates)
    flat = Pair(*(jnp.reshape(part, (-1,)) for part in operand))
    count = places.shape[0]
    if eqn.params["unique_indices"] or (isinstance(count, int) and count == 1):
        written = _write(flat, places, new, combine)
    else:

        def step(i: Array, flat: Pair) -> Pair:
            at, update = (
                jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, keepdims=False), values)
                for values in (places, new)
            )
            return _write(flat, at, update, combine)

        written = lax.fori_loop(0, count, step, flat)
    return Pair(*(jnp.reshape(part, shape) for part in written))


def _write(flat: Pair, places: Array, updates: Value, combine: Combine) -> Pair:
    here = Pair(*(jnp.asarray(part).at[places].get(mode="clip") for part in flat))
    made = combine(here, updates)
    return Pair(
        *(
            jnp.asarray(part).at[places].set(new, mode="drop", unique_indices=True)
            for part, new in zip(flat, made, strict=True)
        )
    )


def _places(
    eqn: jex_core.JaxprEqn, shape: Sequence[int], indices: Array, updates_shape: Sequence[int]
) -> Array:
    """Returns each update's place in the flattened operand; for a dropped update, its size."""
    numbers = eqn.params["dimension_numbers"]
    size = math.prod(shape)
    of_gather, slice_sizes = scatter_windows.gather_of(numbers, len(shape), updates_shape)
    places = lax.gather(
        jnp.reshape(jnp.arange(size), shape),
        indices,
        of_gather,
        slice_sizes,
        mode=eqn.params["mode"],
        fill_value=-1,
    )
    return jnp.where(places < 0, size, places)


def _by_index(x: Array, windows: Sequence[int]) -> Array:
    """Reshapes values like the updates to (index of the window, place in the window)."""
    front = [d for d in range(x.ndim) if d not in windows]
    shape = [x.shape[d] for d in front], [x.shape[d] for d in windows]
    moved = jnp.transpose(x, (*front, *windows))
    return jnp.reshape(moved, tuple(math.prod(sizes) for sizes in shape))
