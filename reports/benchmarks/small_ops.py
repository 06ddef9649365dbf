"""Programs of many small ops: solvers, samplers, filters, dynamics, searches.

A TensorFlow graph starts each op by itself; these programs show what that costs, and what compiled
runs (`Optimization.COMPILED_RUNS`) save. Each has two sizes: "full" for measurements, "small" for
tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from reports.benchmarks.programs import Maker, Program, Size


def small_ops(size: Size = "full") -> list[Program]:
    """Every program of many small ops, at a size."""
    full = size == "full"
    made: list[tuple[str, Callable[..., Any], Callable[[Maker], tuple[Any, ...]]]] = [
        ("adaptive ODE", adaptive_ode, lambda make: (make.normal(3),)),
        ("master equation", partial(master_equation, steps=100 if full else 4), _density),
        ("autoregressive flow", autoregressive_flow, partial(_flow, features=32 if full else 4)),
        ("HMC step", partial(hmc_step, leaps=20 if full else 2), partial(_regression, rows=50)),
        ("quadrature", partial(quadrature, tolerance=1e-7 if full else 1e-3), _bounds),
        ("Kalman filter", kalman_filter, partial(_observed, steps=100 if full else 4)),
        ("game step", partial(game, steps=20 if full else 2), _boards),
        (
            "robot dynamics",
            partial(robot, joints=7 if full else 2),
            partial(_arm, 7 if full else 2),
        ),
        ("spherical harmonics", partial(harmonics, degree=8 if full else 2), _directions),
        ("log-signature", log_signature, partial(_path, steps=100 if full else 4)),
        ("conjugate gradients", conjugate_gradients, partial(_system, order=32 if full else 4)),
        ("beam search", partial(beam_search, steps=20 if full else 3), _chain),
    ]
    return [
        Program(name, fun, partial(_args, of, seed), has_batch=False, has_small_ops=True)
        for seed, (name, fun, of) in enumerate(made)
    ]


def _args(of: Callable[[Maker], tuple[Any, ...]], seed: int) -> tuple[Any, ...]:
    return of(Maker(seed=seed))


def adaptive_ode(y: jax.Array) -> jax.Array:
    """The Lorenz system from 0 to 2, by the pair of Bogacki and Shampine with steps of its own."""

    def field(y: jax.Array) -> jax.Array:
        return jnp.stack(
            [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]
        )

    def step(state: Any) -> Any:
        t, y, h = state
        h = jnp.minimum(h, 2 - t)
        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + 3 * h / 4 * k2)
        third = y + h * (2 / 9 * k1 + k2 / 3 + 4 / 9 * k3)
        second = y + h * (7 / 24 * k1 + k2 / 4 + k3 / 3 + field(third) / 8)
        error = jnp.max(jnp.abs(third - second) / (1e-4 + 1e-4 * jnp.abs(third)))
        accepted = error <= 1
        factor = jnp.clip(0.9 * (error + 1e-10) ** (-1 / 3), 0.2, 5)
        return jnp.where(accepted, t + h, t), jnp.where(accepted, third, y), h * factor

    start = (jnp.float32(0), y, jnp.float32(0.01))
    return lax.while_loop(lambda state: state[0] < 2, step, start)[1]


def master_equation(
    hamiltonian: jax.Array, decay: jax.Array, density: jax.Array, *, steps: int
) -> jax.Array:
    """Populations of a density matrix under Lindblad's equation, by Runge and Kutta's method."""
    adjoint = decay.conj().T

    def field(rho: jax.Array) -> jax.Array:
        turned = -1j * (hamiltonian @ rho - rho @ hamiltonian)
        both = adjoint @ decay
        return turned + decay @ rho @ adjoint - (both @ rho + rho @ both) / 2

    def step(rho: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        h = 0.02
        k1 = field(rho)
        k2 = field(rho + h / 2 * k1)
        k3 = field(rho + h / 2 * k2)
        k4 = field(rho + h * k3)
        rho = rho + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return rho, jnp.diagonal(rho).real

    return lax.scan(step, density, None, length=steps)[1]


def _density(make: Maker) -> tuple[Any, ...]:
    matrix = make.normal(6, 6) + 1j * make.normal(6, 6)
    decay = np.diag(np.sqrt(np.arange(1, 6)), 1).astype(np.complex64) / 2
    density = np.diag([0, 0, 0, 0, 0, 1]).astype(np.complex64)
    return (matrix + matrix.conj().T).astype(np.complex64), decay, density


def autoregressive_flow(params: dict[str, Any], noise: jax.Array) -> jax.Array:
    """Samples of a masked autoregressive flow: each feature needs those before it.

    Papamakarios, Pavlakou, Murray: Masked Autoregressive Flow for Density Estimation, 2017.
    """

    def feature(i: int, x: jax.Array) -> jax.Array:
        hidden = jnp.tanh(x @ params["first"])
        shift, scale = jnp.split(hidden @ params["second"], 2, axis=-1)
        made = noise * jnp.exp(jnp.tanh(scale)) + shift
        return x.at[:, i].set(made[:, i])

    return lax.fori_loop(0, noise.shape[1], feature, jnp.zeros_like(noise))


def _flow(make: Maker, *, features: int) -> tuple[Any, ...]:
    params = {"first": make.normal(features, 64) / 8, "second": make.normal(64, 2 * features) / 8}
    return params, make.normal(8, features)


def hmc_step(
    rows: jax.Array, labels: jax.Array, position: jax.Array, seed: jax.Array, *, leaps: int
) -> tuple[jax.Array, jax.Array]:
    """A step of Hamiltonian Monte Carlo for logistic regression: the new position, if accepted."""

    def energy(position: jax.Array) -> jax.Array:
        logits = rows @ position
        return jnp.sum(jax.nn.softplus(logits) - labels * logits) + jnp.sum(position**2) / 2

    slope = jax.grad(energy)
    draw, choose = jax.random.split(jax.random.key(seed))
    momentum = jax.random.normal(draw, position.shape)

    def leap(state: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, None]:
        q, p = state
        p = p - 0.05 / 2 * slope(q)
        q = q + 0.05 * p
        return (q, p - 0.05 / 2 * slope(q)), None

    (q, p), _ = lax.scan(leap, (position, momentum), None, length=leaps)
    change = energy(position) - energy(q) + (jnp.sum(momentum**2) - jnp.sum(p**2)) / 2
    accepted = jnp.log(jax.random.uniform(choose)) < change
    return jnp.where(accepted, q, position), accepted


def _regression(make: Maker, *, rows: int) -> tuple[Any, ...]:
    labels = (make.normal(rows) > 0).astype(np.float32)
    return make.normal(rows, 8), labels, make.normal(8), np.int32(3)


# The nodes and weights of Gauss's rule for seven points on [-1, 1].
_NODES, _WEIGHTS = (part.astype(np.float32) for part in np.polynomial.legendre.leggauss(7))


def quadrature(bounds: jax.Array, *, tolerance: float) -> jax.Array:
    """The integral of a peak, by halving the interval with the largest error."""

    def peak(x: jax.Array) -> jax.Array:
        return jnp.exp(-100 * (x - 0.3) ** 2) + jnp.sin(5 * x) ** 2 / (1 + x**2)

    def integral(low: jax.Array, high: jax.Array) -> jax.Array:
        half = (high - low) / 2
        return half * jnp.sum(_WEIGHTS * peak((low + high) / 2 + half * _NODES))

    def measured(low: jax.Array, high: jax.Array) -> tuple[jax.Array, jax.Array]:
        middle = (low + high) / 2
        fine = integral(low, middle) + integral(middle, high)
        return fine, jnp.abs(fine - integral(low, high))

    def halve(state: Any) -> Any:
        lows, highs, values, errors, n = state
        i = jnp.argmax(errors)
        low, high = lows[i], highs[i]
        middle = (low + high) / 2
        left, left_error = measured(low, middle)
        right, right_error = measured(middle, high)
        return (
            lows.at[n].set(middle),
            highs.at[n].set(high).at[i].set(middle),
            values.at[n].set(right).at[i].set(left),
            errors.at[n].set(right_error).at[i].set(left_error),
            n + 1,
        )

    value, error = measured(bounds[0], bounds[1])
    empty = jnp.zeros(64)
    start = (
        empty.at[0].set(bounds[0]),
        empty.at[0].set(bounds[1]),
        empty.at[0].set(value),
        empty.at[0].set(error),
        jnp.int32(1),
    )

    def goes_on(state: Any) -> jax.Array:
        return (jnp.sum(state[3]) > tolerance) & (state[4] < 64)

    return jnp.sum(lax.while_loop(goes_on, halve, start)[2])


def _bounds(make: Maker) -> tuple[Any, ...]:
    del make
    return (np.array([-2, 3], np.float32),)


def kalman_filter(
    moves: jax.Array, sees: jax.Array, noise: jax.Array, observed: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Means of a Kalman filter after each observation, and the log-likelihood."""

    def step(state: tuple[jax.Array, jax.Array], seen: jax.Array) -> tuple[Any, Any]:
        mean, covariance = state
        mean = moves @ mean
        covariance = moves @ covariance @ moves.T + noise
        spread = sees @ covariance @ sees.T + jnp.eye(2)
        missed = seen - sees @ mean
        gain = jnp.linalg.solve(spread, sees @ covariance).T
        likelihood = (
            -(missed @ jnp.linalg.solve(spread, missed) + jnp.linalg.slogdet(spread)[1]) / 2
        )
        mean = mean + gain @ missed
        return (mean, covariance - gain @ sees @ covariance), (mean, likelihood)

    _, (means, likelihoods) = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), observed)
    return means, jnp.sum(likelihoods)


