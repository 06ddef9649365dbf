"""Lowers a function for a target without running it, and continues after a refusal."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from jax import export
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api import shape_evaluation
from jax2tf._src.api.convert import Conversion
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.explain import known
from jax2tf._src.explain.explanation import Explanation
from jax2tf._src.explain.report import Refusal, Report
from jax2tf._src.lowering import pipeline
from jax2tf._src.lowering.supported import STRUCTURAL
from jax2tf._src.targets import by_name
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.tracing.tracer import Tracer
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Aval, PyTree, aval_of


def explain(
    fun_jax: Callable[..., PyTree],
    *args: PyTree,
    target: str | Target | Sequence[str | Target] | None = None,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] | export.SymbolicScope = (),
    assume_finite: bool = False,
    **kwargs: PyTree,
) -> Explanation:
    """Explains what `fun_jax` becomes for each target, without running it.

    >>> import jax, jax.numpy as jnp
    >>> def model(x):
    ...     return jax.nn.softmax(jnp.tanh(x))
    >>> found = explain(model, jax.ShapeDtypeStruct((2, 3), jnp.float32), target="litert")
    >>> print(found)
    model(x: float32[2,3]) -> float32[2,3]
      litert      2 ops

    Args:
      fun_jax: as `jax2tf.convert` takes it.
      *args: descriptions of its arguments: a jax.ShapeDtypeStruct, a tf.TensorSpec or an array at
        each leaf.
      target: a target as `jax2tf.convert` takes it, or several; None for all of jax2tf.TARGETS.
      polymorphic_shapes: as `jax2tf.convert` takes it.
      polymorphic_constraints: as `jax2tf.convert` takes it.
      assume_finite: as `jax2tf.convert` takes it.
      **kwargs: descriptions of its keyword arguments.

    Returns:
      An Explanation: a report for each target with everything that cannot be lowered, its line and
      the remedy; the number of ops of each type, and the lines that they come from. It prints as
      text; `.html()` returns a page.

    Raises:
      TypeError: `fun_jax` is not callable, or an argument is not an array.
      ValueError: an unknown target; a shape that is unknown or contradicts polymorphic_shapes.
    """
    option_checks.callable_(fun_jax, "jax2tf.explain: fun_jax")
    option_checks.switches("jax2tf.explain", assume_finite=assume_finite)
    chosen = dict.fromkeys(
        by_name.chosen(each, enable_xla=True, assume_finite=assume_finite)
        for each in _several(target)
    )
    function = Function(fun_jax)
    tracer = Tracer(
        function, polymorphic_shapes, polymorphic_constraints, simplify=pipeline.simplified
    )
    trace, leaves = tracer.trace(args, kwargs, shape_evaluation.described)
    return Explanation(
        function.name,
        {leaf.path: _spec(aval) for leaf, aval in zip(leaves, trace.jaxpr.in_avals, strict=True)},
        tuple(map(_spec, trace.jaxpr.out_avals)),
        tuple(_report(trace, Conversion(function, tracer, each)) for each in chosen),
    )


def _several(
    target: str | Target | Sequence[str | Target] | None,
) -> Iterable[str | Target]:
    if target is None:
        return TARGETS
    if isinstance(target, str | Target):
        return [target]
    found = option_checks.sequence(target, "jax2tf.explain: target", "targets", "['litert']")
    if not found:
        raise ValueError(
            "jax2tf.explain: target should be a target or a sequence of some, got none; leave it "
            "out for all"
        )
    return found


def _spec(aval: Aval) -> str:
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def _report(trace: Trace, conversion: Conversion) -> Report:
    survey = _Survey()
    conversion.make_graph(trace, survey)
    return survey.report(conversion.target)


class _Survey:
    """Counts the ops of equations, and records refusals."""

    def __init__(self) -> None:
        self._ops: collections.Counter[str] = collections.Counter()
        self._lines: collections.Counter[str] = collections.Counter()
        self._scopes: collections.Counter[str] = collections.Counter()
        self._refused: collections.Counter[Refusal] = collections.Counter()
        self._uses: dict[known.Use, None] = {}
        # Line and scope of the current equation: those of the innermost equation that has one.
        self._line, self._scope = "", ""

    @contextlib.contextmanager
    def within(self, eqn: jex_core.JaxprEqn, lowered_by: str) -> Iterator[None]:
        del lowered_by
        around = self._line, self._scope
        # Equations of JAX's own functions have no line of the user, but their callers may have one.
        self._line = compat.jaxprs.user_source(eqn) or self._line
        self._scope = "/".join(filter(None, (self._scope, compat.jaxprs.name_stack(eqn))))
        avals = [aval_of(v) for v in (*eqn.invars, *eqn.outvars)]
        names = frozenset(aval.dtype.name for aval in avals if hasattr(aval, "dtype"))
        self._uses[eqn.primitive.name, names] = None
        try:
            yield
        finally:
            self._line, self._scope = around

    def made(self, eqn: jex_core.JaxprEqn, ops: Sequence[tf.Operation]) -> None:
        computing = [op.type for op in ops if op.type not in STRUCTURAL]
        self._ops.update(computing)
        if computing:
            self._lines[self._line] += len(computing)
            self._scopes[self._scope] += len(computing)

    def refused(self, eqn: jex_core.JaxprEqn, error: UnsupportedPrimitiveError) -> None:
        source = error.source or self._line
        self._refused[Refusal(error.primitive, source, error.reason, error.remedy)] += 1

    def report(self, target: Target) -> Report:
        refusals = [dataclasses.replace(r, count=n) for r, n in self._refused.items()]
        ops, lines, scopes = (
            dict(counts.most_common()) for counts in (self._ops, self._lines, self._scopes)
        )
        limitations = known.touching(self._uses, target)
        return Report(target.name, tuple(refusals), ops, lines, scopes, limitations)
