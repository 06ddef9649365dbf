"""Every public distribution: its samples, densities and statistics agree with each other.

The constructor arguments are those of tests/substrates/libraries, which compares the results with
TensorFlow's. Here each distribution is compared with itself, so nothing needs TensorFlow. On JAX
everything that a test asks of a distribution is computed by one compiled function.
"""

import inspect

import numpy as np
import tensorflow.compat.v2 as tf
import tensorflow_probability as tfp
from absl.testing import parameterized
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python.internal import test_util

from tests.substrates.libraries.probability.distributions import (
    DISTRIBUTIONS,
    LEFT_OUT,
    Parameters,
)

JAX_MODE = False

if JAX_MODE:
    import jax

# Classes that no distribution is an instance of as they are.
ABSTRACT = {
    "AutoCompositeTensorDistribution",
    "Distribution",
    "JointDistribution",
    "RegisterKL",
    "ReparameterizationType",
}
# In float64 TensorFlow Probability mixes these with float32 numbers of its own, in the sampler or
# in the bijector. They fail so on TensorFlow too.
FLOAT32 = {
    "DoublesidedMaxwell",
    "InverseGaussian",
    "PlackettLuce",
    "Skellam",
}
# How many terms there are depends on the values, so that XLA does not compile them.
NOT_COMPILED = {"Bates", "Empirical"}
# Where their density is not 0 depends on the parameters, or a parameter has to have norm 1: the
# parameters of another distribution are not 1.05 times theirs.
NOT_SCALED = {
    "Bates",
    "Deterministic",
    "Empirical",
    "FiniteDiscrete",
    "GeneralizedExtremeValue",
    "GeneralizedPareto",
    "HalfCauchy",
    "HalfStudentT",
    "PERT",
    "Pareto",
    "PowerSpherical",
    "QuantizedDistribution",
    "Triangular",
    "TruncatedCauchy",
    "TruncatedNormal",
    "Uniform",
    "VectorDeterministic",
    "VonMisesFisher",
}
# The bijector of a sphere reaches one half of the sphere. The bijector of Blockwise takes a list, and
# its samples are arrays. The bijector of Wishart subtracts from a diagonal more than some samples have.
NOT_THERE_AND_BACK = {
    "Blockwise",
    "PowerSpherical",
    "SphericalUniform",
    "VonMisesFisher",
    "WishartLinearOperator",
    "WishartTriL",
}
# Their densities have functions of which TensorFlow Probability gives no derivative, or a wrong one,
# by some arguments: hyp2f1 by all but the last, Bessel's by the order, and where the order is
# negative. So there are samples and the derivative that TensorFlow finds at them by the parameters.
TENSORFLOWS_OWN = {
    "BetaQuotient": ([0.4, 1.7], 0.6436677333865206),
    "NoncentralChi2": ([[0.8, 2.5], [6.0, 0.3]], -0.12414589058031765),
    "Skellam": ([[-2.0, 3.0], [1.0, -1.0]], -0.590094778813737),
}
# Mean and variance of the angle on the circle.
CIRCULAR = {"VonMises"}
# They call their model once for each sample where nothing is compiled.
SLOW = {name for name in DISTRIBUTIONS if name.endswith("AutoBatched")}


def _made(name, dtype, unit=1.0):
    return DISTRIBUTIONS[name](Parameters(tf, tfp, tf.constant(unit, dtype)))


def _if_defined(method, *args):
    """Its result, or None where a distribution has no such method."""
    try:
        return method(*args)
    except (NotImplementedError, ValueError) as error:
        if isinstance(error, ValueError) and "all distributions are independent" not in str(error):
            raise
        return None


def _seen(name, dtype, samples, seed):
    """What a distribution says of `samples` of its samples, and of itself."""
    d = _made(name, dtype)
    x = d.sample(samples, seed=seed)
    bijector = _if_defined(d.experimental_default_event_space_bijector)
    there_and_back = None
    if bijector is not None and name not in NOT_THERE_AND_BACK:
        unconstrained = bijector.inverse(x)
        there_and_back = bijector.forward(tf.nest.map_structure(tf.identity, unconstrained))
    return {
        "x": x,
        "log_prob": d.log_prob(x),
        "prob": d.prob(x),
        "other_log_prob": _made(name, dtype, 1.05).log_prob(x),
        "mean": _if_defined(d.mean),
        "variance": _if_defined(d.variance),
        "stddev": _if_defined(d.stddev),
        "cdf": _if_defined(d.cdf, x),
        "there_and_back": there_and_back,
    }


def _compiled(name, function, *args):
    return jax.jit(function)(*args) if JAX_MODE and name not in NOT_COMPILED else function(*args)


