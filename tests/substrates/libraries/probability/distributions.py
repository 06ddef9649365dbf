"""Programs of every distribution: log_prob, samples of a seed, statistics, divergences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import (
    FLOAT32,
    GRAD,
    JAX,
    JIT,
    NUMPY,
    VMAP,
    Program,
)  # fmt: skip

SEED = (3, 7)
SAMPLES = 5
MANY = 400  # for their means

_POSITIVE = np.array([0.7, 1.9])
_LOCATION = np.array([-0.4, 1.3])
_LOGITS = np.array([[0.2, -1.0, 0.7], [1.1, 0.0, -0.3]])
_PROBS = np.array([0.2, 0.35, 0.45])
_VECTOR = np.array([0.3, -0.8, 1.2])
_DIAG = np.array([0.6, 1.1, 1.7])
_TRIL = np.array([[1.1, 0, 0], [0.3, 0.8, 0], [-0.4, 0.2, 1.5]])
_POINTS = np.linspace(-1, 1, 4)[:, None]


class Parameters:
    """Makes the parameters of a distribution, each multiplied by `unit`.

    `unit` is an argument of the program and 1.0, so that parameters are traced under `jax.jit`, are
    differentiated with respect to under `jax.grad`, and have a batch under `jax.vmap`.
    """

    def __init__(self, tf: Any, tfp: Any, unit: Any) -> None:
        self.tf, self.tfp, self.tfd, self.tfb = tf, tfp, tfp.distributions, tfp.bijectors
        self.dtype = tf.as_dtype(unit.dtype)
        self._unit = unit

    def __call__(self, value: Any) -> Any:
        return self.tf.constant(np.asarray(value), self.dtype) * self._unit

    def known(self, value: Any) -> Any:
        """A number of the dtype that depends on no argument, such as a count of trials."""
        return np.asarray(value, self.dtype.as_numpy_dtype)


Maker = Callable[[Parameters], Any]


@dataclasses.dataclass(frozen=True)
class _Known:
    value: int


def _of(name: str, *args: Any, **kwargs: Any) -> Maker:
    """A distribution of floating-point parameters; integers are given as they are."""

    def parameter(m: Parameters, value: Any) -> Any:
        if isinstance(value, _Known):
            return m.known(value.value)
        return value if isinstance(value, int) else m(value)

    def make(m: Parameters) -> Any:
        return getattr(m.tfd, name)(
            *(parameter(m, value) for value in args),
            **{key: parameter(m, value) for key, value in kwargs.items()},
        )

    return make


def _kernel(m: Parameters) -> Any:
    return m.tfp.math.psd_kernels.ExponentiatedQuadratic(m(1.3), m(0.6))


def _coroutine(m: Parameters) -> Any:
    def model() -> Any:
        a = yield m.tfd.JointDistributionCoroutine.Root(m.tfd.Normal(m(0.5), 1.0))
        yield m.tfd.Normal(a, m(2.0))

    return model


def _structural(m: Parameters) -> dict:
    return {"a": m.tfd.Normal(m(0.5), 1.0), "b": lambda a: m.tfd.Normal(a, m(2.0))}


DISTRIBUTIONS: dict[str, Maker] = {
    "Autoregressive": lambda m: m.tfd.Autoregressive(
        lambda x: m.tfd.Independent(
            m.tfd.Normal(0.4 * m.tf.concat([x[..., :1] * 0, x[..., :-1]], -1), m(1.0)), 1
        ),
        sample0=m(np.zeros(3)),
        num_steps=3,
    ),
    "BatchBroadcast": lambda m: m.tfd.BatchBroadcast(
        m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), [3, 2]
    ),
    "BatchConcat": lambda m: m.tfd.BatchConcat(
        [m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), m.tfd.Normal(m(_LOCATION * 2), m(_POSITIVE))],
        axis=0,
    ),
    "BatchReshape": lambda m: m.tfd.BatchReshape(m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), [2, 1]),
    "Bates": _of("Bates", _Known(5), -1.0, 2.0),
    "Bernoulli": _of("Bernoulli", logits=_LOCATION),
    "Beta": _of("Beta", _POSITIVE, 2.1),
    "BetaBinomial": _of("BetaBinomial", _Known(6), _POSITIVE, 1.4),
    "BetaQuotient": _of("BetaQuotient", 2.1, 1.3, 3.2, 1.8),
    "Binomial": _of("Binomial", _Known(7), logits=_LOCATION),
    "Blockwise": lambda m: m.tfd.Blockwise(
        [m.tfd.Normal(m(0.2), 1.0), m.tfd.MultivariateNormalTriL(m(_VECTOR), m(_TRIL))]
    ),
    "Categorical": _of("Categorical", logits=_LOGITS),
    "Cauchy": _of("Cauchy", _LOCATION, _POSITIVE),
    "Chi": _of("Chi", _POSITIVE + 1),
    "Chi2": _of("Chi2", _POSITIVE + 1),
    "CholeskyLKJ": _of("CholeskyLKJ", 3, 1.7),
    "ContinuousBernoulli": lambda m: m.tfd.ContinuousBernoulli(m(_LOCATION), dtype=m.dtype),
    "Deterministic": _of("Deterministic", _LOCATION),
    "VectorDeterministic": _of("VectorDeterministic", _VECTOR),
    "Dirichlet": _of("Dirichlet", _PROBS * 6),
    "DirichletMultinomial": _of("DirichletMultinomial", _Known(5), _PROBS * 6),
    "DoublesidedMaxwell": _of("DoublesidedMaxwell", _LOCATION, _POSITIVE),
    "DeterminantalPointProcess": lambda m: m.tfd.DeterminantalPointProcess(
        *m.tf.linalg.eigh(m(_TRIL @ _TRIL.T))
    ),
    "Empirical": _of("Empirical", np.array([1.0, 2.0, 2.0, 5.0])),
    "ExponentiallyModifiedGaussian": _of(
        "ExponentiallyModifiedGaussian", _LOCATION, _POSITIVE, 1.2
    ),
    "ExpGamma": _of("ExpGamma", _POSITIVE, 1.3),
    "ExpInverseGamma": _of("ExpInverseGamma", _POSITIVE, 1.3),
    "Exponential": _of("Exponential", _POSITIVE),
    "FiniteDiscrete": _of("FiniteDiscrete", np.array([1.0, 2.0, 4.0]), probs=_PROBS),
    "Gamma": _of("Gamma", _POSITIVE, 1.3),
    "GammaGamma": _of("GammaGamma", 2.1, 3.3, 1.8),
    "GaussianProcess": lambda m: m.tfd.GaussianProcess(
        _kernel(m), m(_POINTS), observation_noise_variance=m(0.2)
    ),
    "GaussianProcessRegressionModel": lambda m: m.tfd.GaussianProcessRegressionModel(
        _kernel(m),
        index_points=m(_POINTS),
        observation_index_points=m(_POINTS + 0.3),
        observations=m(np.sin(_POINTS[:, 0])),
        observation_noise_variance=m(0.2),
    ),
    "GeneralizedNormal": _of("GeneralizedNormal", _LOCATION, _POSITIVE, 1.5),
    "GeneralizedPareto": _of("GeneralizedPareto", _LOCATION, _POSITIVE, 0.2),
    "Geometric": _of("Geometric", logits=_LOCATION),
    "Gumbel": _of("Gumbel", _LOCATION, _POSITIVE),
    "GeneralizedExtremeValue": _of("GeneralizedExtremeValue", _LOCATION, _POSITIVE, 0.2),
    "HalfCauchy": _of("HalfCauchy", _LOCATION, _POSITIVE),
    "HalfNormal": _of("HalfNormal", _POSITIVE),
    "HalfStudentT": _of("HalfStudentT", 4.2, _LOCATION, _POSITIVE),
    "HiddenMarkovModel": lambda m: m.tfd.HiddenMarkovModel(
        m.tfd.Categorical(probs=m([0.7, 0.3])),
        m.tfd.Categorical(probs=m([[0.8, 0.2], [0.3, 0.7]])),
        m.tfd.Normal(m(_LOCATION), m(_POSITIVE)),
        num_steps=4,
    ),
    "Horseshoe": _of("Horseshoe", _POSITIVE),
    "Independent": lambda m: m.tfd.Independent(m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), 1),
    "Inflated": lambda m: m.tfd.Inflated(m.tfd.Poisson(m(2.0)), m(0.3)),
    "ZeroInflatedNegativeBinomial": lambda m: m.tfd.ZeroInflatedNegativeBinomial(
        inflated_loc_probs=m(0.3), total_count=m.known(3), logits=m(0.2)
    ),
    "InverseGamma": _of("InverseGamma", _POSITIVE + 2, 1.3),
    "InverseGaussian": _of("InverseGaussian", _POSITIVE, 1.3),
    "JohnsonSU": _of("JohnsonSU", -0.5, 2.0, _LOCATION, _POSITIVE),
    "JointDistributionCoroutine": lambda m: m.tfd.JointDistributionCoroutine(_coroutine(m)),
    "JointDistributionCoroutineAutoBatched": lambda m: m.tfd.JointDistributionCoroutineAutoBatched(
        _coroutine(m)
    ),
    "JointDistributionNamed": lambda m: m.tfd.JointDistributionNamed(_structural(m)),
    "JointDistributionNamedAutoBatched": lambda m: m.tfd.JointDistributionNamedAutoBatched(
        _structural(m)
    ),
    "JointDistributionSequential": lambda m: m.tfd.JointDistributionSequential(
        list(_structural(m).values())
    ),
    "JointDistributionSequentialAutoBatched": lambda m: (
        m.tfd.JointDistributionSequentialAutoBatched(list(_structural(m).values()))
    ),
    "Kumaraswamy": _of("Kumaraswamy", _POSITIVE, 1.3),
    "LambertWDistribution": lambda m: m.tfd.LambertWDistribution(
        m.tfd.Normal(m(0.1), 1.2),
        shift=m(0.1),
        scale=m(1.2),
        tailweight=m(0.1),
    ),
    "LambertWNormal": _of("LambertWNormal", _LOCATION, _POSITIVE, 0.1),
    "Laplace": _of("Laplace", _LOCATION, _POSITIVE),
    "LinearGaussianStateSpaceModel": lambda m: m.tfd.LinearGaussianStateSpaceModel(
        num_timesteps=4,
        transition_matrix=m([[1, 1], [0, 1]]),
        transition_noise=m.tfd.MultivariateNormalDiag(scale_diag=m([0.3, 0.2])),
        observation_matrix=m([[1, 0]]),
        observation_noise=m.tfd.MultivariateNormalDiag(scale_diag=m([0.5])),
        initial_state_prior=m.tfd.MultivariateNormalDiag(scale_diag=m([1.0, 0.7])),
    ),
    "LKJ": _of("LKJ", 3, 1.7),
    "Logistic": _of("Logistic", _LOCATION, _POSITIVE),
    "LogLogistic": _of("LogLogistic", _LOCATION, 0.3),
    "LogNormal": _of("LogNormal", _LOCATION, _POSITIVE),
    "LogitNormal": _of("LogitNormal", _LOCATION, _POSITIVE),
    "MarkovChain": lambda m: m.tfd.MarkovChain(
        m.tfd.Normal(m(0.2), 1.0),
        lambda _, x: m.tfd.Normal(x, m(0.5)),
        num_steps=4,
    ),
    "Masked": lambda m: m.tfd.Masked(
        m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), np.array([True, False])
    ),
    "MatrixNormalLinearOperator": lambda m: m.tfd.MatrixNormalLinearOperator(
        m(np.zeros((2, 3))),
        m.tf.linalg.LinearOperatorDiag(m(_POSITIVE)),
        m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL)),
    ),
    "MatrixTLinearOperator": lambda m: m.tfd.MatrixTLinearOperator(
        m(5.2),
        m(np.zeros((2, 3))),
        m.tf.linalg.LinearOperatorDiag(m(_POSITIVE)),
        m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL)),
    ),
    "Mixture": lambda m: m.tfd.Mixture(
        m.tfd.Categorical(probs=m([0.3, 0.7])),
        [m.tfd.Normal(m(-1.0), 0.5), m.tfd.Normal(m(1.0), 1.5)],
    ),
    "MixtureSameFamily": lambda m: m.tfd.MixtureSameFamily(
        m.tfd.Categorical(probs=m([0.3, 0.7])), m.tfd.Normal(m(_LOCATION), m(_POSITIVE))
    ),
    "Moyal": _of("Moyal", _LOCATION, _POSITIVE),
    "Multinomial": _of("Multinomial", _Known(6), logits=_LOGITS),
    "MultivariateStudentTLinearOperator": lambda m: m.tfd.MultivariateStudentTLinearOperator(
        m(4.2), m(_VECTOR), m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL))
    ),
    "MultivariateNormalDiag": _of("MultivariateNormalDiag", _VECTOR, _DIAG),
    "MultivariateNormalDiagPlusLowRank": _of(
        "MultivariateNormalDiagPlusLowRank",
        _VECTOR,
        _DIAG,
        scale_perturb_factor=_TRIL[:, :1] * 0.5,
    ),
    "MultivariateNormalDiagPlusLowRankCovariance": _of(
        "MultivariateNormalDiagPlusLowRankCovariance", _VECTOR, _DIAG, _TRIL[:, :1]
    ),
    "MultivariateNormalFullCovariance": _of(
        "MultivariateNormalFullCovariance", _VECTOR, _TRIL @ _TRIL.T
    ),
    "MultivariateNormalLinearOperator": lambda m: m.tfd.MultivariateNormalLinearOperator(
        m(_VECTOR), m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL))
    ),
    "MultivariateNormalTriL": _of("MultivariateNormalTriL", _VECTOR, _TRIL),
    "NegativeBinomial": _of("NegativeBinomial", _Known(3), logits=_LOCATION),
    "NoncentralChi2": _of("NoncentralChi2", _POSITIVE + 1, 1.2),
    "Normal": _of("Normal", _LOCATION, _POSITIVE),
    "NormalInverseGaussian": _of("NormalInverseGaussian", _LOCATION, _POSITIVE, 1.8, 0.7),
    "OneHotCategorical": _of("OneHotCategorical", logits=_LOGITS),
    "OrderedLogistic": _of("OrderedLogistic", np.array([-1.0, 0.5]), _LOCATION),
    "Pareto": _of("Pareto", _POSITIVE + 2, 1.2),
    "PERT": _of("PERT", -1.0, 0.5, 2.0),
    "PlackettLuce": _of("PlackettLuce", _PROBS),
    "Poisson": _of("Poisson", _POSITIVE),
    "PoissonLogNormalQuadratureCompound": _of("PoissonLogNormalQuadratureCompound", 0.3, 0.6),
    "PowerSpherical": _of("PowerSpherical", np.array([0.6, 0.8]), 2.3),
    "ProbitBernoulli": _of("ProbitBernoulli", probits=_LOCATION),
    "QuantizedDistribution": lambda m: m.tfd.QuantizedDistribution(
        m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), low=m(-3), high=m(4)
    ),
    "RelaxedBernoulli": _of("RelaxedBernoulli", 0.7, logits=_LOCATION),
    "ExpRelaxedOneHotCategorical": _of("ExpRelaxedOneHotCategorical", 0.7, _LOGITS),
    "RelaxedOneHotCategorical": _of("RelaxedOneHotCategorical", 0.7, _LOGITS),
    "Sample": lambda m: m.tfd.Sample(m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), [3]),
    "SigmoidBeta": _of("SigmoidBeta", _POSITIVE, 1.3),
    "SinhArcsinh": _of("SinhArcsinh", _LOCATION, _POSITIVE, skewness=0.3, tailweight=1.2),
    "Skellam": _of("Skellam", _POSITIVE, 1.3),
    "SphericalUniform": lambda m: m.tfd.SphericalUniform(3, dtype=m.dtype),
    "StoppingRatioLogistic": _of("StoppingRatioLogistic", np.array([-1.0, 0.5]), _LOCATION),
    "StudentT": _of("StudentT", 4.2, _LOCATION, _POSITIVE),
    "StudentTProcess": lambda m: m.tfd.StudentTProcess(
        m(4.2), _kernel(m), m(_POINTS), observation_noise_variance=m(0.2)
    ),
    "StudentTProcessRegressionModel": lambda m: m.tfd.StudentTProcessRegressionModel(
        m(4.2),
        _kernel(m),
        index_points=m(_POINTS),
        observation_index_points=m(_POINTS + 0.3),
        observations=m(np.sin(_POINTS[:, 0])),
        observation_noise_variance=m(0.2),
    ),
    "TransformedDistribution": lambda m: m.tfd.TransformedDistribution(
        m.tfd.Normal(m(_LOCATION), m(_POSITIVE)), m.tfb.Softplus()
    ),
    "Triangular": _of("Triangular", -1.0, 2.0, 0.5),
    "TruncatedCauchy": _of("TruncatedCauchy", _LOCATION, _POSITIVE, -2.0, 3.0),
    "TruncatedNormal": _of("TruncatedNormal", _LOCATION, _POSITIVE, -2.0, 3.0),
    "TwoPieceNormal": _of("TwoPieceNormal", _LOCATION, _POSITIVE, 1.4),
    "TwoPieceStudentT": _of("TwoPieceStudentT", 4.2, _LOCATION, _POSITIVE, 1.4),
    "Uniform": _of("Uniform", _LOCATION, _LOCATION + 2),
    "VariationalGaussianProcess": lambda m: m.tfd.VariationalGaussianProcess(
        _kernel(m),
        index_points=m(_POINTS),
        inducing_index_points=m(_POINTS[::2] + 0.1),
        variational_inducing_observations_loc=m([0.3, -0.2]),
        variational_inducing_observations_scale=m([[0.5, 0], [0.1, 0.4]]),
        observation_noise_variance=m(0.2),
    ),
    "VonMises": _of("VonMises", _LOCATION, _POSITIVE),
    "VonMisesFisher": _of("VonMisesFisher", np.array([0.6, 0.8, 0.0]), 1.4),
    "Weibull": _of("Weibull", _POSITIVE, 1.3),
    "WishartLinearOperator": lambda m: m.tfd.WishartLinearOperator(
        m(4.5), m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL))
    ),
    "WishartTriL": _of("WishartTriL", 4.5, _TRIL),
    "Zipf": _of("Zipf", _POSITIVE + 2),
}

# Distributions that are not asked for, and why.
LEFT_OUT = {
    "FlatDirichlet": "its sampler fails on TensorFlow itself with NumPy 2",
    "PixelCNN": "is made of Keras layers",
}

# What a distribution says of itself, and of a point. Not every one has all.
_STATISTICS = ("mean", "variance", "stddev", "covariance", "mode", "entropy")
_OF_POINTS = ("cdf", "log_survival_function")

PROGRAMS: list[Program] = []


def _add(name: str, function: Callable, arrays: Any, *places: str, **options: Any) -> None:
    PROGRAMS.append(Program(f"distributions.{name}", function, arrays, places, **options))


def _points(make: Maker) -> Callable[[Any, Any], Sequence[Any]]:
    """The unit of the parameters, and TensorFlow's own samples."""

    def arrays(tf: Any, tfp: Any) -> Sequence[Any]:
        unit = tf.constant(1.0, tf.float64)
        x = make(Parameters(tf, tfp, unit)).sample(SAMPLES, seed=SEED)
        return [unit, *tf.nest.flatten(x)]

    return arrays


