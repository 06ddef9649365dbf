"""Differential equations: Diffrax with its adjoints, JAX's odeint, spectral solvers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, Fails, normal, program

KEY = jax.random.key(0)

# Diffrax checks sizes of steps by Equinox's error_if.
CHECKED = {
    "compiled": Fails("jax2tf", "UnsupportedPrimitiveError", r"pure_callback.*equinox.*_error")
}


def _oscillator(t, y, args):
    position, velocity = y
    stiffness, damping = args
    return velocity, -stiffness * position - damping * velocity


def _oscillation(**options) -> Built:
    import diffrax

    def solve(position, velocity, stiffness, damping):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_oscillator),
            diffrax.Tsit5(),
            t0=0.0,
            t1=2.0,
            dt0=0.1,
            y0=(position, velocity),
            args=(stiffness, damping),
            saveat=diffrax.SaveAt(ts=np.linspace(0, 2, 5)),
            **options,
        ).ys

    return solve, (np.float64(1.0), np.float64(0.5), np.float64(3.0), np.float64(0.2))


@program("diffrax", x64=True, fails=CHECKED)
def recursive_checkpoints_and_adaptive_steps() -> Built:
    import diffrax

    return _oscillation(
        stepsize_controller=diffrax.PIDController(1e-4, 1e-6),
        adjoint=diffrax.RecursiveCheckpointAdjoint(),
        throw=False,
    )


@program("diffrax", x64=True, fails=CHECKED)
def backward_solve_as_adjoint() -> Built:
    import diffrax

    return _oscillation(adjoint=diffrax.BacksolveAdjoint(), throw=False)


@program("diffrax", x64=True, fails=CHECKED)
def forward_differentiation_and_constant_steps() -> Built:
    import diffrax

    return _oscillation(adjoint=diffrax.DirectAdjoint(), throw=False)


@program("diffrax", x64=True)
def stiff_reaction_by_an_implicit_method() -> Built:
    import diffrax

    def robertson(t, y, rates):
        x, y, z = y
        slow = -rates[0] * x + rates[2] * y * z
        fast = rates[1] * y**2
        return jnp.stack([slow, -slow - fast, fast])

    def solve(rates):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(robertson),
            diffrax.Kvaerno3(),
            t0=0.0,
            t1=1.0,
            dt0=1e-3,
            y0=jnp.array([1.0, 0.0, 0.0]),
            args=rates,
            stepsize_controller=diffrax.PIDController(1e-4, 1e-6),
            throw=False,
        )
        return solution.ys, solution.stats["num_steps"]

    return solve, (np.array([0.04, 3e3, 1e2]),)


@program("diffrax", batch="b", fails=CHECKED)
def stochastic_equation_with_a_virtual_tree() -> Built:
    import diffrax

    def solve(y0):
        path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=KEY)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y),
            diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.sin(y), path),
        )
        return diffrax.diffeqsolve(
            terms, diffrax.Heun(), 0.0, 1.0, 0.1, y0, throw=False, max_steps=16
        ).ys

    return jax.vmap(solve), (normal(3),)


@program(
    "diffrax",
    batch=(None, "b, ..."),
    fails={
        **CHECKED,
        "gradient": Fails("jax", "ValueError", "Reverse-mode differentiation does not work"),
    },
)
def training_step_of_a_neural_equation() -> Built:
    import diffrax
    import equinox as eqx
    import optax

    arrays, static = eqx.partition(eqx.nn.MLP(2, 2, 8, 1, jnp.tanh, key=KEY), eqx.is_array)
    optimizer = optax.adam(1e-2)

    def solve(arrays, y0):
        field = eqx.combine(arrays, static)
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: field(y)),
            diffrax.Heun(),
            0.0,
            1.0,
            0.125,
            y0,
            saveat=diffrax.SaveAt(ts=jnp.linspace(0, 1, 4)),
            throw=False,
            max_steps=32,
        ).ys

    def step(state, trajectories):
        arrays, moments = state

        def loss(arrays):
            predicted = jax.vmap(lambda y: solve(arrays, y[0]))(trajectories)
            return jnp.mean((predicted - trajectories) ** 2)

        value, gradients = jax.value_and_grad(loss)(arrays)
        updates, moments = optimizer.update(gradients, moments)
        return (optax.apply_updates(arrays, updates), moments), value

    return step, ((arrays, optimizer.init(arrays)), normal(3, 4, 2))


@program("diffrax")
def controlled_equation_with_an_event() -> Built:
    import diffrax

    def bounce(height):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: (y[1], -9.8)),
            diffrax.Tsit5(),
            0.0,
            10.0,
            0.1,
            (height, jnp.zeros_like(height)),
            event=diffrax.Event(lambda t, y, args, **_: y[0]),
            throw=False,
        )
        return solution.ts, solution.ys

    return bounce, (np.float32(3.0),)


@program("jax", batch=("b, _",))
def odeint_of_jax() -> Built:
    from jax.experimental.ode import odeint

    def solve(y0):
        def field(y, t):
            return jnp.stack([y[:, 1], -jnp.sin(y[:, 0])], 1)

        return odeint(field, y0, jnp.linspace(0.0, 1.0, 4), rtol=1e-4, atol=1e-4)

    return solve, (normal(3, 2),)


@program("quadax", x64=True)
def adaptive_quadrature() -> Built:
    """A loop over a heap of intervals, with nodes of Gauss and Kronrod."""
    import quadax

    def integral(rate, interval):
        def integrand(t):
            return jnp.exp(-rate * t) * jnp.sin(t)

        return quadax.quadgk(integrand, interval, epsabs=1e-10, epsrel=1e-10)[0]

    return integral, (np.float64(1.5), np.array([0.0, 3.0]))
