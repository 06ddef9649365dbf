"""Probability: samplers, log densities, Gaussian processes, filters, variational inference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, Fails, integers, normal, program

KEY = jax.random.PRNGKey(0)
POINTS = normal(6, 3)
LABELS = integers(2, 6, seed=1)


def _regression(x, y=None):
    import numpyro
    import numpyro.distributions as dist

    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    weights = numpyro.sample("weights", dist.Normal(0, scale).expand([3]).to_event(1))
    bias = numpyro.sample("bias", dist.StudentT(3.0))
    with numpyro.plate("points", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)


@program("numpyro", batch=(None, "b, ...", "b"))
def log_density_of_a_model() -> Built:
    from numpyro.infer.util import log_density

    def density(params, x, y):
        return log_density(_regression, (x, y), {}, params)[0]

    params = {"scale": np.float32(0.7), "weights": normal(3), "bias": np.float32(0.1)}
    return density, (params, POINTS, LABELS)


@program(
    "numpyro",
    x64=True,
    fails={"gradient": Fails("jax", "ValueError", "Reverse-mode differentiation does not work")},
)
def no_u_turn_sampler() -> Built:
    from numpyro.infer import MCMC, NUTS

    def sample(key, x, y):
        kernel = NUTS(_regression, max_tree_depth=3, step_size=0.1)
        sampler = MCMC(kernel, num_warmup=3, num_samples=3, progress_bar=False)
        sampler.run(key, x, y)
        return sampler.get_samples()

    return sample, (KEY, POINTS.astype(np.float64), LABELS)


@program(
    "numpyro",
    batch=(None, "b, ...", "b"),
    fails={"polymorphic": Fails("jax", "InconclusiveDimensionOperation", "'b' > '1'")},
)
def step_of_variational_inference() -> Built:
    import numpyro
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    svi = SVI(_regression, AutoNormal(_regression), numpyro.optim.Adam(1e-2), Trace_ELBO(2))
    state = svi.init(KEY, POINTS, LABELS)
    return svi.update, (state, POINTS, LABELS)


@program("numpyro", batch="b, ...")
def samples_and_densities_of_distributions() -> Built:
    import numpyro.distributions as dist

    def use(x):
        mixture = dist.MixtureSameFamily(
            dist.Categorical(logits=x), dist.Gamma(jnp.exp(x), jnp.ones(3))
        )
        flow = dist.TransformedDistribution(
            dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3)),
            [dist.transforms.StickBreakingTransform()],
        )
        return (
            mixture.log_prob(jnp.abs(x[:, 0]) + 0.1),
            flow.log_prob(jax.nn.softmax(jnp.pad(x, ((0, 0), (0, 1))))),
            dist.Beta(jnp.exp(x), 2.0).sample(KEY),
        )

    return use, (POINTS,)


@program("blackjax", x64=True)
def hamiltonian_monte_carlo() -> Built:
    import blackjax

    def density(position):
        x, y = position["x"], position["y"]
        return -((1 - x) ** 2) - 10 * jnp.sum((y - x**2) ** 2)

    kernel = blackjax.hmc(density, 0.01, np.ones(3), num_integration_steps=5)

    def sample(position, key):
        def step(state, key):
            state, information = kernel.step(key, state)
            return state, (state.position, information.is_accepted)

        return jax.lax.scan(step, kernel.init(position), jax.random.split(key, 4))[1]

    return sample, ({"x": np.float64(0.5), "y": np.array([0.1, 0.3])}, KEY)


@program("blackjax", x64=True)
def tempered_particles() -> Built:
    import blackjax

    def prior(x):
        return -0.5 * jnp.sum(x**2)

    def likelihood(x):
        return -2 * jnp.sum((x - 1) ** 2)

    kernel = blackjax.tempered_smc(
        prior,
        likelihood,
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        {
            "step_size": np.full((1,), 0.1),
            "inverse_mass_matrix": np.ones((1, 2)),
            "num_integration_steps": np.array([3]),
        },
        blackjax.smc.resampling.systematic,
        num_mcmc_steps=2,
    )

    def step(particles, key):
        state, _ = kernel.step(key, kernel.init(particles), 0.4)
        return state.particles, state.weights

    return step, (np.random.default_rng(0).normal(size=(8, 2)), KEY)


@program("distrax", batch=(None, "b, ..."))
def coupling_flow() -> Built:
    import distrax

    def density(params, x):
        def conditioner(kept):
            return jnp.tanh(kept @ params["w"]).reshape(*kept.shape[:-1], 4, 2)

        layers = []
        for i in range(2):
            layers.append(
                distrax.MaskedCoupling(
                    mask=jnp.arange(4) % 2 == i,
                    bijector=lambda p: distrax.ScalarAffine(p[..., 0], log_scale=p[..., 1]),
                    conditioner=conditioner,
                )
            )
        flow = distrax.Transformed(
            distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.exp(params["scale"])),
            distrax.Inverse(distrax.Chain(layers)),
        )
        return flow.log_prob(x), flow.sample(seed=KEY, sample_shape=(2,))

    params = {"w": normal(4, 8) / 2, "scale": normal(4)}
    return density, (params, normal(5, 4, seed=2))


@program("distrax", batch="b, ...")
def hidden_markov_model() -> Built:
    import distrax

    def decode(observations):
        model = distrax.HMM(
            init_dist=distrax.Categorical(probs=jnp.ones(3) / 3),
            trans_dist=distrax.Categorical(probs=jax.nn.softmax(normal(3, 3))),
            obs_dist=distrax.Normal(jnp.arange(3.0), jnp.ones(3)),
        )
        filtered, smoothed, _, likelihood = model.forward_backward(observations)
        return filtered, smoothed, likelihood, model.viterbi(observations)

    return jax.vmap(decode), (normal(2, 6),)


@program(
    "tinygp",
    x64=True,
    batch=(None, None, "b, ..."),
    fails={"polymorphic": Fails("jax", "TypeError", "cannot be interpreted as an integer")},
)
def prediction_of_a_gaussian_process() -> Built:
    import tinygp

    def predict(params, y, at):
        kernel = jnp.exp(params["amplitude"]) * tinygp.kernels.Matern52(jnp.exp(params["scale"]))
        process = tinygp.GaussianProcess(kernel, np.linspace(0, 4, 6), diag=0.1)
        density, conditioned = process.condition(y, at)
        return density, conditioned.mean, conditioned.variance

    params = {"amplitude": np.float64(0.3), "scale": np.float64(-0.2)}
    return predict, (params, np.sin(np.arange(6.0)), np.linspace(1, 2, 4))


@program(
    "tinygp",
    x64=True,
    # It checks that the points are sorted.
    fails={"compiled": Fails("jax2tf", "UnsupportedPrimitiveError", "debug_callback")},
)
def quasiseparable_likelihood() -> Built:
    import tinygp

    def likelihood(params, x, y):
        kernel = tinygp.kernels.quasisep.SHO(omega=params[0], quality=params[1])
        return tinygp.GaussianProcess(kernel, x, diag=0.1).log_probability(y)

    x = np.sort(np.random.default_rng(0).uniform(0, 5, 8))
    return likelihood, (np.array([1.5, 2.0]), x, np.sin(x))


@program(
    "gpjax",
    x64=True,
    batch="b, ...",
    fails={"polymorphic": Fails("jax", "ValueError", "jnp.squeeze with axis=None")},
)
def posterior_of_gpjax() -> Built:
    import gpjax as gpx

    x = np.linspace(0, 1, 6)[:, None]
    data = gpx.Dataset(X=jnp.asarray(x), y=jnp.sin(6 * jnp.asarray(x)))
    prior = gpx.gps.Prior(
        mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF(lengthscale=0.5)
    )
    posterior = prior * gpx.likelihoods.Gaussian(num_datapoints=6)

    def predict(at):
        latent = posterior.predict(at, train_data=data)
        return latent.mean, latent.variance

    return predict, (np.linspace(0, 1, 4)[:, None],)


@program("dynamax", batch=(None, "b, ..."))
def kalman_smoother() -> Built:
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(state_dim=2, emission_dim=3)
    params, _ = model.initialize(KEY)

    def smooth(params, emissions):
        posterior = jax.vmap(lambda e: model.smoother(params, e))(emissions)
        return posterior.smoothed_means, posterior.marginal_loglik

    return smooth, (params, normal(2, 5, 3))
