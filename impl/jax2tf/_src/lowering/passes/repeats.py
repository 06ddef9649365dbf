"""Replaces runs of repeated equations in a jaxpr by calls of one inner jaxpr.

A model whose layers are written in a Python loop repeats the same equations for each layer. This
pass turns each such run into calls of one inner jitted function, which a graph holds once:

    a = sin x            a = layer x w
    b = mul a w          b = layer a v        layer: x w -> mul (sin x) w
    c = sin b      ->
    d = mul c v

A *period* is the number of equations from one repetition to the next. A *window* is one
repetition. All steps take time linear in the number of equations.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from typing import cast

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.outlined import Body, Wiring
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import (
    AnyJaxpr,
    map_inner,
    opened,
    rewriting,
    variables,
)
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Atom

# A call costs about as many nodes as a window with fewer equations.
MIN_PERIOD = 8

# A run must save this many equations to be worth the time of making a function.
MIN_SAVED = 32

# A period is the distance between two equal sequences of this many equations.
_SAMPLE = 4

# A unique equation is moved with its neighbours if all together are at most this many equations.
_MOVED_TOGETHER = 4

# Only this many periods, the most frequent ones, are tried.
_TRIED_PERIODS = 16

# The pass also searches the jaxprs that these primitives call. It skips the program of a mesh
# device, which is traced again when it is lowered, and must find its collectives.
_CALLS = traits.CALLS | traits.CONTROL_FLOW


def with_shared_repeats(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Replaces repeated equations by calls of one inner jaxpr; the same jaxpr if none repeat.

    The pass also searches the inner jaxprs of calls, loops and branches. It does not compare the
    derivative rules of custom_jvp and custom_vjp: its result is lowered, not differentiated.
    """
    return cast(jex_core.ClosedJaxpr, _Sharing().rewritten(jaxpr))


