"""Programs of tf_quant_finance.rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.black_scholes import (
    FLOAT_ENDS,
    FLOAT_STARTS,
    FRACTIONS,
)
from tests.substrates.libraries.quant_finance.math import POINTS
from tests.substrates.libraries.quant_finance.models import flat_curve
from tests.substrates.libraries.quant_finance.places import BATCHED, EVERYWHERE, VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


@program(
    "rates.analytics.cashflows.present_value",
    [[20.0, 20, 20, 1020, 0, 0], [30, 30, 30, 30, 30, 1030]],
    [[0.96, 0.93, 0.9, 0.87, 1.0, 1.0], [0.97, 0.95, 0.93, 0.9, 0.88, 0.86]],
    places=EVERYWHERE,
)
def _(tf, tff, cashflows, factors):
    return tff.rates.analytics.cashflows.present_value(cashflows, factors)


_CASHFLOWS = np.array([20.0, 20, 20, 1020, 30, 30, 30, 30, 30, 1030])
_TIMES = np.array([0.5, 1, 1.5, 2, 0.5, 1, 1.50, 2, 2.5, 3])
_GROUPS = np.array([0] * 4 + [1] * 6)


@program(
    "rates.analytics.cashflows.pv_from_yields", _CASHFLOWS, _TIMES, [0.07, 0.05], places=EVERYWHERE
)
def _(tf, tff, cashflows, times, yields):
    return tff.rates.analytics.cashflows.pv_from_yields(cashflows, times, yields, groups=_GROUPS)


@program(
    "rates.analytics.cashflows.yields_from_pv", [942.71187528177757, 1025.7777], places=BATCHED
)
def _(tf, tff, values):
    return tff.rates.analytics.cashflows.yields_from_pv(
        _CASHFLOWS, _TIMES, values, groups=_GROUPS, dtype=np.float64
    )


@program(
    "rates.analytics.forwards.forward_rates",
    [[0.95, 0.9, 0.75], [0.95, 0.99, 0.85]],
    [[0.8, 0.6, 0.5], [0.8, 0.9, 0.5]],
    places=EVERYWHERE,
)
def _(tf, tff, starts, ends):
    return tff.rates.analytics.forwards.forward_rates(
        starts, ends, [[0.5, 1.0, 2], [0.6, 0.4, 4.0]], dtype=starts.dtype
    )


_CURVE_GROUPS = np.array([0, 0, 0, 1, 1, 1, 1])
_CURVE_TIMES = np.array([0.25, 0.5, 1.0, 0.25, 0.5, 1.0, 1.5])
for _where in ("rates.analytics.forwards", "rates.forwards"):
    for _of in ("forward_rates_from_yields", "yields_from_forward_rates"):

        @program(
            f"{_where}.{_of}",
            [0.04, 0.041, 0.044, 0.022, 0.025, 0.028, 0.036],
            places=WIDE,
        )
        def _(tf, tff, rates, _where=_where, _of=_of):
            owner = tff
            for part in _where.split("."):
                owner = getattr(owner, part)
            return getattr(owner, _of)(rates, _CURVE_TIMES, groups=_CURVE_GROUPS, dtype=np.float64)


@program(
    "rates.analytics.swap.swap_price",
    [[100.0, 100, 100], [200, 250, 300]],
    [[200.0, 250, 300, 300], [100, 100, 100, 100]],
    places=EVERYWHERE,
)
def _(tf, tff, pay, receive):
    return tff.rates.analytics.swap.swap_price(
        pay_leg_cashflows=pay,
        receive_leg_cashflows=receive,
        pay_leg_discount_factors=[[0.95, 0.9, 0.8], [0.9, 0.85, 0.8]],
        receive_leg_discount_factors=[[0.95, 0.9, 0.8, 0.75], [0.9, 0.85, 0.8, 0.75]],
        dtype=pay.dtype,
    )


@program(
    "rates.analytics.swap.equity_leg_cashflows",
    [[110.0, 120, 140], [210, 220, 240]],
    [100.0, 200.0],
    places=EVERYWHERE,
)
def _(tf, tff, forwards, spots):
    return tff.rates.analytics.swap.equity_leg_cashflows(
        forwards, spots, 10000, [[1, 1, 1], [2, 2, 2]], dtype=spots.dtype
    )


@program("rates.analytics.swap.rate_leg_cashflows", [[0.1, 0.1], [0.02, 0.12]], places=EVERYWHERE)
def _(tf, tff, rates):
    return tff.rates.analytics.swap.rate_leg_cashflows(
        rates, 1000, [[1, 1], [1, 2]], dtype=rates.dtype
    )


_SWAP_FACTORS = np.array([[0.95, 0.9, 0.85], [0.98, 0.92, 0.88]])


@program("rates.analytics.swap.ir_swap_price", [[0.1], [0.15]], _SWAP_FACTORS, places=EVERYWHERE)
def _(tf, tff, rates, factors):
    return tff.rates.analytics.swap.ir_swap_price(
        pay_leg_coupon_rates=rates,
        receive_leg_coupon_rates=[[0.1, 0.2, 0.05], [0.1, 0.05, 0.2]],
        pay_leg_notional=1000,
        receive_leg_notional=1000,
        pay_leg_daycount_fractions=0.5,
        receive_leg_daycount_fractions=[[0.5, 0.5, 0.5], [0.4, 0.5, 0.6]],
        pay_leg_discount_factors=factors,
        receive_leg_discount_factors=factors,
        dtype=rates.dtype,
    )


@program("rates.analytics.swap.ir_swap_par_rate_and_annuity")
def _(tf, tff):
    return tff.rates.analytics.swap.ir_swap_par_rate_and_annuity(
        FLOAT_STARTS, FLOAT_ENDS, FLOAT_ENDS, FRACTIONS, flat_curve(tf), dtype=tf.float64
    )


@program("rates.analytics.swap.equity_swap_price", _SWAP_FACTORS, places=EVERYWHERE)
def _(tf, tff, factors):
    return tff.rates.analytics.swap.equity_swap_price(
        rate_leg_coupon_rates=[[0.1, 0.2, 0.05], [0.1, 0.05, 0.2]],
        equity_leg_forward_prices=[[110, 120, 140, 150], [210, 220, 240, 0]],
        equity_leg_spots=[100, 200],
        rate_leg_notional=1000,
        equity_leg_notional=1000,
        rate_leg_daycount_fractions=[[0.5, 0.5, 0.5], [0.4, 0.5, 0.6]],
        rate_leg_discount_factors=factors,
        equity_leg_discount_factors=[[0.95, 0.9, 0.85, 0.8], [0.98, 0.92, 0.88, 0.0]],
        is_equity_receiver=[True, False],
        dtype=factors.dtype,
    )


@program(
    "rates.constant_fwd.interpolate", [0.01, 0.02, 0.015, 0.014, 0.02, 0.025], places=EVERYWHERE
)
def _(tf, tff, yields):
    return tff.rates.constant_fwd.interpolate(
        [1.0, 3, 6, 7, 8, 15, 18, 25, 30],
        [0.0, 2.0, 6.0, 8.0, 18.0, 30.0],
        yields,
        dtype=yields.dtype,
    )


@program(
    "rates.hagan_west.bond_curve",
    [999.68155223943393, 1022.322872470043, 1093.9894418810143],
    tolerance=1e-8,
)
def _(tf, tff, values):
    quarters = np.arange(1, 13) / 4
    times = [quarters[:4], quarters[1:8:2], quarters[1:12:2]]
    flows = [
        np.array([12.5, 12.5, 12.5, 1012.5]),
        np.array([30.0, 30, 30, 1030]),
        np.array([40.0, 40, 40, 40, 40, 1040]),
    ]
    found = tff.rates.hagan_west.bond_curve(flows, times, values, dtype=np.float64)
    return [found.times, found.discount_rates, found.converged]


_INTERVALS = np.array([0.25, 0.5, 1.0, 2.0, 3.0])


@program(
    "rates.hagan_west.monotone_convex.interpolate",
    [0.05, 0.051, 0.052, 0.053, 0.055],
    places=EVERYWHERE,
)
def _(tf, tff, values):
    return tff.rates.hagan_west.monotone_convex.interpolate(
        tf.constant([0.25, 0.5, 1.0, 2.0, 3.0, 1.1], values.dtype),
        values,
        tf.constant(_INTERVALS, values.dtype),
    )


for _of in ("interpolate_forward_rate", "interpolate_yields"):

    @program(
        f"rates.hagan_west.monotone_convex.{_of}",
        [0.05, 0.0475, 0.0453, 0.04775],
        places=EVERYWHERE,
    )
    def _(tf, tff, yields, _of=_of):
        return getattr(tff.rates.hagan_west.monotone_convex, _of)(
            tf.constant([0.3, 1.3, 2.1, 3.5], yields.dtype),
            tf.constant([1.0, 2.0, 3.0, 4.0], yields.dtype),
            yields=yields,
        )


@program("rates.hagan_west.monotone_convex.diff", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.rates.hagan_west.monotone_convex.diff(x)


@program("rates.nelson_seigel_svensson.interpolate", [5.0, 10.0, 15.0, 20.0], places=EVERYWHERE)
def _(tf, tff, times):
    svensson = tff.rates.nelson_seigel_svensson
    parameters = svensson.SvenssonParameters(
        beta_0=0.05, beta_1=-0.01, beta_2=0.3, beta_3=0.02, tau_1=1.5, tau_2=20.0
    )
    return svensson.interpolate(times, parameters, dtype=times.dtype)


def _instruments() -> dict[str, Any]:
    starts = [np.array([0.0, 0.25]), np.array([0.0, 0.25, 0.5, 0.75])]
    ends = [np.array([0.25, 0.5]), np.array([0.25, 0.5, 0.75, 1.0])]
    return {
        "float_leg_start_times": starts,
        "float_leg_end_times": ends,
        "fixed_leg_start_times": starts,
        "fixed_leg_end_times": ends,
        "fixed_leg_cashflows": [-0.03 * 0.25 * np.ones(2), -0.035 * 0.25 * np.ones(4)],
        "present_values": np.array([0.0, 0.0]),
        "initial_curve_rates": np.array([0.01, 0.01]),
    }


@program("rates.swap_curve_fit", tolerance=1e-6)
def _(tf, tff):
    found = tff.rates.swap_curve_fit(
        **{
            **_instruments(),
            "float_leg_daycount_fractions": [0.25 * np.ones(2), 0.25 * np.ones(4)],
            "fixed_leg_daycount_fractions": [0.25 * np.ones(2), 0.25 * np.ones(4)],
        },
        dtype=np.float64,
    )
    return [found.times, found.rates, found.converged]


@program("rates.swap_curve_bootstrap", tolerance=1e-6)
def _(tf, tff):
    found = tff.rates.swap_curve_bootstrap(**_instruments(), dtype=np.float64)
    return [found.times, found.rates, found.converged]
