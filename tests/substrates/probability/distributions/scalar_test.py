"""Distributions of one number."""

import numpy as np
import tensorflow.compat.v1 as tf1
import tensorflow.compat.v2 as tf
from absl.testing import parameterized
from scipy import stats
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python.internal import tensorshape_util, test_util
from tensorflow_probability.python.math import gradient

JAX_MODE = False
NUMPY_MODE = False


class _Shared(object):
    """What each class below runs in its own dtype."""

    def testLogProbIsScipys(self):
        x = np.array([0.3, 1.2, 2.5], self.dtype)
        for ours, theirs in (
            (tfd.Normal(self.one, 2.0), stats.norm(1.0, 2.0)),
            (tfd.Gamma(concentration=self.one * 3, rate=2.0), stats.gamma(3.0, scale=0.5)),
            (tfd.StudentT(df=self.one * 4, loc=0.0, scale=1.0), stats.t(4.0)),
            (tfd.LogNormal(self.one * 0, 1.0), stats.lognorm(1.0)),
            (tfd.Weibull(concentration=self.one * 1.5, scale=1.0), stats.weibull_min(1.5)),
            (tfd.Gumbel(self.one, 1.0), stats.gumbel_r(1.0, 1.0)),
            (tfd.HalfCauchy(loc=0.0, scale=self.one), stats.halfcauchy()),
            (tfd.InverseGaussian(loc=self.one, concentration=1.0), stats.invgauss(1.0)),
        ):
            found = ours.log_prob(x)
            self.assertDTypeEqual(found, self.dtype)
            self.assertAllClose(theirs.logpdf(x), self.evaluate(found), rtol=1e-4, msg=ours.name)

    def testCdfAndQuantileUndoEachOther(self):
        p = np.array([0.1, 0.5, 0.9], self.dtype)
        for d in (
            tfd.Normal(self.one, 2.0),
            tfd.Cauchy(self.one, 2.0),
            tfd.Laplace(self.one, 2.0),
            tfd.Logistic(self.one, 2.0),
            tfd.Uniform(self.one, 3.0),
            tfd.Exponential(self.one),
            tfd.HalfNormal(self.one),
            tfd.Kumaraswamy(self.one * 2, 3.0),
            tfd.TruncatedNormal(self.one * 0, 1.0, -1.0, 2.0),
        ):
            self.assertAllClose(p, self.evaluate(d.cdf(d.quantile(p))), rtol=1e-4, msg=d.name)


class Float32Test(_Shared, test_util.TestCase):
    dtype = np.float32
    one = np.float32(1.0)


class Float64Test(_Shared, test_util.TestCase):
    dtype = np.float64
    one = np.float64(1.0)


