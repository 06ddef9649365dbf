"""`python -m reports twins`: libraries on the JAX substrate, beside JAX that was written by hand.

Each program is a call of a library for TensorFlow, rewritten by `tf_substrates`, and its twin the
same computation in JAX; both under jax.jit in one process, round after round in rotating order (as
in `bench`). Then what it takes to import each library: as it is, with TensorFlow, and
rewritten, without. It needs the environment of `tox -e libraries`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from rich.console import Console

from harnesses.cell import origin
from reports import rendering
from reports.benchmarks import no_u_turn
from reports.benchmarks.files import twin_files
from reports.benchmarks.timing import Call, machine, paired, repeated
from reports.results import ResultsError

LIBRARIES = ("tensorflow_probability", "tf_quant_finance")
_ROUNDS = 15
_IMPORTS = 7
# Means of random paths agree to this, all else to 1e-4.
_OF_MEANS = 0.03


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="two rounds, no imports")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def main(options: argparse.Namespace, console: Console) -> int:
    rounds = 2 if options.quick else _ROUNDS
    rows = []
    for name, make in PROGRAMS.items():
        console.print(f"measuring {name}")
        times = paired(rounds, contenders(make))
        rows.append({"program": name, **asdict(times)})
    data = {
        "jax": jax.__version__,
        "python": sys.version.split()[0],
        "quick": options.quick,
        "rounds": rounds,
        "rows": rows,
        "imports": [] if options.quick else imports(console),
        **origin.now(),
        **machine(),
    }
    for path in rendering.write(twin_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 0


class Twins(NamedTuple):
    """A program, by hand and by a library.

    Attributes:
      twin, library: the functions; they give the same.
      args: the arrays that they take.
      tolerance: relative and absolute, of the library's result.
      steps: of a sampler whose result is how many points a step computes. Each of the two draws its
        own numbers, and so computes another number of points: times are those of a point.
    """

    twin: Callable[..., Any]
    library: Callable[..., Any]
    args: tuple[Any, ...]
    tolerance: float
    steps: int = 0


def contenders(make: Callable[[], tuple[Any, ...]]) -> dict[str, Callable[[], float]]:
    """The measurements of seconds of a program: of the twin, and of the library.

    Raises:
      AssertionError: if the two do not agree.
    """
    twins = Twins(*make())
    functions = {"twin": twins.twin, "library": twins.library}
    calls = {name: _jitted(function, twins.args) for name, function in functions.items()}
    results = {name: np.asarray(call()) for name, call in calls.items()}
    np.testing.assert_allclose(
        results["library"], results["twin"], twins.tolerance, twins.tolerance
    )
    parts = {name: twins.steps * float(results[name]) if twins.steps else 1.0 for name in calls}
    return {name: _part(repeated(call), parts[name]) for name, call in calls.items()}


def _part(measurement: Callable[[], float], parts: float) -> Callable[[], float]:
    return lambda: measurement() / parts


def _jitted(function: Callable[..., Any], args: tuple[Any, ...]) -> Call:
    jitted = jax.jit(function)
    return lambda: jax.block_until_ready(jitted(*args))


def _on_jax(library: str) -> Any:
    substrates = importlib.import_module("tf_substrates")
    if importlib.util.find_spec(library) is None:
        raise ResultsError(f"there is no {library} here: use the environment of tox -e libraries")
    substrates.install("jax", list(LIBRARIES))
    return importlib.import_module(f"tf_substrates.on_jax.{library}")


def _black_scholes() -> Twins:
    """Prices of a hundred thousand calls."""
    finance = _on_jax("tf_quant_finance")
    draw = np.random.default_rng(0)
    ranges = ((0.1, 0.4), (80, 120), (0.5, 2), (90, 110))
    args = tuple(jnp.asarray(draw.uniform(a, b, 100_000), jnp.float32) for a, b in ranges)

    def twin(volatility: Any, strike: Any, expiry: Any, forward: Any) -> Any:
        deviation = volatility * jnp.sqrt(expiry)
        d1 = jnp.log(forward / strike) / deviation + deviation / 2
        cdf = jax.scipy.stats.norm.cdf
        return forward * cdf(d1) - strike * cdf(d1 - deviation)

    def library(volatility: Any, strike: Any, expiry: Any, forward: Any) -> Any:
        return finance.black_scholes.option_price(
            volatilities=volatility, strikes=strike, expiries=expiry, forwards=forward
        )

    return Twins(twin, library, args, 1e-4)


def _heston() -> Twins:
    """Ten thousand paths of a price and its variance, fifty Euler steps; the mean price."""
    finance = _on_jax("tf_quant_finance")
    tf = importlib.import_module("tf_substrates.jax").tf
    samples, steps = 10_000, 50
    speed, level, wobble, correlation = 1.5, 0.04, 0.3, -0.7
    start = jnp.asarray([1.0, 0.04], jnp.float32)
    mixed = jnp.asarray([[1.0, 0.0], [correlation, (1 - correlation**2) ** 0.5]], jnp.float32)
    dt = 1.0 / steps

    def twin(start: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            price, variance = state
            z = jax.random.normal(key, (samples, 2)) @ mixed.T
            root = jnp.sqrt(jnp.maximum(variance, 0.0) * dt)
            change = speed * (level - variance) * dt + wobble * root * z[:, 1]
            return (price + price * root * z[:, 0], variance + change), None

        state = tuple(jnp.full(samples, x) for x in start)
        return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), steps))[0][0].mean()

    def drift(_: Any, x: Any) -> Any:
        return tf.stack([tf.zeros_like(x[..., 0]), speed * (level - x[..., 1])], axis=-1)

    def volatility(_: Any, x: Any) -> Any:
        root = tf.sqrt(tf.maximum(x[..., 1], 0.0))
        scale = tf.stack([x[..., 0] * root, wobble * root], axis=-1)
        return scale[..., tf.newaxis] * mixed

    def library(start: Any) -> Any:
        paths = finance.models.euler_sampling.sample(
            dim=2,
            drift_fn=drift,
            volatility_fn=volatility,
            times=[1.0],
            time_step=dt,
            num_samples=samples,
            initial_state=start,
            random_type=finance.math.random.RandomType.STATELESS,
            seed=[1, 2],
            dtype=tf.float32,
        )
        return tf.reduce_mean(paths[:, -1, 0])

    return Twins(twin, library, (start,), _OF_MEANS)


def _normal() -> Twins:
    """Densities of a thousand points under a normal distribution of fifty dimensions."""
    probability = _on_jax("tensorflow_probability")
    draw = np.random.default_rng(0)
    root = np.tril(draw.normal(size=(50, 50)) * 0.1) + np.eye(50)
    loc, points = draw.normal(size=50), draw.normal(size=(1000, 50))
    args = tuple(jnp.asarray(x, jnp.float32) for x in (loc, root, points))

    def twin(loc: Any, root: Any, points: Any) -> Any:
        whitened = solve_triangular(root, (points - loc).T, lower=True)
        size = jnp.log(jnp.diagonal(root)).sum() + 25 * jnp.log(2 * jnp.pi)
        return -0.5 * (whitened**2).sum(0) - size

    def library(loc: Any, root: Any, points: Any) -> Any:
        normal = probability.distributions.MultivariateNormalTriL(loc, scale_tril=root)
        return normal.log_prob(points)

    return Twins(twin, library, args, 1e-4)


def _density(x: Any) -> Any:
    """Of a chain of two hundred numbers, each near the one before it."""
    return -0.5 * (x[0] ** 2 + ((x[1:] - 0.9 * x[:-1]) ** 2).sum())


def _hamiltonian() -> Twins:
    """A hundred steps of Hamiltonian Monte Carlo of ten leaps each; the share of those taken."""
    mcmc = _on_jax("tensorflow_probability").mcmc
    start = jnp.zeros(200, jnp.float32)
    size, leaps, steps = 0.1, 10, 100

    def twin(start: Any) -> Any:
        slope = jax.grad(_density)

        def leap(state: Any, _: Any) -> Any:
            x, p, g = state
            p = p + size / 2 * g
            x = x + size * p
            g = slope(x)
            return (x, p + size / 2 * g, g), None

        def step(x: Any, key: Any) -> Any:
            of_momentum, of_choice = jax.random.split(key)
            p = jax.random.normal(of_momentum, x.shape)
            (y, q, _), _ = jax.lax.scan(leap, (x, p, slope(x)), None, leaps)
            ratio = _density(y) - _density(x) + 0.5 * ((p**2).sum() - (q**2).sum())
            is_taken = jnp.log(jax.random.uniform(of_choice)) < ratio
            return jnp.where(is_taken, y, x), is_taken

        return jax.lax.scan(step, start, jax.random.split(jax.random.key(0), steps))[1].mean()

    def library(start: Any) -> Any:
        kernel = mcmc.HamiltonianMonteCarlo(_density, step_size=size, num_leapfrog_steps=leaps)
        taken = mcmc.sample_chain(
            steps,
            current_state=start,
            kernel=kernel,
            trace_fn=lambda _, results: results.is_accepted,
            seed=[1, 2],
        )[1]
        return jnp.mean(jnp.asarray(taken, jnp.float32))

    return Twins(twin, library, (start,), 0.1)


def _no_u_turn() -> Twins:
    """Two hundred steps of the No-U-Turn sampler; how many points a step computes."""
    mcmc = _on_jax("tensorflow_probability").mcmc
    start = jnp.zeros(200, jnp.float32)
    size, depth, steps = 0.2, 10, 200

    def twin(start: Any) -> Any:
        step = no_u_turn.step(_density, size, depth)
        point = no_u_turn.first_point(_density, start)
        return jax.lax.scan(step, point, jax.random.split(jax.random.key(0), steps))[1].mean()

    def library(start: Any) -> Any:
        computed = mcmc.sample_chain(
            steps,
            current_state=start,
            kernel=mcmc.NoUTurnSampler(_density, step_size=size, max_tree_depth=depth),
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=[1, 2],
        )[1]
        return jnp.mean(jnp.asarray(computed, jnp.float32))

    return Twins(twin, library, (start,), 0.1, steps)


PROGRAMS: dict[str, Callable[[], Twins]] = {
    "Black-Scholes": _black_scholes,
    "Heston by Euler steps": _heston,
    "multivariate normal": _normal,
    "Hamiltonian Monte Carlo": _hamiltonian,
    "No-U-Turn sampler, a point": _no_u_turn,
}


def imports(console: Console) -> list[dict[str, Any]]:
    """Seconds of importing each library in a process of its own: as it is, and rewritten.

    Both keep their bytecode, as Python does: each is imported once before it is measured.
    """
    rows = []
    with tempfile.TemporaryDirectory(prefix="rewritten-") as folder:
        for library in LIBRARIES:
            console.print(f"importing {library}")
            own = f"import tf_substrates; tf_substrates.install('jax', {list(LIBRARIES)!r}); "
            ways = {
                "original": f"import {library}",
                "rewritten": f"{own}from tf_substrates.on_jax import {library}",
            }
            measurements = {way: _importing(code, folder) for way, code in ways.items()}
            for first in measurements.values():
                first()
            rows.append({"library": library, **asdict(paired(_IMPORTS, measurements))})
    return rows


def _importing(code: str, folder: str) -> Callable[[], float]:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def measurement() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=environment)
        return time.perf_counter() - start

    return measurement
