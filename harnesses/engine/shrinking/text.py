"""Writes a program as Python that runs as it is, and prints how the result differs."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core
from jax.extend.core import primitives

from harnesses.engine.shrinking.programs import Program, scan_parts, while_parts

_HEAD = """import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives"""
# The types of params that are tuples of names, and those of keys, which have public functions.
_KEYS: Mapping[str, str] = {
    "random_wrap": "jax.random.wrap_key_data({0}, impl={impl!r})",
    "random_unwrap": "jax.random.key_data({0})",
    "random_seed": "jax.random.key({0}, impl={impl!r})",
    "random_split": "jax.random.split({0}, {shape!r})",
    "random_fold_in": "jax.random.fold_in({0}, {1})",
}


class NoText(ValueError):
    """A param that has no text."""


def text(program: Program, ending: Sequence[str], *, x64: bool) -> str:
    """The program as Python.

    Args:
      program: the program.
      ending: lines that run the function `f` on `args` on the other side, and print.
      x64: whether JAX has types of 64 bits.

    Raises:
      NoText: an equation has a param that has no text.
    """
    names = _Names()
    args = ", ".join(names.of(v) for v in program.closed.jaxpr.invars)
    body = list(_function("f", program.closed, names))
    arrays = [f"    {array(x)}," for x in program.args]
    return "\n".join(
        [
            _HEAD,
            *(["", 'jax.config.update("jax_enable_x64", True)'] if x64 else []),
            "",
            *body,
            "",
            f"# {args}",
            "args = (",
            *arrays,
            ")",
            *ending,
            "",
        ]
    )


class _Names:
    """Names in the order in which they are asked for."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._known: dict[core.Var, str] = {}
        self._functions = itertools.count()

    def of(self, v: core.Var) -> str:
        if v not in self._known:
            self._known[v] = f"v{next(self._numbers)}"
        return self._known[v]

    def function(self) -> str:
        return f"f{next(self._functions)}"


def _function(name: str, closed: core.ClosedJaxpr, names: _Names) -> Iterator[str]:
    """A function of a jaxpr, which returns a list."""
    jaxpr = closed.jaxpr
    yield f"def {name}({', '.join(names.of(v) for v in jaxpr.invars)}):"
    for v, const in zip(jaxpr.constvars, closed.consts, strict=True):
        yield f"    {names.of(v)} = {array(const)}"
    for eqn in jaxpr.eqns:
        for line in _equation(eqn, names):
            yield f"    {line}"
    yield f"    return [{', '.join(_atom(v, names) for v in jaxpr.outvars)}]"


def _atom(atom: Any, names: _Names) -> str:
    if not isinstance(atom, core.Literal):
        return names.of(atom)
    return array(atom.val)


def _equation(eqn: core.JaxprEqn, names: _Names) -> Iterator[str]:
    operands = [_atom(v, names) for v in eqn.invars]
    results = ", ".join("_" if str(v) == "_" else names.of(v) for v in eqn.outvars)
    several = eqn.primitive.multiple_results
    inner = _WITH_FUNCTIONS.get(eqn.primitive)
    if inner is not None:
        functions, call = inner(eqn, operands, names)
        yield from functions
        yield f"[{results}] = {call}"
        return
    if eqn.primitive.name in _KEYS:
        impl = getattr(eqn.params.get("impl"), "name", None)
        words = {"impl": impl, "shape": eqn.params.get("shape")}
        yield f"{results} = {_KEYS[eqn.primitive.name].format(*operands, **words)}"
        return
    params = [f"{k}={param(v)}" for k, v in eqn.params.items()]
    call = f"primitives.{_public(eqn.primitive)}.bind({', '.join([*operands, *params])})"
    yield f"[{results}] = {call}" if several else f"{results} = {call}"


