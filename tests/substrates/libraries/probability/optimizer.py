"""Programs of tfp.optimizer: minimizers, each of a bowl of two variables."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import JAX, JIT, NUMPY, VMAP, Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, (NUMPY, JAX, JIT))

SEED = (3, 7)
_START = np.array([0.6, 0.8])
_ON_JAX = (JAX, JIT, VMAP)  # NumPy has no derivatives


def _bowl(tf: Any, x: Any) -> Any:
    return tf.reduce_sum((x - np.array([1.0, 1.5])) ** 2 * np.array([2.0, 3.0]), -1)


def _with_gradient(tf: Any, tfp: Any) -> Callable:
    return lambda x: tfp.math.value_and_gradient(lambda x: _bowl(tf, x), x)


for _name in ("bfgs_minimize", "lbfgs_minimize"):

    @program(f"optimizer.{_name}", _START, places=_ON_JAX, tolerance=1e-8)
    def _quasi_newton(tf, tfp, start, _name=_name):
        found = getattr(tfp.optimizer, _name)(
            _with_gradient(tf, tfp), initial_position=start, tolerance=1e-10
        )
        return [found.converged, found.position, found.num_iterations]

    @program(f"optimizer.{_name}: two starts", np.stack([_START, -_START]), places=(JAX, JIT))
    def _batch(tf, tfp, start, _name=_name):
        found = getattr(tfp.optimizer, _name)(
            _with_gradient(tf, tfp),
            initial_position=start,
            stopping_condition=tfp.optimizer.converged_all,
        )
        return [found.converged, found.position, found.objective_value]


@program("optimizer.bfgs_minimize: Rosenbrock's function", -_START, places=_ON_JAX, tolerance=1e-7)
def _rosenbrock(tf, tfp, start):
    def valley(x: Any) -> Any:
        return 100.0 * (x[..., 1] - x[..., 0] ** 2) ** 2 + (1 - x[..., 0]) ** 2

    found = tfp.optimizer.bfgs_minimize(
        lambda x: tfp.math.value_and_gradient(valley, x), start, tolerance=1e-9
    )
    return [found.converged, found.position]


@program("optimizer.nelder_mead_minimize", _START, places=(NUMPY, *_ON_JAX))
def _nelder_mead(tf, tfp, start):
    found = tfp.optimizer.nelder_mead_minimize(lambda x: _bowl(tf, x), initial_vertex=start)
    return [found.converged, found.position, found.num_iterations]


@program("optimizer.nelder_mead_one_step", np.array([[0.6, 0.8], [0.7, 0.8], [0.6, 1.1]]))
def _nelder_mead_step(tf, tfp, simplex):
    return tfp.optimizer.nelder_mead_one_step(
        simplex,
        _bowl(tf, simplex),
        lambda x: _bowl(tf, x),
        dim=2,
        func_tolerance=1e-8,
        position_tolerance=1e-8,
        reflection=1.0,
        expansion=2.0,
        contraction=0.5,
        shrinkage=0.5,
    )


def _evolved(x: Any, y: Any) -> Any:
    return (x - 1.0) ** 2 + (y - 1.5) ** 2


@program("optimizer.differential_evolution_minimize", _START)
def _evolution(tf, tfp, start):
    tf.random.set_seed(5)  # what was drawn before is another
    found = tfp.optimizer.differential_evolution_minimize(
        _evolved,
        initial_position=[start[0], start[1]],
        population_size=20,
        population_stddev=2.0,
        max_iterations=20,
        seed=SEED,
    )
    return [found.converged, *found.position]


@program("optimizer.differential_evolution_one_step", np.array([0.1, 0.7, 1.2, 1.9, -0.4]))
def _evolution_step(tf, tfp, population):
    tf.random.set_seed(5)
    population = tf.cast(population, tf.float32)
    return tfp.optimizer.differential_evolution_one_step(
        _evolved,
        [population, population * 1.5],
        differential_weight=tf.constant(0.5),
        crossover_prob=tf.constant(0.9),
        seed=SEED,
    )


def _design(tf: Any) -> tuple[Any, Any]:
    x = np.sin(np.arange(12.0)).reshape(6, 2)
    return tf.constant(x), tf.constant(x @ np.array([1.2, 0.0]) + 0.1)


for _name in ("proximal_hessian_sparse_minimize", "proximal_hessian_sparse_one_step"):

    @program(f"optimizer.{_name}", _START)
    def _proximal(tf, tfp, start, _name=_name):
        x, y = _design(tf)

        def derivatives(coefficients: Any) -> Any:
            residuals = tf.linalg.matvec(x, coefficients) - y
            gradient = tf.linalg.matvec(x, residuals, transpose_a=True)
            return gradient, x, tf.ones_like(residuals)

        if _name.endswith("minimize"):
            return tfp.optimizer.proximal_hessian_sparse_minimize(
                derivatives, start, tolerance=1e-8, l1_regularizer=0.1, maximum_iterations=10
            )
        return tfp.optimizer.proximal_hessian_sparse_one_step(
            *derivatives(start),
            start,
            maximum_full_sweeps=2,
            tolerance=1e-8,
            l1_regularizer=0.1,
        )


@program("optimizer.linesearch.hager_zhang", np.array(0.5), places=(JAX, JIT))
def _line_search(tf, tfp, step):
    point = collections.namedtuple("Point", ["x", "f", "df", "full_gradient"])

    def along(x: Any) -> Any:
        value, gradient = tfp.math.value_and_gradient(lambda x: (x - 1.3) ** 2 + 0.1 * x**4, x)
        return point(x=x, f=value, df=gradient, full_gradient=gradient)

    found = tfp.optimizer.linesearch.hager_zhang(along, initial_step_size=step)
    return [found.converged, found.left.x, found.right.x]


@program("optimizer.convergence_criteria.LossNotDecreasing", np.array([3.0, 2.0, 1.5, 1.49]))
def _criterion(tf, tfp, losses):
    criterion = tfp.optimizer.convergence_criteria.LossNotDecreasing(atol=0.1, window_size=2)
    state = criterion.bootstrap(losses[0], [], [])
    found = []
    for i in range(1, 4):
        converged, state = criterion.one_step(i, losses[i], [], [], state)
        found.append(converged)
    return found
