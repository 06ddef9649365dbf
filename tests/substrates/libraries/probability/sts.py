"""Programs of tfp.sts: models of a series, their likelihoods, forecasts and decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import FLOAT32, GRAD, JAX, JIT, NUMPY, Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, (NUMPY, JIT))

SEED = (3, 7)
_SERIES = np.sin(np.arange(12.0)) + 0.1 * np.arange(12.0)
_DESIGN = np.cos(np.arange(30.0)).reshape(15, 2)

# Models of tfp.sts and a series.
_MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "Autoregressive": lambda s, y: s.Autoregressive(order=2, observed_time_series=y),
    "AutoregressiveIntegratedMovingAverage": lambda s, y: s.AutoregressiveIntegratedMovingAverage(
        ar_order=1, ma_order=1, integration_degree=1, observed_time_series=y
    ),
    "DynamicLinearRegression": lambda s, y: s.DynamicLinearRegression(
        _DESIGN.astype(y.dtype if isinstance(y, np.ndarray) else np.float64),
        observed_time_series=y,
    ),
    "LinearRegression": lambda s, y: s.Sum(
        [s.LinearRegression(_DESIGN), s.LocalLevel(observed_time_series=y)],
        observed_time_series=y,
    ),
    "LocalLevel": lambda s, y: s.LocalLevel(observed_time_series=y),
    "LocalLinearTrend": lambda s, y: s.LocalLinearTrend(observed_time_series=y),
    "Seasonal": lambda s, y: s.Seasonal(num_seasons=3, observed_time_series=y),
    "SemiLocalLinearTrend": lambda s, y: s.SemiLocalLinearTrend(observed_time_series=y),
    "SmoothSeasonal": lambda s, y: s.SmoothSeasonal(
        period=4, frequency_multipliers=[1, 2], observed_time_series=y
    ),
    "SparseLinearRegression": lambda s, y: s.Sum(
        [s.SparseLinearRegression(_DESIGN), s.LocalLevel(observed_time_series=y)],
        observed_time_series=y,
    ),
    "Sum": lambda s, y: s.Sum(
        [s.LocalLevel(observed_time_series=y), s.Seasonal(num_seasons=3, observed_time_series=y)],
        observed_time_series=y,
    ),
}


def _values(tf: Any, model: Any, samples: tuple[int, ...] = ()) -> list[Any]:
    """A value in the support of each parameter: what its bijector makes of 0.3."""
    values = []
    for parameter in model.parameters:
        prior = parameter.prior
        shape = [*samples, *prior.batch_shape, *prior.event_shape]
        shape = parameter.bijector.inverse_event_shape(tf.TensorShape(shape))
        values.append(parameter.bijector.forward(tf.constant(0.3, prior.dtype, list(shape))))
    return values


for _name, _make in _MODELS.items():

    @program(f"sts.{_name}", _SERIES, places=(NUMPY, JAX, JIT, GRAD))
    def _likelihood(tf, tfp, series, _make=_make):
        model = _make(tfp.sts, series)
        values = _values(tf, model)
        space = model.make_state_space_model(12, values)
        return [space.log_prob(series[..., tf.newaxis]), model.joint_log_prob(series)(*values)]

    @program(f"sts.forecast: {_name}", _SERIES)
    def _forecast(tf, tfp, series, _make=_make):
        model = _make(tfp.sts, series)
        found = tfp.sts.forecast(model, series, _values(tf, model, (2,)), num_steps_forecast=3)
        return [found.mean(), found.stddev()]


@program("sts.LocalLevel: float32", _SERIES, places=(NUMPY + FLOAT32, JIT + FLOAT32), wide=2e-4)
def _narrow(tf, tfp, series):
    model = tfp.sts.LocalLevel(observed_time_series=series)
    return model.joint_log_prob(series)(*_values(tf, model))


def _seasons(tfp: Any, series: Any) -> Any:
    return _MODELS["Sum"](tfp.sts, series)


@program("sts.one_step_predictive", _SERIES)
def _one_step(tf, tfp, series):
    model = _seasons(tfp, series)
    found = tfp.sts.one_step_predictive(model, series, _values(tf, model, (2,)))
    return [found.mean(), found.stddev()]


@program("sts.decompose_by_component", _SERIES)
def _decomposed(tf, tfp, series):
    model = _seasons(tfp, series)
    found = tfp.sts.decompose_by_component(model, series, _values(tf, model, (2,)))
    return [[d.mean(), d.stddev()] for d in found.values()]


@program("sts.decompose_forecast_by_component", _SERIES)
def _decomposed_forecast(tf, tfp, series):
    model = _seasons(tfp, series)
    values = _values(tf, model, (2,))
    forecast = tfp.sts.forecast(model, series, values, num_steps_forecast=3)
    found = tfp.sts.decompose_forecast_by_component(model, forecast, values)
    return [[d.mean(), d.stddev()] for d in found.values()]


_MASK = np.arange(12) % 5 == 3


@program("sts.impute_missing_values", _SERIES)
def _imputed(tf, tfp, series):
    model = _seasons(tfp, series)
    masked = tfp.sts.MaskedTimeSeries(series, is_missing=tf.constant(_MASK))
    found = tfp.sts.impute_missing_values(model, masked, _values(tf, model, (2,)))
    return [found.mean(), found.stddev()]


@program("sts.MaskedTimeSeries", _SERIES)
def _masked(tf, tfp, series):
    model = _seasons(tfp, series)
    masked = tfp.sts.MaskedTimeSeries(series, is_missing=tf.constant(_MASK))
    return model.joint_log_prob(masked)(*_values(tf, model))


@program("sts.moments_of_masked_time_series", _SERIES, places=(NUMPY, JAX, JIT, GRAD))
def _moments(tf, tfp, series):
    return tfp.sts.moments_of_masked_time_series(series[:, tf.newaxis], _MASK[:, np.newaxis])


@program("sts.sample_uniform_initial_state", places=(NUMPY, JAX, JIT))
def _initial(tf, tfp):
    model = tfp.sts.LocalLinearTrend(observed_time_series=tf.constant(_SERIES))
    return [
        tfp.sts.sample_uniform_initial_state(p, init_sample_shape=[2], seed=SEED)
        for p in model.parameters
    ]


@program("sts.build_factored_surrogate_posterior_stateless", _SERIES, places=(NUMPY, JAX, JIT))
def _surrogate(tf, tfp, series):
    model = _seasons(tfp, series)
    start, build = tfp.sts.build_factored_surrogate_posterior_stateless(model)
    return build(*start(seed=SEED)).sample(2, seed=SEED)


@program("sts.fit_with_hmc", _SERIES, places=(JIT,), tolerance=1e-2)
def _fitted(tf, tfp, series):
    model = tfp.sts.LocalLevel(observed_time_series=series)
    samples, _ = tfp.sts.fit_with_hmc(
        model,
        series,
        num_results=3,
        num_warmup_steps=3,
        num_leapfrog_steps=3,
        num_variational_steps=5,
        seed=SEED,
    )
    return samples


# State space models, as they are made without a model of priors.

_SPACES: dict[str, Callable[[Any, Any], Any]] = {
    "AutoregressiveStateSpaceModel": lambda s, f: s.AutoregressiveStateSpaceModel(
        12, f([0.8, -0.1]), f(0.5), f.normal(2)
    ),
    "AutoregressiveMovingAverageStateSpaceModel": (
        lambda s, f: s.AutoregressiveMovingAverageStateSpaceModel(
            12, f([0.8, -0.1]), f([0.3]), f(0.5), f.normal(2)
        )
    ),
    "LocalLevelStateSpaceModel": lambda s, f: s.LocalLevelStateSpaceModel(
        12, f(0.5), f.normal(1), f(0.2)
    ),
    "LocalLinearTrendStateSpaceModel": lambda s, f: s.LocalLinearTrendStateSpaceModel(
        12, f(0.5), f(0.1), f.normal(2), f(0.2)
    ),
    "SeasonalStateSpaceModel": lambda s, f: s.SeasonalStateSpaceModel(
        12, 3, f(0.4), f.normal(3), observation_noise_scale=f(0.2)
    ),
    "SemiLocalLinearTrendStateSpaceModel": lambda s, f: s.SemiLocalLinearTrendStateSpaceModel(
        12, f(0.5), f(0.1), f(0.2), f(0.7), f.normal(2), f(0.2)
    ),
    "SmoothSeasonalStateSpaceModel": lambda s, f: s.SmoothSeasonalStateSpaceModel(
        12, 4, [1, 2], f(0.4), f.normal(4), f(0.2)
    ),
}


class _Constants:
    """Tensors of the series's dtype, and normal distributions of a state."""

    def __init__(self, tf: Any, tfp: Any, dtype: Any) -> None:
        self._tf, self._tfp, self._dtype = tf, tfp, dtype

    def __call__(self, value: Any) -> Any:
        return self._tf.constant(np.asarray(value), self._dtype)

    def normal(self, size: int) -> Any:
        return self._tfp.distributions.MultivariateNormalDiag(scale_diag=self(np.ones(size)))


for _name, _space in _SPACES.items():

    @program(f"sts.{_name}", _SERIES, places=(NUMPY, JIT, GRAD))
    def _space_of(tf, tfp, series, _space=_space):
        space = _space(tfp.sts, _Constants(tf, tfp, series.dtype))
        return [space.log_prob(series[:, tf.newaxis]), space.mean(), space.sample(seed=SEED)]
