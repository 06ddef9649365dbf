"""Programs of tf_quant_finance.black_scholes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.places import BATCHED, EVERYWHERE, VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)

_VOLATILITIES = np.array([0.1, 1.2, 2.0, 0.1, 0.4])
_STRIKES = np.array([3.0])
_EXPIRIES = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
_SPOTS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
_CALLS = np.array([True, False, True, False, True])
_OPTIONS = (_VOLATILITIES, _STRIKES, _EXPIRIES, _SPOTS)


def _vanilla(function: str, particular: str, **kwargs: Any) -> None:
    @program(f"black_scholes.{function}: {particular}", *_OPTIONS, places=EVERYWHERE)
    def price(tf: Any, tff: Any, volatilities: Any, strikes: Any, expiries: Any, spots: Any) -> Any:
        of = getattr(tff.black_scholes, function)
        return of(
            volatilities=volatilities, strikes=strikes, expiries=expiries, spots=spots, **kwargs
        )


for _function in ("option_price", "binary_price", "asset_or_nothing_price"):
    _vanilla(_function, "calls")
    _vanilla(_function, "both", is_call_options=_CALLS)
    _vanilla(_function, "normal", is_normal_volatility=True)
    _vanilla(_function, "rates", discount_rates=0.03, dividend_rates=0.01)


for _down in (True, False):
    for _out in (True, False):

        @program(
            f"black_scholes.barrier_price: {'down' if _down else 'up'}, {'out' if _out else 'in'}",
            *_OPTIONS,
            places=EVERYWHERE,
        )
        def _(tf, tff, volatilities, strikes, expiries, spots, _down=_down, _out=_out):
            return tff.black_scholes.barrier_price(
                volatilities=volatilities,
                strikes=strikes,
                expiries=expiries,
                spots=spots,
                barriers=spots - 0.5 if _down else spots + 0.5,
                rebates=spots * 0.1,
                is_barrier_down=_down,
                is_knock_out=_out,
            )


@program("black_scholes.implied_vol", [0.6], [2.2], [1.0], [2.0], places=EVERYWHERE, tolerance=1e-9)
def _(tf, tff, prices, strikes, expiries, spots):
    return tff.black_scholes.implied_vol(
        prices=prices, strikes=strikes, expiries=expiries, forwards=spots
    )


@program("black_scholes.implied_vol_newton", [0.6], [2.2], [1.0], [2.0], places=BATCHED)
def _(tf, tff, prices, strikes, expiries, spots):
    return tff.black_scholes.implied_vol_newton(
        prices=prices, strikes=strikes, expiries=expiries, forwards=spots
    )


@program("black_scholes.implied_vol_approx", [0.6], [2.2], [1.0], [2.0], places=EVERYWHERE)
def _(tf, tff, prices, strikes, expiries, spots):
    return tff.black_scholes.implied_vol_approx(
        prices=prices, strikes=strikes, expiries=expiries, forwards=spots
    )


_AMERICAN = ([0.2] * 5, [100.0] * 5, [0.25], [80.0, 90.0, 100.0, 110.0, 120.0])


@program("black_scholes.approximations.adesi_whaley", *_AMERICAN, places=EVERYWHERE)
def _(tf, tff, volatilities, strikes, expiries, spots):
    return tff.black_scholes.approximations.adesi_whaley(
        volatilities=volatilities,
        strikes=strikes,
        expiries=expiries,
        discount_rates=0.08,
        dividend_rates=0.12,
        spots=spots,
        dtype=spots.dtype,
    )


# In float32 TensorFlow itself is 2e-5 from its value in float64.
@program(
    "black_scholes.approximations.bjerksund_stensland", *_AMERICAN, places=EVERYWHERE, wide=5e-5
)
def _(tf, tff, volatilities, strikes, expiries, forwards):
    return tff.black_scholes.approximations.bjerksund_stensland(
        volatilities=volatilities,
        strikes=strikes,
        expiries=expiries,
        discount_rates=0.08,
        dividend_rates=0.12,
        forwards=forwards,
        is_call_options=True,
        modified_boundary=True,
        dtype=forwards.dtype,
    )


_ENDS = (
    [[4.5, 4.5, 4.5], [4.5, 4.6, 4.7]],
    [[5.0, 4.9, 4.8], [4.8, 4.9, 5.0]],
    [[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]],
)


@program("black_scholes.brownian_bridge_double", *_ENDS, places=EVERYWHERE)
def _(tf, tff, start, end, variance):
    return tff.black_scholes.brownian_bridge_double(
        x_start=start,
        x_end=end,
        variance=variance,
        upper_barrier=5.1,
        lower_barrier=4.4,
        n_cutoff=3,
        dtype=start.dtype,
    )


@program("black_scholes.brownian_bridge_single", *_ENDS, places=EVERYWHERE)
def _(tf, tff, start, end, variance):
    return tff.black_scholes.brownian_bridge_single(
        x_start=start, x_end=end, variance=variance, barrier=5.1, dtype=start.dtype
    )


@program(
    "black_scholes.option_price_binomial",
    [0.1, 0.22, 0.32, 0.01, 0.4],
    [3.0] * 5,
    [1.0] * 5,
    _SPOTS,
    places=WIDE,
)
def _(tf, tff, volatilities, strikes, expiries, spots):
    return tff.black_scholes.option_price_binomial(
        volatilities=volatilities,
        strikes=strikes,
        expiries=expiries,
        spots=spots,
        discount_rates=np.array(0.035),
        dividend_rates=np.array([0.02, 0.0, 0.07, 0.01, 0.0]),
        is_call_options=np.array([True, True, False, False, False]),
        is_american=np.array([False, True, True, False, True]),
        num_steps=20,
        dtype=np.float64,
    )


FLOAT_STARTS = np.array(
    [[1.0, 1.25, 1.5, 1.75, 2.0, 2.0, 2.0, 2.0], [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75]]
)
FLOAT_ENDS = np.array(
    [[1.25, 1.5, 1.75, 2.0, 2.0, 2.0, 2.0, 2.0], [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0]]
)
FRACTIONS = np.array([[0.25] * 4 + [0.0] * 4, [0.25] * 8])


@program("black_scholes.swaption_price", [0.01, 0.005], places=EVERYWHERE)
def _(tf, tff, volatilities):
    dtype = volatilities.dtype
    discount = lambda x: np.exp(-0.01 * np.array(x))  # noqa: E731
    return tff.black_scholes.swaption_price(
        volatilities=volatilities,
        expiries=[1.0, 1.0],
        floating_leg_start_times=FLOAT_STARTS,
        floating_leg_end_times=FLOAT_ENDS,
        fixed_leg_payment_times=FLOAT_ENDS,
        floating_leg_daycount_fractions=FRACTIONS,
        fixed_leg_daycount_fractions=FRACTIONS,
        fixed_leg_coupon=[0.011, 0.011],
        floating_leg_start_times_discount_factors=discount(FLOAT_STARTS),
        floating_leg_end_times_discount_factors=discount(FLOAT_ENDS),
        fixed_leg_payment_times_discount_factors=discount(FLOAT_ENDS),
        is_normal_volatility=False,
        notional=100.0,
        dtype=dtype,
    )


@program(
    "black_scholes.variance_swap_fair_strike",
    0.2 * np.ones((2, 4)),
    [100.0, 1000.0],
    places=EVERYWHERE,
)
def _(tf, tff, volatilities, references):
    dtype = volatilities.dtype
    return tff.black_scholes.variance_swap_fair_strike(
        np.array([[100, 95, 90, 85], [1000, 900, 800, 700]]),
        volatilities,
        np.array([[100, 105, 110, 115], [1000, 1100, 1200, 1300]]),
        volatilities,
        [0.25, 0.25],
        [0.05, 0.05],
        references,
        references,
        dtype=dtype,
    )
