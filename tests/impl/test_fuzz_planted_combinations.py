"""Bugs that the code once had are found by random combinations when they are planted back."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from jax2tf._src import compat
from jax2tf._src.gradients import custom_gradient, in_graph
from jax2tf._src.lowering import registry
from jax2tf._src.lowering.passes import empties
from jax2tf._src.lowering.rules import barriers
from jax2tf._src.tracing import functions
from jax2tf._src.util import dtypes, identity
from tests.impl.fuzzing import foreign
from tests.impl.fuzzing.planted import is_found
from tests.impl.fuzzing.uses import Combination, combinations

EXAMPLES = 100


class Found(Exception):
    """An example failed, in whatever way."""


def gives_what_jax_gives(combination: Combination) -> None:
    # What Hypothesis itself raises is not found.
    try:
        combination.check()
    except Exception as error:
        raise Found from error


def views_by_address(patch):
    """The bug of captured views: one variable for all that begins at one address."""
    patch(identity.SameElements, "of", lambda array: array.__array_interface__["data"][0])


def rules_by_name(patch):
    by_name = {primitive.name: primitive for primitive in registry._RULES}
    find = registry.find

    def find_by_name(primitive, target):
        return find(by_name.get(primitive.name, primitive), target)

    patch(registry, "find", find_by_name)


def statics_ignored(patch):
    """All static values are one for the cache of traces."""
    patch(functions.Static, "__eq__", lambda self, other: isinstance(other, functions.Static))
    patch(functions.Static, "__hash__", lambda self: 0)


def no_tangents(patch):
    """A ForwardAccumulator in a graph goes unseen."""
    patch(custom_gradient.compat.tapes, "accumulator_watches", lambda tensors: False)


def none_for_integers(patch):
    """Integers are among the results that have cotangents, and TensorFlow gives None for theirs."""

    def recorded(self, way, args, variables=()):
        @tf.custom_gradient
        def with_vjp(*tensors):
            with compat.tapes.nothing_recorded():
                results, of_cotangents = way(tensors)

            def gradient(*cotangents):
                dense = list(map(tf.convert_to_tensor, cotangents))
                return of_cotangents([dense[i] for i in self.vjp.outputs])

            return results, gradient

        return list(with_vjp(*args))

    patch(custom_gradient._Function, "recorded", recorded)


def gradients_refused_for_their_own(patch):
    """A graph's gradient is refused where it has no gradient itself, which nobody asked for."""
    real = custom_gradient._Function._recomputed

    def recomputed(self, args, cotangents):
        if not tf.executing_eagerly():
            own = self._whole(saved_order=1).differentiability.error
            if own is not None:
                raise own
        return real(self, args, cotangents)

    patch(custom_gradient._Function, "_recomputed", recomputed)


def keys_without_data(patch):
    """An array of no keys, as an empty scan stacks it, has their shape, not that of their data."""

    def without_elements(ctx, aval):
        return ctx.constant(np.zeros(aval.shape, dtypes.to_tf(aval.dtype).as_numpy_dtype))

    patch(empties, "without_elements", without_elements)


def arguments_around_a_branch(patch):
    """A gradient reads its arguments from the graph around the branch that it is of."""
    patch(in_graph, "in_this_graph", list)


def barriers_of_graphs_alone(patch):
    """A barrier in a graph asks each operand for its graph, and eager tensors have none."""
    patch(barriers.ops, "is_symbolic_tensor", lambda tensor: True)


CALL = ("calls", "call")
OUTSIDE = ("first order", "tape outside")
VIEWS = [f"views {i}" for i in range(5)]
# Each is looked for where it can be: among all programs it takes hundreds.
PLANTS = {
    views_by_address: combinations("calls", "Module", steps=["f", "f of a sum"], parts=VIEWS),
    rules_by_name: combinations(*CALL, steps=["f"], parts=["jit", "scan", *foreign.FUNCTIONS]),
    statics_ignored: combinations("calls", "call again", statics=(1, 1), steps=["f", "product"]),
    no_tangents: combinations("second order", "forward accumulator", steps=["f"]),
    none_for_integers: combinations(*OUTSIDE, steps=["f", "int", "compare"]),
    gradients_refused_for_their_own: combinations(*OUTSIDE, steps=["f"], parts=["custom_vjp"]),
    arguments_around_a_branch: combinations("first order", "in a branch", steps=["f"]),
    barriers_of_graphs_alone: combinations(
        "second order", "jacobian", steps=["f"], parts=["checkpoint"]
    ),
    keys_without_data: combinations(*CALL, steps=["empty scan of keys", "split"]),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch.setattr)
    assert is_found(st.tuples(PLANTS[plant]), gives_what_jax_gives, EXAMPLES, (Found,))
