"""Protects the values that a branch or a loop body reads from outside against a bug in Grappler.

When TensorFlow runs a graph, a Switch op has one output for each way that a value may go: into the
branch or past it, into the loop's next step or out of the loop. Grappler's SimplifyAggregation
rewrites `x + x` as a product with a constant that waits for x. If x is an output of a Switch, the
constant waits for the first output of that Switch, even if x is another one. The first output never
arrives in a loop's step or in the branch that runs, and the result is silently an empty array.
Grappler also treats `x + 1 * x` as `x + x`, and g(x, x) if g adds its arguments.

An EnsureShape, which Grappler keeps, therefore separates the two graphs. Not every engine has
EnsureShape. In a graph of standard ops, a value that a jaxpr adds to itself gets an op that changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import carries, pass_through
from jax2tf._src.ops import surroundings
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import inner_jaxprs
from jax2tf._src.util.tensors import Tensor


def inline(
    ctx: Context, jaxpr: jex_core.Jaxpr, consts: Sequence[Tensor], *args: Tensor
) -> list[Tensor]:
    """Lowers the jaxpr of a branch or of a loop's step in place."""
    # XLA does not rewrite sums like this, and DTensor places its own ops.
    if (
        ops.executing_eagerly()
        or surroundings.in_compiled_function()
        or ctx.target.placement is not None
    ):
        return ctx.inline_open(jaxpr, consts, *args)
    if ctx.wants("EnsureShape"):
        return ctx.inline_open(jaxpr, list(map(held, consts)), *map(held, args))
    doubled = _doubled(jaxpr, args)
    kept = (carries.by_an_op(x) if i in doubled else x for i, x in enumerate(args))
    return ctx.inline_open(jaxpr, consts, *kept)


def held(x: Tensor) -> Tensor:
    """`x` after an EnsureShape; a constant stays bare, since TensorFlow may need its value."""
    is_constant = ops.is_symbolic_tensor(x) and x.op.type == "Const"
    return x if is_constant else ops.ensure_shape(x, x.shape)


def _doubled(jaxpr: jex_core.Jaxpr, args: Sequence[Tensor]) -> set[int]:
    """The indices of the arguments that the jaxpr adds to themselves, also under two names."""
    return {i for pair in _summed(jaxpr) if args[pair[0]] is args[pair[1]] for i in pair}


def _summed(jaxpr: jex_core.Jaxpr) -> Iterator[tuple[int, int]]:
    """Yields the pairs of arguments that the jaxpr, or a jaxpr that it calls, adds to each other.

    A function of call_tf may add each argument to itself.
    """
    for eqn in jaxpr.eqns:
        called = list(inner_jaxprs(eqn))
        if eqn.primitive in traits.SUMS:
            pairs = [(0, 1)]
        elif eqn.primitive is call_tf_p:
            pairs = [(i, i) for i in range(len(eqn.invars))]
        elif len(called) == 1 and len(called[0].invars) == len(eqn.invars):
            pairs = list(_summed(called[0]))
        else:
            continue
        for pair in pairs:
            first, second = (pass_through.source_of(jaxpr, eqn.invars[i]) for i in pair)
            if first is not None and second is not None:
                yield first, second