def _observed(make: Maker, *, steps: int) -> tuple[Any, ...]:
    moves = np.eye(4, dtype=np.float32) + np.eye(4, k=2, dtype=np.float32) / 10
    return (
        moves,
        np.eye(2, 4, dtype=np.float32),
        np.eye(4, dtype=np.float32) / 100,
        make.normal(steps, 2),
    )


def game(boards: jax.Array, *, steps: int) -> jax.Array:
    """Boards of Conway's Game of Life after some steps."""

    def step(_: int, boards: jax.Array) -> jax.Array:
        turns = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        around = sum(jnp.roll(boards, turn, axis=(1, 2)) for turn in turns)
        return ((around == 3) | ((boards == 1) & (around == 2))).astype(jnp.int32)

    return lax.fori_loop(0, steps, step, boards)


def _boards(make: Maker) -> tuple[Any, ...]:
    return ((make.normal(4, 16, 16) > 0).astype(np.int32),)


def robot(angles: jax.Array, speeds: jax.Array, lengths: jax.Array, *, joints: int) -> jax.Array:
    """Torques of a planar arm: the derivative of its energies by Lagrange's equations."""

    def energy(angles: jax.Array, speeds: jax.Array) -> jax.Array:
        x = y = vx = vy = turned = turning = jnp.float32(0)
        total = jnp.float32(0)
        for i in range(joints):
            turned, turning = turned + angles[i], turning + speeds[i]
            dx, dy = lengths[i] * jnp.cos(turned), lengths[i] * jnp.sin(turned)
            vx, vy = vx - dy * turning, vy + dx * turning
            x, y = x + dx, y + dy
            total = total + (vx**2 + vy**2) / 2 - 9.81 * y
        return total

    momentum = jax.grad(energy, argnums=1)
    _, change = jax.jvp(momentum, (angles, speeds), (speeds, jnp.zeros_like(speeds)))
    return change - jax.grad(energy)(angles, speeds)


