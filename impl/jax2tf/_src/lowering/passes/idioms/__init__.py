"""Recognises JAX functions in a jaxpr for which an engine has one op.

JAX writes a softmax as seven primitives. Engines have one op for it, which is faster and which a
converter can fuse or quantise. `found` returns the places in a jaxpr for such ops; a target lists
the idioms that it takes.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import dims
from jax2tf._src.lowering.passes import Instead
from jax2tf._src.lowering.passes.idioms import matching, recurrent
from jax2tf._src.lowering.passes.idioms.matching import Match, Pattern
from jax2tf._src.lowering.passes.idioms.table import IDIOMS, Idiom
from jax2tf._src.lowering.passes.idioms.view import Frame, Path, find
from jax2tf._src.targets.target import Target
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Atom, Aval, Param, Shape, aval_of

LSTM = "lstm"
NAMES = frozenset({LSTM, *(idiom.name for idiom in IDIOMS)})


def has_some(target: Target) -> bool:
    """Whether a target takes any idiom."""
    return bool(target.idioms or target.finite_idioms or target.assume_finite)


def found(jaxpr: jex_core.Jaxpr, target: Target) -> dict[jex_core.JaxprEqn, Instead]:
    """Returns the replacements by idioms of the target, by the equation that each one replaces."""
    places: dict[jex_core.JaxprEqn, Instead] = {}
    frame = Frame(jaxpr, None, None)
    readers = _readers(jaxpr)
    covered: set[jex_core.JaxprEqn] = set()
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive is lax.scan_p and target.wants(LSTM):
            cell = recurrent.cell_of(eqn)
            if cell is not None:
                places[eqn] = Instead(eqn.invars, recurrent.lstm, {"cell": cell}, gives_many=True)
            continue
        if eqn in covered or len(eqn.outvars) != 1 or eqn.effects:
            continue
        path = find(eqn.outvars[0], frame)
        for idiom in _candidates(path, target):
            matched = _match(idiom, path)
            if matched is None:
                continue
            made, operands, params = matched
            if _is_read_inside(made.covered - {eqn}, made.covered, readers):
                covered |= made.covered
                places[eqn] = Instead(operands, idiom.rule, params, gives_many=False)
                break
    return places


def _readers(jaxpr: jex_core.Jaxpr) -> dict[Atom, set[jex_core.JaxprEqn | None]]:
    """Returns the equations that read each variable; None stands for the jaxpr's results."""
    readers: dict[Atom, set[jex_core.JaxprEqn | None]] = collections.defaultdict(set)
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if isinstance(atom, jex_core.Var):
                readers[atom].add(eqn)
    for atom in jaxpr.outvars:
        if isinstance(atom, jex_core.Var):
            readers[atom].add(None)
    return readers


def _is_read_inside(
    inner: Iterable[jex_core.JaxprEqn],
    covered: frozenset[jex_core.JaxprEqn],
    readers: dict[Atom, set[jex_core.JaxprEqn | None]],
) -> bool:
    """Whether only `covered` equations read the results of the inner equations.

    If others read them, a graph would have to compute them in addition to the op.
    """
    return all(readers[var] <= covered for eqn in inner for var in eqn.outvars)


def _candidates(path: Path, target: Target) -> Iterable[Idiom]:
    if path.value.eqn is None:
        return ()
    of_root = _by_root().get(path.value.eqn.primitive, ())
    return (i for i in of_root if (target.assume_finite if i.if_finite else target.wants(i.name)))


@cached
def _by_root() -> dict[jex_core.Primitive, list[Idiom]]:
    by_root = collections.defaultdict(list)
    for idiom in IDIOMS:
        root = _skeleton(idiom).root.eqn
        assert root is not None
        by_root[root.primitive].append(idiom)
    return dict(by_root)


@cached
def _skeleton(idiom: Idiom) -> Pattern:
    """Traces the idiom for its examples. Its primitives are matched first, for any shapes."""
    function = functools.partial(idiom.function, **idiom.example_options)
    return matching.trace(function, idiom.examples, idiom.numbers, is_exact=False)


def _match(idiom: Idiom, path: Path) -> tuple[Match, list[Atom], dict[str, Param]] | None:
    """Matches an idiom; returns the match, the operands and the keyword arguments, or None."""
    skeleton = _skeleton(idiom)
    roughly = matching.match(skeleton, path)
    if roughly is None:
        return None
    avals = [aval_of(roughly.operands[var]) for var in skeleton.operands]
    if avals[0].dtype.name not in idiom.dtypes:
        return None
    options = idiom.options(roughly)
    if not idiom.accepts(*avals, **options):
        return None
    pattern = _pattern(idiom, avals, options)
    made = matching.match(pattern, path)
    if made is None:
        return None
    return made, [made.operands[var] for var in pattern.operands], {**options, **made.numbers}


def _pattern(idiom: Idiom, avals: Sequence[Aval], options: Mapping[str, Param]) -> Pattern:
    """Traces the idiom for the shapes and dtypes of `avals`."""
    shapes = tuple((tuple(aval.shape), aval.dtype) for aval in avals)
    given = (idiom, shapes, tuple(sorted(options.items())))
    # The cache compares shapes, but symbolic dimensions of two scopes cannot be compared.
    if all(map(dims.is_static, (*(shape for shape, _ in shapes), tuple(options.values())))):
        return _static_pattern(*given, bool(jax.config.read("jax_enable_x64")))
    return _traced(*given)


@cached
def _static_pattern(
    idiom: Idiom, shapes: tuple[tuple[Shape, np.dtype], ...], options: tuple[Param, ...], x64: bool
) -> Pattern:
    """Caches `_traced`. The trace also depends on whether JAX has 64-bit types."""
    del x64
    return _traced(idiom, shapes, options)


def _traced(
    idiom: Idiom, shapes: tuple[tuple[Shape, np.dtype], ...], options: tuple[Param, ...]
) -> Pattern:
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    function = functools.partial(idiom.function, **dict(options))
    return matching.trace(function, specs, idiom.numbers, is_exact=True)
