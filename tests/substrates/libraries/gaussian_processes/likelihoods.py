"""Programs of gpflow.likelihoods: densities of observations, and their expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.gaussian_processes.places import EVERYWHERE, ONLY_EAGER
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

MEANS = np.array([[0.3], [-0.7], [1.4]])
VARIANCES = np.array([[0.4], [0.9], [0.2]])
INPUTS = np.array([[0.1, 0.2], [0.5, -0.3], [1.0, 0.7]])

# Each with observations that it takes.
LIKELIHOODS: dict[str, tuple[Callable[[Any], Any], list[list[float]]]] = {
    "Bernoulli": (lambda p: p.Bernoulli(), [[0.0], [1.0], [1.0]]),
    "Beta": (lambda p: p.Beta(scale=1.7), [[0.2], [0.6], [0.9]]),
    "Exponential": (lambda p: p.Exponential(), [[0.4], [1.3], [2.2]]),
    "Gamma": (lambda p: p.Gamma(shape=1.4), [[0.4], [1.3], [2.2]]),
    "Gaussian": (lambda p: p.Gaussian(0.3), [[0.4], [-1.3], [1.1]]),
    "Gaussian: by its scale": (lambda p: p.Gaussian(scale=0.6), [[0.4], [-1.3], [1.1]]),
    "Ordinal": (lambda p: p.Ordinal(np.array([-0.5, 0.4])), [[0.0], [2.0], [1.0]]),
    "Poisson": (lambda p: p.Poisson(binsize=1.2), [[0.0], [3.0], [5.0]]),
    "StudentT": (lambda p: p.StudentT(scale=0.8, df=4.0), [[0.4], [-1.3], [1.1]]),
}
for _name, (_make, _seen) in LIKELIHOODS.items():

    @program(f"likelihoods.{_name}", MEANS, VARIANCES)
    def _(tf, gpflow, f, v, _make=_make, _seen=_seen):
        likelihood, y = _make(gpflow.likelihoods), tf.constant(_seen, f.dtype)
        x = tf.constant(INPUTS)
        return (
            likelihood.log_prob(x, f, y),
            likelihood.conditional_mean(x, f),
            likelihood.conditional_variance(x, f),
            likelihood.predict_mean_and_var(x, f, v),
            likelihood.predict_log_density(x, f, v, y),
            likelihood.variational_expectations(x, f, v, y),
        )


@program("likelihoods.Gaussian: a scale of the inputs", MEANS, VARIANCES)
def _(tf, gpflow, f, v):
    scale = gpflow.functions.Linear(np.array([[0.3], [0.2]]), np.array([1.0]))
    likelihood = gpflow.likelihoods.Gaussian(scale=scale)
    x, y = tf.constant(INPUTS), tf.constant([[0.4], [-1.3], [1.1]], f.dtype)
    return (
        likelihood.variance_at(x),
        likelihood.predict_mean_and_var(x, f, v),
        likelihood.variational_expectations(x, f, v, y),
    )


@program("likelihoods.SwitchedLikelihood", MEANS, VARIANCES)
def _(tf, gpflow, f, v):
    p = gpflow.likelihoods
    likelihood = p.SwitchedLikelihood([p.Gaussian(0.3), p.StudentT()])
    x, y = tf.constant(INPUTS), tf.constant([[0.4, 0.0], [-1.3, 1.0], [1.1, 1.0]], f.dtype)
    return likelihood.log_prob(x, f, y), likelihood.variational_expectations(x, f, v, y)


_OF_THREE = np.array([[0.3, -0.2, 1.1], [-0.7, 0.4, 0.2]])
_SPREAD = np.array([[0.4, 0.3, 0.6], [0.9, 0.5, 0.7]])


@program("likelihoods.MultiClass", _OF_THREE, _SPREAD)
def _(tf, gpflow, f, v):
    likelihood = gpflow.likelihoods.MultiClass(3)
    x, y = tf.constant(INPUTS[:2]), tf.constant([[2], [0]])
    return (
        likelihood.predict_mean_and_var(x, f, v),
        likelihood.predict_log_density(x, f, v, y),
        likelihood.variational_expectations(x, f, v, y),
    )


@program("likelihoods.RobustMax", _OF_THREE, _SPREAD)
def _(tf, gpflow, f, v):
    link = gpflow.likelihoods.RobustMax(3, epsilon=1e-2)
    weights, points = np.polynomial.hermite.hermgauss(20)[::-1]
    y = tf.constant([[2], [0]])
    return link(f), link.prob_is_largest(y, f, v, tf.constant(points), tf.constant(weights))


@program("likelihoods.HeteroskedasticTFPConditional", _OF_THREE[:, :2], _SPREAD[:, :2])
def _(tf, gpflow, f, v):
    likelihood = gpflow.likelihoods.HeteroskedasticTFPConditional()
    x, y = tf.constant(INPUTS[:2]), tf.constant([[0.4], [-0.6]], f.dtype)
    return (
        likelihood.log_prob(x, f, y),
        likelihood.predict_mean_and_var(x, f, v),
        likelihood.variational_expectations(x, f, v, y),
    )


# Drawn with TensorFlow's state.
for _name, _make in {
    "Softmax": lambda p: p.Softmax(3),
    "GaussianMC": lambda p: p.GaussianMC(0.3),
}.items():

    @program(f"likelihoods.{_name}", places=ONLY_EAGER)
    def _(tf, gpflow, _name=_name, _make=_make):
        likelihood = _make(gpflow.likelihoods)
        x = tf.constant(INPUTS[:2])
        f, v = (tf.constant(a if _name == "Softmax" else a[:, :1]) for a in (_OF_THREE, _SPREAD))
        y = tf.constant([[2], [0]]) if _name == "Softmax" else tf.constant([[0.4], [-0.3]], f.dtype)
        tf.random.set_seed(5)
        return likelihood.log_prob(x, f, y), likelihood.variational_expectations(x, f, v, y)
