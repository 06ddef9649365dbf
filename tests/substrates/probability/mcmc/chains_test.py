"""Markov chains, filters of particles, variational inference, structural time series."""

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow_probability.python import bijectors as tfb
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python import experimental as tfe
from tensorflow_probability.python import mcmc as tfmcmc
from tensorflow_probability.python import sts, vi
from tensorflow_probability.python.internal import loop_util, samplers, test_util

JAX_MODE = False
NUMPY_MODE = False


def _target(x):
    return tfd.Normal(1.0, 0.5).log_prob(x)


class ChainsTest(test_util.TestCase):
    def _assertFindsTheMean(self, kernel, steps=300, state=None):
        state = tf.zeros([4]) if state is None else state
        x = tfmcmc.sample_chain(
            steps,
            state,
            kernel=kernel,
            num_burnin_steps=30,
            trace_fn=None,
            seed=test_util.test_seed(sampler_type="stateless"),
        )
        self.assertEqual((steps, 4), x.shape)
        self.assertAllClose(1.0, np.mean(self.evaluate(x)), atol=0.25)

    def testRandomWalk(self):
        self._assertFindsTheMean(tfmcmc.RandomWalkMetropolis(_target), 600)

    def testSlices(self):
        self._assertFindsTheMean(tfmcmc.SliceSampler(_target, step_size=0.5, max_doublings=4), 150)

    @test_util.numpy_disable_gradient_test
    def testHamiltonian(self):
        inner = tfmcmc.HamiltonianMonteCarlo(_target, step_size=0.3, num_leapfrog_steps=3)
        self._assertFindsTheMean(inner)
        self._assertFindsTheMean(
            tfmcmc.DualAveragingStepSizeAdaptation(inner, num_adaptation_steps=20)
        )
        self._assertFindsTheMean(
            tfmcmc.TransformedTransitionKernel(
                tfmcmc.HamiltonianMonteCarlo(_target, step_size=0.3, num_leapfrog_steps=3),
                tfb.Scale(2.0),
            )
        )

    @test_util.numpy_disable_gradient_test
    def testOthersWithGradients(self):
        self._assertFindsTheMean(
            tfmcmc.NoUTurnSampler(_target, step_size=0.4, max_tree_depth=4), 150
        )
        self._assertFindsTheMean(tfmcmc.MetropolisAdjustedLangevinAlgorithm(_target, step_size=0.2))

    def testReplicas(self):
        kernel = tfmcmc.ReplicaExchangeMC(
            _target,
            inverse_temperatures=[1.0, 0.5],
            make_kernel_fn=lambda f: tfmcmc.RandomWalkMetropolis(f),
        )
        self._assertFindsTheMean(kernel, 600)

    def testDiagnostics(self):
        x = np.random.RandomState(0).randn(500, 4)
        self.assertAllClose(
            np.ones(4) * 500.0, self.evaluate(tfmcmc.effective_sample_size(x)), rtol=0.4
        )
        self.assertAllClose(1.0, self.evaluate(tfmcmc.potential_scale_reduction(x)), atol=0.05)
        points = self.evaluate(tfmcmc.sample_halton_sequence(2, num_results=4, randomized=False))
        self.assertAllClose(
            [[0.5, 1 / 3.0], [0.25, 2 / 3.0], [0.75, 1 / 9.0], [0.125, 4 / 9.0]], points
        )

    def testTraces(self):
        x, trace = tfmcmc.sample_chain(
            5,
            tf.constant(0.0),
            kernel=tfmcmc.RandomWalkMetropolis(_target),
            trace_fn=lambda _, r: r.is_accepted,
            seed=test_util.test_seed(sampler_type="stateless"),
        )
        self.assertEqual((5,), x.shape)
        self.assertEqual(np.bool_, self.evaluate(trace).dtype)
        final, seen = loop_util.trace_scan(
            lambda s, e: s + e, tf.constant(0.0), tf.constant([1.0, 2.0, 3.0]), lambda s: 2.0 * s
        )
        self.assertAllClose(6.0, self.evaluate(final))
        self.assertAllClose([2.0, 6.0, 12.0], self.evaluate(seen))


