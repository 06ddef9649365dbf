"""Distributions of vectors and matrices, and those made of others."""

import numpy as np
import tensorflow.compat.v2 as tf
from absl.testing import parameterized
from scipy import stats
from tensorflow_probability.python import bijectors as tfb
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python.internal import prefer_static as ps
from tensorflow_probability.python.internal import samplers, test_util
from tensorflow_probability.python.math import gradient

JAX_MODE = False
NUMPY_MODE = False


def _covariance(n, seed=3):
    root = np.random.RandomState(seed).randn(n, n)
    return (root @ root.T + n * np.eye(n)).astype(np.float64)


class VectorsTest(test_util.VectorDistributionTestHelpers, test_util.TestCase):
    @parameterized.parameters("full", "tril", "diag", "operator", "lowrank")
    def testGaussians(self, kind):
        cov = _covariance(3)
        loc = np.array([1.0, -2.0, 0.5])
        if kind == "diag":
            cov = np.diag(np.diag(cov))
        if kind == "lowrank":
            cov = np.diag([1.0, 2.0, 3.0]) @ np.diag([1.0, 2.0, 3.0])
        d = {
            "full": lambda: tfd.MultivariateNormalFullCovariance(loc, cov),
            "tril": lambda: tfd.MultivariateNormalTriL(loc, np.linalg.cholesky(cov)),
            "diag": lambda: tfd.MultivariateNormalDiag(loc, np.sqrt(np.diag(cov))),
            "operator": lambda: tfd.MultivariateNormalLinearOperator(
                loc, tf.linalg.LinearOperatorLowerTriangular(np.linalg.cholesky(cov))
            ),
            "lowrank": lambda: tfd.MultivariateNormalLinearOperator(
                loc, tf.linalg.LinearOperatorDiag(np.array([1.0, 2.0, 3.0]))
            ),
        }[kind]()
        x = d.sample([7], seed=test_util.test_seed())
        self.assertEqual((7, 3), x.shape)
        x_, lp = self.evaluate([x, d.log_prob(x)])
        self.assertAllClose(stats.multivariate_normal(loc, cov).logpdf(x_), lp)
        self.assertAllClose(cov, self.evaluate(d.covariance()))
        self.assertAllClose(np.diag(cov), self.evaluate(d.variance()))
        self.assertAllClose(
            stats.multivariate_normal(loc, cov).entropy(), self.evaluate(d.entropy())
        )

    def testMoments(self):
        d = tfd.MultivariateNormalTriL(
            [[0.0, 1.0]], scale_tril=np.linalg.cholesky(_covariance(2)).astype(np.float32)
        )
        self.run_test_sample_consistent_mean_covariance(
            self.evaluate,
            d,
            num_samples=int(2e4),
            rtol=0.1,
            cov_rtol=0.1,
            seed=test_util.test_seed(),
        )

    def testSimplex(self):
        a = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]])
        d = tfd.Dirichlet(a, validate_args=True)
        x = d.sample(4, seed=test_util.test_seed())
        self.assertAllClose(np.ones([4, 2]), self.evaluate(tf.reduce_sum(x, -1)))
        y = np.array([0.2, 0.3, 0.5])
        self.assertAllClose([stats.dirichlet(r).logpdf(y) for r in a], self.evaluate(d.log_prob(y)))
        with self.assertRaisesOpError("ample last-dimension must sum to `1`"):
            self.evaluate(d.log_prob([0.5, 0.6, 0.1]))
        m = tfd.DirichletMultinomial([5.0, 6.0], a.astype(np.float32))
        self.assertAllClose(
            [5.0, 6.0], self.evaluate(tf.reduce_sum(m.sample(seed=test_util.test_seed()), -1))
        )

    def testMatrices(self):
        w = tfd.WishartTriL(df=5.0, scale_tril=np.eye(3, dtype=np.float32))
        x = w.sample(3, seed=test_util.test_seed())
        self.assertAllClose(
            stats.wishart(5, np.eye(3)).logpdf(np.moveaxis(self.evaluate(x), 0, -1)),
            self.evaluate(w.log_prob(x)),
            rtol=1e-4,
        )
        lkj = tfd.LKJ(dimension=3, concentration=2.0)
        y = self.evaluate(lkj.sample(10, seed=test_util.test_seed()))
        self.assertAllClose(np.ones([10, 3]), np.diagonal(y, axis1=-2, axis2=-1))
        self.assertAllFinite(self.evaluate(lkj.log_prob(y)))
        g = self.evaluate(
            tfd.CholeskyLKJ(dimension=3, concentration=2.0).sample(2, seed=test_util.test_seed())
        )
        self.assertAllClose(np.ones([2, 3]), np.sum(g**2, -1))

    def testSphere(self):
        d = tfd.VonMisesFisher([1.0, 0.0, 0.0], 5.0)
        x = self.evaluate(d.sample(200, seed=test_util.test_seed()))
        self.assertAllClose(np.ones([200]), np.linalg.norm(x, axis=-1), rtol=1e-4)
        self.assertAllMeansClose(x, self.evaluate(d.mean()), axis=0, atol=0.2)
        s = tfd.SphericalUniform(3)
        self.assertAllClose(
            np.log(1 / (4 * np.pi)), self.evaluate(s.log_prob([1.0, 0.0, 0.0])), rtol=1e-5
        )

    def testCategories(self):
        logits = np.log(np.array([0.2, 0.3, 0.5], np.float32))
        x = self.evaluate(tfd.Categorical(logits=logits).sample(2000, seed=test_util.test_seed()))
        self.assertDTypeEqual(x, np.int32)
        self.assertAllClose([0.2, 0.3, 0.5], np.bincount(x) / 2000.0, atol=0.05)
        o = tfd.OneHotCategorical(logits=logits, dtype=tf.float32)
        self.assertAllClose(logits, self.evaluate(o.log_prob(np.eye(3, dtype=np.float32))))
        r = tfd.RelaxedOneHotCategorical(0.5, logits=logits)
        self.assertAllFinite(self.evaluate(r.log_prob(r.sample(5, seed=test_util.test_seed()))))
        p = tfd.PlackettLuce(scores=[1.0, 2.0, 3.0])
        self.assertAllEqual([0, 1, 2], np.sort(self.evaluate(p.sample(seed=test_util.test_seed()))))
        m = tfd.Multinomial(5.0, probs=[0.2, 0.3, 0.5])
        self.assertAllClose(
            stats.multinomial(5, [0.2, 0.3, 0.5]).logpmf([1, 2, 2]),
            self.evaluate(m.log_prob([1.0, 2.0, 2.0])),
            rtol=1e-5,
        )