class ScalarTest(test_util.TestCase):
    @parameterized.named_parameters(
        ("normal", lambda: tfd.Normal([0.0, 1.0], [1.0, 2.0], validate_args=True)),
        ("gamma", lambda: tfd.Gamma([2.0, 3.0], [1.0, 2.0], validate_args=True)),
        ("beta", lambda: tfd.Beta([2.0, 3.0], [1.0, 2.0], validate_args=True)),
        ("poisson", lambda: tfd.Poisson([2.0, 3.0], validate_args=True)),
        ("binomial", lambda: tfd.Binomial([5.0, 9.0], probs=[0.3, 0.6], validate_args=True)),
        ("bernoulli", lambda: tfd.Bernoulli(logits=[0.1, -0.6], validate_args=True)),
        ("geometric", lambda: tfd.Geometric(probs=[0.3, 0.6], validate_args=True)),
        ("negbinomial", lambda: tfd.NegativeBinomial([3.0, 4.0], probs=[0.3, 0.6])),
    )
    def testSamplesHaveTheMoments(self, make):
        d = make()
        n = 3000
        x = d.sample(n, seed=test_util.test_seed())
        self.assertEqual((n, 2), x.shape)
        self.assertEqual([2], tensorshape_util.as_list(d.batch_shape))
        self.assertAllEqual([2], self.evaluate(d.batch_shape_tensor()))
        self.assertEqual(tf.TensorShape([]), d.event_shape)
        x_ = self.evaluate(x)
        self.assertAllClose(x_.mean(0), self.evaluate(d.mean()), rtol=0.15, atol=0.1)
        self.assertAllClose(x_.var(0), self.evaluate(d.variance()), rtol=0.3)
        self.assertAllFinite(self.evaluate(d.log_prob(x)))

    def testRefusesWrongArguments(self):
        with self.assertRaisesOpError("must be positive"):
            self.evaluate(
                tfd.Normal(0.0, -1.0, validate_args=True).sample(seed=test_util.test_seed())
            )
        with self.assertRaisesOpError("must be positive"):
            self.evaluate(tfd.Gamma(-1.0, 1.0, validate_args=True).mean())
        with self.assertRaisesOpError("must be less than 1|must be <= 1|probs"):
            self.evaluate(tfd.Bernoulli(probs=1.5, validate_args=True).mean())
        with self.assertRaisesOpError("fractional"):
            self.evaluate(
                tfd.Poisson(
                    1.0, force_probs_to_zero_outside_support=False, validate_args=True
                ).log_prob(1.5)
            )
        with self.assertRaisesRegex(ValueError, "Must pass probs or logits|exactly one"):
            tfd.Bernoulli()
        with self.assertRaisesRegex(ValueError, "rate"):
            tfd.Poisson(rate=1.0, log_rate=0.0)

    def testPlaceholders(self):
        loc = tf1.placeholder_with_default(np.float32([1.0, 2.0]), shape=None)
        d = tfd.Normal(loc=self.maybe_static(loc, False), scale=1.0)
        self.assertAllEqual([2], self.evaluate(d.batch_shape_tensor()))
        self.assertAllClose([1.0, 2.0], self.evaluate(d.mode()))

    @test_util.jax_disable_variable_test
    @test_util.numpy_disable_gradient_test
    def testVariables(self):
        rate = tf.Variable(2.0)
        self.evaluate(rate.initializer)
        d = tfd.Poisson(rate=rate, validate_args=True)
        self.assertIs(rate, d.rate)
        self.assertLen(d.trainable_variables, 1)
        with tf.GradientTape() as tape:
            loss = -d.log_prob([1.0, 2.0])
        self.assertAllNotNone(tape.gradient(loss, d.trainable_variables))
        with self.assertRaisesOpError("non-negative"), tf.control_dependencies([rate.assign(-1.0)]):
            self.evaluate(d.mean())

    @test_util.numpy_disable_gradient_test
    def testReparameterized(self):
        seed = test_util.test_seed(sampler_type="stateless")
        for make in (
            lambda a: tfd.Normal(0.0, a),
            lambda a: tfd.Gamma(a, 1.0),
            lambda a: tfd.Beta(a, 2.0),
            lambda a: tfd.Laplace(a, 1.0),
            lambda a: tfd.TruncatedNormal(0.0, a, -2.0, 2.0),
            lambda a: tfd.StudentT(a, 0.0, 1.0),
            lambda a: tfd.Gumbel(0.0, a),
        ):

            def value(a):
                return tf.reduce_mean(make(a).sample(20, seed=seed))

            _, g = gradient.value_and_gradient(value, tf.constant(1.5))
            self.assertIsNotNone(g)
            self.assertAllFinite(self.evaluate(g))
            self.assertEqual(tfd.FULLY_REPARAMETERIZED, make(1.5).reparameterization_type)

    def testEntropyAndDivergence(self):
        a, b = tfd.Normal([0.0, 1.0], 1.0), tfd.Normal(1.0, [2.0, 3.0])
        x = a.sample(20000, seed=test_util.test_seed())
        sampled = tf.reduce_mean(a.log_prob(x) - b.log_prob(x), axis=0)
        self.assertAllClose(
            self.evaluate(sampled), self.evaluate(tfd.kl_divergence(a, b)), atol=0.05
        )
        self.assertAllClose(
            self.evaluate(a.cross_entropy(b)),
            self.evaluate(a.entropy() + a.kl_divergence(b)),
            rtol=1e-5,
        )
        with self.assertRaisesRegex(NotImplementedError, "No KL"):
            tfd.kl_divergence(a, tfd.Poisson(1.0))

    def testSurvivalInTheTails(self):
        x = np.array([-30.0, -5.0, 0.0, 5.0, 30.0], np.float64)
        d = tfd.Normal(np.float64(0.0), np.float64(1.0))
        self.assertAllClose(stats.norm.logcdf(x), self.evaluate(d.log_cdf(x)), rtol=1e-8)
        self.assertAllClose(
            stats.norm.logsf(x), self.evaluate(d.log_survival_function(x)), rtol=1e-8
        )

    def testSlicesAndCopies(self):
        d = tfd.Normal(tf.zeros([3, 1, 2]), tf.ones([4, 1]))
        self.assertAllEqual((3, 4, 2), d.batch_shape)
        self.assertAllEqual((4, 2), d[0].batch_shape)
        self.assertAllEqual((2, 2, 1, 2), d[1:, ::2, tf.newaxis].batch_shape)
        self.assertAllEqual((3, 4), d[..., -1].batch_shape)
        self.assertAllClose(3.0, self.evaluate(d.copy(loc=3.0).mean())[0, 0])
        self.assertEqual("Normal", d.name)
        self.assertIn("batch_shape=[3, 4, 2]", repr(d))
        self.assertIn("dtype=float32", str(d))

    def testPropertiesOfParameters(self):
        ps = tfd.Normal.parameter_properties()
        self.assertEqual(["loc", "scale"], list(ps))
        shapes = tfd.Gamma.param_static_shapes([7])
        self.assertAllEqual([7], shapes["concentration"])


@test_util.test_graph_and_eager_modes
class HelpersTest(test_util.DiscreteScalarDistributionTestHelpers, test_util.TestCase):
    def testCounts(self):
        self.run_test_sample_consistent_log_prob(
            self.evaluate,
            tfd.Poisson(rate=5.0),
            batch_size=1,
            num_samples=int(2e4),
            rtol=0.1,
            seed=test_util.test_seed(),
        )
        self.run_test_sample_consistent_mean_variance(
            self.evaluate,
            tfd.Poisson(rate=5.0),
            num_samples=int(2e4),
            rtol=0.1,
            seed=test_util.test_seed(),
        )


if __name__ == "__main__":
    test_util.main()