class ExperimentalTest(test_util.TestCase):
    def testParticles(self):
        particles, _, _, log_weights = tfe.mcmc.particle_filter(
            tf.zeros([5]),
            tfd.Normal(0.0, 1.0),
            lambda _, s: tfd.Normal(s, 1.0),
            lambda _, s: tfd.Normal(s, 1.0),
            num_particles=20,
            seed=test_util.test_seed(sampler_type="stateless"),
        )
        self.assertEqual((5, 20), particles.shape)
        self.assertAllFinite(self.evaluate(log_weights))

    @test_util.numpy_disable_gradient_test
    def testWindowed(self):
        @tfd.JointDistributionCoroutineAutoBatched
        def model():
            loc = yield tfd.Normal(0.0, 1.0, name="loc")
            yield tfd.Sample(tfd.Normal(loc, 1.0), 3, name="x")

        draws, trace = tfe.mcmc.windowed_adaptive_nuts(
            20,
            model,
            n_chains=2,
            num_adaptation_steps=50,
            max_tree_depth=3,
            seed=test_util.test_seed(sampler_type="stateless"),
            x=tf.constant([1.0, 2.0, 3.0]),
        )
        self.assertEqual((20, 2), draws.loc.shape)
        self.assertAllFinite(self.evaluate(draws.loc))
        self.assertIn("step_size", trace)

    def testReducers(self):
        reducer = tfe.mcmc.ExpectationsReducer()
        state = reducer.initialize(tf.zeros([]))
        for x in (1.0, 2.0, 6.0):
            state = reducer.one_step(tf.constant(x), state)
        self.assertAllClose(3.0, self.evaluate(reducer.finalize(state)))
        variance = tfe.stats.RunningVariance.from_shape([2])
        for x in ([1.0, 2.0], [3.0, 2.0], [5.0, 5.0]):
            variance = variance.update(tf.constant(x))
        self.assertAllClose(
            np.var([[1.0, 2.0], [3.0, 2.0], [5.0, 5.0]], axis=0), self.evaluate(variance.variance())
        )

    @test_util.numpy_disable_gradient_test
    def testVariational(self):
        q_init, q_apply = tfe.util.make_trainable_stateless(tfd.Normal)
        params = q_init(seed=test_util.test_seed(sampler_type="stateless"))
        q = q_apply(params)
        loss = vi.monte_carlo_variational_loss(
            _target, q, sample_size=20, seed=test_util.test_seed(sampler_type="stateless")
        )
        self.assertAllFinite(self.evaluate(loss))
        self.assertAllClose(0.0, self.evaluate(vi.kl_reverse(0.0)))

    def testSequential(self):
        seed = test_util.test_seed(sampler_type="stateless")
        first, second = samplers.split_seed(seed)
        self.assertNotAllEqual(
            self.evaluate(samplers.normal([3], seed=first)),
            self.evaluate(samplers.normal([3], seed=second)),
        )
        x = tfd.Sample(tfd.Normal(0.0, 1.0), 3).sample(2, seed=samplers.fold_in(seed, 3))
        self.assertEqual((2, 3), x.shape)


class SeriesTest(test_util.TestCase):
    def _series(self):
        return np.cumsum(np.random.RandomState(0).randn(20)).astype(np.float32)

    def testModels(self):
        y = self._series()
        for model in (
            sts.LocalLevel(observed_time_series=y),
            sts.LocalLinearTrend(observed_time_series=y),
            sts.SemiLocalLinearTrend(observed_time_series=y),
            sts.Seasonal(4, observed_time_series=y),
            sts.SmoothSeasonal(period=6, frequency_multipliers=[1, 2], observed_time_series=y),
            sts.Autoregressive(2, observed_time_series=y),
            sts.Sum(
                [sts.LocalLevel(observed_time_series=y), sts.Seasonal(3, observed_time_series=y)],
                observed_time_series=y,
            ),
        ):
            seeds = samplers.split_seed(test_util.test_seed(), n=len(model.parameters))
            values = [p.prior.sample(seed=s) for p, s in zip(model.parameters, seeds, strict=True)]
            joint = model.joint_distribution(observed_time_series=y)
            self.assertAllFinite(self.evaluate(joint.log_prob(values)))
            ssm = model.make_state_space_model(20, values)
            self.assertAllFinite(self.evaluate(ssm.log_prob(y[:, np.newaxis])))

    def testForecasts(self):
        y = self._series()
        model = sts.LocalLevel(observed_time_series=y)
        values = [tf.constant([0.5, 1.0]), tf.constant([0.3, 0.4])]
        future = sts.forecast(model, y, values, num_steps_forecast=4)
        self.assertEqual((4, 1), self.evaluate(future.mean()).shape)
        self.assertAllGreater(self.evaluate(future.stddev()), 0.0)
        masked = sts.MaskedTimeSeries(y, is_missing=np.arange(20) == 7)
        filled = sts.impute_missing_values(model, masked, values)
        self.assertEqual((20,), self.evaluate(filled.mean()).shape)
        parts = sts.decompose_by_component(
            sts.Sum([model], observed_time_series=y), y, [tf.constant([0.1, 0.1]), *values]
        )
        self.assertLen(parts, 1)


if __name__ == "__main__":
    test_util.main()
