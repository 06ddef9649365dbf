"""`profile`: the time of a conversion, by its steps and by the lines of the user."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from jax import export
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api import shape_evaluation
from jax2tf._src.api.convert import Conversion
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import pipeline
from jax2tf._src.targets import by_name
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.tracer import Tracer
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

_NO_LINE = "(no line of yours)"

# The number of lines that are printed.
_PRINTED = 20


@dataclasses.dataclass(frozen=True)
class Line:
    """The time that the lowering of a user's line takes.

    Attributes:
      source: the line, as `file:line (function)`.
      seconds: the time for its equations, without the lines that these call.
      equations: the number of equations lowered; a function that is called twice counts once.
      ops: the number of ops that they became.
    """

    source: str
    seconds: float
    equations: int
    ops: int


@dataclasses.dataclass(frozen=True)
class Profile:
    """The time of a conversion, by steps and lines.

    Attributes:
      function: the name of the function.
      target: the name of the target.
      steps: the seconds of each step, in order: "trace" by JAX, "prepare" by the passes that look
        for repetitions and for forms that the target prefers, "lower" for the lines, and "graph" by
        TensorFlow for the graph around them.
      lines: the lines, slowest first.
    """

    function: str
    target: str
    steps: Mapping[str, float]
    lines: tuple[Line, ...]

    @property
    def seconds(self) -> float:
        """The time of the whole conversion."""
        return sum(self.steps.values())

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in self.steps.items())
        head = f"{self.function}, target {self.target}: {1e3 * self.seconds:.1f} ms ({steps})"
        rows = [("ms", "equations", "ops", "line")]
        rows += [
            (f"{1e3 * line.seconds:.1f}", str(line.equations), str(line.ops), line.source)
            for line in self.lines[:_PRINTED]
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        table = [
            "  ".join((*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), row[3]))
            for row in rows
        ]
        left = len(self.lines) - _PRINTED
        return "\n".join([head, *table, *([f"and {left} lines more"] if left > 0 else [])])


def profile(
    fun_jax: Callable[..., PyTree],
    *args: PyTree,
    target: str | Target | None = None,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] | export.SymbolicScope = (),
    assume_finite: bool = False,
    **kwargs: PyTree,
) -> Profile:
    """Converts `fun_jax` to a graph, and times the steps of the conversion and the user's lines.

    >>> import jax, jax.numpy as jnp
    >>> def model(x):
    ...     return jax.nn.softmax(jnp.tanh(x))
    >>> found = profile(model, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    >>> list(found.steps), found.lines[0].equations > 0
    (['trace', 'prepare', 'lower', 'graph'], True)

    Args:
      fun_jax: as `jax2tf.convert` takes it.
      *args: descriptions of its arguments: a jax.ShapeDtypeStruct, a tf.TensorSpec or an array at
        each leaf.
      target: as `jax2tf.convert` takes it.
      polymorphic_shapes: as `jax2tf.convert` takes it.
      polymorphic_constraints: as `jax2tf.convert` takes it.
      assume_finite: as `jax2tf.convert` takes it.
      **kwargs: descriptions of its keyword arguments.

    Returns:
      A Profile, which prints as a table. Steps that JAX or this module has cached take no time:
      profile in a fresh process.

    Raises:
      TypeError: `fun_jax` is not callable, or an argument is not an array.
      ValueError: an unknown target; a shape that is unknown or contradicts polymorphic_shapes.
      jax2tf.ConversionError: the function does not convert.
    """
    option_checks.callable_(fun_jax, "jax2tf.profile: fun_jax")
    option_checks.switches("jax2tf.profile", assume_finite=assume_finite)
    chosen = by_name.chosen(target, enable_xla=True, assume_finite=assume_finite)
    function = Function(fun_jax)
    tracer = Tracer(
        function, polymorphic_shapes, polymorphic_constraints, simplify=pipeline.simplified
    )
    conversion = Conversion(function, tracer, chosen)
    clock = _Clock()
    with clock.step("trace"):
        trace, _ = conversion.trace(args, kwargs, shape_evaluation.described)
    with clock.step("prepare"):
        pipeline.for_graph(conversion.prepare(trace), chosen)
    lines = _Lines()
    with clock.step("graph"):
        conversion.make_graph(trace, lines)
    lowering = sum(lines.seconds.values())
    steps = clock.seconds | {"lower": lowering, "graph": clock.seconds["graph"] - lowering}
    in_order = {name: steps[name] for name in ("trace", "prepare", "lower", "graph")}
    return Profile(function.name, chosen.name, in_order, lines.found())


class _Clock:
    """Measures the seconds of steps, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


class _Lines:
    """An observer of a lowering that measures the time of equations, by the user's lines."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self._equations: collections.Counter[str] = collections.Counter()
        self._ops: collections.Counter[str] = collections.Counter()
        # The current line, which is that of the innermost equation with a line, and its start.
        self._line, self._since = _NO_LINE, 0.0
        self._depth = 0

    @contextlib.contextmanager
    def within(self, eqn: jex_core.JaxprEqn, lowered_by: str) -> Iterator[None]:
        del lowered_by
        around = self._line
        if self._depth:
            self._add_time()
        self._line, self._since = compat.jaxprs.user_source(eqn) or around, time.perf_counter()
        self._depth += 1
        self._equations[self._line] += 1
        try:
            yield
        finally:
            self._add_time()
            self._line, self._since = around, time.perf_counter()
            self._depth -= 1

    def _add_time(self) -> None:
        self.seconds[self._line] += time.perf_counter() - self._since

    def made(self, eqn: jex_core.JaxprEqn, ops: Sequence[tf.Operation]) -> None:
        self._ops[self._line] += len(ops)

    def refused(self, eqn: jex_core.JaxprEqn, error: UnsupportedPrimitiveError) -> None:
        raise error

    def found(self) -> tuple[Line, ...]:
        return tuple(
            Line(source, seconds, self._equations[source], self._ops[source])
            for source, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])
        )
