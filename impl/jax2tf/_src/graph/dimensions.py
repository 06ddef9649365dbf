"""Arithmetic of sizes: numbers, names of open sizes, expressions of them, and unknown sizes.

An expression is text with the syntax of JAX's symbolic dimensions, such as "2*n + 1" or
"floordiv(n, 2)", in one form for all ways to write a polynomial:

>>> add("n", multiply(2, "b")), subtract("n", "n"), divide("b*n + n", "b + 1"), divide("n", 2)
('n + 2*b', 0, 'n', 'floordiv(n, 2)')

A name stands for a size of at least one, as in JAX. What is computed of an unknown size, None, is
unknown.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from jax2tf._src.graph.graph import Size
from jax2tf._src.util.lru import cached

# An atom is a name, or a call of floordiv, mod, max or min as text. A monomial has the atoms with
# their powers, names first; a polynomial the coefficients of its monomials, none of them zero.
Monomial: TypeAlias = tuple[tuple[str, int], ...]
Polynomial: TypeAlias = Mapping[Monomial, int]
_Binary: TypeAlias = Callable[[Size, Size], Size]

_ONE: Monomial = ()


def _of_numbers(by_number: Callable[[int, int], int | None]) -> Callable[[_Binary], _Binary]:
    """A decorator: an operation on two sizes, which is `by_number` if both are numbers."""
    return functools.partial(_by_number_too, by_number)


def _by_number_too(by_number: Callable[[int, int], int | None], operation: _Binary) -> _Binary:
    @functools.wraps(operation)
    def operate(a: Size, b: Size) -> Size:
        if a is None or b is None:
            return None
        if isinstance(a, str) or isinstance(b, str):
            return operation(a, b)
        return by_number(a, b)

    return operate


@_of_numbers(lambda a, b: a + b)
def add(a: Size, b: Size) -> Size:
    """a + b."""
    return _text(_sum(_polynomial(a), _polynomial(b)))


@_of_numbers(lambda a, b: a - b)
def subtract(a: Size, b: Size) -> Size:
    """a - b."""
    return _text(_sum(_polynomial(a), _polynomial(b), -1))


def multiply(a: Size, b: Size) -> Size:
    """a * b, which is 0 if one of them is."""
    return 0 if 0 in (a, b) else _multiply(a, b)


@_of_numbers(lambda a, b: a * b)
def _multiply(a: Size, b: Size) -> Size:
    return _text(_product(_polynomial(a), _polynomial(b)))


@_of_numbers(lambda a, b: a // b if b else None)
def divide(a: Size, b: Size) -> Size:
    """a divided by b, rounded down. An exact quotient is a polynomial."""
    if b == 0:
        return None
    exact = _quotient(a, b)
    return _call("floordiv", a, b) if exact is None else exact


def divide_exactly(a: Size, b: Size) -> Size:
    """The quotient of a and b; None if it is unknown or a remainder is left."""
    if a is None or b is None or b == 0:
        return None
    return 0 if a == 0 else _quotient(a, b)


def divide_up(a: Size, b: Size) -> Size:
    """a divided by b, rounded up: ceil(a / b) = -floor(-a / b) = floor((a + b - 1) / b)."""
    exact = divide_exactly(a, b)
    return divide(add(a, subtract(b, 1)), b) if exact is None else exact


@_of_numbers(lambda a, b: a % b if b else None)
def modulo(a: Size, b: Size) -> Size:
    """a - b*divide(a, b)."""
    if b == 0:
        return None
    return 0 if _quotient(a, b) is not None else _call("mod", a, b)


@_of_numbers(max)
def maximum(a: Size, b: Size) -> Size:
    """The larger size."""
    difference = subtract(a, b)
    if _is_at_least_zero(difference):
        return a
    return b if _is_at_least_zero(subtract(0, difference)) else _call("max", a, b)


@_of_numbers(min)
def minimum(a: Size, b: Size) -> Size:
    """The smaller size."""
    difference = subtract(a, b)
    if _is_at_least_zero(difference):
        return b
    return a if _is_at_least_zero(subtract(0, difference)) else _call("min", a, b)


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes, 1 without sizes."""
    one: Size = 1
    return functools.reduce(multiply, sizes, one)


def total(sizes: Iterable[Size]) -> Size:
    """The sum of sizes, 0 without sizes."""
    zero: Size = 0
    return functools.reduce(add, sizes, zero)


