"""The size of a symbolic dimension, as an int or a tensor.

JAX makes symbolic dimensions and computes with them (jax.export.symbolic_shape). Their text has the
documented syntax, so this module parses the text:

    sum      = ["-"] product {("+" | "-") product}
    product  = power {"*" power}
    power    = atom ["^" number]
    atom     = number | name | name "(" sum "," sum ")" | "(" sum ")"
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jax2tf._src import ops
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Dim
from jax2tf._src.util.typing import Size as Size

Values: TypeAlias = Mapping[str, Size]


@dataclass(frozen=True)
class Call:
    """A call of one of `FUNCTIONS`."""

    function: str
    operands: tuple[Expression, ...]


# A number, the name of a variable, or a call.
Expression: TypeAlias = int | str | Call


def evaluate(dim: Dim, values: Values) -> Size:
    """The size of a dimension: an int if the values that it needs are ints, else an int32 tensor.

    Args:
      dim: an int or a symbolic dimension.
      values: the values of the dimension variables.
    """
    if isinstance(dim, int):
        return dim
    return evaluate_expression(parse(str(dim)), values)


def evaluate_expression(expression: Expression, values: Values) -> Size:
    """Like `evaluate`, for a parsed dimension."""
    match expression:
        case int():
            return expression
        case str():
            return values[expression]
        case Call(function, operands):
            return FUNCTIONS[function](*(evaluate_expression(o, values) for o in operands))


@cached
def variables(expression: Expression) -> frozenset[str]:
    """The names of the dimension variables in an expression."""
    match expression:
        case int():
            return frozenset()
        case str():
            return frozenset({expression})
        case Call(_, operands):
            return frozenset().union(*map(variables, operands))


@cached
def parse(text: str) -> Expression:
    """The expression that the text of a symbolic dimension stands for.

    Raises:
      ValueError: the text is not an expression.
    """
    parser = _Parser(text)
    expression = parser.sum()
    parser.expect("")
    return expression


def _maximum(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else ops.maximum(a, b)


def _minimum(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ops.minimum(a, b)


# Division rounds down in Python, in TensorFlow and in JAX's symbolic dimensions.
FUNCTIONS: dict[str, Callable[[Size, Size], Size]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "^": operator.pow,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": _maximum,
    "min": _minimum,
}


_TOKENS = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*)|(\S))")


class _Parser:
    """The tokens of a text, and the index of the next one."""

    def __init__(self, text: str):
        self._text = text
        self._tokens = [match[0].strip() for match in _TOKENS.finditer(text)]
        self._next = 0

    def sum(self) -> Expression:
        if self._take("-"):
            total: Expression = Call("-", (0, self._product()))
        else:
            total = self._product()
        while sign := self._take("+", "-"):
            total = Call(sign, (total, self._product()))
        return total

    def expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._unexpected(repr(token) if token else "its end")
        self._next += 1

    def _product(self) -> Expression:
        product = self._power()
        while self._take("*"):
            product = Call("*", (product, self._power()))
        return product

    def _power(self) -> Expression:
        base = self._atom()
        if not self._take("^"):
            return base
        exponent = self._atom()
        if not isinstance(exponent, int):
            raise self._unexpected("a number as exponent")
        return Call("^", (base, exponent))

    def _atom(self) -> Expression:
        token = self._peek()
        if not token or not (token == "(" or token[0] == "_" or token[0].isalnum()):
            raise self._unexpected("a number, a name or '('")
        self._next += 1
        if token == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if token[0].isdecimal():
            return int(token)
        if self._peek() != "(":
            return token
        if token not in FUNCTIONS:
            raise self._unexpected("a function of dimensions")
        self.expect("(")
        first = self.sum()
        self.expect(",")
        second = self.sum()
        self.expect(")")
        return Call(token, (first, second))

    def _take(self, *tokens: str) -> str:
        token = self._peek()
        if token not in tokens:
            return ""
        self._next += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _unexpected(self, wanted: str) -> ValueError:
        return ValueError(
            f"jax2tf.convert: cannot read the dimension {self._text!r}: "
            f"expected {wanted} where {self._peek() or 'it ends'!r} stands"
        )
