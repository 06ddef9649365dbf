"""Special functions, linear algebra, kernels, differential equations, optimizers, statistics."""

import numpy as np
import tensorflow.compat.v2 as tf
from absl.testing import parameterized
from scipy import special as sp
from scipy import stats as sps
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python import math as tfm
from tensorflow_probability.python import optimizer as tfo
from tensorflow_probability.python import stats as tfs
from tensorflow_probability.python.internal import (
    dtype_util,
    tensor_util,
    tensorshape_util,
    test_util,
)
from tensorflow_probability.python.internal import prefer_static as ps
from tensorflow_probability.python.math import psd_kernels as tfk

JAX_MODE = False
NUMPY_MODE = False


class SpecialTest(test_util.TestCase):
    @parameterized.named_parameters(
        ("lambertw", lambda x: tfm.lambertw(x), lambda x: sp.lambertw(x).real),
        ("dawsn", lambda x: tfm.dawsn(x), sp.dawsn),
        ("erfcx", lambda x: tfm.erfcx(x), sp.erfcx),
        ("logerfc", lambda x: tfm.logerfc(x), lambda x: np.log(sp.erfc(x))),
        ("ive", lambda x: tfm.bessel_ive(1.5, x), lambda x: sp.ive(1.5, x)),
        ("kve", lambda x: tfm.bessel_kve(1.5, x), lambda x: sp.kve(1.5, x)),
        ("owens", lambda x: tfm.owens_t(x, 0.5), lambda x: sp.owens_t(x, 0.5)),
        ("lbeta", lambda x: tfm.lbeta(x, 2.5), lambda x: sp.betaln(x, 2.5)),
        (
            "betainc",
            lambda x: tfm.betainc(2.0, 3.0, x / 4.0),
            lambda x: sp.betainc(2.0, 3.0, x / 4.0),
        ),
        (
            "igammainv",
            lambda x: tfm.igammainv(2.0, x / 4.0),
            lambda x: sp.gammaincinv(2.0, x / 4.0),
        ),
        ("log1mexp", lambda x: tfm.log1mexp(x), lambda x: np.log1p(-np.exp(-x))),
        ("erfcinv", lambda x: tfm.erfcinv(x / 2.0), lambda x: sp.erfcinv(x / 2.0)),
    )
    def testAgainstScipy(self, ours, theirs):
        x = np.array([0.3, 1.0, 1.9])
        self.assertAllClose(theirs(x), self.evaluate(ours(tf.constant(x))), rtol=1e-5)

    @test_util.numpy_disable_gradient_test
    def testGradients(self):
        for f in (
            tfm.lambertw,
            tfm.erfcx,
            tfm.dawsn,
            lambda x: tfm.bessel_ive(1.0, x),
            lambda x: tfm.igammainv(x, np.float64(0.3)),
            lambda x: tfm.betainc(x, np.float64(2.0), np.float64(0.3)),
            tfm.log_cosh,
            lambda x: tfm.lbeta(x, np.float64(2.0)),
            lambda x: tfm.owens_t(x, np.float64(0.5)),
            lambda x: tfm.log_add_exp(x, np.float64(1.0)),
            tfm.softplus_inverse,
            tfm.log1psquare,
        ):
            error = self.compute_max_gradient_error(f, [tf.constant([0.4, 1.2], tf.float64)])
            self.assertLess(self.evaluate(error), 1e-4)

    def testReductions(self):
        x = np.random.RandomState(0).randn(4, 3)
        w = np.abs(x) + 1.0
        self.assertAllClose(
            sp.logsumexp(x, b=w, axis=0), self.evaluate(tfm.reduce_weighted_logsumexp(x, w, axis=0))
        )
        self.assertAllClose(
            sp.logsumexp(x, 1) - np.log(3.0), self.evaluate(tfm.reduce_logmeanexp(x, 1))
        )
        self.assertAllClose(np.logaddexp.accumulate(x, 0), self.evaluate(tfm.log_cumsum_exp(x, 0)))
        total, _ = tfm.reduce_kahan_sum(x, 0)
        self.assertAllClose(x.sum(0), self.evaluate(total))
        s, sign = tfm.log_sub_exp(x, x - 1.0, return_sign=True)
        self.assertAllClose(x + np.log1p(-np.exp(-1.0)), self.evaluate(s))
        self.assertAllEqual(np.ones_like(x), self.evaluate(sign))
        self.assertAllClose(
            np.cumsum(x, 0), self.evaluate(tfm.scan_associative(lambda a, b: a + b, x))
        )

    def testAlgebra(self):
        a = np.random.RandomState(1).randn(3, 3)
        p = a @ a.T + 3.0 * np.eye(3)
        chol = np.linalg.cholesky(p)
        v = np.array([1.0, 2.0, 3.0])
        self.assertAllClose(
            np.linalg.cholesky(p + np.outer(v, v)), self.evaluate(tfm.cholesky_update(chol, v))
        )
        lu, perm = tf.linalg.lu(a)
        self.assertAllClose(a, self.evaluate(tfm.lu_reconstruct(lu, perm)))
        self.assertAllClose(
            np.linalg.inv(a), self.evaluate(tfm.lu_matrix_inverse(lu, perm)), rtol=1e-5
        )
        self.assertAllClose(
            np.linalg.solve(a, v),
            self.evaluate(tfm.lu_solve(lu, perm, v[:, None]))[:, 0],
            rtol=1e-5,
        )
        filled = tfm.fill_triangular([1.0, 2.0, 3.0])
        self.assertAllClose(0.0, self.evaluate(filled)[0, 1])
        self.assertAllClose([1.0, 2.0, 3.0], self.evaluate(tfm.fill_triangular_inverse(filled)))
        low = self.evaluate(tfm.low_rank_cholesky(p, 3)[0])
        self.assertAllClose(p, low @ low.T, rtol=1e-4)
        self.assertAllClose(np.linalg.slogdet(p)[1], self.evaluate(tfm.hpsd_logdet(p)))
        self.assertAllClose(
            np.interp([0.5, 1.5], [0.0, 1.0, 2.0], [0.0, 2.0, 6.0]),
            self.evaluate(
                tfm.interp_regular_1d_grid(
                    np.array([0.5, 1.5]), 0.0, 2.0, np.array([0.0, 2.0, 6.0])
                )
            ),
        )

    def testRoots(self):
        root, value, _ = tfm.find_root_secant(
            lambda x: x**2 - 2.0, initial_position=np.float64(1.0)
        )
        self.assertAllClose(np.sqrt(2.0), self.evaluate(root))
        self.assertAllClose(0.0, self.evaluate(value), atol=1e-6)
        r = tfm.find_root_chandrupatla(lambda x: tf.cos(x) - x, np.float64(0.0), np.float64(1.0))
        self.assertAllClose(0.7390851, self.evaluate(r.estimated_root), rtol=1e-5)