def are_equal(a: Size, b: Size) -> bool | None:
    """Whether two sizes are equal; None if that depends on the values of names or is unknown."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return difference == 0
    if difference is None:
        return None
    differs = (add(difference, -1), subtract(-1, difference))
    return False if any(map(_is_at_least_zero, differs)) else None


def is_at_least(a: Size, b: Size) -> bool | None:
    """Whether a >= b; None if that depends on the values of names or is unknown."""
    difference = subtract(a, b)
    if _is_at_least_zero(difference):
        return True
    return False if _is_at_least_zero(subtract(-1, difference)) else None


# An open size is less than 2**25, and so many times less than 2**31.
_MOST_TIMES = 64


def fits_int32(size: Size) -> bool:
    """Whether a size is surely less than 2**31: no product of open ones, nor a large multiple.

    >>> fits_int32("2*b + 1"), fits_int32("b*n"), fits_int32("1000*b")
    (True, False, False)
    """
    if size is None or isinstance(size, int):
        return True
    terms = _polynomial(size).items()
    is_linear = all(sum(power for _, power in monomial) <= 1 for monomial, _ in terms)
    return is_linear and sum(abs(n) for monomial, n in terms if monomial) <= _MOST_TIMES


def canonical(size: Size) -> Size:
    """The size in the form in which functions of this module give it.

    Raises:
      ValueError: it is text that is not an expression.
    """
    return _text(_polynomial(size)) if isinstance(size, str) else size


def evaluate(size: Size, values: Mapping[str, int]) -> int | None:
    """The number that a size is with these values of the names; None for an unknown size.

    Raises:
      KeyError: a name has no value.
    """
    if size is None or isinstance(size, int):
        return size
    return sum(
        coefficient * _power_product((_evaluated(atom, values), n) for atom, n in monomial)
        for monomial, coefficient in _polynomial(size).items()
    )


def _power_product(powers: Iterable[tuple[int, int]]) -> int:
    return functools.reduce(lambda total, power: total * power[0] ** power[1], powers, 1)


def _evaluated(atom: str, values: Mapping[str, int]) -> int:
    if "(" not in atom:
        return values[atom]
    function, a, b = _parts(atom)
    first, second = evaluate(a, values), evaluate(b, values)
    assert first is not None
    assert second is not None
    result = _FUNCTIONS[function](first, second)
    assert isinstance(result, int)
    return result


_FUNCTIONS: Mapping[str, _Binary] = {
    "floordiv": divide,
    "mod": modulo,
    "max": maximum,
    "min": minimum,
}


def _call(function: str, a: Size, b: Size) -> str:
    if function in ("max", "min"):
        a, b = sorted((a, b), key=lambda x: (isinstance(x, int), str(x)))
    return f"{function}({a}, {b})"


@cached
def _parts(atom: str) -> tuple[str, Size, Size]:
    """The function of an atom and its operands."""
    function, _, rest = atom.partition("(")
    call = ast.parse(_as_python(f"f({rest}"), mode="eval").body
    assert isinstance(call, ast.Call)
    a, b = (_text(_read(argument, atom)) for argument in call.args)
    return function, a, b


def _is_at_least_zero(size: Size) -> bool:
    """Whether a size is known to be no less than zero: names are at least one."""
    lowest = _lowest(size)
    return lowest is not None and lowest >= 0


def _lowest(size: Size) -> int | None:
    """A lower bound of a size; None if none is known."""
    if size is None or isinstance(size, int):
        return size
    least = 0
    for monomial, coefficient in _polynomial(size).items():
        bounds = [_lowest_atom(atom) for atom, _ in monomial]
        if monomial and coefficient < 0:
            return None
        if any(bound is None or bound < 0 for bound in bounds):
            return None
        powers = ((bound or 0, n) for bound, (_, n) in zip(bounds, monomial, strict=True))
        least += coefficient * _power_product(powers)
    return least


def _lowest_atom(atom: str) -> int | None:
    if "(" not in atom:
        return 1
    function, a, b = _parts(atom)
    if function == "mod":
        return 0 if isinstance(b, int) and b > 0 else None
    bounds = [_lowest(a), _lowest(b)]
    known = [bound for bound in bounds if bound is not None]
    if function == "max":
        return max(known, default=None)
    if len(known) < 2:
        return None
    if function == "min":
        return min(known)
    # A quotient of sizes.
    is_positive = isinstance(b, int) and b > 0
    return known[0] // b if is_positive and isinstance(b, int) else None


def _sum(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    terms = dict(a)
    for monomial, coefficient in b.items():
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient
    return {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for (m, p), (n, q) in itertools.product(a.items(), b.items()):
        result = _sum(result, {_times(m, n): p * q})
    return result


def _times(m: Monomial, n: Monomial, sign: int = 1) -> Monomial:
    """The product of two monomials, or with -1 their quotient."""
    powers = dict(m)
    for atom, power in n:
        powers[atom] = powers.get(atom, 0) + sign * power
    kept = [(atom, power) for atom, power in powers.items() if power]
    return tuple(sorted(kept, key=lambda item: ("(" in item[0], item[0])))


@cached
def _quotient(a: Size, b: Size) -> Size:
    """The quotient of two polynomials; None if a remainder is left."""
    divisor = _polynomial(b)
    atoms = sorted({atom for part in (a, b) for m in _polynomial(part) for atom, _ in m})

    def degrees(monomial: Monomial) -> tuple[int, ...]:
        powers = dict(monomial)
        return (sum(powers.values()), *(powers.get(atom, 0) for atom in atoms))

    rest, quotient = _polynomial(a), {}
    highest = max(divisor, key=degrees)
    while rest:
        first = max(rest, key=degrees)
        factor, remainder = divmod(rest[first], divisor[highest])
        monomial = _times(first, highest, -1)
        if remainder or any(power < 0 for _, power in monomial):
            return None
        quotient[monomial] = factor
        rest = _sum(rest, _product({monomial: factor}, divisor), -1)
    return _text(quotient)


def _text(polynomial: Polynomial) -> Size:
    """The size of a polynomial; terms stand in JAX's order."""
    if not polynomial.keys() - {_ONE}:
        return polynomial.get(_ONE, 0)
    terms = [
        _term(monomial, polynomial[monomial])
        for monomial in sorted(polynomial, key=_place, reverse=True)
    ]
    first, *rest = terms
    text = f"- {first[1:]}" if first.startswith("-") else first
    return "".join([text, *(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in rest)])


