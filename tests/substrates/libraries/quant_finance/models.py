"""Programs of tf_quant_finance.models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.black_scholes import (
    FLOAT_ENDS,
    FLOAT_STARTS,
    FRACTIONS,
)
from tests.substrates.libraries.quant_finance.places import BATCHED, EVERYWHERE, VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


def stateless(tff: Any) -> dict[str, Any]:
    return {"random_type": tff.math.random.RandomType.STATELESS_ANTITHETIC, "seed": [3, 7]}


@program("models.GeometricBrownianMotion", [0.05], [0.2], places=WIDE)
def _(tf, tff, mean, volatility):
    process = tff.models.GeometricBrownianMotion(mean[0], volatility[0], dtype=tf.float64)
    return process.sample_paths(
        times=[0.1, 0.2, 1.0], initial_state=1.5, num_samples=20, **stateless(tff)
    )


@program("models.MultivariateGeometricBrownianMotion", [0.1, 0.2], places=WIDE)
def _(tf, tff, volatilities):
    process = tff.models.MultivariateGeometricBrownianMotion(
        dim=2,
        means=1.0,
        volatilities=volatilities,
        corr_matrix=[[1, 0.1], [0.1, 1]],
        dtype=tf.float64,
    )
    return process.sample_paths(
        times=[0.1, 0.2, 1.0], initial_state=[1.0, 2.0], num_samples=20, **stateless(tff)
    )


@program("models.MultivariateGeometricBrownianMotion: Sobol", [0.1, 0.2], places=WIDE)
def _(tf, tff, volatilities):
    process = tff.models.MultivariateGeometricBrownianMotion(
        dim=2, means=1.0, volatilities=volatilities, dtype=tf.float64
    )
    return process.sample_paths(
        times=[0.1, 1.0],
        initial_state=[1.0, 2.0],
        num_samples=20,
        random_type=tff.math.random.RandomType.SOBOL,
    )


def _drift(tf: Any, x: Any) -> Callable:
    return lambda t, x: np.array([0.2, 0.7]) * tf.sqrt(t) * tf.ones_like(x)


def _volatility(tf: Any, scale: Any) -> Callable:
    matrix = np.array([[0.3, 0.1], [0.1, 0.3]])
    return lambda t, x: scale * matrix * tf.ones([20, 2, 2], dtype=tf.float64)


@program("models.euler_sampling.sample", [0.1, -1.1], [1.0], places=WIDE)
def _(tf, tff, start, scale):
    return tff.models.euler_sampling.sample(
        dim=2,
        drift_fn=_drift(tf, start),
        volatility_fn=_volatility(tf, scale),
        times=[0.1, 0.5],
        num_samples=20,
        initial_state=start,
        time_step=0.1,
        dtype=tf.float64,
        **stateless(tff),
    )


@program("models.milstein_sampling.sample", [1.0], [0.2], places=WIDE)
def _(tf, tff, start, scale):
    return tff.models.milstein_sampling.sample(
        dim=1,
        drift_fn=lambda t, x: 0.1 * x,
        volatility_fn=lambda t, x: tf.expand_dims(scale * x, -1),
        times=[0.1, 0.5],
        num_samples=20,
        initial_state=start,
        time_step=0.1,
        dtype=tf.float64,
        **stateless(tff),
    )


@program("models.GenericItoProcess", [0.1, -1.1], [1.0], places=WIDE)
def _(tf, tff, start, scale):
    process = tff.models.GenericItoProcess(
        dim=2,
        drift_fn=_drift(tf, start),
        volatility_fn=_volatility(tf, scale),
        dtype=tf.float64,
    )
    return process.sample_paths(
        [0.1, 0.5], num_samples=20, initial_state=start, time_step=0.1, **stateless(tff)
    )


@program("models.ItoProcess")
def _(tf, tff):
    volatility, rate = 0.3, 0.01
    process = tff.models.GenericItoProcess(
        dim=1,
        drift_fn=lambda t, x: rate * x,
        volatility_fn=lambda t, x: tf.expand_dims(volatility * x, -1),
        dtype=tf.float64,
    )
    grid = tff.math.pde.grids.uniform_grid([0.0], [200.0], [64], dtype=tf.float64)
    return process.fd_solver_backward(
        start_time=1.0,
        end_time=0,
        time_step=0.1,
        coord_grid=grid,
        values_grid=tf.nn.relu(grid[0] - 60.0),
        discounting=lambda t, x: tf.constant(rate, tf.float64),
    )[0]


@program("models.JoinedItoProcess", [0.1], places=WIDE)
def _(tf, tff, sigma):
    simple = tff.models.GenericItoProcess(
        dim=1,
        drift_fn=lambda t, x: -(sigma**2) / 2,
        volatility_fn=lambda t, x: sigma * tf.ones([1, 1], dtype=x.dtype),
        dtype=tf.float64,
    )
    heston = tff.models.HestonModel(
        mean_reversion=1.0, theta=0.04, volvol=0.01, rho=0.2, dtype=tf.float64
    )
    joined = tff.models.JoinedItoProcess(
        processes=[simple, heston], corr_structure=[[[1.0, 0.5], [0.5, 1.0]], [1.0]]
    )
    return joined.sample_paths(
        times=[0.1, 0.5],
        time_step=0.1,
        num_samples=20,
        initial_state=np.array([0.0, 1.0, 0.04]),
        **stateless(tff),
    )


@program("models.HestonModel", [0.5], [0.04], places=WIDE)
def _(tf, tff, reversion, theta):
    volvol = tff.math.piecewise.PiecewiseConstantFunc([0.5], [1, 1.1], dtype=np.float64)
    process = tff.models.HestonModel(
        mean_reversion=reversion[0], theta=theta[0], volvol=volvol, rho=0.1, dtype=np.float64
    )
    return process.sample_paths(
        np.linspace(0.0, 1.0, 5),
        time_step=0.1,
        num_samples=20,
        initial_state=np.array([1.0, 0.04]),
        **stateless(tff),
    )


_HESTON = ([0.11], [102.0], [1.2], [100.0])


@program("models.heston.approximations.european_option_price", *_HESTON, places=WIDE)
def _(tf, tff, variances, strikes, expiries, forwards):
    return tff.models.heston.approximations.european_option_price(
        variances=variances,
        strikes=strikes,
        expiries=expiries,
        forwards=forwards,
        is_call_options=True,
        mean_reversion=2.0,
        theta=0.5,
        volvol=0.15,
        rho=0.3,
        discount_factors=1.0,
        dtype=np.float64,
    )


@program(
    "models.heston.approximations.calibration",
    [
        [29.33668202, 23.98724723, 19.54631658, 15.9022847, 12.93591534],
        [15.64785924, 21.05865247, 27.11907971, 33.74249536, 40.8485591],
    ],
    tolerance=1e-6,
)
def _(tf, tff, prices):
    models, converged, _ = tff.models.heston.approximations.calibration(
        prices=prices,
        strikes=np.array([[80.0, 90.0, 100.0, 110.0, 120.0]] * 2),
        expiries=np.array([[0.5], [1.0]]),
        forwards=100.0,
        is_call_options=np.array([[True], [False]]),
        mean_reversion=np.array([0.3]),
        initial_variance=np.array([0.8]),
        theta=np.array([0.75]),
        volvol=np.array([0.1]),
        rho=np.array(0.0),
        optimizer_fn=tff.math.optimizer.bfgs_minimize,
        maximum_iterations=10,
        dtype=np.float64,
    )
    return [converged, models.theta, models.rho]


@program("models.cir.CirModel", [[0.1], [0.2]])
def _(tf, tff, initial):
    process = tff.models.cir.CirModel(
        theta=[[0.02], [0.03]],
        mean_reversion=[[0.5], [0.4]],
        sigma=[[0.1], [0.5]],
        dtype=tf.float64,
    )
    return process.sample_paths(
        times=[0.1, 1.0],
        num_samples=2,
        initial_state=initial,
        random_type=tff.math.random.RandomType.STATELESS,
        seed=[3, 7],
    )


@program("models.sabr.SabrModel", [1.0], places=BATCHED)
def _(tf, tff, forward):
    process = tff.models.SabrModel(beta=0.5, volvol=0.6, rho=-0.3, dtype=tf.float64)
    return process.sample_paths(
        initial_forward=forward[0],
        initial_volatility=0.2,
        times=[0.1, 0.5],
        time_step=0.1,
        num_samples=20,
        **stateless(tff),
    )


_SABR = ([106.0, 11.0], [0.05, 1.1], [120.0, 20.0], [1.63])


@program("models.sabr.approximations.implied_volatility", *_SABR, places=EVERYWHERE)
def _(tf, tff, strikes, expiries, forwards, alpha):
    return tff.models.sabr.approximations.implied_volatility(
        strikes=strikes,
        expiries=expiries,
        forwards=forwards,
        alpha=alpha[0],
        beta=0.6,
        rho=0.00002,
        volvol=3.3,
        dtype=strikes.dtype,
    )


@program("models.sabr.approximations.european_option_price", *_SABR, places=EVERYWHERE)
def _(tf, tff, strikes, expiries, forwards, alpha):
    return tff.models.sabr.approximations.european_option_price(
        strikes=strikes,
        expiries=expiries,
        forwards=forwards,
        is_call_options=np.array([True, False]),
        alpha=alpha[0],
        beta=0.2,
        volvol=1.4,
        rho=0.0005,
        dtype=strikes.dtype,
    )


@program(
    "models.sabr.approximations.calibration",
    [
        [20.09689284, 10.91953054, 4.25012702, 1.11561839, 0.20815853],
        [3.34813209, 6.03578711, 10.2874194, 16.26824328, 23.73850935],
    ],
    tolerance=1e-6,
)
def _(tf, tff, prices):
    models, converged, _ = tff.models.sabr.approximations.calibration(
        prices=prices,
        strikes=np.array([[80.0, 90.0, 100.0, 110.0, 120.0]] * 2),
        expiries=np.array([[0.5], [1.0]]),
        forwards=100.0,
        is_call_options=np.array([[True], [False]]),
        beta=np.array([0.5, 0.5]),
        calibrate_beta=False,
        volvol=np.array([1.0, 1.0]),
        volvol_lower_bound=0.0,
        volvol_upper_bound=10.0,
        rho=np.array([0.0, 0.0]),
        rho_lower_bound=-0.75,
        rho_upper_bound=0.75,
        maximum_iterations=10,
        dtype=np.float64,
    )
    return [converged, models.volvol, models.rho]


def flat_curve(tf: Any, rate: Any = 0.01) -> Callable:
    return lambda x: rate * tf.ones_like(x, dtype=tf.float64)


@program("models.hull_white.HullWhiteModel1F", [0.1, 0.2, 0.1], places=WIDE)
def _(tf, tff, volatilities):
    piecewise = tff.math.piecewise.PiecewiseConstantFunc
    process = tff.models.hull_white.HullWhiteModel1F(
        mean_reversion=piecewise([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4, 0.5], dtype=tf.float64),
        volatility=piecewise([0.1, 2.0], volatilities, dtype=tf.float64),
        initial_discount_rate_fn=lambda *args: [0.01],
        dtype=tf.float64,
    )
    times = np.linspace(0.0, 1.0, 4)
    return process.sample_paths(times, num_samples=20, times_grid=times, **stateless(tff))


@program("models.hull_white.VectorHullWhiteModel", [0.03, 0.02], places=WIDE)
def _(tf, tff, reversion):
    volatility = tff.math.piecewise.PiecewiseConstantFunc(
        [[0.1, 2.0], [0.1, 2.0]], [[0.01, 0.02, 0.01], [0.01, 0.015, 0.01]], dtype=tf.float64
    )
    process = tff.models.hull_white.VectorHullWhiteModel(
        dim=2,
        mean_reversion=reversion,
        volatility=volatility,
        initial_discount_rate_fn=lambda *args: [0.01, 0.015],
        corr_matrix=[[1.0, 0.1], [0.1, 1.0]],
        dtype=tf.float64,
    )
    return process.sample_paths(np.linspace(0.0, 1.0, 4), num_samples=20, **stateless(tff))


_BOND = ([np.exp(-0.04)], [1.0], [5.0], [0.03], [0.02])


def _bond_options(family: str, **options: Any) -> None:
    @program(f"models.{family}.bond_option_price", *_BOND, places=WIDE)
    def price(tf, tff, strikes, expiries, maturities, reversion, volatility):
        return getattr(tff.models, family).bond_option_price(
            strikes=strikes,
            expiries=expiries,
            maturities=maturities,
            discount_rate_fn=flat_curve(tf),
            mean_reversion=reversion,
            volatility=volatility,
            dtype=tf.float64,
            **(options or {"dim": 1, "num_samples": 50, "time_step": 0.25, **stateless(tff)}),
        )


_bond_options("hull_white", use_analytic_pricing=True)
_bond_options("hjm")

_CAP_EXPIRIES = np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0]])


def _caps(family: str, **options: Any) -> None:
    @program(f"models.{family}.cap_floor_price", [0.03], [0.02], places=WIDE)
    def price(tf, tff, reversion, volatility):
        return getattr(tff.models, family).cap_floor_price(
            strikes=0.01 * np.ones_like(_CAP_EXPIRIES),
            expiries=_CAP_EXPIRIES,
            maturities=_CAP_EXPIRIES + 0.25,
            daycount_fractions=0.25 * np.ones_like(_CAP_EXPIRIES),
            notional=100.0,
            mean_reversion=reversion,
            volatility=volatility,
            reference_rate_fn=flat_curve(tf),
            dtype=tf.float64,
            **(options or {"dim": 1, "num_samples": 50, "time_step": 0.25, **stateless(tff)}),
        )


_caps("hull_white", use_analytic_pricing=True)
_caps("hjm")


def _swaption_legs() -> dict[str, Any]:
    return {
        "floating_leg_start_times": FLOAT_STARTS,
        "floating_leg_end_times": FLOAT_ENDS,
        "fixed_leg_payment_times": FLOAT_ENDS,
        "floating_leg_daycount_fractions": FRACTIONS,
        "fixed_leg_daycount_fractions": FRACTIONS,
        "fixed_leg_coupon": 0.011 * (FRACTIONS > 0),
    }


@program("models.hull_white.swaption_price", [0.03], [0.02], places=BATCHED)
def _(tf, tff, reversion, volatility):
    return tff.models.hull_white.swaption_price(
        expiries=[1.0, 1.0],
        reference_rate_fn=flat_curve(tf),
        notional=100.0,
        mean_reversion=reversion,
        volatility=volatility,
        dtype=tf.float64,
        **_swaption_legs(),
    )


@program("models.hull_white.bermudan_swaption_price", [0.03], [0.01])
def _(tf, tff, reversion, volatility):
    starts = np.array([[1.0, 1.5, 2.0], [1.5, 2.0, 2.0], [2.0, 2.0, 2.0]])
    ends = np.clip(starts + 0.5, 0.0, 2.5)
    return tff.models.hull_white.bermudan_swaption_price(
        exercise_times=[1.0, 1.5, 2.0],
        floating_leg_start_times=starts,
        floating_leg_end_times=ends,
        fixed_leg_payment_times=ends,
        floating_leg_daycount_fractions=ends - starts,
        fixed_leg_daycount_fractions=ends - starts,
        fixed_leg_coupon=0.011 * np.ones_like(ends),
        reference_rate_fn=flat_curve(tf),
        notional=100.0,
        mean_reversion=reversion,
        volatility=volatility,
        num_samples=50,
        time_step=0.25,
        dtype=tf.float64,
        **stateless(tff),
    )


@program("models.hull_white.calibration_from_swaptions", [0.7163243, 1.4031415], tolerance=1e-6)
def _(tf, tff, prices):
    found, _, _ = tff.models.hull_white.calibration_from_swaptions(
        prices=prices,
        expiries=np.array([1.0, 1.0]),
        reference_rate_fn=flat_curve(tf),
        notional=100.0,
        mean_reversion=[0.01],
        volatility=[0.005],
        maximum_iterations=5,
        dtype=tf.float64,
        **_swaption_legs(),
    )
    return [found.mean_reversion.values(), found.volatility.values()]


@program("models.hull_white.calibration_from_cap_floors", [0.40, 1.30], tolerance=1e-6)
def _(tf, tff, prices):
    found, converged, _ = tff.models.hull_white.calibration_from_cap_floors(
        prices=prices,
        strikes=0.01 * np.ones_like(_CAP_EXPIRIES),
        expiries=_CAP_EXPIRIES,
        maturities=_CAP_EXPIRIES + 0.25,
        daycount_fractions=0.25 * np.ones_like(_CAP_EXPIRIES),
        reference_rate_fn=flat_curve(tf),
        mean_reversion=[0.3],
        volatility=[0.02],
        notional=100.0,
        use_analytic_pricing=True,
        maximum_iterations=5,
        dtype=tf.float64,
    )
    return [converged, found.mean_reversion.values(), found.volatility.values()]


for _model in ("GaussianHJM", "QuasiGaussianHJM"):

    @program(f"models.hjm.{_model}", [0.03, 0.01], [0.01, 0.011], places=WIDE)
    def _(tf, tff, reversion, volatility, _model=_model):
        process = getattr(tff.models.hjm, _model)(
            dim=2,
            mean_reversion=reversion,
            volatility=volatility,
            initial_discount_rate_fn=flat_curve(tf),
            dtype=tf.float64,
        )
        return process.sample_paths(
            np.array([0.1, 1.0]), num_samples=20, time_step=0.1, **stateless(tff)
        )


@program("models.hjm.swaption_price", [0.03], [0.02], places=BATCHED)
def _(tf, tff, reversion, volatility):
    times = np.array([1.25, 1.5, 1.75, 2.0])
    return tff.models.hjm.swaption_price(
        expiries=np.array([1.0]),
        fixed_leg_payment_times=times,
        fixed_leg_daycount_fractions=0.25 * np.ones_like(times),
        fixed_leg_coupon=0.011 * np.ones_like(times),
        reference_rate_fn=flat_curve(tf),
        notional=100.0,
        num_hjm_factors=1,
        mean_reversion=reversion,
        volatility=volatility,
        num_samples=50,
        time_step=0.25,
        dtype=tf.float64,
        **stateless(tff),
    )


@program("models.hjm.calibration_from_swaptions", [0.7163243, 1.4031415], tolerance=1e-5)
def _(tf, tff, prices):
    found, _, _ = tff.models.hjm.calibration_from_swaptions(
        prices=prices,
        expiries=np.array([1.0, 1.0]),
        reference_rate_fn=flat_curve(tf),
        num_hjm_factors=1,
        notional=100.0,
        mean_reversion=[0.01],
        volatility=[0.005],
        num_samples=50,
        time_step=0.25,
        maximum_iterations=3,
        dtype=tf.float64,
        **_swaption_legs(),
        **stateless(tff),
    )
    return [found.mean_reversion, found.volatility]


def _paths(tf: Any) -> Any:
    normal = tf.random.stateless_normal([40, 5, 1], [3, 7], dtype=tf.float64)
    return tf.exp(0.3 * tf.cumsum(normal, 1))


for _module, _suffix in (
    ("models.longstaff_schwartz", ""),
    ("experimental.lsm_algorithm", ""),
    ("experimental.lsm_algorithm", "_v2"),
):

    @program(f"{_module}.least_square_mc{_suffix}")
    def _(tf, tff, _module=_module, _suffix=_suffix):
        owner = tff
        for part in _module.split("."):
            owner = getattr(owner, part)
        # The second version takes one strike for each of a batch.
        payoff_fn = (tff.models.longstaff_schwartz if _suffix else owner).make_basket_put_payoff(
            [1.1], dtype=tf.float64
        )
        return getattr(owner, f"least_square_mc{_suffix}")(
            _paths(tf),
            tf.range(5),
            payoff_fn,
            getattr(owner, f"make_polynomial_basis{_suffix}")(2),
            discount_factors=tf.exp(-0.1 * tf.constant([0.0, 0.2, 0.4, 0.6, 0.8], tf.float64)),
            dtype=tf.float64,
        )


@program("models.longstaff_schwartz.make_polynomial_basis")
def _(tf, tff):
    x = tf.expand_dims(tf.constant([[1.0], [2.0], [3.0], [4.0]]), -1)
    return tff.models.longstaff_schwartz.make_polynomial_basis(2)(x, tf.constant(0, tf.int32))


@program("models.longstaff_schwartz.make_basket_put_payoff")
def _(tf, tff):
    return tff.models.longstaff_schwartz.make_basket_put_payoff([1.1], dtype=tf.float64)(
        _paths(tf), tf.constant(2)
    )


@program("models.realized_volatility", np.linspace(1.0, 2.0, 12).reshape(3, 4), places=WIDE)
def _(tf, tff, paths):
    scale = tff.models.PathScale
    returns = tff.models.ReturnsType
    return [
        tff.models.realized_volatility(paths, scaling_factors=3.0, axis=1),
        tff.models.realized_volatility(
            paths, path_scale=scale.LOG, returns_type=returns.ABS, axis=1
        ),
    ]