def _at_points(make: Maker, method: str) -> Callable:
    def call(tf: Any, tfp: Any, unit: Any, *x: Any) -> Any:
        d = make(Parameters(tf, tfp, unit))
        return getattr(d, method)(tf.nest.pack_sequence_as(d.dtype, list(x)))

    return call


def _statistic(make: Maker, method: str) -> Callable:
    return lambda tf, tfp, unit: getattr(make(Parameters(tf, tfp, unit)), method)()


def _sample(make: Maker, count: int) -> Callable:
    return lambda tf, tfp, unit: make(Parameters(tf, tfp, unit)).sample(count, seed=SEED)


def _quantile(make: Maker) -> Callable:
    def call(tf: Any, tfp: Any, unit: Any) -> Any:
        d = make(Parameters(tf, tfp, unit))
        shape = [2, *[1] * len(d.batch_shape)]
        return d.quantile(tf.constant([0.3, 0.8], unit.dtype, shape))

    return call


def _divergence(make: Maker) -> Callable:
    def call(tf: Any, tfp: Any, unit: Any) -> Any:
        other = make(Parameters(tf, tfp, unit * 1.1))
        return make(Parameters(tf, tfp, unit)).kl_divergence(other)

    return call


_UNIT = (np.float64(1),)
_PLAIN = (NUMPY, NUMPY + FLOAT32, JIT, JIT + FLOAT32)

for _name, _make in DISTRIBUTIONS.items():
    _add(_name, _at_points(_make, "log_prob"), _points(_make), *_PLAIN, JAX, GRAD, VMAP)
    _add(
        f"{_name}: sample", _sample(_make, SAMPLES), _UNIT, *_PLAIN, JAX, many=_sample(_make, MANY)
    )
    for _method in _STATISTICS:
        _add(f"{_name}: {_method}", _statistic(_make, _method), _UNIT, *_PLAIN)
    for _method in _OF_POINTS:
        _add(f"{_name}: {_method}", _at_points(_make, _method), _points(_make), *_PLAIN)
    _add(f"{_name}: quantile", _quantile(_make), _UNIT, *_PLAIN)
    _add(f"kl_divergence: {_name}", _divergence(_make), _UNIT, *_PLAIN, GRAD)