class KernelsTest(test_util.TestCase):
    @parameterized.named_parameters(
        ("rbf", lambda: tfk.ExponentiatedQuadratic(2.0, 0.5)),
        ("matern12", lambda: tfk.MaternOneHalf(1.0, 0.5)),
        ("matern32", lambda: tfk.MaternThreeHalves(1.0, 0.5)),
        ("general", lambda: tfk.GeneralizedMatern(0.8, 1.0, 0.5)),
        ("rational", lambda: tfk.RationalQuadratic(1.0, 0.5, scale_mixture_rate=2.0)),
        ("linear", lambda: tfk.Linear(1.0, 0.5)),
        ("periodic", lambda: tfk.ExpSinSquared(1.0, 0.5, 2.0)),
        ("polynomial", lambda: tfk.Polynomial(0.3, 1.0, 2.0)),
        ("sum", lambda: tfk.ExponentiatedQuadratic() + tfk.Linear(1.0)),
        ("product", lambda: tfk.ExponentiatedQuadratic() * tfk.MaternOneHalf()),
        ("ard", lambda: tfk.FeatureScaled(tfk.ExponentiatedQuadratic(), [1.0, 2.0])),
        ("kumaraswamy", lambda: tfk.KumaraswamyTransformed(tfk.ExponentiatedQuadratic(), 1.5, 2.0)),
    )
    def testMatrixIsApplyOfPairs(self, make):
        k = make()
        x = np.random.RandomState(0).uniform(0.1, 0.9, [4, 2]).astype(np.float32)
        m = self.evaluate(k.matrix(x, x))
        pairs = self.evaluate(k.apply(x[:, np.newaxis], x[np.newaxis]))
        self.assertAllClose(pairs, m, rtol=2e-3)
        self.assertAllClose(m, m.T, rtol=1e-4)
        self.assertAllEqual([], tensorshape_util.as_list(k.batch_shape))
        self.assertAllClose(pairs, self.evaluate(k.tensor(x, x, 1, 1)), rtol=2e-3)
        self.assertGreater(np.linalg.eigvalsh(m.astype(np.float64)).min(), -1e-4)


