"""Random bits, and the bits of numbers of 64 bits.

JAX keeps a key as words of 32 bits, and StableHLO's generator takes words of 64. Without
jax_enable_x64 JAX has no arrays of these; they are kept as `Words`, their halves.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from jax2tf._src.api.errors import NotDifferentiableError
from jax2tf._src.stablehlo.evaluator import Step, Words, as_array, takes_sizes
from jax2tf._src.stablehlo.registry import reads, reads_custom_call
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree


@reads("stablehlo.bitcast_convert")
@takes_sizes
def _bitcast_convert(step: Step, x: Array) -> PyTree:
    dtype = step.result.dtype
    if isinstance(x, Words):
        return lax.bitcast_convert_type(x.halves, dtype) if dtype.itemsize <= 4 else x
    x = as_array(x)
    if dtype.kind == "c":
        return x  # of the same dtype: there are no bits of complex numbers
    if dtype.itemsize == 8 and not jax.config.read("jax_enable_x64"):
        words = lax.bitcast_convert_type(x, jnp.uint32)
        return Words(words.reshape(*step.result.shape, 2))
    is_of_floats = jnp.issubdtype(x.dtype, jnp.floating) and not jnp.issubdtype(dtype, jnp.floating)
    if is_of_floats and step.op.primitive not in ("", "bitcast_convert_type"):
        return _without_gradient(step.op.primitive, x, dtype)
    return lax.bitcast_convert_type(x, dtype)


def _without_gradient(primitive: str, x: Array, dtype: PyTree) -> Array:
    """The bits of a float inside the expansion of a function. JAX takes the derivative of bits for
    zero, which is not the derivative of the function.
    """

    @jax.custom_jvp
    def bits(x: Array) -> Array:
        return lax.bitcast_convert_type(x, dtype)

    @bits.defjvp
    def refuse(primals: PyTree, tangents: PyTree) -> PyTree:
        raise NotDifferentiableError(
            f"jax2tf.load: the file has no derivative of '{primitive}': JAX wrote it as operations "
            "on bits. What to do: load a file of the gradient (export jax.grad of the function), "
            "or differentiate the function from its source"
        )

    return bits(x)


_ALGORITHMS = {
    "DEFAULT": lax.RandomAlgorithm.RNG_DEFAULT,
    "THREE_FRY": lax.RandomAlgorithm.RNG_THREE_FRY,
    "PHILOX": lax.RandomAlgorithm.RNG_PHILOX,
}


@reads("stablehlo.rng_bit_generator")
@takes_sizes
def _rng_bit_generator(step: Step, state: PyTree, *, rng_algorithm: str) -> list[PyTree]:
    shape: PyTree = step.types[1].shape
    return _drawn(step, state, shape, rng_algorithm)


def _drawn(step: Step, state: PyTree, shape: Sequence[PyTree], algorithm: str) -> list[PyTree]:
    kind, bits = step.types
    is_words = isinstance(state, Words)
    key = state.halves if is_words else lax.bitcast_convert_type(as_array(state), jnp.uint32)
    new, drawn = lax.rng_bit_generator(key.reshape(-1), shape, bits.dtype, _ALGORITHMS[algorithm])
    halves = new.reshape(*kind.shape, -1)
    if is_words:
        return [Words(halves), drawn]
    same = halves[..., 0] if halves.shape[-1] == 1 else halves
    return [lax.bitcast_convert_type(same, kind.dtype), drawn]


@reads("stablehlo.rng")
@takes_sizes
def _rng(step: Step, low: Array, high: Array, shape: Array, *, rng_distribution: str) -> Array:
    if rng_distribution != "UNIFORM":
        raise step.refused(
            "JAX has no random numbers of this distribution without a key",
            "draw them from a key (jax.random) in the model",
        )
    return lax.rng_uniform(as_array(low), as_array(high), step.sizes(shape, "shape"))


@reads_custom_call("stablehlo.dynamic_rng_bit_generator")
@takes_sizes
def _dynamic_rng_bit_generator(
    step: Step, state: PyTree, shape: Array, *, rng_algorithm: str = "DEFAULT"
) -> list[PyTree]:
    return _drawn(step, state, step.sizes(shape, "shape"), rng_algorithm)
