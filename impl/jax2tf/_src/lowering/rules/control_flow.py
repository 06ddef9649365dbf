"""Control flow: cond, while, scan, custom_linear_solve, as TensorFlow's functional control flow.

Graphs get If, Case and While. Eager TensorFlow would run a loop in Python, op by op; a loop is
therefore one TensorFlow function, made once. Eager mode runs only the taken branch of a cond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import branch_captures, carries
from jax2tf._src.lowering.emit.constants import without_elements
from jax2tf._src.lowering.emit.loops import order_of_effects
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import Lowered, register
from jax2tf._src.lowering.supported import depends_on_an_argument
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.tracing.jaxprs import Scan, inner_jaxprs, variables
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Dim, Param

Tensors = list[Tensor]
# A TensorArray, or a tensor that has a row for each step.
Output: TypeAlias = Any


@register("cond", op="Case", takes_keys=True)
def _cond(
    ctx: Context, index: Tensor, *operands: Tensor, branches: Sequence[jex_core.ClosedJaxpr]
) -> Tensors:
    return _branch(ctx, index, operands, branches, _switch)


@register("cond", takes_keys=True)
def _cond_without_case(
    ctx: Context, index: Tensor, *operands: Tensor, branches: Sequence[jex_core.ClosedJaxpr]
) -> Tensors:
    return _branch(ctx, index, operands, branches, _chain)


def _branch(
    ctx: Context,
    index: Tensor,
    operands: Sequence[Tensor],
    branches: Sequence[jex_core.ClosedJaxpr],
    choose: Callable[[Tensor, list[Callable[[], Tensors]]], Lowered],
) -> Tensors:
    # As in XLA, an index out of range takes the last branch.
    last = len(branches) - 1
    known = 0 if last == 0 else _known_index(index)
    if known is not None:
        taken = known
        return ctx.inline(branches[taken if 0 <= taken <= last else last], *operands)
    run = [_thunk(ctx, index, branch, operands) for branch in branches]
    if last == 1:
        choose = _choose_of_two
    with order_of_effects(ctx):
        return _as_list(choose(index, run))


def _choose_of_two(index: Tensor, run: list[Callable[[], Tensors]]) -> Lowered:
    return ops.cond(ops.not_equal(index, 0), run[1], run[0])


def _known_index(index: Tensor) -> int | None:
    """The index if it is known: in eager mode, or if it is a constant of the graph."""
    value = index.numpy() if ops.executing_eagerly() else ops.get_static_value(index)
    return None if value is None else int(value)


@register("platform_index")
def _platform_index(ctx: Context, *, platforms: Sequence[tuple[str, ...] | None]) -> Tensor:
    # The graph is made for the platform on which JAX runs here, although it may run elsewhere.
    here = _platform()
    index = next(i for i, names in enumerate(platforms) if names is None or here in names)
    return ctx.constant(np.int32(index))


def _platform() -> str:
    """The platform that JAX runs on: "cpu", "cuda", "rocm" or "tpu"."""
    device = getattr(jax.config, "jax_default_device", None)
    chosen = getattr(device, "platform", device)
    # A GPU device of either platform is called "gpu"; branches distinguish the two.
    return chosen if chosen in ("cpu", "tpu") else jax.export.default_export_platform()


def _thunk(
    ctx: Context,
    index: Tensor,
    branch: jex_core.ClosedJaxpr,
    operands: Sequence[Tensor],
) -> Callable[[], Tensors]:
    consts = [ctx.constant(c) for c in branch.consts]

    def run() -> Tensors:
        results = branch_captures.inline(ctx, branch.jaxpr, consts, *operands)
        # If a branch returns a captured tensor, tf.cond needs an op for it in the branch.
        return [_of_branch(ctx, index, ops.identity(r)) for r in results]

    return run


def _of_branch(ctx: Context, index: Tensor, result: Tensor) -> Tensor:
    """The result of a branch; a constant passes through an op that depends on the index."""
    if not ctx.has(Quirk.TAKES_CONSTANT_BRANCHES) or depends_on_an_argument(result.op):
        return result
    return ops.raw.SelectV2(condition=ops.equal(index, 0), t=result, e=result)


def _switch(index: Tensor, run: list[Callable[[], Tensors]]) -> Lowered:
    return ops.switch_case(ops.cast(index, dtypes.int32), run)


def _chain(index: Tensor, run: list[Callable[[], Tensors]]) -> Lowered:
    # Engines have If, but not Case.
    result: Callable[[], Lowered] = run[-1]
    for i in reversed(range(len(run) - 1)):
        result = _if_equal(index, i, run[i], result)
    return result()


def _if_equal(
    index: Tensor, i: int, then: Callable[[], Lowered], otherwise: Callable[[], Lowered]
) -> Callable[[], Lowered]:
    return lambda: ops.cond(ops.equal(index, i), then, otherwise)


@register("while", takes_keys=True)
def _while(
    ctx: Context,
    *operands: Tensor,
    cond_jaxpr: jex_core.ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: jex_core.ClosedJaxpr,
    body_nconsts: int,
) -> Tensors:
    n_consts = cond_nconsts + body_nconsts

    def loop(ctx: Context, *operands: Tensor) -> Tensors:
        cond_consts, body_consts = operands[:cond_nconsts], operands[cond_nconsts:n_consts]
        run_cond = _closed(ctx, cond_jaxpr, cond_consts, is_step=False)
        run_body = _mappable(ctx, _closed(ctx, body_jaxpr, body_consts), body_jaxpr, body_nconsts)
        run = _while_batched if cond_jaxpr.out_avals[0].shape else _while_scalar
        return run(ctx, run_cond, run_body, operands[n_consts:])

    return _in_graph(ctx, loop, operands)


def _while_scalar(
    ctx: Context,
    run_cond: Callable[..., Tensors],
    run_body: Callable[..., Tensors],
    carry: Sequence[Tensor],
) -> Tensors:
    def goes_on(*carry: Tensor) -> Tensor:
        return run_cond(*carry)[0]

    step = carries.kept(ctx, run_body, goes_on, len(carry))
    with order_of_effects(ctx):
        return list(ops.while_loop(goes_on, lambda *carry: step(*carry), carry))


def _while_batched(
    ctx: Context,
    run_cond: Callable[..., Tensors],
    run_body: Callable[..., Tensors],
    carry: Sequence[Tensor],
) -> Tensors:
    """A vmapped loop whose members stop at different times; a stopped member keeps its carry."""

    def body(going: Tensor, *carry: Tensor) -> list[Tensor]:
        kept = [
            select(ctx, _with_rank_of(new, going), new, old)
            for new, old in zip(run_body(*carry), carry, strict=True)
        ]
        return [run_cond(*kept)[0], *kept]

    def goes_on(going: Tensor, *carry: Tensor) -> Tensor:
        return ops.reduce_any(going)

    state = [run_cond(*carry)[0], *carry]
    step = carries.kept(ctx, body, goes_on, len(state))
    with order_of_effects(ctx):
        _, *result = ops.while_loop(goes_on, lambda *state: step(*state), state)
    return result


def _with_rank_of(tensor: Tensor, mask: Tensor) -> Tensor:
    for _ in range(tensor.shape.rank - mask.shape.rank):
        mask = ops.expand_dims(mask, -1)
    return mask


@register("scan", takes_keys=True)
def _scan(
    ctx: Context,
    *operands: Tensor,
    jaxpr: jex_core.ClosedJaxpr,
    length: Dim,
    reverse: bool,
    unroll: Param,
    num_consts: int = 0,
    num_carry: int = 0,
    ft_in: Param = None,
    ft_out: Param = None,
) -> Tensors:
    # `unroll` changes only the speed. The other params are named, so that a new param in a later
    # JAX is an error. JAX before 0.12 has two numbers, later JAX has two trees.
    del unroll, num_consts, num_carry, ft_in, ft_out
    scan = Scan.of(ctx.eqn)
    n_consts, n_carry = scan.n_consts, scan.n_carry
    n_fixed = n_consts + n_carry

    def loop(ctx: Context, *operands: Tensor) -> Tensors:
        step = _closed(ctx, jaxpr, operands[:n_consts])
        step = _mappable(ctx, step, jaxpr, n_consts, n_carry)
        return _scan_loop(
            ctx, step, operands[n_consts:n_fixed], operands[n_fixed:], jaxpr, length, reverse
        )

    if isinstance(length, int) and length == 0:
        stacked = ctx.avals_out[n_carry:]
        return [
            *operands[n_consts:n_fixed],
            *(without_elements(ctx, aval) for aval in stacked),
        ]
    if isinstance(length, int) and length == 1:
        step = _closed(ctx, jaxpr, operands[:n_consts])
        results = step(
            *operands[n_consts:n_fixed], *(ops.squeeze(x, 0) for x in operands[n_fixed:])
        )
        return [*results[:n_carry], *(ops.expand_dims(y, 0) for y in results[n_carry:])]
    return _in_graph(ctx, loop, operands)


def _scan_loop(
    ctx: Context,
    step: Callable[..., Tensors],
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    jaxpr: jex_core.ClosedJaxpr,
    length: Dim,
    reverse: bool,
) -> Tensors:
    n_carry = len(carry)
    size = ctx.dim(length)
    spare = dims.may_be_zero(length)
    outputs = [_output_for(ctx, aval)(ctx, aval, size, spare) for aval in jaxpr.out_avals[n_carry:]]

    def body(i: Tensor, carry: Tensors, ys: list[Output]) -> tuple[Lowered, ...]:
        at = size - 1 - i if reverse else i
        kept = carries.kept(ctx, step, lambda *_: i < size, n_carry)
        results = kept(*carry, *(ops.gather(x, at) for x in xs))
        written = [
            output.written(y, at, value)
            for output, y, value in zip(outputs, ys, results[n_carry:], strict=True)
        ]
        return i + 1, results[:n_carry], written

    start = [output.start for output in outputs]
    # No maximum_iterations, because TensorFlow would count the steps a second time.
    with order_of_effects(ctx):
        _, carry, ys = ops.while_loop(
            lambda i, *_: i < size, body, (ops.constant(0), list(carry), start)
        )
    stacked = [output.stacked(y) for output, y in zip(outputs, ys, strict=True)]
    return [*carry, *stacked]


def _output_for(ctx: Context, aval: Aval) -> type[_TensorArray | _Rows | _Slices]:
    """The class that collects an output of a scan with that aval."""
    if not ctx.takes("TensorListReserve"):
        return _Rows
    is_known = None not in ctx.static_shape(dtypes.physical_shape(aval))
    return _TensorArray if is_known or not ctx.has(Quirk.LISTS_OF_KNOWN_SHAPE) else _Slices


class _TensorArray:
    """Collects an output of each step in a TensorArray.

    If the scan may have no steps, it has one spare element: TensorFlow stacks an empty TensorArray
    only if the shape is static.
    """

    def __init__(self, ctx: Context, aval: Aval, size: Dim, spare: bool):
        self._size = size if spare else None
        element_shape = ctx.static_shape(dtypes.physical_shape(aval))
        places = size + 1 if spare else size
        array = ops.TensorArray(dtypes.to_tf(aval.dtype), places, element_shape=element_shape)
        self.start = array.write(size, ctx.zeros(aval)) if spare else array

    def written(self, array: Output, place: Dim, value: Tensor) -> Output:
        return array.write(place, value)

    def stacked(self, array: Output) -> Tensor:
        return array.stack() if self._size is None else array.stack()[: self._size]


class _Rows:
    """Collects the outputs in one tensor; a select writes the row of the step."""

    def __init__(self, ctx: Context, aval: Aval, size: Dim, spare: bool):
        del spare
        self._rows = ops.range(size)
        row = ctx.zeros(aval)
        self.start = ops.tile(ops.expand_dims(row, 0), [size, *[1] * row.shape.rank])

    def written(self, rows: Tensor, place: Dim, value: Tensor) -> Tensor:
        here = ops.reshape(ops.equal(self._rows, place), [-1, *[1] * value.shape.rank])
        return ops.where(here, ops.expand_dims(value, 0), rows)

    def stacked(self, rows: Tensor) -> Tensor:
        return rows


class _Slices(_Rows):
    """Collects the outputs in one tensor; XlaDynamicUpdateSlice writes the row of the step."""

    def written(self, rows: Tensor, place: Dim, value: Tensor) -> Tensor:
        start = ops.stack([place, *[ops.constant(0)] * value.shape.rank])
        return ops.dynamic_update_slice(rows, ops.expand_dims(value, 0), start)


@register("custom_linear_solve", takes_keys=True)
def _custom_linear_solve(
    ctx: Context, *operands: Tensor, const_lengths: Param, jaxprs: Param
) -> Tensors:
    start = const_lengths.matvec + const_lengths.vecmat
    consts = operands[start : start + const_lengths.solve]
    rhs = operands[start + const_lengths.solve + const_lengths.transpose_solve :]
    return ctx.inline(jaxprs.solve, *consts, *rhs)


def _closed(
    ctx: Context,
    jaxpr: jex_core.ClosedJaxpr,
    consts: Sequence[Tensor],
    *,
    is_step: bool = True,
) -> Callable[..., Tensors]:
    """Partially applies `jaxpr` to `consts`; its own constants are created outside the loop."""
    own = [ctx.constant(c) for c in jaxpr.consts]
    if not is_step:
        return lambda *args: ctx.inline_open(jaxpr.jaxpr, own, *consts, *args)
    return lambda *args: branch_captures.inline(ctx, jaxpr.jaxpr, own, *consts, *args)


def _mappable(
    ctx: Context,
    step: Callable[..., Tensors],
    jaxpr: jex_core.ClosedJaxpr,
    n_consts: int,
    n_carry: int | None = None,
) -> Callable[..., Tensors]:
    """Makes the step of a loop mappable: tape.jacobian maps a vjp over cotangents.

    TensorFlow's pfor fails if a loop's state is mapped before the first step and not after it, as a
    cotangent that a step overwrites with zeros. A select that always takes the new value is mapped.
    """
    # Graphs for DTensor are never mapped: pfor creates other kinds of ops.
    if not ctx.trace.is_vjp or ctx.target.placement is not None:
        return step
    carried = range(len(jaxpr.out_avals) if n_carry is None else n_carry)
    overwritten = [i for i in carried if not _is_made_of(jaxpr.jaxpr, i, n_consts + i)]

    def mappable(*operands: Tensor) -> Tensors:
        results = step(*operands)
        for i in overwritten:
            results[i] = ops.where(_always(), results[i], operands[i])
        return results

    return mappable


def _always() -> Tensor:
    """True, as a value that Grappler does not know.

    For a select with a constant condition, Grappler keeps the chosen side and makes it wait for the
    other side. In the state of a loop, that side only exists after the last step: the loop then
    ends with empty arrays as results.
    """
    return ops.raw.PlaceholderWithDefault(input=True, shape=[])


def _is_made_of(jaxpr: jex_core.Jaxpr, result: int, operand: int) -> bool:
    """Whether a result is certainly computed from an operand; inner jaxprs are not searched."""
    made = {jaxpr.invars[operand]}
    for eqn in jaxpr.eqns:
        if made.intersection(variables(eqn.invars)) and next(inner_jaxprs(eqn), None) is None:
            made.update(eqn.outvars)
    made_of = jaxpr.outvars[result]
    return isinstance(made_of, jex_core.Var) and made_of in made


def _in_graph(ctx: Context, loop: Callable[..., Tensors], operands: Sequence[Tensor]) -> Tensors:
    if ctx.is_by_kernels:
        return ctx.function(("loop", Identity(ctx.eqn)), loop, *operands)
    return loop(ctx, *operands)


def _as_list(result: Tensor | Tensors) -> Tensors:
    return list(result) if isinstance(result, list | tuple) else [result]
