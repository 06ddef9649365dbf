"""One or more uses of every distribution of TensorFlow Probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# Each makes a distribution of (tf, tfd, tfb, tfp); arrays are float32, batch shapes small.
Maker = Callable[[Any, Any, Any, Any], Any]

_POSITIVE = np.array([0.7, 1.9], np.float32)
_LOCATION = np.array([-0.4, 1.3], np.float32)
_LOGITS = np.array([[0.2, -1.0, 0.7], [1.1, 0.0, -0.3]], np.float32)
_PROBS = np.array([0.2, 0.35, 0.45], np.float32)
_VECTOR = np.array([0.3, -0.8, 1.2], np.float32)
_DIAG = np.array([0.6, 1.1, 1.7], np.float32)
_TRIL = np.array([[1.1, 0, 0], [0.3, 0.8, 0], [-0.4, 0.2, 1.5]], np.float32)
_POINTS = np.linspace(-1, 1, 4, dtype=np.float32)[:, None]


def _of(name: str, *args: Any, **kwargs: Any) -> Maker:
    return lambda tf, tfd, tfb, tfp: getattr(tfd, name)(*args, **kwargs)


def _kernel(tfp: Any) -> Any:
    return tfp.math.psd_kernels.ExponentiatedQuadratic(np.float32(1.3), np.float32(0.6))


def _coroutine(tfd: Any) -> Any:
    def model() -> Any:
        a = yield tfd.JointDistributionCoroutine.Root(tfd.Normal(np.float32(0.5), 1.0))
        yield tfd.Normal(a, np.float32(2.0))

    return model


def _structural(tfd: Any) -> dict:
    return {"a": tfd.Normal(np.float32(0.5), 1.0), "b": lambda a: tfd.Normal(a, np.float32(2.0))}


DISTRIBUTIONS: dict[str, Maker] = {
    "Autoregressive": lambda tf, tfd, tfb, tfp: tfd.Autoregressive(
        lambda x: tfd.Independent(
            tfd.Normal(0.4 * tf.concat([x[..., :1] * 0, x[..., :-1]], -1), np.float32(1.0)), 1
        ),
        sample0=np.zeros(3, np.float32),
        num_steps=3,
    ),
    "BatchBroadcast": lambda tf, tfd, tfb, tfp: tfd.BatchBroadcast(
        tfd.Normal(_LOCATION, _POSITIVE), [3, 2]
    ),
    "BatchConcat": lambda tf, tfd, tfb, tfp: tfd.BatchConcat(
        [tfd.Normal(_LOCATION, _POSITIVE), tfd.Normal(_LOCATION * 2, _POSITIVE)], axis=0
    ),
    "BatchReshape": lambda tf, tfd, tfb, tfp: tfd.BatchReshape(
        tfd.Normal(_LOCATION, _POSITIVE), [2, 1]
    ),
    "Bates": _of("Bates", np.float32(5), np.float32(-1), np.float32(2)),
    "Bernoulli": _of("Bernoulli", logits=_LOCATION),
    "Beta": _of("Beta", _POSITIVE, np.float32(2.1)),
    "BetaBinomial": _of("BetaBinomial", np.float32(6), _POSITIVE, np.float32(1.4)),
    "BetaQuotient": _of("BetaQuotient", *map(np.float32, (2.1, 1.3, 3.2, 1.8))),
    "Binomial": _of("Binomial", np.float32(7), logits=_LOCATION),
    "Blockwise": lambda tf, tfd, tfb, tfp: tfd.Blockwise(
        [tfd.Normal(np.float32(0.2), 1.0), tfd.MultivariateNormalTriL(_VECTOR, _TRIL)]
    ),
    "Categorical": _of("Categorical", logits=_LOGITS),
    "Cauchy": _of("Cauchy", _LOCATION, _POSITIVE),
    "Chi": _of("Chi", _POSITIVE + 1),
    "Chi2": _of("Chi2", _POSITIVE + 1),
    "CholeskyLKJ": _of("CholeskyLKJ", 3, np.float32(1.7)),
    "ContinuousBernoulli": _of("ContinuousBernoulli", logits=_LOCATION),
    "Deterministic": _of("Deterministic", _LOCATION),
    "VectorDeterministic": _of("VectorDeterministic", _VECTOR),
    "Dirichlet": _of("Dirichlet", _PROBS * 6),
    "DirichletMultinomial": _of("DirichletMultinomial", np.float32(5), _PROBS * 6),
    "DoublesidedMaxwell": _of("DoublesidedMaxwell", _LOCATION, _POSITIVE),
    "DeterminantalPointProcess": lambda tf, tfd, tfb, tfp: tfd.DeterminantalPointProcess(
        *tf.linalg.eigh(_TRIL @ _TRIL.T)
    ),
    "Empirical": _of("Empirical", np.array([1.0, 2.0, 2.0, 5.0], np.float32)),
    "ExponentiallyModifiedGaussian": _of(
        "ExponentiallyModifiedGaussian", _LOCATION, _POSITIVE, np.float32(1.2)
    ),
    "ExpGamma": _of("ExpGamma", _POSITIVE, np.float32(1.3)),
    "ExpInverseGamma": _of("ExpInverseGamma", _POSITIVE, np.float32(1.3)),
    "Exponential": _of("Exponential", _POSITIVE),
    "FiniteDiscrete": _of("FiniteDiscrete", np.array([1.0, 2.0, 4.0], np.float32), probs=_PROBS),
    "Gamma": _of("Gamma", _POSITIVE, np.float32(1.3)),
    "GammaGamma": _of("GammaGamma", *map(np.float32, (2.1, 3.3, 1.8))),
    "GaussianProcess": lambda tf, tfd, tfb, tfp: tfd.GaussianProcess(
        _kernel(tfp), _POINTS, observation_noise_variance=np.float32(0.2)
    ),
    "GaussianProcessRegressionModel": lambda tf, tfd, tfb, tfp: tfd.GaussianProcessRegressionModel(
        _kernel(tfp),
        index_points=_POINTS,
        observation_index_points=_POINTS + np.float32(0.3),
        observations=np.sin(_POINTS[:, 0]),
        observation_noise_variance=np.float32(0.2),
    ),
    "GeneralizedNormal": _of("GeneralizedNormal", _LOCATION, _POSITIVE, np.float32(1.5)),
    "GeneralizedPareto": _of("GeneralizedPareto", _LOCATION, _POSITIVE, np.float32(0.2)),
    "Geometric": _of("Geometric", logits=_LOCATION),
    "Gumbel": _of("Gumbel", _LOCATION, _POSITIVE),
    "GeneralizedExtremeValue": _of(
        "GeneralizedExtremeValue", _LOCATION, _POSITIVE, np.float32(0.2)
    ),
    "HalfCauchy": _of("HalfCauchy", _LOCATION, _POSITIVE),
    "HalfNormal": _of("HalfNormal", _POSITIVE),
    "HalfStudentT": _of("HalfStudentT", np.float32(4.2), _LOCATION, _POSITIVE),
    "HiddenMarkovModel": lambda tf, tfd, tfb, tfp: tfd.HiddenMarkovModel(
        tfd.Categorical(probs=np.array([0.7, 0.3], np.float32)),
        tfd.Categorical(probs=np.array([[0.8, 0.2], [0.3, 0.7]], np.float32)),
        tfd.Normal(_LOCATION, _POSITIVE),
        num_steps=4,
    ),
    "Horseshoe": _of("Horseshoe", _POSITIVE),
    "Independent": lambda tf, tfd, tfb, tfp: tfd.Independent(tfd.Normal(_LOCATION, _POSITIVE), 1),
    "Inflated": lambda tf, tfd, tfb, tfp: tfd.Inflated(
        tfd.Poisson(np.float32(2.0)), np.float32(0.3)
    ),
    "ZeroInflatedNegativeBinomial": lambda tf, tfd, tfb, tfp: tfd.ZeroInflatedNegativeBinomial(
        inflated_loc_probs=np.float32(0.3), total_count=np.float32(3), logits=np.float32(0.2)
    ),
    "InverseGamma": _of("InverseGamma", _POSITIVE + 2, np.float32(1.3)),
    "InverseGaussian": _of("InverseGaussian", _POSITIVE, np.float32(1.3)),
    "JohnsonSU": _of("JohnsonSU", *map(np.float32, (-0.5, 2.0)), _LOCATION, _POSITIVE),
    "JointDistributionCoroutine": lambda tf, tfd, tfb, tfp: tfd.JointDistributionCoroutine(
        _coroutine(tfd)
    ),
    "JointDistributionCoroutineAutoBatched": lambda tf, tfd, tfb, tfp: (
        tfd.JointDistributionCoroutineAutoBatched(_coroutine(tfd))
    ),
    "JointDistributionNamed": lambda tf, tfd, tfb, tfp: tfd.JointDistributionNamed(
        _structural(tfd)
    ),
    "JointDistributionNamedAutoBatched": lambda tf, tfd, tfb, tfp: (
        tfd.JointDistributionNamedAutoBatched(_structural(tfd))
    ),
    "JointDistributionSequential": lambda tf, tfd, tfb, tfp: tfd.JointDistributionSequential(
        list(_structural(tfd).values())
    ),
    "JointDistributionSequentialAutoBatched": lambda tf, tfd, tfb, tfp: (
        tfd.JointDistributionSequentialAutoBatched(list(_structural(tfd).values()))
    ),
    "Kumaraswamy": _of("Kumaraswamy", _POSITIVE, np.float32(1.3)),
    "LambertWDistribution": lambda tf, tfd, tfb, tfp: tfd.LambertWDistribution(
        tfd.Normal(np.float32(0.1), 1.2),
        shift=np.float32(0.1),
        scale=np.float32(1.2),
        tailweight=np.float32(0.1),
    ),
    "LambertWNormal": _of("LambertWNormal", _LOCATION, _POSITIVE, np.float32(0.1)),
    "Laplace": _of("Laplace", _LOCATION, _POSITIVE),
    "LinearGaussianStateSpaceModel": lambda tf, tfd, tfb, tfp: tfd.LinearGaussianStateSpaceModel(
        num_timesteps=4,
        transition_matrix=np.array([[1, 1], [0, 1]], np.float32),
        transition_noise=tfd.MultivariateNormalDiag(scale_diag=np.array([0.3, 0.2], np.float32)),
        observation_matrix=np.array([[1, 0]], np.float32),
        observation_noise=tfd.MultivariateNormalDiag(scale_diag=np.array([0.5], np.float32)),
        initial_state_prior=tfd.MultivariateNormalDiag(scale_diag=np.array([1.0, 0.7], np.float32)),
    ),
    "LKJ": _of("LKJ", 3, np.float32(1.7)),
    "Logistic": _of("Logistic", _LOCATION, _POSITIVE),
    "LogLogistic": _of("LogLogistic", _LOCATION, np.float32(0.3)),
    "LogNormal": _of("LogNormal", _LOCATION, _POSITIVE),
    "LogitNormal": _of("LogitNormal", _LOCATION, _POSITIVE),
    "MarkovChain": lambda tf, tfd, tfb, tfp: tfd.MarkovChain(
        tfd.Normal(np.float32(0.2), 1.0),
        lambda _, x: tfd.Normal(x, np.float32(0.5)),
        num_steps=4,
    ),
    "Masked": lambda tf, tfd, tfb, tfp: tfd.Masked(
        tfd.Normal(_LOCATION, _POSITIVE), np.array([True, False])
    ),
    "MatrixNormalLinearOperator": lambda tf, tfd, tfb, tfp: tfd.MatrixNormalLinearOperator(
        np.zeros((2, 3), np.float32),
        tf.linalg.LinearOperatorDiag(_POSITIVE),
        tf.linalg.LinearOperatorLowerTriangular(_TRIL),
    ),
    "MatrixTLinearOperator": lambda tf, tfd, tfb, tfp: tfd.MatrixTLinearOperator(
        np.float32(5.2),
        np.zeros((2, 3), np.float32),
        tf.linalg.LinearOperatorDiag(_POSITIVE),
        tf.linalg.LinearOperatorLowerTriangular(_TRIL),
    ),
    "Mixture": lambda tf, tfd, tfb, tfp: tfd.Mixture(
        tfd.Categorical(probs=np.array([0.3, 0.7], np.float32)),
        [tfd.Normal(np.float32(-1.0), 0.5), tfd.Normal(np.float32(1.0), 1.5)],
    ),
    "MixtureSameFamily": lambda tf, tfd, tfb, tfp: tfd.MixtureSameFamily(
        tfd.Categorical(probs=np.array([0.3, 0.7], np.float32)), tfd.Normal(_LOCATION, _POSITIVE)
    ),
    "Moyal": _of("Moyal", _LOCATION, _POSITIVE),
    "Multinomial": _of("Multinomial", np.float32(6), logits=_LOGITS),
    "MultivariateStudentTLinearOperator": lambda tf, tfd, tfb, tfp: (
        tfd.MultivariateStudentTLinearOperator(
            np.float32(4.2), _VECTOR, tf.linalg.LinearOperatorLowerTriangular(_TRIL)
        )
    ),
    "MultivariateNormalDiag": _of("MultivariateNormalDiag", _VECTOR, _DIAG),
    "MultivariateNormalDiagPlusLowRank": _of(
        "MultivariateNormalDiagPlusLowRank",
        _VECTOR,
        _DIAG,
        scale_perturb_factor=_TRIL[:, :1] * np.float32(0.5),
    ),
    "MultivariateNormalDiagPlusLowRankCovariance": _of(
        "MultivariateNormalDiagPlusLowRankCovariance", _VECTOR, _DIAG, _TRIL[:, :1]
    ),
    "MultivariateNormalFullCovariance": _of(
        "MultivariateNormalFullCovariance", _VECTOR, _TRIL @ _TRIL.T
    ),
    "MultivariateNormalLinearOperator": lambda tf, tfd, tfb, tfp: (
        tfd.MultivariateNormalLinearOperator(
            _VECTOR, tf.linalg.LinearOperatorLowerTriangular(_TRIL)
        )
    ),
    "MultivariateNormalTriL": _of("MultivariateNormalTriL", _VECTOR, _TRIL),
    "NegativeBinomial": _of("NegativeBinomial", np.float32(3), logits=_LOCATION),
    "NoncentralChi2": _of("NoncentralChi2", _POSITIVE + 1, np.float32(1.2)),
    "Normal": _of("Normal", _LOCATION, _POSITIVE),
    "NormalInverseGaussian": _of(
        "NormalInverseGaussian", _LOCATION, _POSITIVE, np.float32(1.8), np.float32(0.7)
    ),
    "OneHotCategorical": _of("OneHotCategorical", logits=_LOGITS),
    "OrderedLogistic": _of("OrderedLogistic", np.array([-1.0, 0.5], np.float32), _LOCATION),
    "Pareto": _of("Pareto", _POSITIVE + 2, np.float32(1.2)),
    "PERT": _of("PERT", *map(np.float32, (-1.0, 0.5, 2.0))),
    "PlackettLuce": _of("PlackettLuce", _PROBS),
    "Poisson": _of("Poisson", _POSITIVE),
    "PoissonLogNormalQuadratureCompound": _of(
        "PoissonLogNormalQuadratureCompound", np.float32(0.3), np.float32(0.6)
    ),
    "PowerSpherical": _of("PowerSpherical", np.array([0.6, 0.8], np.float32), np.float32(2.3)),
    "ProbitBernoulli": _of("ProbitBernoulli", probits=_LOCATION),
    "QuantizedDistribution": lambda tf, tfd, tfb, tfp: tfd.QuantizedDistribution(
        tfd.Normal(_LOCATION, _POSITIVE), low=np.float32(-3), high=np.float32(4)
    ),
    "RelaxedBernoulli": _of("RelaxedBernoulli", np.float32(0.7), logits=_LOCATION),
    "ExpRelaxedOneHotCategorical": _of("ExpRelaxedOneHotCategorical", np.float32(0.7), _LOGITS),
    "RelaxedOneHotCategorical": _of("RelaxedOneHotCategorical", np.float32(0.7), _LOGITS),
    "Sample": lambda tf, tfd, tfb, tfp: tfd.Sample(tfd.Normal(_LOCATION, _POSITIVE), [3]),
    "SigmoidBeta": _of("SigmoidBeta", _POSITIVE, np.float32(1.3)),
    "SinhArcsinh": _of(
        "SinhArcsinh", _LOCATION, _POSITIVE, skewness=np.float32(0.3), tailweight=np.float32(1.2)
    ),
    "Skellam": _of("Skellam", _POSITIVE, np.float32(1.3)),
    "SphericalUniform": _of("SphericalUniform", 3),
    "StoppingRatioLogistic": _of(
        "StoppingRatioLogistic", np.array([-1.0, 0.5], np.float32), _LOCATION
    ),
    "StudentT": _of("StudentT", np.float32(4.2), _LOCATION, _POSITIVE),
    "StudentTProcess": lambda tf, tfd, tfb, tfp: tfd.StudentTProcess(
        np.float32(4.2), _kernel(tfp), _POINTS, observation_noise_variance=np.float32(0.2)
    ),
    "StudentTProcessRegressionModel": lambda tf, tfd, tfb, tfp: tfd.StudentTProcessRegressionModel(
        np.float32(4.2),
        _kernel(tfp),
        index_points=_POINTS,
        observation_index_points=_POINTS + np.float32(0.3),
        observations=np.sin(_POINTS[:, 0]),
        observation_noise_variance=np.float32(0.2),
    ),
    "TransformedDistribution": lambda tf, tfd, tfb, tfp: tfd.TransformedDistribution(
        tfd.Normal(_LOCATION, _POSITIVE), tfb.Softplus()
    ),
    "Triangular": _of("Triangular", *map(np.float32, (-1.0, 2.0, 0.5))),
    "TruncatedCauchy": _of("TruncatedCauchy", _LOCATION, _POSITIVE, *map(np.float32, (-2, 3))),
    "TruncatedNormal": _of("TruncatedNormal", _LOCATION, _POSITIVE, *map(np.float32, (-2, 3))),
    "TwoPieceNormal": _of("TwoPieceNormal", _LOCATION, _POSITIVE, np.float32(1.4)),
    "TwoPieceStudentT": _of(
        "TwoPieceStudentT", np.float32(4.2), _LOCATION, _POSITIVE, np.float32(1.4)
    ),
    "Uniform": _of("Uniform", _LOCATION, _LOCATION + 2),
    "VariationalGaussianProcess": lambda tf, tfd, tfb, tfp: tfd.VariationalGaussianProcess(
        _kernel(tfp),
        index_points=_POINTS,
        inducing_index_points=_POINTS[::2] + np.float32(0.1),
        variational_inducing_observations_loc=np.array([0.3, -0.2], np.float32),
        variational_inducing_observations_scale=np.array([[0.5, 0], [0.1, 0.4]], np.float32),
        observation_noise_variance=np.float32(0.2),
    ),
    "VonMises": _of("VonMises", _LOCATION, _POSITIVE),
    "VonMisesFisher": _of("VonMisesFisher", np.array([0.6, 0.8, 0.0], np.float32), np.float32(1.4)),
    "Weibull": _of("Weibull", _POSITIVE, np.float32(1.3)),
    "WishartLinearOperator": lambda tf, tfd, tfb, tfp: tfd.WishartLinearOperator(
        np.float32(4.5), tf.linalg.LinearOperatorLowerTriangular(_TRIL)
    ),
    "WishartTriL": _of("WishartTriL", np.float32(4.5), _TRIL),
    "Zipf": _of("Zipf", _POSITIVE + 2),
}

# Distributions that are not asked for, and why.
LEFT_OUT = {
    "FlatDirichlet": "its sampler fails on TensorFlow itself with NumPy 2",
    "PixelCNN": "is made of Keras layers",
}

# Methods without arguments that say something of the distribution.
STATISTICS = ("mean", "variance", "stddev", "mode", "entropy", "covariance")
