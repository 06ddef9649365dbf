"""The No-U-Turn sampler in plain JAX: the twin that TensorFlow Probability's is measured beside.

The algorithm is that of Hoffman and Gelman (2014, https://arxiv.org/abs/1111.4246) with
Betancourt's multinomial choice of points and turns seen in sums of momenta (2018,
https://arxiv.org/abs/1701.02434). A trajectory doubles until it turns. The subtree of a doubling is
built point by point; the momenta that begin its own subtrees are kept, one for each level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# A point whose energy is this much above the first one's ends the trajectory.
_DIVERGENCE = 1000.0


class Point(NamedTuple):
    """A point of a trajectory: position, momentum, log density and its gradient."""

    position: Any
    momentum: Any
    density: Any
    slope: Any


class Subtree(NamedTuple):
    """What is built of a doubling: its last point, its choice, and what tells whether it turns.

    Attributes:
      count: how many points it has.
      weight: the logarithm of the sum of their weights.
      total: the sum of their momenta.
      starts: for each level, the momentum of the point that begins its subtree.
      before: for each level, the sum of the momenta before that point.
      goes_on: whether it has neither turned nor diverged.
    """

    key: Any
    count: Any
    last: Point
    chosen: Point
    weight: Any
    total: Any
    starts: Any
    before: Any
    goes_on: Any


def step(
    log_density: Callable[[Any], Any], size: float, depth: int
) -> Callable[[Point, Any], tuple[Point, Any]]:
    """One step of a chain, as jax.lax.scan takes it: (point, key) to (point, points computed).

    Args:
      log_density: of a vector.
      size: of a leap.
      depth: the trajectory doubles at most so often.
    """
    with_slope = jax.value_and_grad(log_density)

    def leap(point: Point, signed: Any) -> Point:
        momentum = point.momentum + signed / 2 * point.slope
        position = point.position + signed * momentum
        density, slope = with_slope(position)
        return Point(position, momentum + signed / 2 * slope, density, slope)

    def grown(tree: Subtree, signed: Any, energy: Any) -> Subtree:
        key, of_choice = jax.random.split(tree.key)
        point = leap(tree.last, signed)
        total = tree.total + point.momentum
        gain = _energy(point) - energy
        weight = jnp.logaddexp(tree.weight, gain)
        is_chosen = jnp.log(jax.random.uniform(of_choice)) <= gain - weight
        # Of point n, level = the number of ones in n // 2; it ends as many subtrees as n has ones
        # at its end.
        level = jax.lax.population_count(tree.count >> 1)
        ended = jax.lax.population_count(tree.count & ~(tree.count + 1))

        def turns_at(i: Any) -> Any:
            return turns(total - tree.before[i], tree.starts[i], point.momentum)

        def is_open(state: tuple[Any, Any]) -> Any:
            return (state[0] <= level) & ~state[1]

        def next_level(state: tuple[Any, Any]) -> tuple[Any, Any]:
            return state[0] + 1, turns_at(state[0])

        _, turned = jax.lax.while_loop(is_open, next_level, (level - ended + 1, False))
        begins = tree.count % 2 == 0
        return Subtree(
            key,
            tree.count + 1,
            point,
            _either(is_chosen, point, tree.chosen),
            weight,
            total,
            tree.starts.at[level].set(jnp.where(begins, point.momentum, tree.starts[level])),
            tree.before.at[level].set(jnp.where(begins, tree.total, tree.before[level])),
            ~turned & (-gain < _DIVERGENCE),
        )

    def doubled(state: tuple[Any, ...], energy: Any) -> tuple[Any, ...]:
        key, doublings, ends, chosen, weight, total, computed, _ = state
        key, of_direction, of_tree, of_choice = jax.random.split(key, 4)
        is_forward = jax.random.bernoulli(of_direction)
        levels = jnp.zeros((depth, *total.shape), total.dtype)
        start = _either(is_forward, ends[1], ends[0])
        empty = Subtree(
            of_tree, 0, start, start, -jnp.inf, jnp.zeros_like(total), levels, levels, True
        )
        tree = jax.lax.while_loop(
            lambda tree: tree.goes_on & (tree.count < 1 << doublings),
            lambda tree: grown(tree, jnp.where(is_forward, size, -size), energy),
            jax.tree.map(jnp.asarray, empty._replace(weight=-jnp.inf * jnp.ones_like(weight))),
        )
        is_taken = jnp.log(jax.random.uniform(of_choice)) <= tree.weight - weight
        ends = (_either(is_forward, ends[0], tree.last), _either(is_forward, tree.last, ends[1]))
        total = total + tree.total
        goes_on = tree.goes_on & ~turns(total, ends[0].momentum, ends[1].momentum)
        return (
            key,
            doublings + 1,
            ends,
            _either(is_taken & tree.goes_on, tree.chosen, chosen),
            jnp.where(tree.goes_on, jnp.logaddexp(weight, tree.weight), weight),
            total,
            computed + tree.count,
            goes_on,
        )

    def one_step(point: Point, key: Any) -> tuple[Point, Any]:
        key, of_momentum = jax.random.split(key)
        momentum = jax.random.normal(of_momentum, point.position.shape, point.position.dtype)
        first = point._replace(momentum=momentum)
        energy = _energy(first)
        state = (key, 0, (first, first), first, jnp.zeros_like(energy), momentum, 0, True)
        end = jax.lax.while_loop(
            lambda state: state[-1] & (state[1] < depth),
            lambda state: doubled(state, energy),
            jax.tree.map(jnp.asarray, state),
        )
        return end[3], end[6]

    return one_step


def first_point(log_density: Callable[[Any], Any], position: Any) -> Point:
    density, slope = jax.value_and_grad(log_density)(position)
    return Point(position, jnp.zeros_like(position), density, slope)


def turns(total: Any, first: Any, last: Any) -> Any:
    """Whether a trajectory turns: the sum of its momenta points back at one of its ends."""
    return (total @ first < 0) | (total @ last < 0)


def _energy(point: Point) -> Any:
    return point.density - 0.5 * point.momentum @ point.momentum


def _either(condition: Any, a: Point, b: Point) -> Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
