"""Programs of tf_quant_finance.experimental."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.models import stateless
from tests.substrates.libraries.quant_finance.places import EVERYWHERE, VALUES

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)

_SVI = np.array([-0.1825, 0.3306, -0.0988, 0.0368, 0.6011])
_SVI_STRIKES = np.array([[1800.0, 2000.0, 2200.0, 2400.0, 2600.0, 2800.0, 3000.0]])


@program(
    "experimental.svi.total_variance_from_raw_svi_parameters", _SVI, _SVI_STRIKES, places=EVERYWHERE
)
def _(tf, tff, parameters, strikes):
    return tff.experimental.svi.total_variance_from_raw_svi_parameters(
        svi_parameters=parameters,
        forwards=tf.constant([2402.0], strikes.dtype),
        strikes=strikes,
    )


@program(
    "experimental.svi.implied_volatility_from_raw_svi_parameters",
    _SVI,
    _SVI_STRIKES,
    places=EVERYWHERE,
)
def _(tf, tff, parameters, strikes):
    return tff.experimental.svi.implied_volatility_from_raw_svi_parameters(
        svi_parameters=parameters,
        forwards=tf.constant([2402.0], strikes.dtype),
        strikes=strikes,
        expiries=[0.23],
    )


@program(
    "experimental.svi.calibration",
    [[0.5335, 0.4389, 0.3749, 0.3259, 0.29, 0.2717, 0.2592, 0.2564, 0.2669, 0.2967]],
    tolerance=1e-8,
)
def _(tf, tff, volatilities):
    return tff.experimental.svi.calibration(
        forwards=np.array([2402.0]),
        expiries=np.array([0.23]),
        strikes=np.linspace(1700.0, 3000.0, 10)[None],
        volatilities=volatilities,
        # It converges after hundreds of steps, each of which makes differences larger: after 100
        # steps TensorFlow's own result moves by 0.1 with the last place of a volatility.
        maximum_iterations=5,
    )


@program("experimental.lsm_algorithm.make_polynomial_basis")
def _(tf, tff):
    lsm = tff.experimental.lsm_algorithm
    x = tf.expand_dims(tf.constant([1.0, 2.0, 3.0, 4.0]), -1)
    y = tf.expand_dims(tf.constant([[1.0], [2.0], [3.0], [4.0]]), -1)
    return [
        lsm.make_polynomial_basis(2)(x),
        lsm.make_polynomial_basis_v2(2)(y, tf.constant(0, tf.int32)),
    ]


def _surface(tf: Any, tff: Any) -> dict[str, Any]:
    dates = tff.datetime
    valuation = dates.convert_to_date_tensor([(2020, 6, 24)])
    expiries = valuation.expand_dims(-1) + dates.periods.months([3, 6, 9, 12])
    strikes = np.array([[[1.0, 1.1, 1.3], [0.9, 1.0, 1.2], [0.8, 1.0, 1.1], [0.9, 1.0, 1.3]]])
    return {
        "valuation_date": valuation,
        "expiry_dates": expiries,
        "strikes": strikes,
        "implied_volatilities": 0.2 + 0.05 * (strikes - 1.0),
    }


@program("experimental.local_volatility.LocalVolatilityModel", tolerance=1e-8)
def _(tf, tff):
    model = tff.experimental.local_volatility.LocalVolatilityModel.from_market_data(
        1,
        spot=[1.0],
        discount_factor_fn=lambda t: tf.math.exp(-0.02 * t),
        dividend_yield=[0.0],
        times_grid=np.linspace(0.0, 0.5, 6),
        spot_grid=np.linspace(0.5, 1.6, 12),
        precompute_iv=False,
        dtype=tf.float64,
        **_surface(tf, tff),
    )
    return model.sample_paths(
        [0.1, 0.5],
        num_samples=20,
        initial_state=[[1.0]],
        time_step=0.1,
        **stateless(tff),
    )


@program("experimental.local_stochastic_volatility.LocalStochasticVolatilityModel", tolerance=1e-8)
def _(tf, tff):
    lsv = tff.experimental.local_stochastic_volatility
    variance = lsv.LSVVarianceModel(1.0, 0.04, 0.1, dtype=tf.float64)
    model = lsv.LocalStochasticVolatilityModel.from_market_data(
        variance_process=variance,
        initial_spot=tf.constant([[1.0]], tf.float64),
        initial_variance=tf.constant([[0.04]], tf.float64),
        rho=tf.constant(-0.3, tf.float64),
        risk_free_rate=tf.constant([0.02], tf.float64),
        dividend_yield=tf.constant([0.0], tf.float64),
        time_step=tf.constant(0.05, tf.float64),
        num_grid_points=12,
        dtype=tf.float64,
        **_surface(tf, tff),
    )
    return model.sample_paths(
        [0.1, 0.2],
        num_samples=10,
        initial_state=np.array([1.0, 0.04]),
        time_step=0.1,
        **stateless(tff),
    )


@program("experimental.local_stochastic_volatility.LSVVarianceModel")
def _(tf, tff):
    variance = tff.experimental.local_stochastic_volatility.LSVVarianceModel(
        1.0, 0.04, 0.1, dtype=tf.float64
    )
    x = tf.constant([[0.1], [0.2]], tf.float64)
    return [variance.drift_fn()(0.0, x), variance.volatility_fn()(0.0, x)]


def _market(tf: Any, tff: Any) -> tuple[Any, Any]:
    dates, instruments = tff.datetime, tff.experimental.instruments
    valuation = dates.convert_to_date_tensor([(2021, 1, 1)])
    curve = instruments.RateCurve(
        valuation + dates.periods.years([0, 1, 2, 3, 5]),
        np.array([0.02, 0.02, 0.025, 0.03, 0.035]),
        valuation_date=valuation,
        dtype=np.float64,
    )
    market = instruments.InterestRateMarket(reference_curve=curve, discount_curve=curve)
    return valuation, market


def _coupons(tff: Any, kind: str) -> Any:
    dates, instruments = tff.datetime, tff.experimental.instruments
    common = {
        "currency": "usd",
        "notional": 100.0,
        "daycount_convention": instruments.DayCountConvention.ACTUAL_365,
        "businessday_rule": dates.BusinessDayConvention.NONE,
    }
    three, six = dates.periods.months(3), dates.periods.months(6)
    if kind == "fixed":
        return instruments.FixedCouponSpecs(coupon_frequency=six, coupon_rate=0.02, **common)
    floating = instruments.FloatCouponSpecs(
        coupon_frequency=three,
        reference_rate_term=three,
        reset_frequency=three,
        coupon_basis=0.0,
        coupon_multiplier=1.0,
        **common,
    )
    if kind == "float":
        return floating
    return instruments.CMSCouponSpecs(
        coupon_frequency=three,
        tenor=dates.periods.year(),
        float_leg=floating,
        fixed_leg=_coupons(tff, "fixed"),
        notional=100.0,
        coupon_basis=0.0,
        coupon_multiplier=1.0,
        businessday_rule=None,
        daycount_convention=instruments.DayCountConvention.ACTUAL_365,
    )


def _dates(tff: Any, *years: int) -> list:
    return [tff.datetime.convert_to_date_tensor([(year, 1, 1)]) for year in years]


_INSTRUMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "FixedCashflowStream": lambda i, t: i.FixedCashflowStream(
        *_dates(t, 2021, 2023), [_coupons(t, "fixed")], dtype=np.float64
    ),
    "FloatingCashflowStream": lambda i, t: i.FloatingCashflowStream(
        *_dates(t, 2021, 2023), [_coupons(t, "float")], dtype=np.float64
    ),
    "CMSCashflowStream": lambda i, t: i.CMSCashflowStream(
        *_dates(t, 2021, 2023), [_coupons(t, "cms")], dtype=np.float64
    ),
    "InterestRateSwap": lambda i, t: i.InterestRateSwap(
        *_dates(t, 2021, 2023), [_coupons(t, "fixed")], [_coupons(t, "float")], dtype=np.float64
    ),
    "CMSSwap": lambda i, t: i.CMSSwap(
        *_dates(t, 2021, 2023), [_coupons(t, "fixed")], [_coupons(t, "cms")], dtype=np.float64
    ),
    "Bond": lambda i, t: i.Bond(*_dates(t, 2021, 2023), [_coupons(t, "fixed")], dtype=np.float64),
    "FloatingRateNote": lambda i, t: i.FloatingRateNote(
        *_dates(t, 2021, 2022), [_coupons(t, "float")], dtype=np.float64
    ),
    "ForwardRateAgreement": lambda i, t: i.ForwardRateAgreement(
        *_dates(t, 2022, 2022),
        fixed_rate=0.011,
        notional=100.0,
        rate_term=t.datetime.periods.months(3),
        dtype=np.float64,
    ),
    "EurodollarFutures": lambda i, t: i.EurodollarFutures(
        *_dates(t, 2022),
        contract_notional=1.0,
        rate_term=t.datetime.periods.months(3),
        dtype=np.float64,
    ),
    "OvernightIndexLinkedFutures": lambda i, t: i.OvernightIndexLinkedFutures(
        *_dates(t, 2022),
        t.datetime.convert_to_date_tensor([(2022, 3, 1)]),
        holiday_calendar=t.datetime.create_holiday_calendar(
            weekend_mask=t.datetime.WeekendMask.SATURDAY_SUNDAY
        ),
        dtype=np.float64,
    ),
}
for _instrument, _make in _INSTRUMENTS.items():

    @program(f"experimental.instruments.{_instrument}", places=VALUES)
    def _(tf, tff, _make=_make):
        valuation, market = _market(tf, tff)
        return _make(tff.experimental.instruments, tff).price(valuation, market)


@program("experimental.instruments.CapAndFloor", places=VALUES)
def _(tf, tff):
    instruments = tff.experimental.instruments
    valuation, market = _market(tf, tff)
    cap = instruments.CapAndFloor(
        *_dates(tff, 2022, 2023),
        tff.datetime.periods.months(3),
        0.005,
        daycount_convention=instruments.DayCountConvention.ACTUAL_365,
        notional=100.0,
        dtype=np.float64,
    )
    return cap.price(
        valuation,
        market,
        model=instruments.InterestRateModelType.LOGNORMAL_RATE,
        pricing_context=0.5,
    )


@program("experimental.instruments.Swaption", places=VALUES)
def _(tf, tff):
    instruments = tff.experimental.instruments
    valuation, market = _market(tf, tff)
    swap = instruments.InterestRateSwap(
        *_dates(tff, 2022, 2024),
        [_coupons(tff, "fixed")],
        [_coupons(tff, "float")],
        dtype=np.float64,
    )
    swaption = instruments.Swaption(swap, _dates(tff, 2022)[0], dtype=np.float64)
    return swaption.price(
        valuation,
        market,
        model=instruments.InterestRateModelType.LOGNORMAL_RATE,
        pricing_context=0.3,
    )


@program("experimental.instruments.RateCurve", places=VALUES)
def _(tf, tff):
    valuation, market = _market(tf, tff)
    dates = valuation + tff.datetime.periods.months([5, 17, 30])
    curve = market.discount_curve
    return [
        curve.get_rates(dates),
        curve.get_discount_factor(dates),
        curve.get_forward_rate(dates[:2], dates[1:], np.array([1.0, 1.1])),
    ]


@program("experimental.instruments.ratecurve_from_discounting_function", places=VALUES)
def _(tf, tff):
    valuation, _ = _market(tf, tff)
    curve = tff.experimental.instruments.ratecurve_from_discounting_function(
        lambda t: tf.exp(-0.01 * tf.cast(t.ordinal(), tf.float64) / 365000.0), dtype=np.float64
    )
    return curve.get_discount_factor(valuation)
