"""`python -m jax2tf plan`: prints the equations after each pass, and what lowers them."""

from __future__ import annotations

import contextlib
import itertools
import string
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jax import export
from jax.extend import core as jex_core

from jax2tf._src.api import shape_evaluation
from jax2tf._src.api.convert import Conversion
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import pipeline, registry
from jax2tf._src.lowering.pipeline import Block
from jax2tf._src.targets import by_name
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.jaxprs import inner_jaxprs, is_jaxpr
from jax2tf._src.tracing.tracer import Tracer
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Atom, Param, PyTree, aval_of

# Params with a longer value are not printed, and neither are these.
_LONGEST_PARAM = 24
_NOT_PRINTED = registry.IGNORED_PARAMS - {"name"} | {
    "donated_invars",
    "ft_in",
    "ft_out",
    "in_layouts",
    "in_shardings",
    "inline",
    "out_layouts",
    "out_shardings",
    "preferred_element_type",
}


def plan(
    fun_jax: Callable[..., PyTree],
    *args: PyTree,
    target: str | Target | None = None,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] | export.SymbolicScope = (),
    assume_finite: bool = False,
    **kwargs: PyTree,
) -> tuple[str, bool]:
    """The stages of the conversion of `fun_jax` as text, and whether every equation can be lowered.

    The arguments are those of `jax2tf.explain`, for one target.
    """
    chosen = by_name.chosen(target, enable_xla=True, assume_finite=assume_finite)
    function = Function(fun_jax)
    stages = _Stages()
    tracer = Tracer(
        function, polymorphic_shapes, polymorphic_constraints, simplify=stages.simplified
    )
    conversion = Conversion(function, tracer, chosen)
    trace, _ = conversion.trace(args, kwargs, shape_evaluation.described)
    stages.is_traced = True
    trace = pipeline.for_target(trace, chosen, stages.add)
    stages.add_blocks(pipeline.for_graph(trace, chosen, stages.add).jaxpr, chosen)
    rows = _Rows()
    conversion.make_graph(trace, rows)
    text = [f"{function.name}, target {chosen.name}", *stages.text, "", "lowered by:", *rows.text()]
    return "\n".join(text), not rows.has_refusals


class _Stages:
    """Prints the equations after each pass that changes them."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.is_traced = False
        self._names = _Names()
        self._last: list[str] = []

    def simplified(self, jaxpr: jex_core.ClosedJaxpr, is_lowered: bool) -> jex_core.ClosedJaxpr:
        """Runs the passes over JAX's trace, and prints them until `is_traced` is set."""
        if not is_lowered or self.is_traced:
            return pipeline.simplified(jaxpr, is_lowered)
        self._add("traced", list(self._lines(jaxpr.jaxpr)))
        return pipeline.simplified(jaxpr, is_lowered, seen=self.add)

    def add(self, name: str, jaxpr: jex_core.ClosedJaxpr) -> None:
        """Prints the jaxpr after the pass with that name."""
        self._add(f"after {name}", list(self._lines(jaxpr.jaxpr)))

    def add_blocks(self, jaxpr: jex_core.Jaxpr, target: Target) -> None:
        """Prints a jaxpr, with its inner jaxprs, after each pass over equations."""
        after: dict[str, dict[jex_core.Jaxpr, Block]] = {}
        for each in (jaxpr, *_inside(jaxpr)):
            pipeline.block_of(
                each,
                target,
                lambda name, block: after.setdefault(name, {}).update({block.jaxpr: block}),
            )
        for name, blocks in after.items():
            self._add(f"after {name}", list(self._lines(jaxpr, blocks)))

    def _add(self, head: str, lines: list[str]) -> None:
        if lines != self._last:
            self.text += ["", f"{head}:", *lines]
        self._last = lines

    def _lines(
        self,
        jaxpr: jex_core.Jaxpr,
        blocks: Mapping[jex_core.Jaxpr, Block] | None = None,
        indent: str = "  ",
    ) -> Iterator[str]:
        block = (blocks or {}).get(jaxpr)
        for eqn in jaxpr.eqns if block is None else block.equations:
            operands = eqn.invars if block is None else block.operands(eqn)
            results = " ".join(f"{self._names.of(v)}:{_type(v)}" for v in eqn.outvars)
            words = [eqn.primitive.name, *_params(eqn), *map(self._names.of, operands)]
            taken = "" if block is None else block.taken_by.get(eqn, "")
            yield f"{indent}{results} = {' '.join(words)}{taken and f'  ({taken})'}"
            for inner in inner_jaxprs(eqn):
                yield from self._lines(inner, blocks, f"{indent}    ")


class _Names:
    """Names variables a, b, ..., z, aa, ab, ... in the order in which they first occur."""

    def __init__(self) -> None:
        self._names: dict[jex_core.Var, str] = {}
        letters = string.ascii_lowercase
        self._free = (
            "".join(word)
            for n in itertools.count(1)
            for word in itertools.product(letters, repeat=n)
        )

    def of(self, atom: Atom) -> str:
        """The name of a variable, or the value of a literal."""
        if isinstance(atom, jex_core.Literal):
            return str(np.asarray(atom.val))
        if atom not in self._names:
            self._names[atom] = next(self._free)
        return self._names[atom]


def _inside(jaxpr: jex_core.Jaxpr) -> Iterator[jex_core.Jaxpr]:
    for eqn in jaxpr.eqns:
        for inner in inner_jaxprs(eqn):
            yield inner
            yield from _inside(inner)


def _type(atom: Atom) -> str:
    aval = aval_of(atom)
    if not hasattr(aval, "dtype"):
        return str(aval)
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def _params(eqn: jex_core.JaxprEqn) -> list[str]:
    params = sorted((k, v) for k, v in eqn.params.items() if k not in _NOT_PRINTED)
    shown = ((name, _shown(value)) for name, value in params)
    return [f"{name}={text}" for name, text in shown if text]


def _shown(value: Param) -> str:
    """The value of a param as text; empty if the value says little."""
    if value is None or value is False or value == () or is_jaxpr(value) or callable(value):
        return ""
    text = str(value).replace(" ", "")
    return text if len(text) <= _LONGEST_PARAM and "0x" not in text else ""


class _Rows:
    """An observer of a lowering that records what lowers each equation."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str]] = []
        self._depth = 0
        self.has_refusals = False

    @contextlib.contextmanager
    def within(self, eqn: jex_core.JaxprEqn, lowered_by: str) -> Iterator[None]:
        indent = "  " * (self._depth + 1)
        types = " ".join(map(_type, eqn.outvars))
        self._rows.append((f"{indent}{eqn.primitive.name} -> {types}", lowered_by))
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def made(self, eqn: jex_core.JaxprEqn, ops: Sequence[tf.Operation]) -> None:
        del eqn, ops

    def refused(self, eqn: jex_core.JaxprEqn, error: UnsupportedPrimitiveError) -> None:
        self.has_refusals = True
        indent = "  " * (self._depth + 2)
        self._rows.append((f"{indent}{eqn.primitive.name}", f"refused: {error.reason}"))

    def text(self) -> list[str]:
        """The rows as lines of two columns."""
        width = max((len(left) for left, _ in self._rows), default=0)
        return [f"{left.ljust(width)}  {right}" for left, right in self._rows]
