"""Special functions of JAX with loops that run as long as an element needs: they have derivatives,
their loops have none in reverse mode.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from jax2tf._src.stablehlo.known import OPEN_SIZE_TRIED, are_plain, is_known
from jax2tf._src.stablehlo.program import Function, Program, TensorType, Type, ops_of
from jax2tf._src.stablehlo.unnamed_functions import TRIED
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import HloValue as Value
from jax2tf._src.util.typing import PyTree

_KEPT = 64
# The functions by the number of their loops, under the names that their constants have.
_CANDIDATES = {
    1: {"regularized_incomplete_beta": (jax.lax.betainc, 3)},
    2: {
        "igamma": (jax.lax.igamma, 2),
        "igammac": (jax.lax.igammac, 2),
        "random_gamma_grad": (jax.lax.random_gamma_grad, 2),
        "igamma_grad_a": (jax.lax.igamma_grad_a, 2),
    },
}
# As many as a prime number: those of each operand are taken in other steps.
_SAMPLES = (0.25, 0.6, 1.7, 0.9, 3.5, 0.4, 12.0, 0.75, 0.1, 2.2, 0.55)
_FEWEST_ROUNDS, _FEWEST_TRIED, _FEWEST_FINITE = 6, 24, 5
# Two versions of JAX compute them by other series of lgamma.
_ROUNDINGS, _LARGEST_TOLERANCE = 128, 1e-4


class FunctionsWithLoops:
    """Tells which functions of a program are those of JAX.

    Args:
      program: the program.
      evaluate: gives the results of a function of the program by its name and operands.
    """

    def __init__(
        self, program: Program, evaluate: Callable[[str, Sequence[Value]], list[Value]]
    ) -> None:
        self._program, self._evaluate = program, evaluate
        self._found: Lru[Callable[..., Value] | None] = Lru(_KEPT)

    def find(self, name: str, operands: Sequence[Value]) -> Callable[[Sequence[Value]], Value]:
        """The function by its ops, with JAX's derivative if it is a function of JAX's."""
        count = len(operands) - _count_of_arrays(self._program.functions[name])
        sizes = operands[:count]

        @jax.custom_jvp
        def function(*arrays: Value) -> Value:
            return self._evaluate(name, [*sizes, *arrays])[0]

        def jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> PyTree:
            of_jax = self._of_jax(name, primals) if all(map(is_known, sizes)) else None
            tangent = _tangent(of_jax or function.fun, primals, tangents)
            return function(*primals), tangent

        function.defjvp(jvp, symbolic_zeros=True)
        return lambda operands: function(*operands[count:])

    def _of_jax(self, name: str, arrays: Sequence[Value]) -> Callable[..., Value] | None:
        """JAX's function of the operands; None if the function may be another."""
        shapes = tuple(tuple(x.shape) for x in arrays)
        if not all(map(are_plain, shapes)):
            return None
        key = (name, shapes, str(arrays[0].dtype))
        return self._found.value(key, lambda: self._tried(name))

    def _tried(self, name: str) -> Callable[..., Value] | None:
        function = self._program.functions[name]
        tried = self._program.functions[name + TRIED]
        closed = list(map(_closed, tried.body.types))
        sizes = [np.full(s.shape, OPEN_SIZE_TRIED, s.dtype) for s in closed if s.dtype.kind in "iu"]
        arrays = [s for s in closed if s.dtype.kind not in "iu"]
        with jax.ensure_compile_time_eval():
            run = jax.jit(lambda *arrays: self._evaluate(name + TRIED, [*sizes, *arrays]))
            results = [list(map(np.asarray, run(*each))) for each in _rounds(arrays)]
            if not _can_tell([y for y, *_ in results]):
                return None
            count = _count_of_arrays(function)
            computed = [x for _, *values in results[:1] for x in values[count:]]
            constants = _constants(tried, computed, results[0][0].dtype)
            for candidate, arity in _candidates(function):
                jitted = jax.jit(functools.partial(_broadcast, candidate))
                for choice in _choices(count, constants, arity):
                    chosen = functools.partial(_chosen, choice, jitted)
                    if all(_are_close(chosen(*operands), y) for y, *operands in results):
                        broadcast = functools.partial(_broadcast, candidate)
                        return functools.partial(_chosen, choice, broadcast)
        return None