class _Sharing:
    """One pass over a jaxpr and its inner jaxprs."""

    def __init__(self) -> None:
        self._codes = _Codes()
        self.rewritten = rewriting(self._rewrite)

    def _rewrite(self, jaxpr: jex_core.Jaxpr) -> jex_core.Jaxpr:
        equations = [self._inside(eqn) for eqn in jaxpr.eqns]
        shared = self._shared(equations, jaxpr.outvars)
        return jaxpr if shared == list(jaxpr.eqns) else jaxpr.replace(eqns=shared)

    def _inside(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        if eqn.primitive not in _CALLS:
            return eqn
        params = map_inner(eqn.params, self.rewritten)
        return eqn if params is eqn.params else eqn.replace(params=params)

    def _shared(
        self, given: Sequence[jex_core.JaxprEqn], results: Sequence[Atom]
    ) -> list[jex_core.JaxprEqn]:
        """Replaces runs of repeated equations by calls."""
        if len(given) < 2 * MIN_PERIOD:
            return list(given)
        equations, codes = self._unique_apart(given)
        runs = _runs(codes)
        if not runs:
            return list(given)
        uses = _Uses(equations, results)
        shared: list[jex_core.JaxprEqn] = []
        at = 0
        for run in runs:
            start = uses.best_start(run)
            shared += equations[at:start]
            n_windows = (run.end - start) // run.period
            at = start + n_windows * run.period
            starts = range(start, at, run.period)
            shared += _called([equations[i : i + run.period] for i in starts], starts, uses)
        return shared + list(equations[at:])

    def _unique_apart(
        self, equations: Sequence[jex_core.JaxprEqn]
    ) -> tuple[list[jex_core.JaxprEqn], list[int]]:
        """Orders the equations so that more of them repeat; returns them with their codes.

        A unique equation comes first if it reads arguments, and last if only results read it. Then
        a layer's slice of stacked weights, or its key, is computed before the layer begins, and the
        parts of a gradient are combined after all layers.
        """
        codes = [self._codes.of_equation(eqn) for eqn in equations]
        counts = collections.Counter(codes)
        unique = [i for i, eqn in enumerate(equations) if counts[codes[i]] == 1 and not eqn.effects]
        read_from, read_by = _neighbours(equations)
        fixed = {i for i, eqn in enumerate(equations) if eqn.effects}
        first = _moved(unique, read_from, fixed)
        last = _moved(reversed(unique), read_by, fixed | first) - first
        rest = set(range(len(equations))) - first - last
        order = [*sorted(first), *sorted(rest), *sorted(last)]
        return [equations[i] for i in order], [codes[i] for i in order]


Neighbours = Sequence[Sequence[int]]


def _neighbours(equations: Sequence[jex_core.JaxprEqn]) -> tuple[Neighbours, Neighbours]:
    """Returns, for each equation, the equations that it reads from and those that read it."""
    made_by = {var: i for i, eqn in enumerate(equations) for var in eqn.outvars}
    read_from = [
        [made_by[var] for var in variables(eqn.invars) if var in made_by] for eqn in equations
    ]
    read_by: list[list[int]] = [[] for _ in equations]
    for i, makers in enumerate(read_from):
        for maker in makers:
            read_by[maker].append(i)
    return read_from, read_by


def _moved(unique: Iterable[int], neighbours: Neighbours, fixed: Container[int]) -> set[int]:
    """Returns the equations to move to one end: few at a time, with all neighbours on that side."""
    moved: set[int] = set()
    for start in unique:
        together = {start}
        pending = [start]
        while pending and len(together) <= _MOVED_TOGETHER and start not in moved:
            new = set(neighbours[pending.pop()]) - moved - together
            together |= new
            pending += new
        if len(together) <= _MOVED_TOGETHER and not any(i in fixed for i in together):
            moved |= together
    return moved


@dataclasses.dataclass(frozen=True)
class _Run:
    """Equations from `start` up to, not including, `end`. Each equals the one a `period` later."""

    start: int
    end: int
    period: int

    @property
    def saved(self) -> int:
        """The number of equations that the calls save."""
        return self.end - self.start - self.period


def _runs(codes: Sequence[int]) -> list[_Run]:
    """Chooses the runs that save most and do not overlap; returns them in order."""
    numbers = np.array(codes)
    found = [run for period in _periods(codes) for run in _runs_of(numbers, period)]
    taken: list[_Run] = []
    for run in sorted(found, key=lambda run: (-run.saved, run.period)):
        if all(run.end <= other.start or other.end <= run.start for other in taken):
            taken.append(run)
    return sorted(taken, key=lambda run: run.start)


def _periods(codes: Sequence[int]) -> list[int]:
    """Returns the most frequent distances between equal sequences of equations."""
    last_seen: dict[tuple[int, ...], int] = {}
    distances: collections.Counter[int] = collections.Counter()
    for i in range(len(codes) - _SAMPLE + 1):
        sample = tuple(codes[i : i + _SAMPLE])
        if sample in last_seen:
            distances[i - last_seen[sample]] += 1
        last_seen[sample] = i
    # A short period is multiplied, so that a window has at least MIN_PERIOD equations.
    frequent = (seen * -(-MIN_PERIOD // seen) for seen, _ in distances.most_common(_TRIED_PERIODS))
    return list(dict.fromkeys(frequent))


def _runs_of(codes: np.ndarray, period: int) -> Iterator[_Run]:
    repeats = codes[:-period] == codes[period:]
    # The borders are the places where equations begin to repeat and where they stop, in turn.
    (borders,) = np.diff(repeats, prepend=False, append=False).nonzero()
    for start, end in borders.reshape(-1, 2).tolist():
        run = _Run(start, end + period, period)
        if end - start >= period and run.saved >= MIN_SAVED:
            yield run


class _Uses:
    """Records the last equation that reads each value."""

    def __init__(self, equations: Sequence[jex_core.JaxprEqn], results: Sequence[Atom]):
        self._equations = equations
        self._last: dict[jex_core.Var, int] = {}
        for i, eqn in enumerate(equations):
            self._last |= dict.fromkeys(variables(eqn.invars), i)
        self._last |= dict.fromkeys(variables(results), len(equations))

    def is_read_from(self, var: jex_core.Var, place: int) -> bool:
        """Whether an equation at `place` or later, or a result, reads the value."""
        return self._last.get(var, -1) >= place

    def best_start(self, run: _Run) -> int:
        """Returns the start that gives many windows with few inputs and outputs."""
        latest = min(run.start + run.period, run.end - 2 * run.period + 1)
        # The values that cross into the second window are counted, since the run makes all of them.
        crossing = self._crossing(run.start, latest + run.period, run.period)

        def saved_nodes(start: int) -> int:
            n_windows = (run.end - start) // run.period
            crosses = crossing[start + run.period - run.start]
            return (n_windows - 1) * run.period - n_windows * crosses

        return max(range(run.start, latest), key=saved_nodes)

    def _crossing(self, start: int, end: int, period: int) -> list[int]:
        """Counts, for each place, the values that are made before it (from `start`) and read later.

        Values that live longer than a window cross a border for every start, and do not count.
        """
        changes = [0] * (end - start + period + 2)
        for i in range(start, end):
            for var in self._equations[i].outvars:
                last = self._last.get(var, -1)
                if i < last <= i + period:
                    changes[i + 1 - start] += 1
                    changes[last + 1 - start] -= 1
        return list(itertools.accumulate(changes))


def _called(
    windows: Sequence[Sequence[jex_core.JaxprEqn]], starts: Sequence[int], uses: _Uses
) -> Iterator[jex_core.JaxprEqn]:
    """Replaces windows by calls if several windows read their values in the same order."""
    wirings = [Wiring.of(window) for window in windows]
    groups: dict[Hashable, list[int]] = collections.defaultdict(list)
    for i, wiring in enumerate(wirings):
        groups[wiring.references].append(i)
    bodies = {}
    for references, members in groups.items():
        if len(members) > 1:
            outputs = _outputs([(windows[i], starts[i]) for i in members], uses)
            inputs = wirings[members[0]].inputs
            bodies[references] = Body("repeated", windows[members[0]], inputs, outputs)
    for window, wiring in zip(windows, wirings, strict=True):
        body = bodies.get(wiring.references)
        if body is None:
            yield from window
        else:
            yield body.call(window, wiring.inputs)


def _outputs(
    windows: Sequence[tuple[Sequence[jex_core.JaxprEqn], int]], uses: _Uses
) -> list[tuple[int, int]]:
    """Returns the results of a window's equations that are read outside at least one window."""
    read = {
        (i, j)
        for window, start in windows
        for i, eqn in enumerate(window)
        for j, var in enumerate(eqn.outvars)
        if uses.is_read_from(var, start + len(window))
    }
    return sorted(read)


# Most params have these types. Equal objects of one of these types are interchangeable.
_SIMPLE = frozenset({type(None), bool, int, str})


class _Codes:
    """Numbers equations: two get the same number if they compute the same on the same avals.

    The number does not depend on which values the operands are; see `Wiring`.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._of_jaxprs: dict[Identity, int] = {}

    def of_equation(self, eqn: jex_core.JaxprEqn) -> int:
        if eqn.effects:
            return self._number(("effects", Identity(eqn)))
        derivative = eqn.primitive in traits.DERIVES
        params = tuple(
            (name, self._frozen(value))
            for name, value in sorted(eqn.params.items())
            if name == "call_jaxpr" or not derivative
        )
        operands = tuple(
            (_literal(v) if isinstance(v, jex_core.Literal) else None, v.aval) for v in eqn.invars
        )
        results = tuple(v.aval for v in eqn.outvars)
        return self._number((Identity(eqn.primitive), params, operands, results))

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _frozen(self, value: object) -> Hashable:
        """Returns a hashable key for a param; an object that is not hashable equals only itself."""
        if type(value) in _SIMPLE:
            return (type(value), value)  # the type is needed: 1, 1.0 and True are equal
        if isinstance(value, jex_core.ClosedJaxpr | jex_core.Jaxpr):
            return ("jaxpr", self._of_jaxpr(value))
        if isinstance(value, tuple | list):
            return (type(value).__name__, *map(self._frozen, value))
        if isinstance(value, dict):
            items = ((self._frozen(k), self._frozen(v)) for k, v in value.items())
            return ("dict", *items)
        if isinstance(value, float | complex | np.inexact):
            number = np.asarray(value)
            return (type(value), number.tobytes())  # 0.0 and -0.0 are equal as numbers
        if isinstance(value, Hashable):
            return (type(value), value)
        return Identity(value)

    def _of_jaxpr(self, jaxpr: AnyJaxpr) -> int:
        key = Identity(jaxpr)
        if key not in self._of_jaxprs:
            self._of_jaxprs[key] = self._number(self._structure(jaxpr))
        return self._of_jaxprs[key]

    def _structure(self, jaxpr: AnyJaxpr) -> Hashable:
        inner = opened(jaxpr)
        arguments = [*inner.constvars, *inner.invars]
        results = [var for eqn in inner.eqns for var in eqn.outvars]
        numbers = {var: i for i, var in enumerate([*arguments, *results])}

        def reference(atom: Atom) -> Hashable:
            if isinstance(atom, jex_core.Literal):
                return (_literal(atom), atom.aval)
            return numbers[atom]

        return (
            "jaxpr",
            tuple(map(Identity, getattr(jaxpr, "consts", ()))),
            tuple(v.aval for v in arguments),
            tuple(
                (self.of_equation(eqn), *map(reference, variables(eqn.invars)))
                for eqn in inner.eqns
            ),
            tuple(map(reference, inner.outvars)),
        )


def _literal(literal: jex_core.Literal) -> Hashable:
    value = np.asarray(literal.val)
    return (value.dtype, value.shape, value.tobytes())