def _arm(joints: int, make: Maker) -> tuple[Any, ...]:
    return make.normal(joints), make.normal(joints), np.ones(joints, np.float32)


def harmonics(directions: jax.Array, *, degree: int) -> jax.Array:
    """Real spherical harmonics up to a degree, by the recurrences of Legendre's functions."""
    x, y, z = directions / jnp.linalg.norm(directions, axis=0)
    rows = []
    cosine, sine, diagonal = jnp.ones_like(x), jnp.zeros_like(x), jnp.ones_like(x)
    for m in range(degree + 1):
        if m:
            cosine, sine = x * cosine - y * sine, x * sine + y * cosine
            diagonal = -(2 * m - 1) * diagonal
        before, legendre = jnp.zeros_like(z), diagonal
        for n in range(m, degree + 1):
            rows += [legendre * cosine, legendre * sine]
            following = ((2 * n + 1) * z * legendre - (n + m) * before) / (n + 1 - m)
            before, legendre = legendre, following
    return jnp.stack(rows)


def _directions(make: Maker) -> tuple[Any, ...]:
    return (make.normal(3, 100),)


def log_signature(path: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The logarithm of a path's signature up to its third level."""

    def step(state: Any, d: jax.Array) -> tuple[Any, None]:
        one, two, three = state
        second = jnp.multiply.outer(d, d) / 2
        third = jnp.multiply.outer(second, d) / 3
        three = three + jnp.multiply.outer(two, d) + jnp.multiply.outer(one, second) + third
        return (one + d, two + jnp.multiply.outer(one, d) + second, three), None

    n = path.shape[1]
    start = (jnp.zeros(n), jnp.zeros((n, n)), jnp.zeros((n, n, n)))
    (one, two, three), _ = lax.scan(step, start, jnp.diff(path, axis=0))
    square = jnp.multiply.outer(one, one)
    mixed = jnp.multiply.outer(one, two) + jnp.multiply.outer(two, one)
    return one, two - square / 2, three - mixed / 2 + jnp.multiply.outer(square, one) / 3


def _path(make: Maker, *, steps: int) -> tuple[Any, ...]:
    return (np.cumsum(make.normal(steps + 1, 3) / 10, axis=0, dtype=np.float32),)


def conjugate_gradients(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """The solution of a positive definite system."""
    return jax.scipy.sparse.linalg.cg(lambda x: matrix @ x, right, tol=1e-5)[0]


def _system(make: Maker, *, order: int) -> tuple[Any, ...]:
    factor = make.normal(order, order)
    return factor @ factor.T / order + np.eye(order, dtype=np.float32), make.normal(order)


def beam_search(transitions: jax.Array, start: jax.Array, *, steps: int) -> tuple[Any, ...]:
    """The four likeliest sequences of a Markov chain, and their log-probabilities."""
    beams, n = 4, transitions.shape[0]

    def step(state: tuple[Any, ...], i: jax.Array) -> tuple[tuple[Any, ...], None]:
        scores, sequences = state
        last = sequences[:, i]
        extended = scores[:, None] + transitions[last]
        scores, chosen = lax.top_k(extended.reshape(-1), beams)
        sequences = sequences[chosen // n].at[:, i + 1].set(chosen % n)
        return (scores, sequences), None

    scores = jnp.where(jnp.arange(beams) == 0, 0, -jnp.inf).astype(jnp.float32)
    sequences = jnp.zeros((beams, steps + 1), jnp.int32).at[:, 0].set(start)
    (scores, sequences), _ = lax.scan(step, (scores, sequences), jnp.arange(steps))
    return scores, sequences


def _chain(make: Maker) -> tuple[Any, ...]:
    logits = make.normal(20, 20)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True)), np.int32(0)
