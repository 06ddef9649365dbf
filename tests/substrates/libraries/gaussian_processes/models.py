"""Programs of gpflow.models, posteriors and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.gaussian_processes.places import EVERYWHERE, ONLY_EAGER, TRAINED
from tests.substrates.libraries.programs import JIT, Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

INPUTS = np.array([[0.1, 0.5], [0.4, -0.2], [0.8, 0.9], [1.1, 0.1], [1.6, -0.6], [1.9, 0.3]])
OUTPUTS = np.sin(3 * INPUTS[:, :1]) + 0.3 * INPUTS[:, 1:]
COUNTS = np.array([[0.0], [2.0], [1.0], [3.0], [0.0], [1.0]])
NEW = np.array([[0.3, 0.1], [1.4, -0.4], [2.2, 0.8]])
INDUCING = np.array([[0.2, 0.2], [1.0, -0.1], [1.7, 0.4]])


def _kernel(gpflow: Any) -> Any:
    return gpflow.kernels.Matern32(1.2, [0.8, 1.4]) + gpflow.kernels.Constant(0.3)


MODELS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "GPR": lambda g, x, y: g.models.GPR(
        (x, y), _kernel(g), mean_function=g.functions.Constant(0.2), noise_variance=0.1
    ),
    "SGPR": lambda g, x, y: g.models.SGPR((x, y), _kernel(g), INDUCING, noise_variance=0.1),
    "GPRFITC": lambda g, x, y: g.models.GPRFITC((x, y), _kernel(g), INDUCING, noise_variance=0.1),
    "VGP": lambda g, x, y: g.models.VGP((x, y), _kernel(g), g.likelihoods.StudentT()),
    "GPMC": lambda g, x, y: g.models.GPMC((x, y), _kernel(g), g.likelihoods.StudentT()),
    "SGPMC": lambda g, x, y: g.models.SGPMC(
        (x, y), _kernel(g), g.likelihoods.Gaussian(0.1), inducing_variable=INDUCING
    ),
    "CGLB": lambda g, x, y: g.models.CGLB((x, y), _kernel(g), INDUCING, noise_variance=0.1),
}
# What depends on how many steps conjugate gradients take, and on variables that they assign.
_EAGER = ("CGLB",)
for _name, _make in MODELS.items():
    _places = ONLY_EAGER if _name in _EAGER else EVERYWHERE

    @program(f"models.{_name}", INPUTS, OUTPUTS, places=_places)
    def _(tf, gpflow, x, y, _make=_make):
        model, new = _make(gpflow, x, y), tf.constant(NEW)
        return (
            model.maximum_log_likelihood_objective(),
            model.log_prior_density(),
            model.predict_f(new),
            model.predict_f(new, full_cov=True),
            model.predict_y(new),
            model.predict_log_density((new, tf.constant([[0.1], [0.4], [-0.3]], x.dtype))),
        )

    @program(f"models.{_name}, gradients of its loss", INPUTS, OUTPUTS, places=(*TRAINED, JIT))
    def _(tf, gpflow, x, y, _make=_make):
        model = _make(gpflow, x, y)
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        gradients = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]


# GPflow's own check of shapes refuses what it predicts.
@program("models.VGPOpperArchambeau", INPUTS, OUTPUTS)
def _(tf, gpflow, x, y):
    likelihood = gpflow.likelihoods.Gaussian(0.2)
    model = gpflow.models.VGPOpperArchambeau((x, y), _kernel(gpflow), likelihood)
    return model.elbo()


def _svgp(gpflow: Any, **options: Any) -> Any:
    settings = {
        "kernel": _kernel(gpflow),
        "likelihood": gpflow.likelihoods.Poisson(),
        "inducing_variable": INDUCING,
        "q_mu": np.array([[0.4], [-0.3], [0.6]]),
        "num_data": 60,
    }
    return gpflow.models.SVGP(**{**settings, **options})


_SVGPS = {
    "": {},
    ": whitened not": {"whiten": False},
    ": of diagonals": {"q_diag": True, "q_sqrt": np.array([[0.5], [0.9], [1.3]])},
}
for _name, _options in _SVGPS.items():

    @program(f"models.SVGP{_name}", INPUTS, COUNTS)
    def _(tf, gpflow, x, y, _options=_options):
        model, new = _svgp(gpflow, **_options), tf.constant(NEW)
        return (
            model.elbo((x, y)),
            model.prior_kl(),
            model.predict_f(new, full_cov=True),
            model.predict_y(new),
            model.predict_log_density((x, y)),
        )


@program("models.SVGP: of several outputs", INPUTS)
def _(tf, gpflow, x):
    k = gpflow.kernels
    kernel = k.LinearCoregionalization(
        [k.SquaredExponential(), k.Matern52(0.5)], W=np.array([[0.4, 0.2], [1.0, -0.5], [0.3, 0.9]])
    )
    points = gpflow.inducing_variables.InducingPoints(INDUCING)
    inducing = gpflow.inducing_variables.SharedIndependentInducingVariables(points)
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(0.1),
        inducing,
        num_latent_gps=2,
        q_mu=np.array([[0.4, 0.1], [-0.3, 0.8], [0.6, -0.5]]),
    )
    y = tf.concat([x, x[:, :1] * 2], 1)
    return model.elbo((x, y)), model.predict_f(x), model.predict_f(x, full_output_cov=True)


@program("models.GPLVM", OUTPUTS, places=ONLY_EAGER)
def _(tf, gpflow, y):
    data = tf.concat([y, tf.square(y), tf.sin(4 * y)], 1)
    positions = tf.constant(INPUTS)
    model = gpflow.models.GPLVM(data, 2, X_data_mean=positions)
    return model.maximum_log_likelihood_objective(), model.predict_f(tf.constant(NEW))


@program("models.BayesianGPLVM", OUTPUTS, places=ONLY_EAGER)
def _(tf, gpflow, y):
    data = tf.concat([y, tf.square(y), tf.sin(4 * y)], 1)
    model = gpflow.models.BayesianGPLVM(
        data,
        tf.constant(INPUTS),
        tf.fill([6, 2], tf.constant(0.3, y.dtype)),
        gpflow.kernels.SquaredExponential(lengthscales=[0.7, 1.3]),
        inducing_variable=INDUCING,
    )
    return model.elbo(), model.predict_f(tf.constant(NEW))


for _name in ("GPR", "SGPR", "VGP"):

    @program(f"posteriors.{_name}Posterior", INPUTS, OUTPUTS, places=ONLY_EAGER)
    def _(tf, gpflow, x, y, _name=_name):
        posterior, new = MODELS[_name](gpflow, x, y).posterior(), tf.constant(NEW)
        return posterior.predict_f(new), posterior.predict_f(new, full_cov=True)


@program("posteriors.create_posterior", INPUTS, places=ONLY_EAGER)
def _(tf, gpflow, x):
    posterior = gpflow.posteriors.create_posterior(
        _kernel(gpflow),
        gpflow.inducing_variables.InducingPoints(INDUCING),
        tf.constant([[0.4], [-0.3], [0.6]], x.dtype),
        tf.eye(3, dtype=x.dtype)[None] * 0.7,
        whiten=True,
    )
    return posterior.predict_f(x), posterior.fused_predict_f(x, full_cov=True)


@program("models.GPR: samples of it", places=ONLY_EAGER)
def _(tf, gpflow):
    model = MODELS["GPR"](gpflow, tf.constant(INPUTS), tf.constant(OUTPUTS))
    tf.random.set_seed(3)
    return model.predict_f_samples(tf.constant(NEW), 4)


@program("models.training_loss", places=ONLY_EAGER)
def _(tf, gpflow):
    data = tf.constant(INPUTS), tf.constant(COUNTS)
    model = _svgp(gpflow)
    return (
        gpflow.models.training_loss(model, data),
        gpflow.models.training_loss_closure(model, data, compile=False)(),
        gpflow.models.maximum_log_likelihood_objective(model, data),
    )


# An optimum is where it is to the square root of the precision.
@program("optimizers.Scipy", places=TRAINED, tolerance=1e-4)
def _(tf, gpflow):
    model = MODELS["GPR"](gpflow, tf.constant(INPUTS), tf.constant(OUTPUTS))
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 8}
    )
    return model.training_loss()


@program("optimizers.NaturalGradient", places=TRAINED)
def _(tf, gpflow):
    model = _svgp(gpflow)
    loss = model.training_loss_closure((tf.constant(INPUTS), tf.constant(COUNTS)), compile=False)
    optimizer = gpflow.optimizers.NaturalGradient(gamma=0.3)
    for _ in range(3):
        optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])
    return loss(), tf.convert_to_tensor(model.q_mu), tf.convert_to_tensor(model.q_sqrt)


for _name in ("XiNat", "XiSqrtMeanVar"):

    @program(f"optimizers.{_name}", places=ONLY_EAGER)
    def _(tf, gpflow, _name=_name):
        mean = tf.constant([[0.4], [-0.3], [0.6]], tf.float64)
        root = tf.constant([[[0.5, 0.0, 0.0], [0.1, 0.7, 0.0], [-0.2, 0.3, 0.9]]], tf.float64)
        xi = getattr(gpflow.optimizers, _name)
        nat = xi.meanvarsqrt_to_xi(mean, root)
        return nat, xi.xi_to_meanvarsqrt(*nat)
