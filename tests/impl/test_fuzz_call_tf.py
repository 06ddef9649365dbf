"""Random TensorFlow functions under nested transformations of JAX give what JAX's own give."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import hypothesis
import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import jax2tf
from jax2tf import CallTfError, ConversionError
from tests.impl.fuzzing.call_tf_nodes import NODES, REFUSED
from tests.impl.fuzzing.call_tf_programs import Program, called, programs
from tests.impl.fuzzing.call_tf_transformations import (
    TRANSFORMATIONS,
    Function,
    applied,
    is_costly,
    pipelines,
)

# What counts is a call in one stage: so many of these are drawn together, which share JAX's result
# and what was derived from the TensorFlow function.
TOGETHER = 4
EXAMPLES = hypothesis.settings().max_examples // TOGETHER
# The tests try half as many.
FEW = EXAMPLES if EXAMPLES > 1000 else EXAMPLES // 2
suppressed = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
_CALLS = itertools.count(1)


def _in_threads(f: Function) -> Function:
    """Called by three threads at once, with the x64 of the caller."""

    def run(*args: Any) -> Any:
        x64 = jax.config.read("jax_enable_x64")

        def work(_: int) -> Any:
            with jax.enable_x64(x64):
                return f(*args)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            results = list(pool.map(work, range(3)))
        for other in results[1:]:
            jax.tree.map(np.testing.assert_array_equal, other, results[0])
        return results[0]

    return run


def _converted(f: Function, **options: Any) -> Function:
    # TensorFlow keeps each graph that has a custom gradient.
    return jax2tf.convert(f, with_gradient=False, **options)


STAGES = {
    "op_by_op": lambda f: f,
    "jit": jax.jit,
    "threads": _in_threads,
    "threads_of_jit": lambda f: _in_threads(jax.jit(f)),
    "converted": _converted,
    "graph": lambda f: tf.function(_converted(f), autograph=False),
    "native": partial(_converted, native_serialization=True),
}

OP_BY_OP = ("op_by_op", "threads")
# Of a custom_vjp there is no forward mode, nor of its derivative; and the tangents of a custom_jvp
# whose branch is chosen for each element of a batch hold an op that JAX cannot transpose.
REFUSED_BY_JAX = (
    "custom_vjp",
    "custom_lin",
    "Transpose rule (for reverse-mode differentiation) for 'stop_gradient'",
)
CAPTURED_BY_A_RULE = "of a jitted function captures a value"


@dataclasses.dataclass(frozen=True)
class Calls:
    """A program under transformations, called in some stages."""

    program: Program
    transformations: tuple[str, ...]
    stages: tuple[str, ...]
    x64: bool

    @property
    def n_examples(self) -> int:
        """A program in one stage is one example."""
        return len(self.stages)

    def check(self) -> None:
        """Each stage gives what JAX gives."""
        forget_programs()
        names, args = self.transformations, self.program.values()
        with jax.enable_x64(self.x64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = jax.jit(applied(names, self.program.in_jax))(*args)
            except (TypeError, NotImplementedError) as error:
                if not any(words in str(error) for words in REFUSED_BY_JAX):
                    raise
                hypothesis.reject()
            expected = jax.tree.map(_array, expected)
            for stage in self.stages:
                try:
                    actual = STAGES[stage](applied(names, self.program.in_tf))(*args)
                    assert_near(jax.tree.map(_array, actual), expected)
                except Exception as error:
                    if stage in OP_BY_OP and "custom_vjp" in str(error) and self._is_refused(args):
                        continue
                    if stage == "native" and self._is_captured_by_a_rule(error):
                        continue
                    if self._is_traced_before_xla(error):
                        continue
                    error.add_note(f"The stage that failed: {stage}")
                    raise

    def _is_refused(self, args: Sequence[Any]) -> bool:
        """Whether JAX itself refuses the program op by op, whose jitted one has no such op left."""
        try:
            applied(self.transformations, self.program.in_jax)(*args)
        except TypeError as error:
            return "custom_vjp" in str(error)
        return False

    def _is_traced_before_xla(self, error: Exception) -> bool:
        """Whether a function that was traced before keeps values of a branch for a derivative.

        TensorFlow keeps these as optionals, which XLA does not have, unless it traces for XLA.
        """
        is_refused = isinstance(error, CallTfError) and "XLA has no Optional" in str(error)
        return is_refused and self.program.form == "by_keywords"

    def _is_captured_by_a_rule(self, error: Exception) -> bool:
        """Whether a rule in a jitted function reads a variable, natively a value around it.

        JAX itself ("No constant handler") does not compile the derivative of such a rule.
        """
        names = set(self.transformations)
        can_be = any(c.kind == "variable" for c in self.program.captures) and "jit" in names
        can_be = can_be and not names.isdisjoint(("custom_jvp", "custom_vjp"))
        return can_be and isinstance(error, ConversionError) and CAPTURED_BY_A_RULE in str(error)


@st.composite
def calls(
    draw: Any,
    stages: Sequence[str] = tuple(STAGES),
    transformations: Sequence[str] = tuple(TRANSFORMATIONS),
    **of_program: Any,
) -> Calls:
    """Calls of one program in some of these stages."""
    names = draw(pipelines(transformations))
    if is_costly(names):
        of_program["nodes"] = [n for n in of_program.get("nodes", NODES) if n != "own_batch"]
    program, x64 = draw(programs(**of_program)), draw(st.booleans())
    # A module that TensorFlow runs has no host that reads 64 bits for it.
    by_host = _reads_in_branches(program, names) or (program.has_wide_variables and not x64)
    possible = [s for s in stages if s != "native" or not by_host]
    n = min(TOGETHER, len(possible))
    chosen = st.lists(st.sampled_from(possible), min_size=n, max_size=n, unique=True)
    return Calls(program, names, tuple(draw(chosen)), x64)


def _reads_in_branches(program: Program, names: Sequence[str]) -> bool:
    """Whether a batch of both branches of a cond may read a variable: natively that is refused."""
    return "cond" in names and any(c.kind == "variable" for c in program.captures)


def _array(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, tf.Tensor) else np.asarray(x)


def assert_near(actual: Any, expected: Any) -> None:
    """The same structure, dtypes and shapes; values relative to the largest of each array."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        a, e = (np.asarray(x, np.complex128) for x in (a, e))
        scale = max(1.0, float(np.abs(e).max(initial=0)))
        np.testing.assert_allclose(a, e, rtol=0, atol=1e-4 * scale)


