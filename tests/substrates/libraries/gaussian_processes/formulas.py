"""Programs of functions of GPflow: conditionals, covariances, densities, expectations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.substrates.libraries.gaussian_processes.kernels import OTHERS, POINTS
from tests.substrates.libraries.gaussian_processes.places import EVERYWHERE, ONLY_EAGER, VALUES
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

FUNCTIONS = {
    "Additive": lambda f: f.Constant(0.3) + f.Linear(np.array([[0.4], [-1.1]])),
    "Constant": lambda f: f.Constant(np.array([0.3, 0.7])),
    "Identity": lambda f: f.Identity(2),
    "Linear": lambda f: f.Linear(np.array([[0.4], [-1.1]]), np.array([0.2])),
    "Polynomial": lambda f: f.Polynomial(2, 2, 1, np.linspace(-1.0, 1.0, 6)[None]),
    "Product": lambda f: f.Constant(0.3) * f.Linear(np.array([[0.4], [-1.1]])),
    "Zero": lambda f: f.Zero(3),
}
for _name, _make in FUNCTIONS.items():

    @program(f"functions.{_name}", POINTS)
    def _(tf, gpflow, x, _make=_make):
        return _make(gpflow.functions)(x)


@program("functions.SwitchedFunction", POINTS)
def _(tf, gpflow, x):
    f = gpflow.functions
    switched = f.SwitchedFunction([f.Constant(0.3), f.Linear(np.array([[0.4], [-1.1]]))])
    return switched(tf.concat([x, tf.constant([[0.0], [1.0], [1.0], [0.0]], x.dtype)], 1))


_X, _MEAN = np.array([[0.2], [0.7], [1.5]]), np.array([[0.4], [0.1], [1.1]])
DENSITIES: dict[str, tuple] = {
    "gaussian": (_X, _MEAN, 0.7),
    "lognormal": (_X, _MEAN, 0.7),
    "exponential": (_X, _MEAN),
    "gamma": (_X, _MEAN, 1.3),
    "student_t": (_X, _MEAN, 0.8, 4.0),
    "beta": (_X / 2, _MEAN, 1.7),
    "laplace": (_X, _MEAN, 0.6),
    "poisson": (np.array([[0.0], [3.0], [2.0]]), _MEAN),
}
for _name, _arrays in DENSITIES.items():

    @program(f"logdensities.{_name}", *_arrays)
    def _(tf, gpflow, *arrays, _name=_name):
        return getattr(gpflow.logdensities, _name)(*arrays)


@program("logdensities.bernoulli", _MEAN / 2)
def _(tf, gpflow, p):
    return gpflow.logdensities.bernoulli(tf.constant([[0.0], [1.0], [1.0]], p.dtype), p)


_ROOT = np.array([[0.5, 0.0, 0.0], [0.1, 0.7, 0.0], [-0.2, 0.3, 0.9]])


@program("logdensities.multivariate_normal", _X, _MEAN, _ROOT)
def _(tf, gpflow, x, mean, root):
    return gpflow.logdensities.multivariate_normal(x, mean, root)


_MU = np.array([[0.4, 0.1], [-0.3, 0.8], [0.6, -0.5]])


@program("kullback_leiblers.gauss_kl", _MU, _ROOT)
def _(tf, gpflow, mean, root):
    roots = tf.stack([root, root * 1.3])
    points = gpflow.kernels.RBF()(tf.constant(OTHERS)) + 0.1 * tf.eye(3, dtype=mean.dtype)
    kl = gpflow.kullback_leiblers.gauss_kl
    diagonal = tf.abs(mean) + 0.5
    return kl(mean, roots), kl(mean, roots, points), kl(mean, diagonal), kl(mean, diagonal, points)


@program("kullback_leiblers.prior_kl", _MU, _ROOT)
def _(tf, gpflow, mean, root):
    inducing = gpflow.inducing_variables.InducingPoints(OTHERS)
    # Of a root of distances rounding would decide how far a point is from itself.
    kernel, roots = gpflow.kernels.SquaredExponential(), tf.stack([root, root * 1.3])
    kl = gpflow.kullback_leiblers.prior_kl
    return [kl(inducing, kernel, mean, roots, whiten=whiten) for whiten in (True, False)]


@program("conditionals.conditional", POINTS, _MU, _ROOT)
def _(tf, gpflow, x, f, root):
    kernel, roots = gpflow.kernels.Matern52(), tf.stack([root, root * 1.3])
    inducing = gpflow.inducing_variables.InducingPoints(OTHERS)
    conditional = gpflow.conditionals.conditional
    return (
        conditional(x, tf.constant(OTHERS), kernel, f),
        conditional(x, inducing, kernel, f, full_cov=True, q_sqrt=roots),
        conditional(x, inducing, kernel, f, q_sqrt=roots, white=True),
    )


@program("conditionals.base_conditional", POINTS, _MU)
def _(tf, gpflow, x, f):
    kernel, z = gpflow.kernels.Matern52(), tf.constant(OTHERS)
    kmm = kernel(z) + 1e-3 * tf.eye(3, dtype=x.dtype)
    knn = kernel(x, full_cov=False)
    return gpflow.conditionals.base_conditional(kernel(z, x), kmm, knn, f, white=True)


@program("conditionals.sample_conditional", places=ONLY_EAGER)
def _(tf, gpflow):
    inducing = gpflow.inducing_variables.InducingPoints(OTHERS)
    tf.random.set_seed(7)
    return gpflow.conditionals.sample_conditional(
        tf.constant(POINTS),
        inducing,
        gpflow.kernels.Matern52(),
        tf.constant(_MU),
        full_cov=True,
        num_samples=2,
    )


@program("conditionals.uncertain_conditional", POINTS[:3], places=EVERYWHERE)
def _(tf, gpflow, mean):
    covariance = tf.eye(2, batch_shape=[3], dtype=mean.dtype) * 0.3
    return gpflow.conditionals.uncertain_conditional(
        mean,
        covariance,
        gpflow.inducing_variables.InducingPoints(OTHERS),
        gpflow.kernels.SquaredExponential(),
        tf.constant(_MU),
        tf.stack([tf.constant(_ROOT)] * 2),
        full_output_cov=False,
    )


def _variables(gpflow: Any, name: str) -> Any:
    inducing = gpflow.inducing_variables
    if name == "Multiscale":
        return inducing.Multiscale(OTHERS, np.array([[0.4, 0.7], [0.9, 0.3], [1.1, 0.6]]))
    return inducing.InducingPoints(OTHERS)


for _name in ("Kuu", "Kuf"):
    for _kind in ("InducingPoints", "Multiscale"):

        @program(f"covariances.{_name}: of {_kind}", POINTS)
        def _(tf, gpflow, x, _name=_name, _kind=_kind):
            inducing, kernel = _variables(gpflow, _kind), gpflow.kernels.SquaredExponential(1.3)
            if _name == "Kuu":
                return gpflow.covariances.Kuu(inducing, kernel, jitter=1e-4) + x[0, 0]
            return gpflow.covariances.Kuf(inducing, kernel, x)


@program("inducing_variables.InducingPatches", np.cos(np.arange(2 * 16.0)).reshape(2, 16))
def _(tf, gpflow, images):
    kernel = gpflow.kernels.Convolutional(gpflow.kernels.Matern52(), [4, 4], [2, 2])
    patches = gpflow.inducing_variables.InducingPatches(np.sin(np.arange(12.0)).reshape(3, 4))
    covariances = gpflow.covariances
    return covariances.Kuu(patches, kernel, jitter=1e-4), covariances.Kuf(patches, kernel, images)


@program("quadrature.NDiagGHQuadrature", _MU, np.abs(_MU) + 0.2)
def _(tf, gpflow, mean, variance):
    quadrature = gpflow.quadrature.NDiagGHQuadrature(2, 7)
    values = lambda x: tf.reduce_sum(tf.sin(x), -1, keepdims=True)  # noqa: E731
    return quadrature(values, mean, variance), quadrature.logspace(values, mean, variance)


@program("quadrature.ndiagquad", _MEAN[:, 0], _X[:, 0])
def _(tf, gpflow, mean, variance):
    return gpflow.quadrature.ndiagquad([tf.sin, tf.square], 9, mean, variance)


@program("quadrature.mvnquad", _MU)
def _(tf, gpflow, mean):
    covariance = tf.eye(2, batch_shape=[3], dtype=mean.dtype) * 0.4
    return gpflow.quadrature.mvnquad(lambda x: tf.sin(x) ** 2, mean, covariance, 5, 2, (2,))


for _name in ("hermgauss", "mvhermgauss"):

    @program(f"quadrature.{_name}", places=VALUES)
    def _(tf, gpflow, _name=_name):
        return getattr(gpflow.quadrature, _name)(*((6,) if _name == "hermgauss" else (4, 2)))


_EXPECTED = {
    "of a kernel": lambda g, p, z: g.expectations.expectation(p, g.kernels.RBF(1.2)),
    "of a kernel and inducing points": lambda g, p, z: g.expectations.expectation(
        p, (g.kernels.RBF(1.2), z)
    ),
    "of two kernels": lambda g, p, z: g.expectations.expectation(
        p, (g.kernels.RBF(1.2), z), (g.kernels.RBF(0.7), z)
    ),
    "of linear kernels": lambda g, p, z: g.expectations.expectation(
        p, (g.kernels.Linear(0.8), z), (g.kernels.Linear(0.8), z)
    ),
    "of a sum": lambda g, p, z: g.expectations.expectation(
        p, (g.kernels.RBF(1.2) + g.kernels.Linear(), z)
    ),
    "of a mean function": lambda g, p, z: g.expectations.expectation(
        p, g.functions.Linear(np.array([[0.4], [-1.1]]))
    ),
}
for _name, _expected in _EXPECTED.items():

    @program(f"expectations.expectation: {_name}", POINTS[:3], tolerance=1e-9)
    def _(tf, gpflow, mean, _expected=_expected):
        covariance = tf.eye(2, batch_shape=[3], dtype=mean.dtype) * 0.3 + 0.05
        gaussian = gpflow.probability_distributions.Gaussian(mean, covariance)
        return _expected(gpflow, gaussian, gpflow.inducing_variables.InducingPoints(OTHERS))


@program("expectations.quadrature_expectation", POINTS[:3])
def _(tf, gpflow, mean):
    gaussian = gpflow.probability_distributions.DiagonalGaussian(mean, tf.abs(mean) + 0.1)
    inducing = gpflow.inducing_variables.InducingPoints(OTHERS)
    return gpflow.expectations.quadrature_expectation(
        gaussian, (gpflow.kernels.Matern32(), inducing), nghp=5
    )


@program("utilities.positive", _X)
def _(tf, gpflow, x):
    found = [gpflow.utilities.positive(lower, base) for lower in (None, 0.3)
             for base in ("exp", "softplus")]  # fmt: skip
    return [(b.forward(x), b.inverse(x + 0.5)) for b in found]


@program("utilities.triangular", np.arange(6.0))
def _(tf, gpflow, x):
    return gpflow.utilities.triangular().forward(x)


@program("utilities.multiple_assign", places=ONLY_EAGER)
def _(tf, gpflow):
    kernel = gpflow.kernels.Matern32()
    before = {k: np.asarray(v) for k, v in gpflow.utilities.read_values(kernel).items()}
    gpflow.utilities.multiple_assign(kernel, {".variance": 0.7, ".lengthscales": 1.4})
    gpflow.utilities.set_trainable(kernel.variance, False)
    count = tf.constant(len(kernel.trainable_variables))
    return before, gpflow.utilities.read_values(gpflow.utilities.deepcopy(kernel)), count
