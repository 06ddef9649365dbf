"""The JAX primitive `call_tf` and its rules for each transformation.

    call_tf[function=f] *operands -> results

Its one param is a `Function`, and each transformation binds the same primitive with a derived
function: the tangents are call_tf[function=jvp(f)], which is linear in its last operands; their
transpose is call_tf[function=vjp(f)], and vmap gives call_tf[function=vmap(f)].
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jax.extend import core as jex_core
from jax.interpreters import ad, batching
from jax.sharding import NamedSharding, PartitionSpec

from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import derived, embedding, exchange
from jax2tf._src.call_tf.functions import Described, Function, refuse_key
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Aval, PyTree

call_tf_p = jex_core.Primitive("call_tf")
call_tf_p.multiple_results = True


def bind(operands: Sequence[jax.Array], function: Function) -> list[jax.Array]:
    """The results of a call.

    Within shard_map all operands are made to vary over each axis over which one varies, as JAX does
    for its own primitives. The derivative of an operand that did not vary is the sum over the axes.
    """
    if any(isinstance(x, jax.core.Tracer) for x in operands):
        axes = [jax.typeof(x).manual_axis_type.varying for x in operands]
        varying = frozenset().union(*axes)
        operands = [
            jax.lax.pcast(x, tuple(varying - own), to="varying") if varying - own else x
            for x, own in zip(operands, axes, strict=True)
        ]
    return list(call_tf_p.bind(*operands, function=function))


def _op_by_op(*operands: jax.Array, function: Function) -> list[jax.Array]:
    if not tf.executing_eagerly():
        raise CallTfError(
            f"jax2tf.call_tf({function.name}): called while TensorFlow makes a graph, which has no "
            "values yet. Call the TensorFlow function itself, or convert the JAX function around it"
        )
    results = function.run_in_threads(_tensors(operands, function))
    return [exchange.to_array(r) for r in results]


call_tf_p.def_impl(_op_by_op)


def _tensors(operands: Sequence[jax.Array], function: Function) -> list[tf.Tensor]:
    try:
        return [exchange.to_tensor(x) for x in operands]
    except TypeError as error:
        refused = error
    # Only after a failure: a check of every call for keys would cost time.
    for i, x in enumerate(operands):
        refuse_key(jax.typeof(x).dtype, i, function)
    raise refused


def _abstract_eval(*avals: Aval, function: Function) -> tuple[list[Aval], set[jex_core.Effect]]:
    effects: set[jex_core.Effect] = set()
    if function.options.has_side_effects and function.signature(avals).has_effects:
        effects.add(_effect(function.options.ordered))
    like = next((a for a in avals if a.manual_axis_type.varying), None)
    return [_aval(spec, like) for spec in _output_specs(function, avals)], effects


call_tf_p.def_effectful_abstract_eval(_abstract_eval)


def _output_specs(function: Function, avals: Sequence[Described]) -> Sequence[Described]:
    # The shapes of derivatives follow without a trace. JAX stages many derivatives that never run,
    # and a jvp that is only transposed may have an op that TensorFlow differentiates only once.
    match function:
        case derived.Vjp():
            return [avals[i] for i in function.wrt]
        case derived.Jvp():
            n = len(avals) - len(function.wrt)
            specs = _output_specs(function.base, avals[:n])
            return [specs[i] for i in function.outputs]
        case derived.Batched() if isinstance(derived.innermost(function), derived.Derivative):
            size, elements = function.element_avals(avals)
            return [
                jax.ShapeDtypeStruct(s.shape if i in function.summed else (size, *s.shape), s.dtype)
                for i, s in enumerate(_output_specs(function.base, elements))
            ]
        case _:
            return embedding.output_specs(function.signature(avals))


def _aval(spec: Described, like: Aval | None) -> Aval:
    """The aval of a result; within shard_map it varies over the axes that `like` varies over."""
    if like is None:
        return jax.core.ShapedArray(spec.shape, spec.dtype)
    whole = NamedSharding(like.sharding.mesh, PartitionSpec(*[None] * len(spec.shape)))
    return like.update(shape=spec.shape, dtype=spec.dtype, weak_type=False, sharding=whole)


@cached
def _effect(ordered: bool) -> jex_core.Effect:
    """The effect of a host callback: JAX knows which transformations allow it."""
    jaxpr = jax.make_jaxpr(lambda: io_callback(lambda: None, None, ordered=ordered))()
    effect: jex_core.Effect
    (effect,) = jaxpr.effects
    return effect


def _jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], *, function: Function
) -> tuple[list[jax.Array], list[jax.Array | ad.Zero]]:
    results = bind(primals, function)
    wrt = tuple(
        i
        for i, t in enumerate(tangents)
        if not isinstance(t, ad.Zero) and jnp.issubdtype(jax.typeof(primals[i]).dtype, jnp.inexact)
    )
    outputs = tuple(i for i, r in enumerate(results) if jnp.issubdtype(r.dtype, jnp.inexact))
    out_tangents: list[jax.Array | ad.Zero] = [
        ad.Zero(jax.typeof(r).to_tangent_aval()) for r in results
    ]
    if wrt and outputs:
        operands = [*primals, *(tangents[i] for i in wrt)]
        linear = bind(operands, derived.jvp(function, wrt, outputs))
        for i, tangent in zip(outputs, linear, strict=True):
            out_tangents[i] = tangent
    return results, out_tangents


ad.primitive_jvps[call_tf_p] = _jvp


def _transpose(
    cotangents: Sequence[jax.Array], *operands: PyTree, function: Function
) -> list[jax.Array | None]:
    linear = tuple(i for i, x in enumerate(operands) if ad.is_undefined_primal(x))
    cotangents = [ad.instantiate_zeros(c) for c in cotangents]
    innermost = derived.innermost(function)
    n = len(operands) - len(innermost.wrt) if isinstance(innermost, derived.Jvp) else len(operands)
    if linear[0] >= n:
        # The function is a jvp, or a batch of a jvp. Its known tangents are zero: with others it
        # would not be linear.
        primals, transpose = list(operands[:n]), derived.transposed(function, n, linear)
    else:
        # Any other function that JAX transposes is linear: its derivative is the same everywhere.
        outputs = tuple(i for i, c in enumerate(cotangents) if jnp.issubdtype(c.dtype, jnp.inexact))
        cotangents = [cotangents[i] for i in outputs]
        primals = [
            jnp.zeros(x.aval.shape, x.aval.dtype) if ad.is_undefined_primal(x) else x
            for x in operands
        ]
        transpose = derived.vjp(function, linear, outputs)
    gradients = bind([*primals, *cotangents], transpose)
    by_operand = dict(zip(linear, gradients, strict=True))
    return [by_operand.get(i) for i in range(len(operands))]


ad.primitive_transposes[call_tf_p] = _transpose


def _batch(
    operands: Sequence[jax.Array], axes: Sequence[int | None], *, function: Function
) -> tuple[list[jax.Array], list[int]]:
    mapped = tuple(axis is not None for axis in axes)
    batch_first = [
        x if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
    results = bind(batch_first, derived.batched(function, mapped))
    return results, [0] * len(results)


batching.primitive_batchers[call_tf_p] = _batch

embedding.register(call_tf_p)
