"""Primitives bound directly, with the fewest params that JAX takes."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import primitives

from harnesses.harness import all_harnesses
from jax2tf._src.lowering import pipeline, registry
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.tracing import trace
from tests.running import check


def _required_by_rule(eqn):
    rule = registry.find(eqn.primitive, TARGETS["xla"])
    parameters = inspect.signature(rule.function).parameters.values() if rule else ()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


def _is_required_by_jax(eqn, param):
    specs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    params = eqn.primitive.get_bind_params(eqn.params)
    if param not in params:
        return True  # JAX makes it of others
    del params[param]
    try:
        jax.jit(lambda *xs: eqn.primitive.bind(*xs, **params)).trace(*specs).lower()
    except Exception:  # whatever JAX says of a param that it misses
        return True
    return False


def test_a_rule_requires_no_param_that_jax_does_not():
    harnesses = {h.primitive: h for h in all_harnesses() if not h.primitive.startswith("jax.")}
    asked, found = set(), []
    for name, harness in harnesses.items():
        if not harness.runs_on(jax.__version__):
            continue
        with jax.enable_x64(harness.x64):
            traced = trace.trace_of(
                jax.jit(harness.fun).trace(*harness.make_args()), pipeline.simplified
            )
            eqn = traced.find(name)
            if eqn is None or not all(hasattr(v.aval, "shape") for v in eqn.invars):
                continue
            asked.add(name)
            found += [
                f"{name}: {param}"
                for param in _required_by_rule(eqn)
                if not _is_required_by_jax(eqn, param)
            ]
    assert found == []
    assert {"svd", "conj", "scaled_dot", "scan", "gather"} <= asked


@pytest.mark.parametrize("lowering", ["xla", "no_xla"])
def test_results(lowering):
    def fun(a, z):
        options = {"full_matrices": False, "compute_uv": False, "subset_by_index": None}
        return primitives.svd_p.bind(a, **options), primitives.conj_p.bind(z)

    a = jnp.arange(6.0).reshape(3, 2) - 2
    check(fun, (a, a + 2j * a), "graph", lowering)
    check(primitives.conj_p.bind, (a,), "graph", lowering)