def _place(monomial: Monomial) -> tuple[int, int, Sequence[tuple[bool, str, int]]]:
    calls = sum(power for atom, power in monomial if "(" in atom)
    factors = [("(" in atom, atom, power) for atom, power in reversed(monomial)]
    return calls, sum(1 + power for _, power in monomial), factors


def _term(monomial: Monomial, coefficient: int) -> str:
    factors = [atom if power == 1 else f"{atom}^{power}" for atom, power in monomial]
    if abs(coefficient) != 1 or not factors:
        factors = [str(abs(coefficient)), *factors]
    return ("-" if coefficient < 0 else "") + "*".join(factors)


@cached
def _polynomial(size: Size) -> Polynomial:
    if isinstance(size, int):
        return {_ONE: size} if size else {}
    assert size is not None
    try:
        tree = ast.parse(_as_python(size), mode="eval")
    except SyntaxError:
        raise _unreadable(size) from None
    return _read(tree.body, size)


def _as_python(text: str) -> str:
    """The text in Python's syntax; names get a prefix: they may be keywords of Python."""
    return re.sub(r"[^\W\d]\w*", lambda name: f"_{name[0]}", text.replace("^", "**")).strip()


def _read(tree: ast.AST, text: str) -> Polynomial:
    match tree:
        case ast.Constant(value=int(number)):
            return _polynomial(number)
        case ast.Name(id=name):
            return {((name[1:], 1),): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _sum({}, _read(operand, text), -1)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(n))):
            return functools.reduce(_product, [_read(left, text)] * n, {_ONE: 1})
        case ast.BinOp(left=left, op=op, right=right):
            p, q = _read(left, text), _read(right, text)
            if isinstance(op, ast.Add | ast.Sub):
                return _sum(p, q, 1 if isinstance(op, ast.Add) else -1)
            if isinstance(op, ast.Mult):
                return _product(p, q)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name[1:] in _FUNCTIONS:
            a, b = _text(_read(left, text)), _text(_read(right, text))
            result = _FUNCTIONS[name[1:]](a, b)
            if result is not None:
                atom = _call(name[1:], a, b)
                return {((atom, 1),): 1} if result == atom else _polynomial(result)
    raise _unreadable(text)


def _unreadable(text: str) -> ValueError:
    return ValueError(f"jax2tf: the size {text!r} is not an expression of dimensions")
