"""Nothing of JAX is left out: each primitive and public function is asked about, or excused."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import pytest
from jax.extend import core as jex_core

from harnesses.harness import all_harnesses
from jax2tf._src.lowering import registry, rules
from jax2tf._src.lowering.emit.mesh import device_programs
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.target import OP_SETS, XLA
from limitations.check import check_coverage, names_of_jax
from limitations.ledger import load, load_uncovered

# Reads and writes of references are values of their own before rules come to them.
GONE = {"get", "swap"}

# The import registers the rules.
assert rules


def test_primitives_and_functions_have_a_harness_or_a_reason():
    assert [str(finding) for finding in check_coverage(all_harnesses(), load_uncovered())] == []


def test_a_new_function_of_jax_is_found(monkeypatch):
    monkeypatch.setattr(jax.numpy, "brand_new", jax.numpy.sin, raising=False)
    (finding,) = check_coverage(all_harnesses(), load_uncovered())
    assert (finding.kind, finding.subject) == ("uncovered", "jax.numpy.brand_new")


def test_functions_are_called_as_they_are_named(monkeypatch):
    calls = []
    real = jax.numpy.cumsum
    monkeypatch.setattr(jax.numpy, "cumsum", lambda *a, **k: calls.append(a) or real(*a, **k))
    harness = next(h for h in all_harnesses() if h.primitive == "jax.numpy.cumsum")
    harness.fun(*harness.make_args())  # not traced: JAX may have a trace from before
    assert len(calls) == 1


@functools.cache
def _reached() -> dict[str, str]:
    """The primitives in the jaxprs of the public functions, each with one of these functions."""
    reached: dict[str, str] = {}
    for harness in all_harnesses():
        if harness.family == "functions":
            with jax.enable_x64(harness.x64):
                jaxpr = jax.jit(harness.fun).trace(*harness.make_args()).lojax.jaxpr
            for name in _primitives(jaxpr):
                reached.setdefault(name, harness.name)
    return reached


def _primitives(jaxpr: Any) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for leaf in jax.tree.leaves(eqn.params, is_leaf=_is_jaxpr):
            if _is_jaxpr(leaf):
                yield from _primitives(leaf)


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, jex_core.Jaxpr | jex_core.ClosedJaxpr)


def test_what_public_functions_reach_has_a_harness():
    covered = {harness.primitive for harness in all_harnesses()} | load_uncovered().keys()
    assert {name: by for name, by in _reached().items() if name not in covered} == {}


@pytest.mark.parametrize("op_set", OP_SETS)
def test_primitives_have_a_rule_or_a_limitation(op_set):
    limited = {
        primitive
        for limitation in load()
        for primitive in limitation.primitive
        if limitation.expect == "error" and op_set in (limitation.lowerings or OP_SETS)
    }
    primitives = {name for name in names_of_jax() if not name.startswith("jax.")} | set(_reached())
    inside = {primitive.name for primitive in device_programs.ELIMINATED}
    target = TARGETS["xla" if op_set == XLA else "tensorflow"]
    excused = registry.primitives(target) | inside | limited | load_uncovered().keys() | GONE
    assert sorted(primitives - excused) == []
