"""What a branch or the body of a loop reads from outside, kept from a mistake of TensorFlow's.

When TensorFlow runs a graph, an op (Switch) has one output for each way that a value may go: into
the branch or past it, into the loop's next step or out of the loop. Grappler's SimplifyAggregation
makes a product of `x + x`, with a constant that waits for x. Where x is an output of a Switch, the
constant waits for the first output, whichever x is. Nothing comes from there in a loop's step or in
the branch that is taken, and the result is an empty array, without a word. To Grappler
`x + 1 * x` is `x + x` too, and so is g(x, x) where g adds its arguments.

So an op that Grappler keeps stands between: EnsureShape. Not every engine has it. A graph of
standard ops has an op that computes nothing instead, where its jaxpr adds a value to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src import compat, ops
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import carries, pass_through
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import inner_jaxprs


def inline(
    ctx: Context, jaxpr: jex_core.Jaxpr, consts: Sequence[tf.Tensor], *args: tf.Tensor
) -> list[tf.Tensor]:
    """Lowers the jaxpr of a branch or of a loop's step in place."""
    # XLA does not optimise like that, and DTensor places its own ops.
    if (
        tf.executing_eagerly()
        or compat.functions.in_compiled_function()
        or ctx.placement is not None
    ):
        return ctx.inline_open(jaxpr, consts, *args)
    if ctx.wants("EnsureShape"):
        return ctx.inline_open(jaxpr, list(map(held, consts)), *map(held, args))
    doubled = _doubled(jaxpr, args)
    kept = (carries.by_an_op(x) if i in doubled else x for i, x in enumerate(args))
    return ctx.inline_open(jaxpr, consts, *kept)


def held(x: tf.Tensor) -> tf.Tensor:
    """The tensor behind an op that stays; a constant as it is, whose value TensorFlow may need."""
    is_constant = tf.is_symbolic_tensor(x) and x.op.type == "Const"
    return x if is_constant else ops.ensure_shape(x, x.shape)


def _doubled(jaxpr: jex_core.Jaxpr, args: Sequence[tf.Tensor]) -> set[int]:
    """Which arguments are added to themselves, by whatever name."""
    return {i for pair in _summed(jaxpr) if args[pair[0]] is args[pair[1]] for i in pair}


def _summed(jaxpr: jex_core.Jaxpr) -> Iterator[tuple[int, int]]:
    """The pairs of arguments whose numbers are added, here or in a jaxpr that is called.

    A TensorFlow function may add each of its arguments to itself.
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
