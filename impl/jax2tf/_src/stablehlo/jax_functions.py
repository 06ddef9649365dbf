"""Functions of JAX that a module holds as functions of ops: they have derivatives, their ops have
none, or others.

JAX writes the name of a function that it jits. A name can be anybody's, so the values tell, too:
the module's function and JAX's must give the same bits.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jax2tf._src.api.errors import NotDifferentiableError
from jax2tf._src.stablehlo.functions_with_loops import FunctionsWithLoops
from jax2tf._src.stablehlo.known import OPEN_SIZE_TRIED, Sizes, are_plain, is_known
from jax2tf._src.stablehlo.program import Function, Op, Program, TensorType, ops_of
from jax2tf._src.stablehlo.special_functions import ELEMENTWISE, OF_COMPLEX, PRIMITIVES
from jax2tf._src.stablehlo.unnamed_functions import WITH_LOOPS
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import HloValue as Value
from jax2tf._src.util.typing import PyTree

OfJax = Callable[[Sequence[Value]], Value]

_KEPT = 512
_OF_ONE_ARRAY = {
    "i0": jax.numpy.i0,
    "lgamma_impl": jax.lax.lgamma,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "sinc": jax.numpy.sinc,
    # JAX 0.10 has no log2.
    **{name: getattr(jax.lax, name) for name in PRIMITIVES | OF_COMPLEX if hasattr(jax.lax, name)},
}
# Both are written as a function of this name.
_GAMMA, _GAMMAS = "_gamma", (jax.random.loggamma, jax.random.gamma)
_GENERATORS = {2: ("threefry2x32",), 4: ("rbg", "unsafe_rbg")}
# JAX adds it to the name of a second function.
_NUMBERED = re.compile(r"_\d+$")
_SAMPLES = (0.25, 3.5, -1.5, 40.0, -0.3, 1e-3, 0.0, float("inf"), float("nan"))
_COMPLEX_SAMPLES = (
    *(complex(x, y) for x, y in zip(_SAMPLES, _SAMPLES[::-1], strict=True)),
    *(complex(x, -y) for x, y in zip(_SAMPLES, _SAMPLES[3:] + _SAMPLES[:3], strict=True)),
)
_ALPHAS = (0.3, 2.5, 1.0, 40.0, 0.75)


class FunctionsOfJax:
    """Tells which functions of a program are functions of JAX.

    Args:
      program: the program.
      evaluate: gives the results of a function of the program by its name and operands.
    """

    def __init__(
        self, program: Program, evaluate: Callable[[str, Sequence[Value]], list[Value]]
    ) -> None:
        self._program, self._evaluate = program, evaluate
        self._found: Lru[int | None] = Lru(_KEPT)
        self._with_loops = FunctionsWithLoops(program, evaluate)

    def find(self, name: str, operands: Sequence[Value]) -> OfJax | None:
        """JAX's function of all operands; None if the function may be another."""
        base = _NUMBERED.sub("", name)
        if base in _OF_ONE_ARRAY:
            return self._of_one_array(name, _OF_ONE_ARRAY[base], operands)
        if base == WITH_LOOPS:
            return self._with_loops.find(name, operands)
        is_gamma = base == _GAMMA and _may_draw(self._program.functions[name], operands)
        return self._gamma(name, operands) if is_gamma else None

    def _of_one_array(
        self, name: str, candidate: Callable[[Value], Value], operands: Sequence[Value]
    ) -> OfJax | None:
        tried = self._with_sizes(name, operands)
        if tried is None:
            return None
        *others, shape = tried
        dtype = operands[-1].dtype
        numbers = _COMPLEX_SAMPLES if dtype.kind == "c" else _SAMPLES
        samples = _resized(numbers, shape).astype(dtype)
        found = self._found.value(
            (name, shape, str(dtype)),
            lambda: self._agreeing(name, others, [candidate], [(x,) for x in samples]),
        )
        if found is not None:
            return lambda operands: candidate(operands[-1])
        if _NUMBERED.sub("", name) not in PRIMITIVES | OF_COMPLEX:
            return None
        is_close = self._found.value(
            ("close", name, shape, str(dtype)),
            lambda: self._agreeing(name, others, [candidate], [(x,) for x in samples], _are_close),
        )
        return None if is_close is None else functools.partial(self._by_ops, name, candidate)

    def _by_ops(
        self, name: str, candidate: Callable[[Value], Value], operands: Sequence[Value]
    ) -> Value:
        """The function by its ops, with the derivative of another.

        Two versions of JAX may compute a special function by other ops, or differ at a pole.
        """

        @jax.custom_jvp
        def function(x: Value) -> Value:
            return self._evaluate(name, [*operands[:-1], x])[0]

        @function.defjvp
        def jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> PyTree:
            return function(*primals), jax.jvp(candidate, primals, tangents)[1]

        return function(operands[-1])

    def _with_sizes(self, name: str, operands: Sequence[Value]) -> list[Value] | None:
        """The operands with numbers in place of open sizes, and the shape of the last operand.

        None where a function that is not elementwise may need others of them.
        """
        *others, x = operands
        shape = _closed(x.shape)
        if shape == x.shape:
            return [*others, shape]
        body = self._program.functions[name].body
        if not all(op.name in ELEMENTWISE or _makes_integers(op) for op in body.ops):
            return None
        return [*map(_tried, others), shape]

    def _gamma(self, name: str, operands: Sequence[Value]) -> OfJax:
        """A draw by its ops, with the derivative of jax.random.gamma. It is looked for where the
        derivative is taken: to compile two loops that draw takes seconds.
        """
        *sizes, _, alpha = operands
        shape = _shape_of_result(self._program.functions[name], alpha)

        @jax.custom_jvp
        def drawn(words: Value, alpha: Value) -> Value:
            return self._evaluate(name, [*sizes, words, alpha])[0]

        @drawn.defjvp
        def jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> PyTree:
            words, alpha = primals
            draw = None if shape is None else self._draw(name, sizes, words, alpha, shape)
            if draw is None and _says_gamma(self._program.functions[name]):
                raise NotDifferentiableError(
                    "jax2tf.load: the file has no derivative of 'random_gamma': it draws in "
                    f"another way than JAX {jax.__version__}. What to do: load a file of the "
                    "gradient (export jax.grad of the function), or differentiate the function "
                    "from its source"
                )
            function = draw or drawn.fun
            return jax.jvp(functools.partial(function, words), (alpha,), tangents[1:])

        return lambda operands: drawn(*operands[-2:])

    def _draw(
        self, name: str, sizes: Sequence[Value], words: Value, alpha: Value, shape: Sequence[Size]
    ) -> Callable[[Value, Value], Value] | None:
        """The use of jax.random that a function is; None if it is another."""
        generators = _GENERATORS[words.shape[-1]]
        is_logarithm = _last_op(self._program, name) != "stablehlo.multiply"
        draws = [
            functools.partial(_drawn, draw=draw, generator=generator, mapped=mapped)
            for draw in (_GAMMAS if is_logarithm else _GAMMAS[::-1])
            for mapped in _mapped(words.ndim - 1, alpha.shape, shape)
            for generator in generators
        ]
        key_shape, closed, alphas = map(_closed, (words.shape, shape, alpha.shape))
        keys = np.arange(np.prod(key_shape), dtype=np.uint32).reshape(key_shape)
        place = self._found.value(
            (name, key_shape, alphas, str(alpha.dtype)),
            lambda: self._agreeing(
                name,
                [_tried(size) for size in sizes],
                [functools.partial(draw, shape=closed) for draw in draws],
                [(keys, x) for x in _resized(_ALPHAS, alphas).astype(alpha.dtype)],
            ),
        )
        return None if place is None else functools.partial(draws[place], shape=shape)

    def _agreeing(
        self,
        name: str,
        others: Sequence[Value],
        candidates: Sequence[Callable[..., Value]],
        samples: Sequence[tuple[Value, ...]],
        are_same: Callable[[Value, Value], bool] | None = None,
    ) -> int | None:
        """The place of the candidate that gives the bits of the program's function, or what
        `are_same` takes for the same.
        """
        with jax.ensure_compile_time_eval():
            function = jax.jit(lambda *arrays: self._evaluate(name, [*others, *arrays])[0])
            expected = [np.asarray(function(*arrays)) for arrays in samples]
            for place, candidate in enumerate(candidates):
                if _gives(jax.jit(candidate), samples, expected, are_same or _have_bits):
                    return place
        return None


