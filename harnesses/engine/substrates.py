"""The judge of the third direction: programs written against TensorFlow, without TensorFlow.

A harness's function is a program of the module `tf` and of tensors. TensorFlow's own eager result
is the law. A lowering is a substrate; a mode is what is done with the program there:

    eager        runs it
    jit          runs it inside jax.jit, as the next three
    grad         its vjp; TensorFlow's is a GradientTape
    jvp          its jvp; TensorFlow's is a ForwardAccumulator
    vmap         maps it over two examples; TensorFlow is called for each
    round_trip   runs the TensorFlow function that the implementation makes of the program on JAX

The modes of `harnesses.engine.tapes` take derivatives by the program's own `tf`.

Where TensorFlow raises (the tag "raises"), the class of the exception is what is compared: one of
TensorFlow's `tf.errors` has to be the class of that name in the substrate's own `tf.errors`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.cell.cells import Cell
from harnesses.cell.names import EAGER, ON_NUMPY, RAISES, ROUND_TRIP
from harnesses.cell.rows import Row
from harnesses.engine import call_tf, tapes
from harnesses.engine.compare import Comparison, compare
from harnesses.engine.derivatives import Function
from harnesses.engine.judge import Inapplicable, Judge, phase
from harnesses.engine.vjps import is_inexact

# The modes in which JAX compiles the program, or what it makes of it.
_COMPILED = ("jit", "grad", "jvp", "vmap")


class SubstrateJudge(Judge):
    """Runs cells of the direction substrates."""

    def _observe(self, cell: Cell) -> Row:
        if RAISES in cell.harness.tags:
            return self._observe_exception(cell)
        return super()._observe(cell)

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        # Several modes of a harness share a result; it is computed once.
        if cell.mode in tapes.DERIVATIVES:
            law = tapes.LAWS.get(cell.mode, cell.mode)
        else:
            law = cell.mode if cell.mode in ("grad", "jvp", "vmap") else "op_by_op"
        key = (cell.harness.name, cell.device, law)
        if self._last[0] != key:
            self._last = (key, _arguments_and_expected(cell, law))
        return self._last[1]

    def _run(self, cell: Cell, args: tuple) -> Any:
        module = self._adapter.substrate(cell.lowering)
        program = _of(cell.harness.fun, module)
        if cell.lowering == ON_NUMPY:
            with phase("run"):
                return jax.tree.map(np.asarray, program(*map(module.constant, args)))
        with self._settings(cell):
            if cell.mode in tapes.DERIVATIVES:
                return self._taken(cell, program, module, args)
            if cell.mode == ROUND_TRIP:
                with phase("lower"):
                    tensors = [self._tensorflow.constant(x) for x in args]
                    converted = self._adapter.convert(program, "xla", with_gradient=True)
                return self._executed(cell, EAGER, converted, tensors)
            if cell.mode in _COMPILED:
                with phase("lower"):
                    transformed = call_tf.MODES[cell.mode](program)
                    # Compiled by hand: thousands follow, and jax.jit would keep each of them.
                    program = jax.jit(transformed).lower(*args).compile()
            with phase("run"):
                return jax.tree.map(np.asarray, program(*map(jnp.asarray, args)))

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        harness = cell.harness
        if cell.mode == "tape_second":
            # Rounding errors of two backward passes add up.
            leaves = jax.tree.leaves(expected)
            ulps = {leaf.dtype.name: 4 * int(harness.tolerance(leaf.dtype)) for leaf in leaves}
            tags = harness.tags | {"any_zero_sign"}
            harness = dataclasses.replace(harness, scale="array", ulps=ulps, tags=tags)
        return compare(harness, args, expected, actual)

    def _taken(self, cell: Cell, program: Function, module: Any, args: tuple) -> Any:
        derivative = tapes.derivative_of(cell.mode, module, program, args)
        moving = [jnp.asarray(args[i]) for i in tapes.floats_of(args)]
        if cell.mode in tapes.COMPILED:
            with phase("lower"):
                derivative = jax.jit(derivative).lower(*moving).compile()
        with phase("run"):
            return jax.tree.map(np.asarray, derivative(*moving))

    def _observe_exception(self, cell: Cell) -> Row:
        module = self._adapter.substrate(cell.lowering)
        args = cell.harness.make_args()
        with self._settings(cell):
            expected = _raised(_of(cell.harness.fun, tf), list(map(tf.constant, args)))
            actual = _raised(_of(cell.harness.fun, module), list(map(module.constant, args)))
        problem = _difference(expected, actual, module)
        return {"outcome": "pass" if problem is None else "mismatch", "message": problem}


def _of(program: Callable[..., Any], module: Any) -> Function:
    """The program with that module for `tf`; its results in plain containers."""

    def function(*args: Any) -> Any:
        return _plain(program(module, *args))

    return function


def _plain(value: Any) -> Any:
    """A result as dicts and tuples of arrays, whichever classes a substrate has for them.

    A text is the array of its bytes; numbers of Python are 64 bits wide.
    """
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, str):
        return np.frombuffer(value.encode(), np.uint8)
    if isinstance(value, (bool, int, float, complex)):
        return np.asarray(value)
    return value


# --- Results ---------------------------------------------------------------------------------


def _arguments_and_expected(cell: Cell, law: str) -> tuple[tuple, Any]:
    """The arguments, and what TensorFlow makes of them or the exception that it raises."""
    args = cell.harness.make_args()
    if law == "vmap":
        args = tuple(np.stack([x, np.flip(x) if is_inexact(x) else x]) for x in args)
    program = _of(cell.harness.fun, tf)
    if law in tapes.DERIVATIVES:
        return args, _derivative_of_tensorflow(cell, program, law, args)
    try:
        with tf.device(f"/{cell.device.upper()}:0"):
            return args, jax.tree.map(_array, call_tf.LAWS[law](program, args))
    except Exception as error:
        return args, error


def _derivative_of_tensorflow(cell: Cell, program: Function, law: str, args: tuple) -> Any:
    derivative = tapes.law_of(law, tf, program, args)
    try:
        with tf.device(f"/{cell.device.upper()}:0"):
            moving = [tf.constant(args[i]) for i in tapes.floats_of(args)]
            if not moving:
                return Inapplicable("it has no argument that TensorFlow differentiates by")
            return jax.tree.map(_array, derivative(*moving))
    except LookupError as error:
        # TensorFlow has no gradient of an op, so there is no law.
        return Inapplicable(str(error))
    except Exception as error:
        return error


def _array(leaf: Any) -> np.ndarray:
    return np.asarray(leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf)


# --- Exceptions ------------------------------------------------------------------------------


def _raised(function: Function, args: list) -> Exception | None:
    try:
        function(*args)
    except Exception as error:
        return error
    return None


def _difference(expected: Exception | None, actual: Exception | None, module: Any) -> str | None:
    """What is wrong with a substrate's exception; None if its class is the one that is expected."""
    if expected is None:
        return "TensorFlow raises nothing, so the harness proves nothing"
    wanted = _class_in(module, type(expected))
    should = f"but should raise {type(expected).__name__}: {expected}"
    if actual is None:
        return f"it raises nothing, {should}"
    if wanted is None:
        return f"tf.errors lacks {type(expected).__name__}, which TensorFlow raises: {expected}"
    if type(actual) is not wanted:
        return f"it raises {_full_name(type(actual))}: {actual}, {should}"
    return None


def _class_in(module: Any, expected: type) -> type | None:
    """The substrate's class for a class that TensorFlow raises; Python's own are themselves."""
    if getattr(tf.errors, expected.__name__, None) is not expected:
        return expected
    return getattr(module.errors, expected.__name__, None)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