class MadeOfOthersTest(test_util.TestCase):
    def testIndependentAndSample(self):
        d = tfd.Independent(tfd.Normal(tf.zeros([3, 2]), 1.0), reinterpreted_batch_ndims=1)
        self.assertAllEqual([3], d.batch_shape)
        self.assertAllEqual([2], d.event_shape)
        x = d.sample(5, seed=test_util.test_seed())
        self.assertAllClose(
            self.evaluate(tf.reduce_sum(d.distribution.log_prob(x), -1)),
            self.evaluate(d.log_prob(x)),
        )
        s = tfd.Sample(tfd.Gamma([1.0, 2.0], 1.0), [4, 3])
        y = s.sample(6, seed=test_util.test_seed())
        self.assertEqual((6, 2, 4, 3), y.shape)
        self.assertAllEqual([6, 2], ps.shape(s.log_prob(y)))

    def testMixtures(self):
        d = tfd.MixtureSameFamily(
            tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 2.0], [0.1, 0.5])
        )
        x = np.linspace(-3.0, 4.0, 8).astype(np.float32)
        expected = 0.3 * stats.norm(-1.0, 0.1).pdf(x) + 0.7 * stats.norm(2.0, 0.5).pdf(x)
        self.assertAllClose(expected, self.evaluate(d.prob(x)), rtol=1e-4)
        self.assertAllClose(1.1, self.evaluate(d.mean()), rtol=1e-5)
        m = tfd.Mixture(
            tfd.Categorical(probs=[0.3, 0.7]), [tfd.Normal(-1.0, 0.1), tfd.Normal(2.0, 0.5)]
        )
        self.assertAllClose(expected, self.evaluate(m.prob(x)), rtol=1e-4)
        z = m.sample(2000, seed=test_util.test_seed())
        self.assertAllMeansClose(z, 1.1, axis=0, atol=0.15)
        with self.assertRaisesRegex(ValueError, "components"):
            tfd.Mixture(tfd.Categorical(probs=[0.5, 0.5]), [])

    def testTransformed(self):
        d = tfd.TransformedDistribution(
            tfd.Normal(0.0, 1.0), tfb.Chain([tfb.Exp(), tfb.Scale(2.0)])
        )
        x = np.array([0.5, 1.0, 3.0], np.float32)
        self.assertAllClose(stats.lognorm(2.0).logpdf(x), self.evaluate(d.log_prob(x)), rtol=1e-5)
        self.assertAllClose(stats.lognorm(2.0).cdf(x), self.evaluate(d.cdf(x)), rtol=1e-5)
        y, lp = d.experimental_sample_and_log_prob(3, seed=test_util.test_seed())
        self.assertAllClose(self.evaluate(d.log_prob(y)), self.evaluate(lp), rtol=1e-4)
        e = tfb.Softplus()(tfd.Normal(0.0, 1.0))
        self.assertAllInRange(self.evaluate(e.sample(9, seed=test_util.test_seed())), 0.0, 20.0)
        self.assertAllClose(
            tfd.Normal(0.0, 1.0).prob(1.0),
            self.evaluate(tfb.Identity()(tfd.Normal(0.0, 1.0)).prob(1.0)),
        )

    def testQuantizedMaskedBatchReshape(self):
        q = tfd.QuantizedDistribution(tfd.Normal(0.0, 3.0), low=-5.0, high=5.0)
        self.assertAllClose(
            1.0, self.evaluate(tf.reduce_sum(q.prob(np.arange(-5.0, 6.0, dtype=np.float32))))
        )
        m = tfd.Masked(tfd.Normal(1.0, 1.0), [True, False, True])
        lp = self.evaluate(m.log_prob(0.0))
        self.assertAllClose(0.0, lp[1])
        b = tfd.BatchReshape(tfd.Normal(tf.range(6, dtype=tf.float32), 1.0), [2, -1])
        self.assertAllEqual([2, 3], self.evaluate(b.batch_shape_tensor()))
        self.assertAllClose([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], self.evaluate(b.mean()))
        c = tfd.BatchConcat([tfd.Normal(tf.zeros(2), 1.0), tfd.Normal(tf.ones(3), 1.0)], axis=0)
        self.assertAllClose([0.0, 0.0, 1.0, 1.0, 1.0], self.evaluate(c.mean()))
        t = tfd.BatchBroadcast(tfd.Normal(0.0, 1.0), [2, 3])
        self.assertAllEqual([2, 3], t.batch_shape)
        z = (
            tfd.ZeroInflatedNegativeBinomial(0.3, total_count=3.0, probs=0.5)
            if hasattr(tfd, "ZeroInflatedNegativeBinomial")
            else tfd.Inflated(tfd.Poisson(2.0), 0.3, inflated_loc=0.0)
        )
        self.assertAllFinite(self.evaluate(z.log_prob([0.0, 1.0])))

    def testJointDistributions(self):
        def model():
            loc = yield tfd.JointDistributionCoroutine.Root(tfd.Normal(0.0, 1.0, name="loc"))
            scale = yield tfd.JointDistributionCoroutine.Root(tfd.LogNormal(0.0, 1.0, name="scale"))
            yield tfd.Independent(
                tfd.Normal(loc[..., tf.newaxis] * tf.ones(3), scale[..., tf.newaxis]), 1, name="x"
            )

        one = tfd.JointDistributionCoroutine(model)
        two = tfd.JointDistributionSequential(
            [
                tfd.Normal(0.0, 1.0),
                tfd.LogNormal(0.0, 1.0),
                lambda scale, loc: tfd.Independent(
                    tfd.Normal(loc[..., tf.newaxis] * tf.ones(3), scale[..., tf.newaxis]), 1
                ),
            ]
        )
        three = tfd.JointDistributionNamed(
            {
                "loc": tfd.Normal(0.0, 1.0),
                "scale": tfd.LogNormal(0.0, 1.0),
                "x": lambda loc, scale: tfd.Independent(
                    tfd.Normal(loc[..., tf.newaxis] * tf.ones(3), scale[..., tf.newaxis]), 1
                ),
            }
        )
        x = one.sample(4, seed=test_util.test_seed())
        self.assertEqual(("loc", "scale", "x"), x._fields)
        self.assertEqual((4, 3), x.x.shape)
        lp = self.evaluate(one.log_prob(x))
        self.assertAllClose(lp, self.evaluate(two.log_prob(list(x))), rtol=1e-5)
        self.assertAllClose(lp, self.evaluate(three.log_prob(x._asdict())), rtol=1e-5)
        self.assertAllClose(
            lp, self.evaluate(one.log_prob(loc=x.loc, scale=x.scale, x=x.x)), rtol=1e-5
        )
        parts = one.log_prob_parts(x)
        self.assertAllClose(lp, self.evaluate(sum(parts)), rtol=1e-5)
        self.assertEqual(x._fields, one.event_shape._fields)
        pinned = one.experimental_pin(x=[1.0, 2.0, 3.0])
        self.assertAllFinite(self.evaluate(pinned.unnormalized_log_prob(loc=0.0, scale=1.0)))
        again = one.sample(4, loc=tf.ones([4]), seed=test_util.test_seed())
        self.assertAllClose(np.ones([4]), self.evaluate(again.loc))

    def testAutoBatched(self):
        @tfd.JointDistributionCoroutineAutoBatched
        def model():
            loc = yield tfd.Normal(0.0, 1.0, name="loc")
            yield tfd.Normal(loc, tf.ones(3), name="x")

        x = model.sample([5, 2], seed=test_util.test_seed())
        self.assertEqual((5, 2, 3), x.x.shape)
        self.assertAllEqual([5, 2], ps.shape(model.log_prob(x)))
        self.assertAllEqual([], model.batch_shape)
        ds, xs = model.sample_distributions(4, seed=test_util.test_seed())
        self.assertEqual((4, 3), xs.x.shape)
        self.assertAllClose(
            self.evaluate(model.log_prob(xs)),
            self.evaluate(ds.loc.log_prob(xs.loc) + tf.reduce_sum(ds.x.log_prob(xs.x), -1)),
            rtol=1e-5,
        )
        b = tfd.JointDistributionNamedAutoBatched(
            {"a": tfd.Normal(tf.zeros(2), 1.0), "b": lambda a: tfd.Poisson(tf.exp(a))},
            batch_ndims=1,
        )
        self.assertAllEqual([2], b.batch_shape)
        self.assertAllFinite(self.evaluate(b.log_prob(b.sample(3, seed=test_util.test_seed()))))

    def testProcesses(self):
        from tensorflow_probability.python.math import psd_kernels

        k = psd_kernels.ExponentiatedQuadratic(np.float64(1.0), np.float64(0.5))
        points = np.linspace(0.0, 1.0, 5)[:, np.newaxis]
        gp = tfd.GaussianProcess(k, points, observation_noise_variance=np.float64(0.1))
        y = gp.sample(seed=test_util.test_seed())
        self.assertEqual((5,), y.shape)
        cov = self.evaluate(k.matrix(points, points)) + 0.1 * np.eye(5)
        self.assertAllClose(
            stats.multivariate_normal(np.zeros(5), cov).logpdf(self.evaluate(y)),
            self.evaluate(gp.log_prob(y)),
            rtol=1e-5,
        )
        r = tfd.GaussianProcessRegressionModel(k, points[:2], points, y, np.float64(0.1))
        self.assertEqual((2,), self.evaluate(r.mean()).shape)
        s = tfd.StudentTProcess(np.float64(5.0), k, points)
        self.assertAllFinite(self.evaluate(s.log_prob(np.zeros(5))))
        v = tfd.VariationalGaussianProcess(k, points, points[:3], np.zeros(3), np.eye(3))
        self.assertAllFinite(self.evaluate(v.mean()))

    def testSeries(self):
        d = tfd.HiddenMarkovModel(
            tfd.Categorical(probs=[0.8, 0.2]),
            tfd.Categorical(probs=[[0.7, 0.3], [0.2, 0.8]]),
            tfd.Normal([0.0, 15.0], [5.0, 10.0]),
            num_steps=4,
        )
        x = d.sample(3, seed=test_util.test_seed())
        self.assertEqual((3, 4), x.shape)
        self.assertAllFinite(self.evaluate(d.log_prob(x)))
        self.assertEqual((3, 4), self.evaluate(d.posterior_mode(x)).shape)
        self.assertEqual(
            (3, 4, 2), self.evaluate(d.posterior_marginals(x).logits_parameter()).shape
        )
        series = tfd.LinearGaussianStateSpaceModel(
            num_timesteps=4,
            transition_matrix=tf.linalg.LinearOperatorIdentity(2),
            transition_noise=tfd.MultivariateNormalDiag(scale_diag=[1.0, 0.5]),
            observation_matrix=tf.constant([[1.0, 0.0]]),
            observation_noise=tfd.MultivariateNormalDiag(scale_diag=[0.1]),
            initial_state_prior=tfd.MultivariateNormalDiag(scale_diag=[1.0, 1.0]),
        )
        y = series.sample(2, seed=test_util.test_seed())
        self.assertEqual((2, 4, 1), y.shape)
        self.assertAllFinite(self.evaluate(series.log_prob(y)))
        filtered = series.forward_filter(y)
        self.assertAllClose(
            self.evaluate(series.log_prob(y)),
            self.evaluate(tf.reduce_sum(filtered[0], -1)),
            rtol=1e-4,
        )
        means, covs = series.posterior_marginals(y)
        self.assertEqual((2, 4, 2), means.shape)
        self.assertEqual((4, 2, 2), covs.shape)
        m = tfd.MarkovChain(tfd.Normal(0.0, 1.0), lambda _, x: tfd.Normal(x, 1.0), num_steps=5)
        self.assertAllFinite(self.evaluate(m.log_prob(m.sample(2, seed=test_util.test_seed()))))
        a = tfd.Autoregressive(
            lambda x: tfd.Independent(tfd.Normal(0.5 * x, 1.0), 1), tf.zeros(3), num_steps=3
        )
        self.assertAllFinite(self.evaluate(a.log_prob(a.sample(seed=test_util.test_seed()))))

    @test_util.numpy_disable_gradient_test
    def testGradientsOfLogProb(self):
        def f(loc, tril):
            return tfd.MultivariateNormalTriL(loc, tril).log_prob([1.0, 2.0])

        _, (g, h) = gradient.value_and_gradient(f, [tf.zeros(2), tf.eye(2)])
        self.assertAllClose([1.0, 2.0], self.evaluate(g))
        self.assertAllFinite(self.evaluate(h))
        seeds = samplers.split_seed(test_util.test_seed(), n=3, salt="some")
        self.assertLen(seeds, 3)


if __name__ == "__main__":
    test_util.main()
