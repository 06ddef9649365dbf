"""Random TensorFlow functions with the same functions in JAX.

A function is a list of nodes over a growing list of values: its arguments, what it captures, and
the results of the nodes before. It is data, so that it prints as what it is, and equal ones share
what was compiled.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

import jax2tf
from tests.impl.fuzzing.call_tf_nodes import NODES, REFUSED

ARGUMENTS = (
    *("float32", "float32", "float32", "float64", "complex64", "int32", "bool"),
    *("int64", "uint64"),
)
# How the function states its arguments: as a plain function, as a tf.function, as one with a
# signature of the dtypes that NumPy has (64 bits too) and of open or known sizes, or as that of a
# SavedModel, which looks at its arguments only when it runs.
FORMS = ("plain", "graph", "signature", "open_signature", "by_keywords")
CAPTURES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
SHAPES = ((), (2,), (1, 2))
TREES = ("one", "list", "dict", "nested")


@dataclasses.dataclass(frozen=True)
class Captured:
    """What a function captures: kind is "tensor" or "variable"."""

    kind: str
    dtype: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Program:
    """A function.

    Attributes:
      arguments: dtype and shape of each; a later one may be unused.
      passed: which of the arguments JAX passes, in which order; one may come twice.
      captures: what the function captures.
      steps: name and operands of each node.
      results: which of the values it returns.
      tree: in which structure.
      form: one of FORMS.
    """

    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    passed: tuple[int, ...]
    captures: tuple[Captured, ...]
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[int, ...]
    tree: str
    form: str

    def values(self) -> list[np.ndarray]:
        """Arguments: no zeros and no ties, where branches and maxima would be undecided."""
        return [_numbers(dtype, shape, i) for i, (dtype, shape) in enumerate(self.arguments)]

    @property
    def has_wide_variables(self) -> bool:
        """Whether it captures variables of dtypes that JAX has with x64 alone."""
        wide = ("int64", "uint64", "float64", "complex128")
        return any(c.kind == "variable" and c.dtype in wide for c in self.captures)

    def in_jax(self, *args: Any) -> Any:
        """The function in JAX, of all its arguments."""
        values = [jnp.asarray(args[i]) for i in self.passed]
        values += [jnp.asarray(_captured_numbers(c)) for c in self.captures]
        for name, operands in self.steps:
            values.append(NODES[name].of_jax(*(values[i] for i in operands)))
        return _tree(self.tree, [values[i] for i in self.results])

    def in_tf(self, *args: Any, **options: Any) -> Any:
        """The function in TensorFlow, called from JAX with these options of call_tf."""
        passed = [args[i] for i in self.passed]
        return called(self, **options)({"x": passed[0], "rest": passed[1:]})


@functools.lru_cache(maxsize=64)
def called(program: Program, **options: Any) -> Any:
    """call_tf of the program: equal programs share what was derived from it."""
    # They are made outside, also where the first call is traced into a graph.
    with tf.init_scope():
        captured = [
            (tf.Variable if c.kind == "variable" else tf.constant)(_captured_numbers(c))
            for c in program.captures
        ]

    def function(tree: Any) -> Any:
        values = [tree["x"], *tree["rest"], *map(tf.convert_to_tensor, captured)]
        for name, operands in program.steps:
            of_tf = REFUSED[name] if name in REFUSED else NODES[name].of_tf
            values.append(of_tf(*(values[i] for i in operands)))
        return _tree(program.tree, [values[i] for i in program.results])

    return jax2tf.call_tf(_formed(program, function), **options)


def _formed(program: Program, function: Any) -> Any:
    """The function in one of the FORMS."""
    if program.form == "plain":
        return function
    if program.form == "graph":
        return tf.function(function, autograph=False)
    specs = [_spec(program, i) for i in program.passed]
    tree = {"x": specs[0], "rest": specs[1:]}
    stated = tf.function(function, input_signature=[tree], autograph=False)
    if program.form != "by_keywords":
        return stated

    def of_keywords(**named: Any) -> Any:
        return function({"x": named["x0"], "rest": [named[f"x{i}"] for i in range(1, len(specs))]})

    names = {f"x{i}": spec for i, spec in enumerate(specs)}
    with tf.init_scope():
        concrete = tf.function(of_keywords, autograph=False).get_concrete_function(**names)

    def called_by_keywords(tree: Any) -> Any:
        return concrete(**{f"x{i}": x for i, x in enumerate([tree["x"], *tree["rest"]])})

    # A concrete function does not keep the variables that it captures.
    setattr(called_by_keywords, "function", function)  # noqa: B010
    return called_by_keywords


def _spec(program: Program, i: int) -> tf.TensorSpec:
    dtype, shape = program.arguments[i]
    is_open = program.form == "open_signature"
    return tf.TensorSpec([None] * len(shape) if is_open else shape, dtype)


@st.composite
def programs(
    draw: Any,
    max_steps: int = 3,
    nodes: Sequence[str] = tuple(NODES),
    captures: tuple[int, int] = (0, 2),
) -> Program:
    """A program, of few steps: what is measured is combinations.

    Args:
      max_steps: how many nodes it has at most.
      nodes: among which nodes they are.
      captures: how many tensors and variables it captures at least and at most.
    """
    shapes = st.sampled_from(SHAPES)
    arguments = [("float32", draw(shapes))]
    arguments += draw(st.lists(st.tuples(st.sampled_from(ARGUMENTS), shapes), max_size=2))
    passed = [0, *draw(st.lists(st.integers(0, len(arguments) - 1), max_size=2))]
    kinds = st.sampled_from(["tensor", "variable"])
    least, most = captures
    captured = st.builds(Captured, kinds, st.sampled_from(CAPTURES), shapes)
    chosen = draw(st.lists(captured, min_size=least, max_size=most))
    n = len(passed) + len(chosen)
    steps = []
    for _ in range(draw(st.integers(1, max_steps))):
        name = draw(st.sampled_from(nodes))
        operands = [draw(st.integers(0, n - 1)) for _ in range(NODES[name].arity)]
        steps.append((name, tuple(operands)))
        n += 1
    results = [n - 1, *draw(st.lists(st.integers(0, n - 1), max_size=2))]
    return Program(
        tuple(arguments),
        tuple(passed),
        tuple(chosen),
        tuple(steps),
        tuple(results),
        draw(st.sampled_from(TREES)),
        draw(st.sampled_from(FORMS)),
    )


def _captured_numbers(captured: Captured) -> np.ndarray:
    return _numbers(captured.dtype, captured.shape, 7)


def _numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    of_numpy = tf.as_dtype(dtype).as_numpy_dtype
    numbers = np.random.default_rng(seed).uniform(0.25, 1.25, shape)
    if dtype == "bool":
        return np.asarray(numbers > 0.7)
    if np.dtype(of_numpy).kind in "iu":
        return np.asarray(numbers * 3).astype(of_numpy)
    if dtype.startswith("complex"):
        return np.asarray(numbers * (1 - 0.5j)).astype(of_numpy)
    sign = np.where(np.random.default_rng(seed + 1).uniform(size=shape) < 0.4, -1, 1)
    return np.asarray(numbers * sign).astype(of_numpy)


def _tree(kind: str, leaves: list[Any]) -> Any:
    return {
        "one": leaves[0],
        "list": leaves,
        "dict": {f"y{i}": leaf for i, leaf in enumerate(leaves)},
        "nested": {"a": (leaves[0], None), "b": [{"c": leaves[1:]}]},
    }[kind]
