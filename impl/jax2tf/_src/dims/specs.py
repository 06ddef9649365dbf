"""The shape specs of the caller, as the symbolic shapes that JAX traces."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from jax import export

from jax2tf._src import compat
from jax2tf._src.dims import bounds, expressions
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.symbolic_sizes import is_static
from jax2tf._src.util.typing import Dim, PyTree

# The reason for which a spec with a "?", as a loaded function shows it, is refused.
WITHOUT_NAME = (
    "'?' shows an open size that has no name. What to do: give it a name, such as 'b', or a number"
)
_COMPARISON_HELP = "a comparison such as 'b >= 8', 'mod(b, 4) == 0' or 'a <= 2*b'"


class PolyShape(tuple[object, ...]):
    """A shape spec as older callers write it: `PolyShape("b", None, 3)` stands for "b, _, 3"."""

    def __new__(cls, *dim_specs: object) -> PolyShape:
        return super().__new__(cls, dim_specs)

    def __str__(self) -> str:
        return _text(self)


@dataclasses.dataclass(frozen=True)
class Spec:
    """A shape spec: its text, and the scopes of the symbolic dimensions in it."""

    text: str
    scopes: frozenset[export.SymbolicScope] = frozenset()


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """The assumptions of a trace on dimension variables, all of which are at least 1.

    Attributes:
      constraints: comparisons, as text.
      definitions: the variables in the constraints, each as JAX writes it: JAX replaces `a` by 2*b
        if there is a constraint "a == 2*b".
    """

    constraints: tuple[str, ...] = ()
    definitions: Mapping[str, Dim] = dataclasses.field(default_factory=dict)


def variables_of(shape: Iterable[Dim]) -> dict[str, Dim]:
    """The dimension variables in a shape, by name."""
    return {
        name: export.symbolic_shape(name, scope=dim.scope)[0]
        for dim in shape
        if export.is_symbolic_dim(dim)
        for name in sorted(expressions.variables(expressions.parse(str(dim))))
    }


def constraints_of(
    constraints: Sequence[str] | export.SymbolicScope, function: str = "jax2tf.convert"
) -> Sequence[str] | export.SymbolicScope:
    """The constraints of the caller, after a check; an iterator becomes a tuple.

    Raises:
      TypeError: the constraints are neither a sequence nor a scope.
      ValueError: they are one text, cannot be read, or contradict each other.
    """
    if isinstance(constraints, export.SymbolicScope):
        return constraints
    where = f"{function}: polymorphic_constraints"
    example = repr([constraints]) if isinstance(constraints, str) else "['b >= 8']"
    texts = option_checks.sequence(constraints, where, "texts", example)
    new_scope(texts)
    return texts


def new_scope(
    constraints: Sequence[str] | export.SymbolicScope, specs: Iterable[Spec | None] = ()
) -> export.SymbolicScope:
    """The scope for the dimension variables of `specs`: the caller's own if there is one.

    Raises:
      ValueError: the constraints cannot be read or contradict each other, or there are two scopes.
    """
    scopes = set().union(*(spec.scopes for spec in specs if spec is not None))
    if isinstance(constraints, export.SymbolicScope):
        scopes.add(constraints)
    elif constraints and scopes:
        raise ValueError(
            "jax2tf.convert: polymorphic_constraints beside the symbolic dimensions of a "
            "SymbolicScope; give the constraints to the scope"
        )
    if len(scopes) > 1:
        raise ValueError(
            "jax2tf.convert: polymorphic_shapes should have dimensions of one SymbolicScope, "
            f"got those of {len(scopes)}: " + "; ".join(sorted(map(str, scopes)))
        )
    if scopes or isinstance(constraints, export.SymbolicScope):
        return scopes.pop()
    try:
        for text in constraints:
            bounds.refuse_large_powers(text)
        return _scope(tuple(constraints), next(_turns) % _SCOPES)
    # JAX parses them with Python's tokenizer, which raises errors of its own types.
    except Exception as error:
        raise ValueError(
            f"jax2tf.convert: polymorphic_constraints {list(constraints)!r} should each be "
            f"{_COMPARISON_HELP}, and hold together: {error}"
        ) from error


# Scopes with the same constraints take turns. JAX's caches have entries for each scope: with a new
# scope for each trace they would fill up and never hit. With one scope for all traces, JAX would
# not notice a function that uses the dimension of an earlier one.
_SCOPES = 32
_turns = itertools.count()


@cached
def _scope(constraints: tuple[str, ...], turn: int) -> export.SymbolicScope:
    del turn
    return export.SymbolicScope(constraints)


def assumptions(
    constraints: Sequence[str] | export.SymbolicScope, scope: export.SymbolicScope
) -> Assumptions:
    """The assumptions of a trace on the dimension variables of `scope`."""
    if isinstance(constraints, export.SymbolicScope) or not constraints:
        constraints = compat.jaxprs.explicit_constraints(scope)
    names = {name for text in constraints for name in variables_of_constraint(text)}
    definitions = {name: export.symbolic_shape(name, scope=scope)[0] for name in sorted(names)}
    return Assumptions(tuple(constraints), definitions)


def split_constraint(constraint: str) -> tuple[str, str, str]:
    """The left side of a comparison, its sign, and the right side."""
    sign = next(sign for sign in ("==", ">=", "<=") if sign in constraint)
    left, _, right = constraint.partition(sign)
    return left.strip(), sign, right.strip()


def variables_of_constraint(constraint: str) -> tuple[str, ...]:
    """The dimension variables in a comparison, those of its left side first."""
    sides = split_constraint(constraint)[::2]
    names = [sorted(expressions.variables(expressions.parse(side))) for side in sides]
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))


def symbolic_shape(
    spec: Spec | None, shape: tf.TensorShape, scope: export.SymbolicScope, where: str
) -> tuple[Dim, ...]:
    """The shape that JAX should trace for an argument.

    Args:
      spec: the shape spec, or None for a known shape.
      shape: the argument's shape, as far as TensorFlow knows it.
      scope: the scope of the dimension variables and their constraints.
      where: the public function and the argument, for messages.

    Raises:
      ValueError: the spec does not fit the shape, or leaves a dimension unknown.
    """
    if spec is None:
        if not shape.is_fully_defined():
            raise ValueError(
                f"{where}: its shape {shape} is not fully known; give the tf.function an "
                "input_signature of known shapes, or name the dimension in polymorphic_shapes, "
                f"for example {_example(shape)}"
            )
        return tuple(shape.as_list())
    if shape.rank is None:
        raise ValueError(
            f"{where}: its rank is unknown, and polymorphic_shapes {spec.text!r} needs one; give "
            "the tf.function an input_signature"
        )
    known = shape.as_list()
    if "_" in _split(spec.text)[len(known) :]:
        raise ValueError(
            f"{where}: polymorphic_shapes {spec.text!r} has {len(_split(spec.text))} dimensions, "
            f"but the argument has shape {shape}"
        )
    try:
        for text in _split(spec.text):
            bounds.refuse_large_powers(text)
        symbolic = tuple(export.symbolic_shape(_filled(spec.text, known), scope=scope))
    # JAX parses it with Python's tokenizer, which raises errors of its own types.
    except Exception as error:
        reason = WITHOUT_NAME if "?" in spec.text else error
        raise ValueError(
            f"{where}: polymorphic_shapes {spec.text!r} does not fit its shape {shape}: {reason}"
        ) from error
    if len(symbolic) != shape.rank:
        raise ValueError(
            f"{where}: polymorphic_shapes {spec.text!r} has {len(symbolic)} dimensions, but the "
            f"argument has shape {shape}; end the spec with ... for the dimensions left out"
        )
    for axis, (dim, size) in enumerate(zip(symbolic, known, strict=True)):
        # An unknown size is checked when it is known.
        if isinstance(dim, int) and size not in (dim, None):
            raise ValueError(
                f"{where}: polymorphic_shapes {spec.text!r} does not fit its shape {shape}: "
                f"dimension {axis} should be {dim}"
            )
    return symbolic


def _filled(text: str, known: Sequence[int | None]) -> str:
    """The text of a spec with sizes in place of `_` and `...`."""
    dims = _split(text)
    if dims[-1] == "...":
        dims[-1:] = ["_"] * (len(known) - len(dims) + 1)
    for axis, size in enumerate(known[: len(dims)]):
        if dims[axis] == "_":
            if size is None:
                raise ValueError(
                    f"its dimension {axis} is unknown, and has no name there but a placeholder"
                )
            dims[axis] = str(size)
    for axis, dim in enumerate(dims):
        # JAX would take these for placeholders, and has no shape to fill them in from.
        if re.search(r"\.\.\.|\b_\b", dim):
            raise ValueError(f"dimension {axis} is {dim!r}; {_entry_help(dim)}")
    return ", ".join(dims)


def _entry_help(dim: str) -> str:
    if dim == "...":
        return "'...' stands for all dimensions that are left, and may come last only"
    if dim.count("(") != dim.count(")"):
        return "close each parenthesis that opens"
    return (
        "a dimension is a name, a number, an expression of these, or '_' alone; commas divide them"
    )


def _split(text: str) -> list[str]:
    """The dimensions of a spec, as text."""
    text = text.strip()
    ends, depth = [], 0
    closings = []
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ",":
            ends.append(i)
        if depth == 0 and character == ")":
            closings.append(i)
    if text.startswith("(") and closings == [len(text) - 1]:
        return _split(text[1:-1])
    starts = [0, *(end + 1 for end in ends)]
    return [text[i:j].strip() for i, j in zip(starts, [*ends, len(text)], strict=True)]


def _example(shape: tf.TensorShape) -> str:
    if shape.rank is None:
        return 'polymorphic_shapes="b, ..." for an argument of known rank'
    names = iter("bcdefghijklmnopqrstuvwxyz")
    dims = [str(d) if d is not None else next(names, "_") for d in shape.as_list()]
    return f'polymorphic_shapes="{", ".join(dims)}"'


def spec_of(spec: PyTree) -> Spec | None:
    """A spec of the caller as a Spec; None means that the shape is known."""
    if spec is None:
        return None
    if isinstance(spec, str):
        return Spec(spec)
    return Spec(_text(spec), frozenset(d.scope for d in spec if export.is_symbolic_dim(d)))


def _text(dims: Iterable[Dim]) -> str:
    return "(" + ", ".join(_PLACEHOLDERS.get(str(d), str(d)) for d in dims) + ")"


_PLACEHOLDERS = {"None": "_", "Ellipsis": "..."}


def is_spec(node: object) -> bool:
    """Whether a node of the caller's specs is a spec, not a tree of specs."""
    if node is None or isinstance(node, str | PolyShape):
        return True
    # jax.export.symbolic_shape returns a tuple, and a tree of specs may be one too.
    return isinstance(node, tuple) and not is_static(node)