class SolversTest(test_util.TestCase):
    def testEquations(self):
        for solver in (
            tfm.ode.DormandPrince(rtol=1e-6, atol=1e-8),
            tfm.ode.BDF(rtol=1e-6, atol=1e-8),
        ):
            if NUMPY_MODE and isinstance(solver, tfm.ode.BDF):
                jacobian = lambda t, y: -np.eye(1)
            else:
                jacobian = None
            found = solver.solve(
                lambda t, y: -y,
                np.float64(0.0),
                np.ones([1]),
                solution_times=np.array([0.5, 1.0]),
                jacobian_fn=jacobian,
            )
            self.assertAllClose(np.exp([[-0.5], [-1.0]]), self.evaluate(found.states), rtol=1e-3)

    @test_util.numpy_disable_gradient_test
    def testMinimizers(self):
        target = np.array([1.0, -2.0])

        def quadratic(x):
            return tfm.value_and_gradient(
                lambda y: tf.reduce_sum((y - target) ** 2 * [1.0, 3.0]), x
            )

        for minimize in (tfo.bfgs_minimize, tfo.lbfgs_minimize):
            found = minimize(quadratic, initial_position=np.zeros(2), tolerance=1e-8)
            self.assertTrue(self.evaluate(found.converged))
            self.assertAllClose(target, self.evaluate(found.position), rtol=1e-5)

    @test_util.numpy_disable_gradient_test
    def testMinimizeOfVariables(self):
        x, speed = tf.Variable(0.0, name="x"), tf.Variable(0.0, name="speed")

        class Momentum:
            def apply_gradients(self, pairs):
                for gradient, variable in pairs:
                    speed.assign(0.5 * speed + gradient)
                    variable.assign_sub(0.1 * speed)

        def loss():
            return (x - 5.0) ** 2

        expected = []
        for _ in range(30):
            with tf.GradientTape() as tape:
                value = loss()
            Momentum().apply_gradients([(tape.gradient(value, x), x)])
            expected.append(self.evaluate(value))
        last = self.evaluate(x)
        for given in ({}, {"trainable_variables": [x]}, {"jit_compile": True}):
            x.assign(0.0)
            speed.assign(0.0)
            losses = tfm.minimize(loss, num_steps=30, optimizer=Momentum(), **given)
            self.assertAllClose(expected, self.evaluate(losses), rtol=1e-4)
            self.assertAllClose(last, self.evaluate(x), rtol=1e-5)

    @test_util.numpy_disable_gradient_test
    def testFitSurrogatePosteriorOfVariables(self):
        # TensorFlow Probability's JAX side has it only in this module.
        from tensorflow_probability.python.vi import optimization

        location = tf.Variable(0.0, name="location")

        class Descent:
            def apply_gradients(self, pairs):
                for gradient, variable in pairs:
                    variable.assign_sub(0.1 * gradient)

        losses = optimization.fit_surrogate_posterior(
            tfd.Normal(3.0, 1.0).log_prob,
            tfd.Normal(location, 1.0),
            optimizer=Descent(),
            num_steps=60,
            sample_size=50,
            seed=test_util.test_seed(),
        )
        self.assertEqual([60], list(losses.shape))
        self.assertAllClose(3.0, self.evaluate(location), atol=0.2)

    def testMinimizersWithoutGradients(self):
        def banana(x, y):
            return (1.0 - x) ** 2 + 5.0 * (y - x**2) ** 2

        found = tfo.nelder_mead_minimize(
            lambda z: banana(z[0], z[1]), initial_vertex=np.zeros(2), func_tolerance=1e-10
        )
        self.assertAllClose([1.0, 1.0], self.evaluate(found.position), atol=1e-2)
        found = tfo.differential_evolution_minimize(
            banana,
            initial_position=[np.float64(0.0), np.float64(0.0)],
            population_size=20,
            population_stddev=2.0,
            max_iterations=60,
            seed=test_util.test_seed(),
        )
        self.assertAllClose([1.0, 1.0], self.evaluate(found.position), atol=0.2)

    def testStatistics(self):
        x = np.random.RandomState(0).randn(200, 2)
        self.assertAllClose(
            np.percentile(x, 30.0, axis=0, method="nearest"),
            self.evaluate(tfs.percentile(x, 30.0, axis=0)),
            rtol=1e-5,
        )
        self.assertAllClose(np.cov(x.T, bias=True), self.evaluate(tfs.covariance(x)), rtol=1e-5)
        self.assertAllClose(np.corrcoef(x.T), self.evaluate(tfs.correlation(x)), rtol=1e-5)
        self.assertAllClose(x.std(0), self.evaluate(tfs.stddev(x)))
        r = self.evaluate(tfs.auto_correlation(x[:, 0], max_lags=3, normalize=True))
        self.assertAllClose(1.0, r[0])
        self.assertAllEqual(
            np.histogram(x[:, 0], [-4.0, 0.0, 4.0])[0],
            self.evaluate(tfs.histogram(x[:, 0], np.array([-4.0, 0.0, 4.0]))),
        )
        self.assertAllClose(
            np.quantile(x[:, 0], [0.25, 0.5, 0.75]),
            self.evaluate(tfs.quantiles(x[:, 0], 4, interpolation="linear"))[1:-1],
        )
        self.assertAllClose(
            sps.norm.cdf(0.3), self.evaluate(tfd.Normal(np.float64(0.0), np.float64(1.0)).cdf(0.3))
        )
        b = self.evaluate(tfs.find_bins([1.5, 3.5], [0.0, 2.0, 4.0]))
        self.assertAllEqual([0.0, 1.0], b)


