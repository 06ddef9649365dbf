"""Notes on JAX's errors about symbolic dimensions, with constraints that remove the error.

JAX raises where a program needs to know that `t <= 512`, and its message speaks of `min(512, t)`.
The constraints that the message suggests are tried, and a note names those with which the function
traces. If none helps, the actual sizes are tried: a function that traces only with these takes a
dimension for an int.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from jax import export

# The most constraints that are tried together, and the most traces of a search.
_MOST_TOGETHER = 2
_MOST_TRACES = 12
# JAX needs minutes for a trace that divides products of several dimensions. No further trace starts
# after this many seconds: the error is not kept from the user for a note.
_MOST_SECONDS = 20.0

_COMPARED = re.compile(r"comparison '([^']+)' (<=|>=|<|>) '([^']+)' is inconclusive")
# A shape in an error message, as "(a, b)" or "float32[a, b]".
_SHAPE = re.compile(r"[(\[]([^()\[\]]+)[)\]]")
# Messages of shard_map and collectives about sizes that the mesh does not divide.
_NOT_DIVIDED = (
    re.compile(r"but (?P<divisor>\d+) does not evenly divide (?P<size>[^\n]+)"),
    re.compile(r"\((?P<size>[^()]+)\) has to be divisible by [^()]*\((?P<divisor>\d+)\)"),
    re.compile(r" size (?P<size>.+) must be divisible by shard_count (?P<divisor>\d+)"),
)
# jnp.pad's message about a size that may be too small to reflect.
_TOO_SHORT = re.compile(
    r"axis size \(= (?P<size>.+?)\) is larger than 1 and larger or equal than the padding length "
    r"\(= (?P<padding>\d+)\)"
)
# Messages of Python and NumPy where a symbolic size is an index or a bound of a slice.
_INDEXED = re.compile(r"(slice|list|tuple) indices must be integers|only integers, slices \(`:`\)")
# jnp.pad(mode="wrap") divides the width of the padding by the size.
_REMAINDER = re.compile(r"comparison 'mod\((?P<number>\d+), (?P<size>.+)\)' > '0' is inconclusive")
# A constraint that a variable, or a multiple of one, is divisible by a number.
_MULTIPLE = re.compile(r"mod\(((?:\d+\*)?([a-zA-Z_]\w*)), (\d+)\) == 0")
_CALL = re.compile(r"\b(min|max|mod)\(")
_OPPOSITE = {"<=": ">=", ">=": "<="}


# Traces with these constraints in addition to the caller's; returns the error, or None.
Retrace: TypeAlias = Callable[[Sequence[str]], Exception | None]


@contextlib.contextmanager
def advising(
    retrace: Retrace, trace_known: Callable[[], Mapping[str, str] | None]
) -> Iterator[None]:
    """Adds a note to an error of a trace: what to do about symbolic dimensions.

    Args:
      retrace: traces again, with more constraints.
      trace_known: traces again, with a known size for every dimension. It returns the symbolic
        shapes by argument, or None if that trace raises too.
    """
    try:
        yield
    except Exception as error:
        remedies = _search(error, retrace)
        if remedies:
            listed = " or ".join(f"polymorphic_constraints={list(r)}" for r in remedies)
            error.add_note(
                "jax2tf.convert: JAX cannot decide that for every size of the dimensions. It can "
                f"with {listed}, which is then checked when the function runs"
                f"{_by_multiples(remedies)}"
            )
        else:
            _add_note_on_known_sizes(error, trace_known)
        raise


def _by_multiples(remedies: Sequence[Sequence[str]]) -> str:
    """The first of these remedies in terms of polymorphic_shapes, if it has only multiples."""
    multiples = [_MULTIPLE.fullmatch(constraint) for constraint in remedies[0]]
    texts = [f"`{m[3]}*{m[2]}` in the place of `{m[1]}`" for m in multiples if m is not None]
    if len(texts) < len(multiples):
        return ""
    return f"; or with {' and '.join(texts)} in polymorphic_shapes"


def _add_note_on_known_sizes(
    error: Exception, trace_known: Callable[[], Mapping[str, str] | None]
) -> None:
    named = trace_known()
    if named is None:  # the function does not trace for known sizes either
        return
    sliced = ""
    if _INDEXED.search(str(error)):
        size = next(iter(_names(named)), "b")
        sliced = (
            "; slice jnp.asarray(table) in place of a NumPy array or a list, with "
            f"polymorphic_constraints=['{size} <= N'] where N is the length of the table, and "
            "index it with jnp.asarray of the size"
        )
    shapes = ", ".join(f"{argument}: {shape}" for argument, shape in named.items())
    error.add_note(
        f"jax2tf.convert: the function traces where every size is known, and not for {shapes}. A "
        "dimension that has a name is no Python int: make arrays of it with jax.numpy (jnp.zeros, "
        "not np.zeros), its value with jnp.asarray(x.shape[0]), a loop with jax.lax.fori_loop, not "
        f"range{sliced}; or leave the dimension known, with `_` in its place in "
        "polymorphic_shapes of convert, with its number in the spec of export, as the one that "
        "jax.pmap maps or jax.random.permutation shuffles has to be"
    )


def _names(shapes: Mapping[str, str]) -> Iterator[str]:
    """The dimension variables in the texts of shapes."""
    for shape in shapes.values():
        yield from re.findall(r"[a-zA-Z_]\w*", _CALL.sub("(", shape))


def _search(error: Exception, retrace: Retrace) -> list[tuple[str, ...]]:
    """The smallest sets of constraints with which `retrace` succeeds."""
    retrace = _until(time.monotonic() + _MOST_SECONDS, retrace)
    start, left = _with_remainders((), error, retrace)
    if left is None:
        return [start]
    pending: list[tuple[str, ...]] = [(*start, constraint) for constraint in _suggested(str(left))]
    tried: set[frozenset[str]] = set()
    for size in range(1, _MOST_TOGETHER + 1):
        remedies: list[tuple[str, ...]] = []
        next_pending: list[tuple[str, ...]] = []
        for constraints in pending:
            if frozenset(constraints) in tried or len(tried) == _MOST_TRACES:
                continue
            tried.add(frozenset(constraints))
            constraints, next_error = _with_remainders(constraints, retrace(constraints), retrace)
            if next_error is None:
                remedies.append(constraints)
            else:
                more = [c for c in _suggested(str(next_error)) if c not in constraints]
                next_pending += [(*start, c) for c in more] + [(*constraints, c) for c in more]
        if remedies or size == _MOST_TOGETHER:
            return [r for r in remedies if not any(set(other) < set(r) for other in remedies)]
        pending = next_pending
    return []


def _until(end: float, retrace: Retrace) -> Retrace:
    """`retrace` up to that time; later an error that suggests no constraint."""

    def limited(constraints: Sequence[str]) -> Exception | None:
        return retrace(constraints) if time.monotonic() < end else TimeoutError()

    return limited


def _with_remainders(
    constraints: tuple[str, ...], error: Exception | None, retrace: Retrace
) -> tuple[tuple[str, ...], Exception | None]:
    """Adds that numbers are smaller than sizes that divide them; returns the error that is left.

    JAX does not conclude that from `w >= 6`. A padding on two sides divides a second number by the
    same size. The error about it names no number: jnp.pad multiplies a list by what is no int. Its
    words differ where a library gives JAX's arrays operators for lists, as tf_substrates does.
    """
    size = ""
    for _ in range(_MOST_TRACES):
        found = _REMAINDER.search(str(error))
        is_second = size and error is not None and not _COMPARED.search(str(error))
        if found is None and not is_second:
            break
        size = found["size"] if found else size
        for number in [found["number"]] if found else range(1, _MOST_TRACES):
            more = f"mod({number}, {size}) == {number}", f"floordiv({number}, {size}) == 0"
            next_error = retrace((*constraints, *more))
            if str(next_error) != str(error):
                break
        else:
            break
        constraints, error = (*constraints, *more), next_error
    return constraints, error


def _suggested(text: str) -> list[str]:
    """The constraints that an error message suggests, each once."""
    undivided = (m for pattern in _NOT_DIVIDED for m in pattern.finditer(text))
    multiples = [f"mod({m['size']}, {m['divisor']}) == 0" for m in undivided]
    if multiples:  # any other shapes in such a message are of the mesh
        return list(dict.fromkeys(multiples))
    constraints: list[str | None] = [
        # The modes "symmetric" and "reflect" need `padding` and `padding + 1` elements.
        _comparison(m["size"], ">=", str(max(2, int(m["padding"]) + more)))
        for m in _TOO_SHORT.finditer(text)
        for more in (0, 1)
    ]
    for left, sign, right in _COMPARED.findall(text):
        # If a < b is not known, either a <= b - 1 or a >= b decides it.
        constraints += {
            "<": [_comparison(left, "<=", right, -1), _comparison(left, ">=", right)],
            ">": [_comparison(left, ">=", right, 1), _comparison(left, "<=", right)],
            "<=": [_comparison(left, "<=", right), _comparison(left, ">=", right, 1)],
            ">=": [_comparison(left, ">=", right), _comparison(left, "<=", right, -1)],
        }[sign]
    for call in _CALL.finditer(text):
        operands = _operands(text, call.end())
        if len(operands) != 2:
            continue
        if call[1] == "mod":
            # JAX may ask for mod by -8, and then a constraint on mod by 8 does not help.
            divisors = operands[1].replace("- ", ""), operands[1].replace("- ", "-")
            constraints += [f"mod({operands[0]}, {divisor}) == 0" for divisor in divisors]
        else:
            constraints += [_comparison(operands[1], sign, operands[0]) for sign in ("<=", ">=")]
    constraints += _equal_sizes(text)
    return list(dict.fromkeys(c for c in constraints if c is not None))


def _equal_sizes(text: str) -> Iterator[str]:
    """Constraints that symbolic sizes at the same index of two shapes in the text are equal.

    A number has to be changed in the shape spec, so it gives no constraint.
    """
    shapes = [[size.strip() for size in shape.split(",")] for shape in _SHAPE.findall(text)]
    for one, other in itertools.combinations(shapes, 2):
        if len(one) == len(other):
            for left, right in zip(one, other, strict=True):
                if left != right and _is_symbolic(left) and _is_symbolic(right):
                    yield f"{left} == {right}"


def _is_symbolic(size: str) -> bool:
    return bool(size) and not size.lstrip("-").isdigit()


def _operands(text: str, start: int) -> list[str]:
    """The operands of the call whose parenthesis opens just before `start`."""
    parts, depth = [""], 0
    for character in text[start:]:
        if depth == 0 and character == ")":
            return [part.strip() for part in parts]
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ",":
            parts.append("")
        else:
            parts[-1] += character
    return []


def _comparison(left: str, sign: str, right: str, add: int = 0) -> str | None:
    """`left sign right + add` with all variables on the left, as "t <= 512"; or None."""
    scope = export.SymbolicScope()
    try:
        (one,), (other,) = (export.symbolic_shape(side, scope=scope) for side in (left, right))
    # The sides are not dimensions. JAX parses them with Python's tokenizer, which adds its errors.
    except (ValueError, SyntaxError, tokenize.TokenError):
        return None
    difference = one - other
    if not export.is_symbolic_dim(difference):
        return None
    number = re.search(r" ([+-]) (\d+)$", str(difference))
    constant = int(number[1] + number[2]) if number else 0
    symbolic, size = difference - constant, add - constant
    if str(symbolic).startswith("-"):
        symbolic, size, sign = -symbolic, -size, _OPPOSITE[sign]
    return f"{symbolic} {sign} {size}"
