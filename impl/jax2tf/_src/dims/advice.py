"""What may be assumed of dimension variables where JAX could not decide without it.

JAX raises where a program needs to know that `t <= 512`, and speaks of `min(512, t)`. What its
words suggest is tried: the constraints with which the function traces are named in a note. Where
there are none, the sizes are tried that came: what traces for these takes a dimension for an int.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from jax import export

# So many constraints together, and so many traces in search of them.
_MOST_TOGETHER = 2
_MOST_TRACES = 12

_COMPARED = re.compile(r"comparison '([^']+)' (<=|>=|<|>) '([^']+)' is inconclusive")
# A shape in an error's words, as "(a, b)" or "float32[a, b]".
_SHAPE = re.compile(r"[(\[]([^()\[\]]+)[)\]]")
# Sizes that a mesh has to divide, as the words of shard_map and of the collectives have them.
_NOT_DIVIDED = (
    re.compile(r"but (?P<divisor>\d+) does not evenly divide (?P<size>[^\n]+)"),
    re.compile(r"\((?P<size>[^()]+)\) has to be divisible by [^()]*\((?P<divisor>\d+)\)"),
    re.compile(r" size (?P<size>.+) must be divisible by shard_count (?P<divisor>\d+)"),
)
# A size of which jnp.pad has to know that it is enough to reflect.
_TOO_SHORT = re.compile(
    r"axis size \(= (?P<size>.+?)\) is larger than 1 and larger or equal than the padding length "
    r"\(= (?P<padding>\d+)\)"
)
# Python's words and NumPy's where a size that has a name is an index, or a bound of a slice.
_INDEXED = re.compile(r"(slice|list|tuple) indices must be integers|only integers, slices \(`:`\)")
# One variable of which a multiple decides, and the number.
_MULTIPLE = re.compile(r"mod\(((?:\d+\*)?([a-zA-Z_]\w*)), (\d+)\) == 0")
_CALL = re.compile(r"\b(min|max|mod)\(")
_OPPOSITE = {"<=": ">=", ">=": "<="}


# A trace with these constraints beside those that were given: what it raises, or None.
Retrace: TypeAlias = Callable[[Sequence[str]], Exception | None]


@contextlib.contextmanager
def advising(
    retrace: Retrace, trace_known: Callable[[], Mapping[str, str] | None]
) -> Iterator[None]:
    """Adds to an error of a trace what to do about dimensions that have names.

    Args:
      retrace: traces again, with more constraints.
      trace_known: traces again, with a known size for every dimension; returns the shapes that
        have names, by argument, or None where that raises as well.
    """
    try:
        yield
    except Exception as error:
        found = _search(error, retrace)
        if found:
            ways = " or ".join(f"polymorphic_constraints={list(way)}" for way in found)
            error.add_note(
                "jax2tf.convert: JAX cannot decide that for every size of the dimensions. It can "
                f"with {ways}, which is then checked when the function runs{_by_multiples(found)}"
            )
        else:
            _add_note_on_known_sizes(error, trace_known)
        raise


def _by_multiples(ways: Sequence[Sequence[str]]) -> str:
    """How to say the first of these ways by polymorphic_shapes, if it is about multiples alone."""
    multiples = [_MULTIPLE.fullmatch(constraint) for constraint in ways[0]]
    said = [f"`{m[3]}*{m[2]}` in the place of `{m[1]}`" for m in multiples if m is not None]
    if len(said) < len(multiples):
        return ""
    return f"; or with {' and '.join(said)} in polymorphic_shapes"


def _add_note_on_known_sizes(
    error: Exception, trace_known: Callable[[], Mapping[str, str] | None]
) -> None:
    named = trace_known()
    if named is None:  # it is not for the names that the function does not trace
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
        "polymorphic_shapes, as the one that jax.pmap maps has to be"
    )


def _names(shapes: Mapping[str, str]) -> Iterator[str]:
    """The names of dimensions in the texts of shapes."""
    for shape in shapes.values():
        yield from re.findall(r"[a-zA-Z_]\w*", _CALL.sub("(", shape))


def _search(error: Exception, retrace: Retrace) -> list[tuple[str, ...]]:
    """The smallest sets of constraints that `retrace` takes."""
    pending: list[tuple[str, ...]] = [(constraint,) for constraint in _suggested(str(error))]
    tried: set[frozenset[str]] = set()
    for size in range(1, _MOST_TOGETHER + 1):
        found: list[tuple[str, ...]] = []
        next_pending: list[tuple[str, ...]] = []
        for way in pending:
            if frozenset(way) in tried or len(tried) == _MOST_TRACES:
                continue
            tried.add(frozenset(way))
            other = retrace(way)
            if other is None:
                found.append(way)
            else:
                more = [c for c in _suggested(str(other)) if c not in way]
                next_pending += [(c,) for c in more] + [(*way, c) for c in more]
        if found or size == _MOST_TOGETHER:
            return [way for way in found if not any(set(o) < set(way) for o in found)]
        pending = next_pending
    return []


def _suggested(text: str) -> list[str]:
    """The constraints that an error's words suggest, each once."""
    undivided = (m for pattern in _NOT_DIVIDED for m in pattern.finditer(text))
    multiples = [f"mod({m['size']}, {m['divisor']}) == 0" for m in undivided]
    if multiples:  # other shapes that these words have are of the mesh
        return list(dict.fromkeys(multiples))
    found: list[str | None] = [
        # The modes "symmetric" and "reflect" need so many.
        _comparison(m["size"], ">=", str(max(2, int(m["padding"]) + more)))
        for m in _TOO_SHORT.finditer(text)
        for more in (0, 1)
    ]
    for left, sign, right in _COMPARED.findall(text):
        # Where a < b is not known, a <= b - 1 decides it, and so does a >= b.
        found += {
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
            # JAX may ask for the rest of a division by -8, and then takes no other.
            divisors = operands[1].replace("- ", ""), operands[1].replace("- ", "-")
            found += [f"mod({operands[0]}, {divisor}) == 0" for divisor in divisors]
        else:
            found += [_comparison(operands[1], sign, operands[0]) for sign in ("<=", ">=")]
    return list(dict.fromkeys(c for c in [*found, *_equal_sizes(text)] if c is not None))


def _equal_sizes(text: str) -> Iterator[str]:
    """That two sizes are equal which stand in the same place of two shapes of the text.

    A size that is a number is no variable's: its place in the shape spec is the caller's to change.
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
    """What stands between the parentheses that open before `start`, apart at its commas."""
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
    """`left sign right + add` with what is symbolic on the left, as "t <= 512"."""
    scope = export.SymbolicScope()
    try:
        (one,), (other,) = (export.symbolic_shape(side, scope=scope) for side in (left, right))
    # They are no dimensions. JAX reads them with Python's tokenizer, which has errors of its own.
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