def _gives(
    function: Callable[..., Value],
    samples: Sequence[tuple[Value, ...]],
    expected: Sequence[Value],
    are_same: Callable[[Value, Value], bool],
) -> bool:
    return all(
        are_same(np.asarray(function(*arrays)), y)
        for arrays, y in zip(samples, expected, strict=True)
    )


def _have_bits(x: Value, y: Value) -> bool:
    return np.array_equal(x, y, equal_nan=True)


def _are_close(x: Value, y: Value) -> bool:
    """Whether two arrays differ by their rounding, where both are finite."""
    tolerance = 16 * jnp.finfo(x.dtype).eps
    are_finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[are_finite], y[are_finite]
    return bool(np.all(np.abs(x - y) <= tolerance * np.maximum(np.abs(x), 1)))


def _makes_integers(op: Op) -> bool:
    return all(isinstance(t, TensorType) and t.dtype.kind in "iu" for t in op.types)


def _closed(shape: Sequence[Size]) -> tuple[int, ...]:
    """The shape with a number for each open size."""
    return tuple(size if isinstance(size, int) else OPEN_SIZE_TRIED for size in shape)


def _tried(value: Value) -> Value:
    """Known operands with a number for each open size."""
    is_open = isinstance(value, Sizes)
    return np.full(value.shape, OPEN_SIZE_TRIED, value.dtype) if is_open else value


