"""Sizes for open dimensions, with which an exported file is run."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jax2tf._src.api.errors import ExportError
from jax2tf._src.dims import expressions
from jax2tf._src.dims.expressions import Expression
from jax2tf._src.dims.specs import split_constraint, variables_of_constraint
from jax2tf._src.export.signatures import Signature, variables_of

Sizes = Mapping[str, int]

_USUAL = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
# For each number in a constraint, this many sizes from it on are searched, and the first few that
# the constraints allow are used.
_SEARCHED_FROM_A_NUMBER = 4096
_USED_FROM_A_NUMBER = 4
_MAX_COMBINATIONS = 200_000

_COMPARISONS = {"==": operator.eq, ">=": operator.ge, "<=": operator.le}


def two_sizes(signature: Signature) -> list[Sizes]:
    """Two sizes for the open dimensions of a signature; one empty dict if no dimension is open.

    The sizes are small, and differ from dimension to dimension where the constraints allow it.

    Raises:
      ExportError: no two were found that the constraints allow.
    """
    names = _variables(signature)
    if not names:
        return [{}]
    texts = signature.constraints
    allowed: list[Sizes] = []
    for combination in itertools.islice(_combinations(names, signature), _MAX_COMBINATIONS):
        sizes = {name: combination[name] for name in names}
        if _is_allowed(sizes, signature) and sizes not in allowed:
            allowed.append(sizes)
        if len(allowed) == 2:
            return allowed
    if allowed and all("==" in text for text in texts):
        return allowed
    raise ExportError(
        f"jax2tf.export: found no two sizes for the open dimensions {', '.join(names)} of "
        f"{signature.name!r} that {', '.join(texts) or 'their shapes'} allow, among the sizes that "
        "are usual or near to the numbers there. What to do: give inputs to try as "
        "verify=[inputs, ...], or leave it out with verify=False"
    )


def shapes_of(signature: Signature, sizes: Sizes) -> list[tuple[int, ...]]:
    """The shapes of the inputs for these sizes of the open dimensions."""
    return [tuple(_evaluated(size, sizes) for size in spec.shape) for spec in signature.inputs]


def _variables(signature: Signature) -> list[str]:
    """The variables of the shapes, then those that only constraints have."""
    others = itertools.chain.from_iterable(map(variables_of_constraint, signature.constraints))
    return list(dict.fromkeys([*variables_of(signature), *others]))


def _combinations(names: Sequence[str], signature: Signature) -> Iterator[Sizes]:
    """Combinations of sizes. Those that differ come first, to detect exchanged dimensions."""
    texts = signature.constraints
    defined = _definitions(texts)
    pools = {n: _pool(n, signature) for n in names if n not in defined}
    for start in range(max(map(len, pools.values()), default=0)):
        sizes: dict[str, int] = {}
        for i, (name, pool) in enumerate(pools.items()):
            rotated = [pool[(start + i + k) % len(pool)] for k in range(len(pool))]
            sizes[name] = next((s for s in rotated if s not in sizes.values()), rotated[0])
        yield _with_defined(sizes, defined)
    for values in itertools.product(*pools.values()):
        yield _with_defined(dict(zip(pools, values, strict=True)), defined)


def _definitions(constraints: Sequence[str]) -> dict[str, str]:
    """The dimensions that an equation defines by others, each with the text of its size."""
    defined: dict[str, str] = {}
    used: set[str] = set()
    for text in constraints:
        left, sign, right = split_constraint(text)
        for name, size in ((left, right), (right, left)):
            others = expressions.variables(expressions.parse(size))
            is_name = isinstance(expressions.parse(name), str)
            is_new = name not in used | others | defined.keys() and not others & defined.keys()
            if sign == "==" and is_name and is_new:
                defined[name] = size
                used |= others
                break
    return defined


def _with_defined(sizes: Sizes, defined: Mapping[str, str]) -> Sizes:
    return {**sizes, **{name: _evaluated(text, sizes) for name, text in defined.items()}}


def _pool(name: str, signature: Signature) -> list[int]:
    """The sizes that the constraints on only this dimension allow, usual ones first."""
    constraints = [
        text for text in signature.constraints if variables_of_constraint(text) == (name,)
    ]

    def allowed(sizes: Iterable[int]) -> Iterator[int]:
        return (s for s in sizes if s >= 1 and all(_holds(text, {name: s}) for text in constraints))

    pool = list(allowed(_USUAL))
    for number in sorted(_numbers(signature)):
        near = allowed(range(number - 1, number + _SEARCHED_FROM_A_NUMBER))
        pool += itertools.islice(near, _USED_FROM_A_NUMBER)
    # JAX assumes that a named dimension is not 1, so 1 comes last.
    return sorted(dict.fromkeys(pool), key=lambda size: size == 1) or [1]


def _numbers(signature: Signature) -> set[int]:
    """The numbers in the constraints and the shapes."""
    sides = [side for text in signature.constraints for side in split_constraint(text)[::2]]
    sizes = [size for spec in signature.inputs for size in spec.shape if isinstance(size, str)]
    return set().union(*(_numbers_of(expressions.parse(text)) for text in (*sides, *sizes)))


def _numbers_of(expression: Expression) -> set[int]:
    match expression:
        case int():
            return {expression}
        case str():
            return set()
        case expressions.Call(_, operands):
            return set().union(*map(_numbers_of, operands))


def _is_allowed(sizes: Sizes, signature: Signature) -> bool:
    every = [size for shape in shapes_of(signature, sizes) for size in shape]
    return (
        min(every, default=1) >= 0
        and min(sizes.values()) >= 1
        and all(_holds(text, sizes) for text in signature.constraints)
    )


def _holds(constraint: str, sizes: Sizes) -> bool:
    left, sign, right = split_constraint(constraint)
    return bool(_COMPARISONS[sign](_evaluated(left, sizes), _evaluated(right, sizes)))


def _evaluated(size: int | str, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    return int(expressions.evaluate_expression(expressions.parse(size), sizes))