def forget_programs() -> None:
    """Once in 200 examples: JAX and TensorFlow keep what they compiled, until memory runs out."""
    if next(_CALLS) % 200 == 0:
        jax.clear_caches()
        called.cache_clear()


def a_declaration_of_nothing_is_held(program: Program) -> None:
    """output_shape_dtype=None says that the function returns nothing, and it returns something."""
    with pytest.raises(CallTfError, match="output_shape_dtype has the structure"):
        program.in_tf(*program.values(), output_shape_dtype=None)


BATCHES = ("vmap", "vmap_of_one", "vmap_of_last", "vmap_of_some")


@st.composite
def refused(draw: Any) -> tuple[Program, tuple[str, ...], str]:
    """A program that does not run over a batch, transformations with a batch, and a stage."""
    program = draw(programs(max_steps=1, captures=(0, 1)))
    step = (draw(st.sampled_from(sorted(REFUSED))), (0,))
    program = dataclasses.replace(program, steps=(*program.steps, step), form="plain")
    outer = draw(st.lists(st.sampled_from(("around", "checkpoint", *BATCHES)), max_size=2))
    names = (*outer, draw(st.sampled_from(BATCHES)))
    return program, names, draw(st.sampled_from(("op_by_op", "jit")))


def a_refusal_is_in_one_line(program: Program, names: tuple[str, ...], stage: str) -> None:
    """What TensorFlow does not run over a batch is a CallTfError that says so in a line."""
    with pytest.raises(CallTfError, match="over a batch TensorFlow runs the function") as refusal:
        STAGES[stage](applied(names, program.in_tf))(*program.values())
    assert "\n" not in str(refusal.value)


@pytest.mark.fuzz
@hypothesis.settings(max_examples=FEW, suppress_health_check=suppressed)
@hypothesis.given(calls())
def test_a_call_gives_what_jax_gives(drawn):
    drawn.check()


@pytest.mark.fuzz
@hypothesis.settings(max_examples=20)
@hypothesis.given(programs())
def test_a_declaration_of_nothing_is_held(program):
    a_declaration_of_nothing_is_held(program)


@pytest.mark.fuzz
@hypothesis.settings(max_examples=EXAMPLES // 5, suppress_health_check=suppressed)
@hypothesis.given(refused())
def test_a_refusal_is_in_one_line(drawn):
    a_refusal_is_in_one_line(*drawn)