class InternalTest(test_util.TestCase):
    def testStaticShapes(self):
        x = tf.zeros([2, 3])
        self.assertAllEqual([2, 3], ps.shape(x))
        self.assertEqual(2, ps.rank(x))
        self.assertAllEqual([2, 3, 4], ps.concat([ps.shape(x), [4]], axis=0))
        self.assertAllEqual([4, 2, 3], ps.broadcast_shape([4, 1, 1], [2, 3]))
        self.assertIsInstance(ps.convert_to_shape_tensor([1, 2]), (np.ndarray, type(tf.zeros([]))))
        self.assertEqual(tf.float32, dtype_util.common_dtype([x, 1.0]))
        self.assertEqual(np.float64, dtype_util.common_dtype([None, np.float64(1.0)], tf.float32))
        self.assertTrue(tensorshape_util.is_fully_defined(tf.TensorShape([1, 2])))
        self.assertIsNone(tensor_util.convert_nonref_to_tensor(None))
        with self.assertRaisesRegex(TypeError, "float64|dtype"):
            dtype_util.common_dtype([np.float64(1.0), np.float32(1.0)])

    @test_util.numpy_disable_gradient_test
    def testDerivatives(self):
        def f(x, y):
            return tf.reduce_sum(x * y**2)

        value, (g, h) = tfm.value_and_gradient(
            f, [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]
        )
        self.assertAllClose(41.0, self.evaluate(value))
        self.assertAllClose([9.0, 16.0], self.evaluate(g))
        self.assertAllClose([6.0, 16.0], self.evaluate(h))
        d = (
            tfm.diag_jacobian(xs=tf.constant([[1.0, 2.0]]), fn=lambda x: x**3)[1]
            if not JAX_MODE
            else None
        )
        if d is not None:
            self.assertAllClose([[3.0, 12.0]], self.evaluate(d[0]))


if __name__ == "__main__":
    test_util.main()
