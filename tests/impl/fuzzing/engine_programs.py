"""Random programs in TensorFlow and in the engines that read its graphs, as these are given them.

A program is drawn by its number: a chain of steps of `engine_steps` and `engine_edges`, and where
the number is odd of `engine_params` too. Its arrays have known shapes, or an open first dimension;
its results are those of all steps, or of the last alone. What an engine gives is held against JAX's
result. A number that changes where each float on the way changes by some ULPs is not compared:
rounding decides it. What a target refuses at conversion is a note.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import export

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from harnesses.engine.shrinking import cells
from harnesses.engine.shrinking.text import NoText
from tests.impl.fuzzing.engine_edges import ALL_STEPS
from tests.impl.fuzzing.engine_params import MAKERS
from tests.impl.fuzzing.engine_steps import DTYPES

SHAPES = ((), (3,), (1,), (2, 4), (1, 3), (3, 1), (2, 3, 2))
OPEN_SHAPES = (("b",), ("b", 4), ("b", 3, 2), (3,), ())
ROWS = 3
# TensorFlow's own graphs, and whether XLA compiles them; a tape's gradients are taken in some.
COMPILED = {"graph": False, "compiled": True, "tape": False, "compiled_tape": True}
TAPES = frozenset({"tape", "compiled_tape"})
# Of what JAX has no gradient of.
_NO_GRADIENT = ("Reverse-mode differentiation does not work", "VJP not implemented")
# They drop a Cast to float16 and back.
WITHOUT = dict.fromkeys(("onnx", "openvino"), frozenset({"through float16"}))
# What engines' own approximations of functions may differ by, relative to what JAX gives.
NOISE = 2e-6
ROUNDING = 2e-5


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A step and the values that it takes: indices into arguments and results so far."""

    name: str
    operands: tuple[int, ...]
    result: str
    function: Callable[..., Any] = dataclasses.field(compare=False)

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.function(*(values[i] for i in self.operands))

    def __repr__(self) -> str:
        return f"{self.name}{self.operands}"


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays, and the engine that it is converted for."""

    engine: str
    number: int
    kinds: str
    shapes: tuple[tuple[int | str, ...], ...]
    steps: tuple[Chosen, ...]
    gives_all: bool

    n_examples = 1

    def __call__(self, *args: Any, noise: float = 0.0) -> list[Any]:
        values: list[Any] = [jnp.asarray(a) for a in args]
        for step in self.steps:
            values.append(_noisy(step(values), noise))
        results = values[len(args) :]
        return results if self.gives_all else results[-1:]

    def gradients(self, *args: Any, noise: float = 0.0) -> list[Any]:
        """Those of the sum of all results that are floats, by the arguments that are."""
        floats = [i for i, kind in enumerate(self.kinds) if kind == "f"]

        def total(given: Sequence[Any]) -> Any:
            at = dict(zip(floats, given, strict=True))
            results = self(*(at.get(i, a) for i, a in enumerate(args)), noise=noise)
            return sum(y.sum() for y in results if y.dtype == np.float32) + jnp.float32(0)

        return jax.grad(total)([args[i] for i in floats])

    @property
    def is_gradient(self) -> bool:
        return self.engine in TAPES

    @property
    def is_open(self) -> bool:
        return any("b" in shape for shape in self.shapes)

    @property
    def arguments(self) -> list[np.ndarray]:
        """Small numbers, and whole ones."""
        rng = np.random.default_rng(self.number)
        arrays = []
        for kind, shape in zip(self.kinds, self.shapes, strict=True):
            sizes = [ROWS if size == "b" else size for size in shape]
            drawn = {
                "f": rng.normal(size=sizes),
                "i": rng.integers(-9, 30, sizes),
                "b": rng.integers(0, 2, sizes),
            }
            arrays.append(np.asarray(drawn[kind]).astype(DTYPES[kind]))
        return arrays

    def check(self) -> str | None:
        """Raises AssertionError where the engine differs from JAX; what the target refuses."""
        expected = self._expected()
        try:
            results = self._results()
        except jax2tf.ConversionError as error:
            return f"refused: {error}"[:500]
        for index, (result, right) in enumerate(zip(results, expected, strict=True)):
            if words := _difference(np.asarray(result), *right):
                what = f"gradient {index}" if self.is_gradient else self._step_of(index)
                raise AssertionError(f"{what}: {words}")
        return None

    def smallest(self, seconds: float) -> str | None:
        """The smallest program found that fails likewise, as Python; None if there is none.

        There is none of gradients, and of what is wrong only with open dimensions.
        """
        if self.is_gradient:
            return None
        asked = cells.of_function(
            self,
            self.arguments,
            name=f"program {self.number}",
            mode=self.engine,
            lowering="xla" if self.engine in COMPILED else "no_xla",
        )
        try:
            return asked.text(asked.shrink(seconds=seconds))
        except (cells.CellError, NoText):
            return None

    def _step_of(self, result: int) -> Chosen:
        return self.steps[result if self.gives_all else -1]

    def _expected(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """For each result what JAX gives, and what it gives with noise."""
        if not self.steps:
            raise hypothesis.errors.UnsatisfiedAssumption
        function = self.gradients if self.is_gradient else self.__call__
        runs = []
        for noise in (0.0, NOISE, -NOISE):
            try:
                results = jax.jit(functools.partial(function, noise=noise))(*self.arguments)
            except (ValueError, NotImplementedError) as error:
                if not any(words in str(error) for words in _NO_GRADIENT):
                    raise
                raise hypothesis.errors.UnsatisfiedAssumption from error
            runs.append([np.asarray(y) for y in results])
        return [(right, others) for right, *others in zip(*runs, strict=True)]

    def _results(self) -> Sequence[Any]:
        specs = [self._spec(i) for i in range(len(self.kinds))]
        if self.engine in COMPILED:
            options = {"autograph": False, "jit_compile": COMPILED[self.engine]}
            converted = self._converted("xla")
            run = functools.partial(_by_tape, converted) if self.is_gradient else converted
            function = tf.function(run, input_signature=specs, **options)
            return [y.numpy() for y in function(*self.arguments)]
        target = "tensorflow" if self.engine == "savedmodel" else self.engine
        graph = graph_of(self._converted(target), specs)
        model = consumers.engine(self.engine).convert(graph)
        results: Sequence[Any] = jax.tree.unflatten(graph.tree, model(self.arguments))
        return results

    def _converted(self, target: str) -> Any:
        opened = {"polymorphic_shapes": [_words(s) for s in self.shapes]} if self.is_open else {}
        return jax2tf.convert(
            self, target=target, with_gradient=self.is_gradient, polymorphic_checks=False, **opened
        )

    def _spec(self, index: int) -> tf.TensorSpec:
        shape = [None if size == "b" else size for size in self.shapes[index]]
        return tf.TensorSpec(shape, DTYPES[self.kinds[index]])


def _by_tape(converted: Callable[..., Any], *args: tf.Tensor) -> list[tf.Tensor]:
    """What `Program.gradients` gives, of what was converted."""
    floats = [a for a in args if a.dtype == tf.float32]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        results = converted(*args)
        total = sum((tf.reduce_sum(y) for y in results if y.dtype == tf.float32), tf.zeros([]))
    gradients: list[tf.Tensor] = tape.gradient(total, floats, unconnected_gradients="zero")
    return gradients


def _noisy(value: Any, noise: float) -> Any:
    return value * np.float32(1 + noise) if value.dtype == np.float32 and noise else value


def _difference(result: np.ndarray, expected: np.ndarray, others: Sequence[np.ndarray]) -> str:
    if (result.shape, result.dtype) != (expected.shape, expected.dtype):
        return f"is {result.dtype}{result.shape}, should be {expected.dtype}{expected.shape}"
    if expected.dtype != np.float32:
        decided = np.logical_and.reduce([expected == other for other in others])
        wrong = decided & (result != expected)
    else:
        with np.errstate(all="ignore"):
            size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
            spread = sum(np.abs(expected - other) for other in others)
            allowed = ROUNDING * (size + np.abs(expected)) + 20 * spread + 1e-6
            decided = np.logical_and.reduce([_same_kind(expected, other) for other in others])
            near = (np.abs(result - expected) <= allowed) | (result == expected)
            wrong = decided & ~(near | (np.isnan(result) & np.isnan(expected)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"is {result[at]} at {list(at)}, should be {expected[at]} ({wrong.sum()} of {wrong.size})"
    )


def _same_kind(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (
        (np.isfinite(one) & np.isfinite(other)) | (one == other) | (np.isnan(one) & np.isnan(other))
    )


def _words(shape: Sequence[int | str]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def program(engine: str, number: int) -> Program:
    """The program of this number for an engine."""
    rng = np.random.default_rng([number, 7])
    shapes: Any = OPEN_SHAPES if number % 3 == 0 else SHAPES
    kinds = "f" + "".join(rng.choice(list("ffib"), size=2)) + "i"
    chosen = tuple(shapes[i] for i in rng.integers(0, len(shapes), len(kinds)))
    scope = export.SymbolicScope()
    avals = [
        jax.ShapeDtypeStruct(export.symbolic_shape(_words(shape), scope=scope), DTYPES[kind])
        for kind, shape in zip(kinds, chosen, strict=True)
    ]
    steps: list[Chosen] = []
    for _ in range(40):
        if len(steps) == 2 + number % 6:
            break
        step = _drawn(rng, avals, with_params=number % 2 == 1)
        if step and step.name in WITHOUT.get(engine, ()):
            continue
        aval = step and _aval(step, avals)
        if step and aval is not None:
            steps.append(step)
            avals.append(aval)
    return Program(engine, number, kinds, chosen, tuple(steps), bool(rng.integers(0, 3)))


def _drawn(rng: np.random.Generator, avals: Sequence[Any], *, with_params: bool) -> Chosen | None:
    if with_params and rng.integers(0, 4):
        name = list(MAKERS)[rng.integers(0, len(MAKERS))]
        made = MAKERS[name](rng)
        operands = _operands(rng, "f", avals)
        return operands and Chosen(made.words, operands, "f", made.function)
    name = list(ALL_STEPS)[rng.integers(0, len(ALL_STEPS))]
    kinds, result, function = ALL_STEPS[name]
    operands = _operands(rng, kinds, avals)
    return operands and Chosen(name, operands, result, function)


def _operands(rng: np.random.Generator, kinds: str, avals: Sequence[Any]) -> tuple[int, ...] | None:
    """Values of these kinds, the last ones more often; None if there are none."""
    operands = []
    for kind in kinds:
        fit = [
            i
            for i, aval in enumerate(avals)
            if aval.dtype == DTYPES[kind.lower()] and (kind.islower() or aval.shape)
        ]
        if not fit:
            return None
        operands.append(fit[max(rng.integers(0, len(fit), 2))])
    return tuple(operands)


def _aval(step: Chosen, avals: Sequence[Any]) -> Any:
    """The shape and dtype of what a step gives; None if it does not fit."""
    try:
        aval = jax.eval_shape(lambda *values: step(values), *avals)
    except Exception:  # whatever JAX says of a step that does not fit these shapes
        return None
    fits = getattr(aval, "dtype", None) == DTYPES[step.result] and len(aval.shape) <= 5
    small = fits and len(str(aval.shape)) < 40
    if small and all(isinstance(size, int) for size in aval.shape):
        small = aval.size <= 600
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype) if small else None
