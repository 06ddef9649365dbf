"""Properties 3 and 4: random programs over random symbolic shapes give JAX's results, converted."""

from __future__ import annotations

import itertools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from jax import export

import jax2tf
from tests.impl.fuzzing.programs import SIZES, Program, programs
from tests.running import MODES, of_every_size

# A program costs a fifth of a second to compile, convert and run: the tests try fewer.
EXAMPLES = hypothesis.settings().max_examples
few = hypothesis.settings(
    max_examples=EXAMPLES if EXAMPLES > 1000 else EXAMPLES // 3,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
_CALLS = itertools.count(1)


def signature(program: Program) -> list[tf.TensorSpec]:
    ranks = [len(shape) for shape in program.shapes({"a": 1, "b": 1})]
    return [tf.TensorSpec([None] * rank, program.dtype) for rank in ranks]


def a_program_gives_what_jax_gives(
    program: Program, sizes: dict[str, int], mode: str, enable_xla: bool
) -> None:
    forget_programs()
    args = program.arguments(sizes)
    try:
        expected = jax.jit(program)(*args)
    except ZeroDivisionError:
        # jnp.reshape of a -1 beside a size that turns out to be 0.
        hypothesis.reject()
    converted = jax2tf.convert(
        program,
        polymorphic_shapes=program.specs,
        with_gradient=False,  # TensorFlow keeps each graph that has a custom gradient.
        enable_xla=enable_xla,
    )
    actual = of_every_size(converted, mode, *signature(program))(*map(tf.constant, args))
    for chosen, a, e in zip(program.steps, actual, expected, strict=True):
        words = f"{mode}, enable_xla={enable_xla}: {chosen}"
        np.testing.assert_array_equal(a, e, err_msg=words, strict=True)


def forget_programs() -> None:
    """Once in 200 examples: JAX keeps every program that it compiled, until memory runs out."""
    if next(_CALLS) % 200 == 0:
        jax.clear_caches()


@pytest.mark.fuzz
@few
@hypothesis.given(programs(), SIZES, st.sampled_from(sorted(MODES)), st.booleans())
def test_a_program_gives_what_jax_gives(program, sizes, mode, enable_xla):
    a_program_gives_what_jax_gives(program, sizes, mode, enable_xla)


@pytest.mark.fuzz
@few
@hypothesis.given(programs(max_steps=4))
def test_conversion_is_deterministic_and_the_same_under_jit(program):
    forget_programs()

    def graph(fun):
        converted = jax2tf.convert(fun, polymorphic_shapes=program.specs, with_gradient=False)
        function = tf.function(converted, autograph=False)
        return function.get_concrete_function(*signature(program)).graph.as_graph_def()

    def nodes(definition):
        return [(n.op, n.name, list(n.input)) for n in definition.node]

    assert nodes(graph(program)) == nodes(graph(program))
    args = program.arguments({"a": 2, "b": 3})
    plain = jax2tf.convert(program, polymorphic_shapes=program.specs)
    jitted = jax2tf.convert(jax.jit(program.__call__), polymorphic_shapes=program.specs)
    for a, e in zip(jitted(*args), plain(*args), strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.fuzz
@few
@hypothesis.given(
    programs(max_steps=4, dtype=np.float32), SIZES, st.sampled_from(["eager", "graph"])
)
def test_the_gradient_of_the_converted_is_the_converted_gradient(program, sizes, mode):
    forget_programs()

    def fun(*args):
        return sum((jnp.sum(jnp.sin(y / 8)) for y in program(*args)), start=jnp.float32(0))

    args = list(map(tf.constant, program.arguments(sizes)))
    gradient_of_jax = jax.grad(fun, argnums=tuple(range(len(args))))
    converted = jax2tf.convert(fun, polymorphic_shapes=program.specs)
    gradient = jax2tf.convert(gradient_of_jax, polymorphic_shapes=program.specs)
    scope = export.SymbolicScope()
    shapes = (export.symbolic_shape(spec, scope=scope) for spec in program.specs)
    structs = [jax.ShapeDtypeStruct(shape, program.dtype) for shape in shapes]
    try:
        jax.eval_shape(gradient_of_jax, *structs)
    except Exception:  # whatever JAX says of what it does not differentiate
        # Loops, scans of unknown length, convolutions that may have no window.
        hypothesis.reject()
    expected = gradient(*args)

    def taped(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = converted(*args)
        return tape.gradient(y, args)

    for a, e in zip(of_every_size(taped, mode, *signature(program))(*args), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-4)