def _tangent(
    function: Callable[..., Value], primals: Sequence[Value], tangents: Sequence[Value]
) -> Value:
    """The tangent of a function, of whose operands some have none."""
    places = [i for i, t in enumerate(tangents) if not isinstance(t, SymbolicZero)]

    def of_some(*some: Value) -> Value:
        given = dict(zip(places, some, strict=True))
        return function(*(given.get(i, x) for i, x in enumerate(primals)))

    some, of_these = ([each[i] for i in places] for each in (primals, tangents))
    return jax.jvp(of_some, some, of_these)[1]


def _candidates(function: Function) -> list[tuple[Callable[..., Value], int]]:
    """The functions of JAX with as many loops; the one that a constant names comes first."""
    ops = [*function.body.ops]
    found = _CANDIDATES.get(sum(op.name == "stablehlo.while" for op in ops), {})
    named = {op.primitive for op in ops_of(function.body) if op.name == "stablehlo.constant"}
    return [found[name] for name in sorted(found, key=lambda name: name not in named)]


def _choices(
    n_arrays: int, constants: Sequence[Value], arity: int
) -> Iterator[tuple[int | Value, ...]]:
    """What the operands may be: places of arrays, or also constants."""
    places = range(n_arrays)
    yield from itertools.product(places, repeat=arity)
    for choice in itertools.product((*places, *constants), repeat=arity):
        are_places = [isinstance(x, int) for x in choice]
        if any(are_places) and not all(are_places):
            yield choice


def _chosen(choice: Sequence[int | Value], function: Callable[..., Value], *arrays: Value) -> Value:
    return function(*(arrays[x] if isinstance(x, int) else x for x in choice))


def _broadcast(function: Callable[..., Value], *operands: Value) -> Value:
    return function(*jnp.broadcast_arrays(*operands))


def _constants(function: Function, computed: Sequence[Value], dtype: np.dtype) -> list[Value]:
    """The floats that a function has as constants, and those that it computes from these."""
    ops = (op for op in ops_of(function.body) if op.name == "stablehlo.constant")
    values = (op.attributes["value"] for op in ops)
    values = (x for x in (*values, *computed) if x.size and x.dtype.kind not in "biuc")
    floats = dict.fromkeys(float(x.flat[0]) for x in values if (x == x.flat[0]).all())
    largest = float(jnp.finfo(dtype).max)
    return [np.array(x, dtype) for x in floats if abs(x) <= largest]


def _rounds(types: Sequence[jax.ShapeDtypeStruct]) -> Iterator[list[Value]]:
    """Operands with samples: as many times as it takes to have several of each."""
    largest = max(int(np.prod(t.shape)) for t in types)
    for number in range(max(_FEWEST_ROUNDS, -(-_FEWEST_TRIED // max(largest, 1)))):
        yield [_sampled(t, number, place) for place, t in enumerate(types)]


def _sampled(kind: jax.ShapeDtypeStruct, number: int, place: int) -> Value:
    """Elements of the samples; those of each operand come in another order."""
    count = int(np.prod(kind.shape))
    indices = (np.arange(count) + number * max(count, 1)) * (2 * place + 1)
    turned = indices + indices // len(_SAMPLES) * place
    values = np.asarray(_SAMPLES)[turned % len(_SAMPLES)]
    return values.reshape(kind.shape).astype(kind.dtype)


def _can_tell(values: Sequence[Value]) -> bool:
    """Whether enough of the values are finite, and differ."""
    flat = np.concatenate([np.asarray(y, np.float64).reshape(-1) for y in values])
    return len({*flat[np.isfinite(flat)].tolist()}) >= _FEWEST_FINITE


def _are_close(x: Value, y: Value) -> bool:
    """Whether two arrays differ by their rounding, and are NaN at the same places."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    rounding = float(jnp.finfo(y.dtype).eps)
    tolerance = max(2 * rounding, min(_ROUNDINGS * rounding, _LARGEST_TOLERANCE))
    x, y = (np.asarray(value, np.float64) for value in (x, y))
    are_near = np.abs(x - y) <= tolerance * np.maximum(np.abs(y), 1)
    return bool(np.all(are_near | (x == y) | (np.isnan(x) & np.isnan(y))))


def _count_of_arrays(function: Function) -> int:
    """The number of the operands that are no sizes: these come last."""
    return sum(isinstance(t, TensorType) and t.dtype.kind not in "iu" for t in function.body.types)


def _closed(kind: Type) -> jax.ShapeDtypeStruct:
    """The type with a number for each open size."""
    assert isinstance(kind, TensorType)
    shape = tuple(OPEN_SIZE_TRIED if size is None else size for size in kind.shape)
    return jax.ShapeDtypeStruct(shape, kind.dtype)