class EveryDistributionTest(test_util.TestCase):
    def testTheTableHasEveryPublicClass(self):
        classes = {name for name in dir(tfd) if inspect.isclass(getattr(tfd, name))}
        tabled = {*DISTRIBUTIONS, *LEFT_OUT, *ABSTRACT}
        self.assertEmpty(classes - tabled)
        self.assertEmpty(tabled - set(dir(tfd)))

    @parameterized.parameters(*sorted(FLOAT32))
    def testFloat64Fails(self, name):
        if JAX_MODE:
            self.skipTest("operators of arrays of JAX promote dtypes")
        seed = test_util.test_seed(sampler_type="stateless")
        if name == "Skellam":
            self.assertDTypeEqual(_made(name, tf.float64).sample(seed=seed), np.float32)
        else:
            with self.assertRaisesRegex((ValueError, tf.errors.InvalidArgumentError), "float64"):
                _seen(name, tf.float64, 3, seed)

    @parameterized.named_parameters(*((name, name) for name in DISTRIBUTIONS))
    def testAgreesWithItself(self, name):
        n = 100 if name in SLOW else 2000
        dtype = tf.float32 if name in FLOAT32 else tf.float64
        seed = test_util.test_seed(sampler_type="stateless")
        seen = _compiled(name, lambda seed: _seen(name, dtype, n, seed), seed)
        seen = self.evaluate(seen)
        d = _made(name, dtype)
        self._checkShapesAndDtypes(d, dtype, n, seen)
        if name not in CIRCULAR:
            self._checkMoments(n, seen)
        if seen["cdf"] is not None and not d.event_shape:
            self._checkDistributionFunction(n, seen["x"], seen["cdf"])
        if name not in NOT_SCALED:
            # The mean of p'(x) / p(x) over samples of p is 1 for every density p'.
            ratio = np.exp(np.float64(seen["other_log_prob"] - seen["log_prob"]))
            error = ratio.std(0) / n**0.5
            self.assertAllLess(np.abs(ratio.mean(0) - 1) / (error + 1e-6), 5.0)
        if seen["there_and_back"] is not None:
            for part, back in zip(
                *(tf.nest.flatten(seen[key]) for key in ("x", "there_and_back")), strict=True
            ):
                self.assertAllClose(part, back, rtol=1e-5, atol=1e-5)
        if JAX_MODE and name not in NOT_COMPILED:
            self._checkDerivative(name, tf.nest.map_structure(lambda part: part[:20], seen["x"]))

    def _checkShapesAndDtypes(self, d, dtype, n, seen):
        for part, event, declared in zip(
            tf.nest.flatten(seen["x"]),
            tf.nest.flatten(d.event_shape),
            tf.nest.flatten(d.dtype),
            strict=True,
        ):
            if dtype == tf.float64:
                self.assertEqual(declared, tf.as_dtype(part.dtype))
            self.assertAllNotNan(part)
            self.assertEqual(n, part.shape[0])
            if event.rank is not None:
                self.assertEqual(event.as_list(), list(part.shape[part.ndim - len(event) :]))
        self.assertEqual(dtype, tf.as_dtype(seen["log_prob"].dtype))
        self.assertAllFinite(seen["log_prob"])
        self.assertAllClose(np.exp(seen["log_prob"]), seen["prob"], rtol=1e-4)
        batch = d.batch_shape
        if isinstance(batch, tf.TensorShape) and batch.rank is not None:
            self.assertEqual([n, *batch.as_list()], list(seen["log_prob"].shape))
            self.assertAllEqual(batch, d.batch_shape_tensor())

    def _checkMoments(self, n, seen):
        mean, variance = seen["mean"], seen["variance"]
        if mean is None or variance is None:
            return
        for part, center, spread, root in zip(
            *(tf.nest.flatten(seen[key]) for key in ("x", "mean", "variance", "stddev")),
            strict=True,
        ):
            self.assertAllClose(np.sqrt(spread), root, rtol=1e-5)
            self.assertEqual(part.shape[1:], np.shape(center))
            finite = np.isfinite(center) & np.isfinite(spread)
            off = np.abs(np.float64(part).mean(0) - center) / np.sqrt(spread / n + 1e-12)
            self.assertAllLess(np.where(finite, off, 0), 5.0)

    def _checkDistributionFunction(self, n, x, cdf):
        self.assertAllInRange(cdf, 0, 1 + 1e-6)
        x, cdf = np.sort(x, 0), np.sort(cdf, 0)
        for at in np.ndindex(x.shape[1:]):
            column = (slice(None), *at)
            found = np.searchsorted(x[column], x[column], "right") / n
            # Kolmogorov's distance: of 10000 runs, one has a larger one.
            self.assertAllLess(np.abs(found - cdf[column]), 2.2 / n**0.5)

    def _checkDerivative(self, name, x):
        """By the parameters: the one that jax.grad finds is a difference of values, and a tape's."""
        x, own = TENSORFLOWS_OWN.get(name, (x, None))
        x = tf.nest.map_structure(
            lambda part: tf.cast(part, tf.float64) if part.dtype == np.float32 else part,
            x if own is None else tf.constant(x, tf.float64),
        )

        def value(unit):
            return tf.reduce_mean(DISTRIBUTIONS[name](Parameters(tf, tfp, unit)).log_prob(x))

        compiled = jax.jit(jax.value_and_grad(value))
        _, derivative = compiled(tf.constant(1.0, tf.float64))
        self.assertAllFinite(derivative)
        if name not in NOT_SCALED:
            step = 1e-5
            ends = [compiled(tf.constant(1 + end, tf.float64))[0] for end in (-step, step)]
            difference = (ends[1] - ends[0]) / (2 * step)
            if own is None:
                self.assertAllClose(difference, derivative, rtol=1e-5, atol=1e-6)
            else:
                self.assertAllClose(own, derivative, rtol=1e-9)
                self.assertNotAllClose(difference, derivative, rtol=1e-2)
                unit = tf.constant(1.0, tf.float64)
                with tf.GradientTape() as tape:
                    tape.watch(unit)
                    mean = value(unit)
                self.assertAllClose(own, tape.gradient(mean, unit), rtol=1e-9)


if __name__ == "__main__":
    test_util.main()