def _resized(numbers: Sequence[complex], shape: tuple[int, ...]) -> np.ndarray:
    """Arrays of a shape that hold all of the numbers."""
    size = max(int(np.prod(shape)), 1)
    return np.resize(np.array(numbers), (-(-len(numbers) // size), *shape))


def _may_draw(function: Function, operands: Sequence[Value]) -> bool:
    """Whether the last operands of a function are a key's words, and floats, and it has a loop."""
    if len(operands) < 2 or len(function.types) != 1:
        return False
    if not any(op.name == "stablehlo.while" for op in ops_of(function.body)):
        return False
    key, alpha = (getattr(x, "dtype", None) for x in operands[-2:])
    sizes = operands[:-2]
    return (
        key == np.uint32
        and alpha is not None
        and jnp.issubdtype(alpha, jnp.floating)
        and operands[-2].shape[-1:] in {(words,) for words in _GENERATORS}
        and all(map(is_known, sizes))
    )


def _shape_of_result(function: Function, alpha: Value) -> tuple[Size, ...] | None:
    """The shape of a function's result; None if it is open and not that of its last operand."""
    (result,) = function.types
    assert isinstance(result, TensorType)
    if result.is_static:
        return tuple(size or 0 for size in result.shape)
    is_same = len(result.shape) == len(alpha.shape) and all(
        size is None or size == known for size, known in zip(result.shape, alpha.shape, strict=True)
    )
    return tuple(alpha.shape) if is_same and are_plain(alpha.shape) else None


def _last_op(program: Program, name: str) -> str:
    """The name of the op that computes the result of a function."""
    op = program.definitions.get(program.functions[name].body.results[0])
    while op is not None and op.name in ("stablehlo.reshape", "stablehlo.dynamic_reshape"):
        op = program.definitions.get(op.operands[0])
    return "" if op is None else op.name


def _says_gamma(function: Function) -> bool:
    """Whether the module names jax.random.gamma for an op of the function."""
    return any(op.primitive == "random_gamma" for op in ops_of(function.body))


def _mapped(
    key_rank: int, alpha: Sequence[Size], shape: Sequence[Size]
) -> Iterator[tuple[tuple[PyTree, ...], ...]]:
    """The leading axes that jax.vmap may have mapped, of the keys and of alpha, innermost first."""
    choices = [((0, 0),) * key_rank, ((0, None),) * key_rank] if key_rank else [(), ((None, 0),)]
    for axes in choices:
        count = sum(of_alpha == 0 for _, of_alpha in axes)
        if count <= len(alpha) and _broadcasts(alpha[count:], shape[len(axes) :]):
            yield axes


def _broadcasts(shape: Sequence[Size], to: Sequence[Size]) -> bool:
    if len(shape) > len(to):
        return False
    pairs = zip(shape[::-1], to[::-1], strict=False)
    return all(size in (1, wanted) for size, wanted in pairs)


def _drawn(
    words: Value,
    alpha: Value,
    *,
    draw: Callable[..., Value],
    generator: str,
    mapped: Sequence[tuple[PyTree, ...]],
    shape: tuple[Size, ...],
) -> Value:
    function = functools.partial(draw, shape=shape[len(mapped) :], dtype=alpha.dtype)
    for axes in mapped:
        function = jax.vmap(function, axes)
    return function(jax.random.wrap_key_data(words, impl=generator), alpha)
