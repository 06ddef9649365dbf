"""Equations as text, and programs of a few lines that show one of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.extend.core import primitives

from jax2tf._src.locate import exactness
from jax2tf._src.locate.answer import Line
from jax2tf._src.locate.program import Program, as_numpy
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.util.typing import Array, Atom, Param, aval_of

# A longer text of a param or of a value is cut.
_LONGEST_PARAM, _SHOWN = 60, 6
# Operands with more elements are drawn, not written out.
_MOST_ELEMENTS = 128


class Names:
    """Names of variables in the order in which they first occur."""

    def __init__(self, program: Program) -> None:
        jaxpr = program.closed.jaxpr
        self._names = {v: f"a{i}" for i, v in enumerate(jaxpr.invars)}
        self._names.update({v: f"c{i}" for i, v in enumerate(jaxpr.constvars)})
        for i, eqn in enumerate(program.equations):
            for j, v in enumerate(eqn.outvars):
                self._names[v] = f"v{i}" if len(eqn.outvars) == 1 else f"v{i}_{j}"

    def of(self, atom: Atom) -> str:
        """The name of a variable, or the value of a literal."""
        if isinstance(atom, jex_core.Literal):
            return str(np.asarray(atom.val))
        return self._names[atom]


def equation(eqn: jex_core.JaxprEqn, names: Names) -> str:
    """The equation as text: `v3 = add v1 v2`."""
    results = " ".join(names.of(v) for v in eqn.outvars)
    params = [
        f"{name}={text}"
        for name, value in eqn.params.items()
        if value is not None
        and not list(jaxprs.jaxprs_in([value]))
        and len(text := str(value)) <= _LONGEST_PARAM
    ]
    operands = " ".join(names.of(v) for v in eqn.invars)
    return " ".join([results, "=", eqn.primitive.name, *params, operands])


def shapes(eqn: jex_core.JaxprEqn) -> str:
    """The shapes and dtypes of the operands and results."""
    operands, results = (", ".join(map(_type, x)) for x in (eqn.invars, eqn.outvars))
    return f"{operands} -> {results}"


def _type(atom: Atom) -> str:
    aval = aval_of(atom)
    if not hasattr(aval, "dtype"):
        return str(aval)
    return f"{getattr(aval.dtype, 'name', aval.dtype)}[{','.join(map(str, aval.shape))}]"


def arrays(named: Mapping[str, np.ndarray]) -> str:
    """The names, dtypes and shapes of arrays."""
    return ", ".join(
        f"{name}: {x.dtype.name}[{', '.join(map(str, x.shape))}]" for name, x in named.items()
    )


def first_values(array: Array) -> str:
    """The first elements of an array."""
    flat = as_numpy(array).reshape(-1)
    shown = ", ".join(
        f"{x:.6g}" if exactness.is_inexact(flat.dtype) else str(x) for x in flat[:_SHOWN].tolist()
    )
    return f"{shown}{', ...' if flat.size > _SHOWN else ''}"


def worst(actual: np.ndarray, expected: np.ndarray) -> tuple[int, ...]:
    """The index of the element that is most wrong."""
    off = exactness.error(actual, expected)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))


def program(
    eqn: jex_core.JaxprEqn, operands: Sequence[Array], at: tuple[int, ...], how: str
) -> str:
    """A program that runs one equation in JAX and on the other side; empty if it has no text.

    Args:
      eqn: the equation.
      operands: its operands.
      at: the element that is most wrong.
      how: a way of `WAYS`; another one is a target of `convert`.
    """
    name = _primitive(eqn.primitive)
    try:
        params = ", ".join(f"{k}={_param(v)}" for k, v in eqn.params.items())
    except ValueError:
        return ""
    if not name or any(not hasattr(x, "dtype") for x in operands):
        return ""
    arrays = [_array(x) for x in _narrowed(eqn, operands, at)]
    names = [f"x{i}" for i in range(len(operands))]
    given = ", ".join(names)
    lines = [
        "import jax",
        "import jax.numpy as jnp",
        "import numpy as np",
        "from jax import lax",
        "from jax.extend.core import primitives",
        "import jax2tf",
        "",
        *(f"{n} = {a}" for n, a in zip(names, arrays, strict=True)),
        "",
        f"def f({given}):",
        f"    return primitives.{name}.bind({', '.join([*names, *([params] if params else [])])})",
        "",
        f"print(f({given}))",
        *_other_side(operands, how),
    ]
    return "\n".join(lines)


def _other_side(operands: Sequence[Array], how: str) -> Iterator[str]:
    """The lines that run `f` there; a file gets complex numbers as their parts."""
    way = WAYS.get(how, _of_target(how))
    names = [f"x{i}" for i in range(len(operands))]
    complex_ones = {n for n, x in zip(names, operands, strict=True) if jnp.iscomplexobj(x)}
    if not complex_ones or how not in _REAL:
        yield from way(", ".join(names))
        return
    taken = [p for n in names for p in ([f"{n}_re", f"{n}_im"] if n in complex_ones else [n])]
    operand = {n: f"lax.complex({n}_re, {n}_im)" if n in complex_ones else n for n in names}
    yield "g = f"
    yield f"def f({', '.join(taken)}):"
    yield f"    results = jax.tree.leaves(g({', '.join(operand.values())}))"
    yield "    return [part for y in results for part in (jnp.real(y), jnp.imag(y))]"
    yield from (f"{n}_re, {n}_im = {n}.real, {n}.imag" for n in sorted(complex_ones))
    yield from way(", ".join(taken))


# Engines without complex numbers.
_REAL = ("onnx", "openvino", "tfjs")


def _graph(given: str) -> Iterator[str]:
    yield "import tensorflow as tf"
    yield f"print(tf.function(jax2tf.convert(f), autograph=False)({given}))"


def _compiled(given: str) -> Iterator[str]:
    yield "import tensorflow as tf"
    yield f"print(tf.function(jax2tf.convert(f), autograph=False, jit_compile=True)({given}))"


def _of_target(target: str) -> Callable[[str], Iterator[str]]:
    def lines(given: str) -> Iterator[str]:
        yield "import tensorflow as tf"
        yield f"f = jax2tf.convert(f, target={target!r})"
        yield f"print(tf.function(f, autograph=False)({given}))"

    return lines


def _of_file(suffix: str) -> Callable[[str], Iterator[str]]:
    def lines(given: str) -> Iterator[str]:
        yield f"jax2tf.export(f, None, ({given},), 'one{suffix}', verify=[({given},)])"

    return lines


WAYS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "graph": _graph,
    "eager": _graph,
    "compiled": _compiled,
    "native": _graph,
    "savedmodel": _of_file(""),
    "litert": _of_file(".tflite"),
    "onnx": _of_file(".onnx"),
    "openvino": _of_file(".xml"),
    "tfjs": _of_file(".tfjs"),
}


def _primitive(primitive: jex_core.Primitive) -> str:
    """The public name of a primitive; empty if it has none."""
    names = (n for n in dir(primitives) if getattr(primitives, n) is primitive)
    return next(names, "")


_PLAIN = (bool, int, float, str, type(None))


def _param(value: Param) -> str:
    """The text of Python that makes a param.

    Raises:
      ValueError: there is none.
    """
    if isinstance(value, enum.Enum):
        return f"lax.{type(value).__name__}.{value.name}" if _in_lax(type(value)) else _no_text()
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, np.dtype):
        return f"jnp.dtype({value.name!r})"
    if hasattr(value, "_fields") or (
        hasattr(value, "__dataclass_fields__") and _in_lax(type(value))
    ):
        fields = getattr(value, "_fields", None) or value.__dataclass_fields__
        if not _in_lax(type(value)):
            return _no_text()
        inner = ", ".join(f"{f}={_param(getattr(value, f))}" for f in fields)
        return f"lax.{type(value).__name__}({inner})"
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_param, value))
        return f"({inner},)" if value else "()"
    return _no_text()


def _in_lax(kind: type) -> bool:
    return getattr(lax, kind.__name__, None) is kind


def _no_text() -> str:
    raise ValueError("a param has no text")


def _narrowed(
    eqn: jex_core.JaxprEqn, operands: Sequence[Array], at: tuple[int, ...]
) -> list[np.ndarray]:
    """The operands; only their elements at the place, if the result has no others to read."""
    arrays = [as_numpy(x) for x in operands]
    sizes = {x.shape for x in arrays if x.ndim}
    if eqn.primitive not in traits.FLOATS | traits.ARITHMETIC or len(sizes) != 1:
        return arrays
    return [x[at].reshape(1) if x.ndim else x for x in arrays]


def _array(array: np.ndarray) -> str:
    if array.size > _MOST_ELEMENTS:
        return _drawn(array)
    numbers = str(array.tolist()).replace("nan", "jnp.nan").replace("inf", "jnp.inf")
    return f"np.array({numbers}, jnp.dtype({array.dtype.name!r}))"


def _drawn(array: np.ndarray) -> str:
    """Random numbers of the same size and range, in place of many elements."""
    dtype, shape = f"jnp.dtype({array.dtype.name!r})", array.shape
    if array.dtype == bool:
        return f"np.random.default_rng(0).random({shape}) < {float(array.mean())!r}"
    if not jnp.issubdtype(array.dtype, jnp.floating):
        ends = f"{int(array.min())}, {int(array.max()) + 1}"
        return f"np.random.default_rng(0).integers({ends}, {shape}).astype({dtype})"
    finite = array[np.isfinite(array)].astype(np.float64)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return f"np.random.default_rng(0).uniform({low!r}, {high!r}, {shape}).astype({dtype})"


def line(program: Program, names: Names, index: int, source: str, scope: str) -> Line:
    """An equation without the values of the other side."""
    return Line(index, equation(program.equations[index], names), source, scope)
