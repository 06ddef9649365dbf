"""The benchmark of libraries on the JAX substrate beside JAX by hand."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reports.benchmarks import no_u_turn, twins
from tf_substrates.jax import tf


def _sum_of_squares(factor: float = 1.0):
    def make():
        x = jnp.arange(6.0)
        return lambda x: (x * x).sum(), lambda x: tf.reduce_sum(x * x) * factor, (x,), 1e-6

    return make


def test_a_quick_run_writes_a_table(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(twins, "PROGRAMS", {"sum of squares": _sum_of_squares()})
    status, printed = reports("twins", "--quick", "--into", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'twins.md'}" in printed
    (row,) = json.loads((tmp_path / "twins.json").read_text())["rows"]
    assert row["ratios"]["library"]["median"] > 0
    table = (tmp_path / "twins.md").read_text()
    assert "A quick run" in table
    assert "| sum of squares |" in table


def test_twins_that_do_not_agree():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        twins.contenders(_sum_of_squares(1.5))


def test_times_of_a_point(monkeypatch):
    """The library computes four points in each of ten steps, and the twin two."""
    monkeypatch.setattr(twins, "repeated", lambda call: lambda: 8.0)

    def make():
        return lambda x: x + 2.0, lambda x: x + 4.0, (jnp.zeros(()),), 2.0, 10

    of_points, of_calls = twins.contenders(make), twins.contenders(lambda: make()[:4])
    assert {who: time() for who, time in of_points.items()} == {"twin": 0.4, "library": 0.2}
    assert {who: time() for who, time in of_calls.items()} == {"twin": 8.0, "library": 8.0}


def test_a_library_that_is_not_there(monkeypatch):
    monkeypatch.setattr(twins, "LIBRARIES", ("no_such_library",))
    with pytest.raises(twins.ResultsError, match="there is no no_such_library here"):
        twins._on_jax("no_such_library")


def test_the_no_u_turn_sampler_by_hand_draws_from_its_density():
    deviations = jnp.array([0.5, 1.0, 2.0])

    def log_density(x):
        return -0.5 * ((x / deviations) ** 2).sum()

    def chain(key):
        step = no_u_turn.step(log_density, size=0.4, depth=8)

        def positions(point, key):
            point, computed = step(point, key)
            return point, (point.position, computed)

        start = no_u_turn.first_point(log_density, jnp.zeros(3))
        return jax.lax.scan(positions, start, jax.random.split(key, 4000))[1]

    draws, computed = jax.jit(chain)(jax.random.key(0))
    np.testing.assert_allclose(draws.mean(0) / deviations, 0, atol=0.1)
    np.testing.assert_allclose(draws.std(0) / deviations, 1, atol=0.1)
    # Half a period of the slowest direction is 2 pi: some 16 leaps, and never all 255.
    assert 3 < computed.mean() < 40


def test_trajectories_turn_where_momenta_point_back():
    ahead, back = jnp.array([1.0, 0.0]), jnp.array([-0.5, 0.1])
    assert not no_u_turn.turns(ahead, ahead, ahead)
    assert no_u_turn.turns(ahead, ahead, back)
    assert no_u_turn.turns(ahead, back, ahead)