def _scan(eqn: core.JaxprEqn, operands: Sequence[str], names: _Names) -> tuple[list[str], str]:
    params = eqn.params
    name = names.function()
    consts, carry, xs = scan_parts(eqn, operands)
    n = len(carry)
    body = f"{name}({', '.join([*consts, '*c', '*x'])})"
    step = f"{name}_step"
    functions = [
        *_function(name, params["jaxpr"], names),
        f"def {step}(c, x):",
        f"    y = {body}",
        f"    return y[:{n}], y[{n}:]",
    ]
    words = f"{params['length']!r}, {params['reverse']!r}, {params['unroll']!r}"
    return functions, f"sum(lax.scan({step}, {_list(carry)}, {_list(xs)}, {words}), [])"


def _while(eqn: core.JaxprEqn, operands: Sequence[str], names: _Names) -> tuple[list[str], str]:
    params = eqn.params
    condition, body = names.function(), names.function()
    of_condition, of_body, carry = while_parts(eqn, operands)
    functions = [
        *_function(condition, params["cond_jaxpr"], names),
        *_function(body, params["body_jaxpr"], names),
    ]
    test = f"lambda c: {condition}({', '.join([*of_condition, '*c'])})[0]"
    step = f"lambda c: {body}({', '.join([*of_body, '*c'])})"
    return functions, f"lax.while_loop({test}, {step}, {_list(carry)})"


def _cond(eqn: core.JaxprEqn, operands: Sequence[str], names: _Names) -> tuple[list[str], str]:
    params = eqn.params
    functions: list[str] = []
    branches = []
    for branch in params["branches"]:
        branches.append(names.function())
        functions += _function(branches[-1], branch, names)
    index, *others = operands
    return functions, f"lax.switch({', '.join([index, _list(branches), *others])})"


_WITH_FUNCTIONS: Mapping[core.Primitive, Callable[..., tuple[list[str], str]]] = {
    primitives.scan_p: _scan,
    primitives.while_p: _while,
    primitives.cond_p: _cond,
}


def _list(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _public(primitive: core.Primitive) -> str:
    for name in dir(primitives):
        if getattr(primitives, name) is primitive:
            return name
    raise NoText(f"the primitive {primitive.name} has no public name")


def param(value: Any) -> str:
    """The Python that makes a param.

    Raises:
      NoText: there is none.
    """
    if isinstance(value, enum.Enum) and _in_lax(type(value)):
        return f"lax.{type(value).__name__}.{value.name}"
    if isinstance(value, bool | int | float | str | type(None)) and not isinstance(
        value, enum.Enum
    ):
        return repr(value)
    if isinstance(value, np.dtype):
        return f"jnp.dtype({value.name!r})"
    fields = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None)
    if fields is not None and _in_lax(type(value)):
        inner = ", ".join(f"{f}={param(getattr(value, f))}" for f in fields)
        return f"lax.{type(value).__name__}({inner})"
    if isinstance(value, tuple | list) and fields is None:
        return f"({', '.join(map(param, value))}{',' if value else ''})"
    raise NoText(f"a param of type {type(value).__name__} has no text")


def _in_lax(kind: type) -> bool:
    return getattr(lax, kind.__name__, None) is kind


def array(value: Any) -> str:
    """The Python that makes an array: of zeros with some elements if few are not zero."""
    x = np.asarray(value)
    dtype = f"jnp.dtype({x.dtype.name!r})"
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        raise NoText("an array of keys has no text")
    filled = np.argwhere(x)
    if x.size > 8 and len(filled) * 4 < x.size:
        zeros = f"jnp.zeros({x.shape}, {dtype})"
        for at in filled:
            place = ", ".join(map(str, at))
            zeros += f".at[{place}].set({_numbers(x[tuple(at)].tolist())})"
        return f"np.asarray({zeros})" if len(filled) else f"np.zeros({x.shape}, {dtype})"
    if 0 in x.shape:
        return f"np.zeros({x.shape}, {dtype})"
    wide = x.astype(np.float32) if x.dtype.kind == "V" else x
    return f"np.array({_numbers(wide.tolist())}, {dtype})"


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    if isinstance(value, complex):
        return f"complex({_numbers(value.real)}, {_numbers(value.imag)})"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)
