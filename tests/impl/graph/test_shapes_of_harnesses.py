"""Graphs of harnesses: we infer the types that TensorFlow infers, and open sizes have names."""

from __future__ import annotations

import jax
import pytest

from jax2tf._src.api.errors import UnsupportedDtypeError, UnsupportedPrimitiveError
from tests.impl.graph.harness_graphs import TARGETS, Traced, harnesses

HARNESSES = harnesses(40)
N_PARTS = 12


def traced(harness, target, is_open):
    """The graph; None if JAX refuses the open dimension, or the target lacks an op or a dtype."""
    jax.config.update("jax_enable_x64", harness.x64)
    try:
        return Traced(harness, target, is_open)
    except (UnsupportedDtypeError, UnsupportedPrimitiveError):
        return None
    except Exception:
        if not is_open:
            raise
        return None


@pytest.mark.parametrize("part", range(N_PARTS))
def test_types(part):
    n_graphs = n_tensors = 0
    for i, harness in enumerate(HARNESSES[part::N_PARTS]):
        for is_open in (False, True):
            graph = traced(harness, TARGETS[i % len(TARGETS)], is_open)
            if graph is not None:
                n, found = graph.differences()
                assert not found, (harness.name, found)
                n_graphs, n_tensors = n_graphs + 1, n_tensors + n
                if is_open:
                    _, wrong = graph.wrong_sizes()
                    assert not wrong, (harness.name, wrong)
    assert n_graphs > 10
    assert n_tensors > 200
