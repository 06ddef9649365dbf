"""Programs of tfp.mcmc: short chains of known seeds, and what is said of chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import GRAD, JAX, JIT, NUMPY, VMAP, Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, (NUMPY, JAX, JIT, VMAP))

SEED = (3, 7)
_START = np.array([0.1, -0.2])
_ON_JAX = (JAX, JIT, VMAP)  # NumPy has no derivatives


def _target(tf: Any, tfp: Any) -> Any:
    return tfp.distributions.MultivariateNormalTriL(
        tf.constant([0.5, -0.3], tf.float64), tf.constant([[1.0, 0], [0.4, 0.7]], tf.float64)
    )


# Kernels of a module and of a log density.
_STEPS = {"step_size": np.float64(0.3), "num_leapfrog_steps": 3}
_HAMILTONIAN = lambda m, f: m.HamiltonianMonteCarlo(f, **_STEPS)  # noqa: E731  # one of the table's
_KERNELS: dict[str, Callable[[Any, Callable], Any]] = {
    "HamiltonianMonteCarlo": _HAMILTONIAN,
    "UncalibratedHamiltonianMonteCarlo": lambda m, f: m.UncalibratedHamiltonianMonteCarlo(
        f, **_STEPS
    ),
    "NoUTurnSampler": lambda m, f: m.NoUTurnSampler(f, np.float64(0.3), max_tree_depth=4),
    "MetropolisAdjustedLangevinAlgorithm": lambda m, f: m.MetropolisAdjustedLangevinAlgorithm(
        f, np.float64(0.3)
    ),
    "UncalibratedLangevin": lambda m, f: m.UncalibratedLangevin(f, np.float64(0.1)),
    "MetropolisHastings": lambda m, f: m.MetropolisHastings(
        m.UncalibratedHamiltonianMonteCarlo(f, **_STEPS)
    ),
    "SimpleStepSizeAdaptation": lambda m, f: m.SimpleStepSizeAdaptation(_HAMILTONIAN(m, f), 3),
    "DualAveragingStepSizeAdaptation": lambda m, f: m.DualAveragingStepSizeAdaptation(
        _HAMILTONIAN(m, f), 3
    ),
    "ReplicaExchangeMC": lambda m, f: m.ReplicaExchangeMC(
        f, np.array([1.0, 0.5]), lambda g: _HAMILTONIAN(m, g)
    ),
    "RandomWalkMetropolis": lambda m, f: m.RandomWalkMetropolis(f),
    "UncalibratedRandomWalk": lambda m, f: m.UncalibratedRandomWalk(f),
    "random_walk_uniform_fn": lambda m, f: m.RandomWalkMetropolis(f, m.random_walk_uniform_fn(0.4)),
    "random_walk_normal_fn": lambda m, f: m.RandomWalkMetropolis(f, m.random_walk_normal_fn(0.4)),
    "SliceSampler": lambda m, f: m.SliceSampler(f, np.float64(1.0), max_doublings=4),
}
_WITHOUT_GRADIENTS = (
    "RandomWalkMetropolis",
    "UncalibratedRandomWalk",
    "random_walk_uniform_fn",
    "random_walk_normal_fn",
    "SliceSampler",
)
CHAINS = 400


def _many_chains(kernel: Callable) -> Callable:
    """States of many chains after some steps, for their means."""

    def call(tf: Any, tfp: Any, start: Any) -> Any:
        return tfp.mcmc.sample_chain(
            num_results=1,
            num_burnin_steps=4,
            current_state=tf.broadcast_to(start, [CHAINS, 2]),
            kernel=kernel(tfp.mcmc, _target(tf, tfp).log_prob),
            trace_fn=None,
            seed=SEED,
        )[0]

    return call


# It draws from a Gamma distribution, of which TensorFlow Probability's sampler is another on JAX.
_BY_MEANS = ("SliceSampler",)
for _name, _kernel in _KERNELS.items():
    _places = (NUMPY, *_ON_JAX) if _name in _WITHOUT_GRADIENTS else _ON_JAX

    _many = _many_chains(_kernel) if _name in _BY_MEANS else None

    @program(f"mcmc.{_name}", _START, places=_places, tolerance=1e-8, many=_many)
    def _chain(tf, tfp, start, _kernel=_kernel):
        return tfp.mcmc.sample_chain(
            num_results=5,
            num_burnin_steps=3,
            current_state=start,
            kernel=_kernel(tfp.mcmc, _target(tf, tfp).log_prob),
            trace_fn=None,
            seed=SEED,
        )


@program("mcmc.sample_chain: two parts and a trace", _START, _START + 1, places=_ON_JAX)
def _traced(tf, tfp, x, y):
    normal = tfp.distributions.Normal(np.float64(0.3), np.float64(1.2))

    def log_density(x: Any, y: Any) -> Any:
        return tf.reduce_sum(normal.log_prob(x), -1) + tf.reduce_sum(normal.log_prob(y - x), -1)

    states, trace = tfp.mcmc.sample_chain(
        4,
        [x, y],
        kernel=_HAMILTONIAN(tfp.mcmc, log_density),
        num_steps_between_results=1,
        trace_fn=lambda _, results: [results.is_accepted, results.log_accept_ratio],
        seed=SEED,
    )
    return [states, trace]


@program("mcmc.TransformedTransitionKernel", np.array([0.8, 1.4]), places=_ON_JAX, tolerance=1e-8)
def _transformed(tf, tfp, start):
    density = tfp.distributions.Independent(
        tfp.distributions.Gamma(tf.constant([2.0, 3.0], tf.float64), np.float64(1.5)), 1
    )
    kernel = tfp.mcmc.TransformedTransitionKernel(
        _HAMILTONIAN(tfp.mcmc, density.log_prob), tfp.bijectors.Exp()
    )
    return tfp.mcmc.sample_chain(5, start, kernel=kernel, trace_fn=None, seed=SEED)


@program("mcmc.NoUTurnSampler: two chains", np.stack([_START, _START + 1]), places=(JAX, JIT))
def _chains(tf, tfp, start):
    kernel = tfp.mcmc.NoUTurnSampler(_target(tf, tfp).log_prob, np.float64(0.3), max_tree_depth=4)
    return tfp.mcmc.sample_chain(
        5,
        start,
        kernel=kernel,
        trace_fn=lambda _, results: [results.leapfrogs_taken, results.has_divergence],
        seed=SEED,
    )


@program("mcmc.sample_annealed_importance_chain", _START, places=_ON_JAX)
def _annealed(tf, tfp, start):
    target = _target(tf, tfp)
    proposal = tfp.distributions.MultivariateNormalDiag(tf.zeros(2, tf.float64))
    states, weights, _ = tfp.mcmc.sample_annealed_importance_chain(
        num_steps=4,
        proposal_log_prob_fn=proposal.log_prob,
        target_log_prob_fn=target.log_prob,
        current_state=start,
        make_kernel_fn=lambda f: _HAMILTONIAN(tfp.mcmc, f),
        seed=SEED,
    )
    return [states, weights]


_STATES = np.sin(np.arange(40.0)).reshape(20, 2)


@program("mcmc.effective_sample_size", _STATES, places=(NUMPY, JAX, JIT, GRAD, VMAP))
def _effective(tf, tfp, states):
    return tfp.mcmc.effective_sample_size(states)


@program("mcmc.effective_sample_size: of chains", _STATES, places=(NUMPY, JAX, JIT, VMAP))
def _effective_of_chains(tf, tfp, states):
    return tfp.mcmc.effective_sample_size(
        states, cross_chain_dims=-1, filter_beyond_positive_pairs=True
    )


@program("mcmc.potential_scale_reduction", _STATES, places=(NUMPY, JAX, JIT, GRAD, VMAP))
def _reduction(tf, tfp, states):
    return tfp.mcmc.potential_scale_reduction(states, independent_chain_ndims=1)


@program("mcmc.sample_halton_sequence", places=(NUMPY, JAX, JIT))
def _halton(tf, tfp):
    return tfp.mcmc.sample_halton_sequence(3, num_results=10, randomized=False, dtype=tf.float64)


@program("mcmc.sample_halton_sequence: randomized", places=(NUMPY, JAX, JIT))
def _randomized(tf, tfp):
    return tfp.mcmc.sample_halton_sequence(3, num_results=10, dtype=tf.float64, seed=SEED)
