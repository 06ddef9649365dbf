"""Programs of tf-quant-finance 0.0.1.dev34, most of them the examples of its documentation."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import FLOAT32, GRAD, JAX, JIT, NUMPY, VMAP, Program, Suite

LIBRARY = "tf_quant_finance"
EVERYWHERE = (NUMPY, NUMPY + FLOAT32, JIT, JIT + FLOAT32, GRAD, VMAP)
WIDE = (NUMPY, JIT, GRAD, VMAP)
BATCHED = (NUMPY, JIT, VMAP)
VALUES = (NUMPY, JIT)
ONLY_EAGER = (NUMPY, JAX)

PROGRAMS: list[Program] = []


def program(
    name: str, *arrays: Any, places: tuple[str, ...] = VALUES, **options: Any
) -> Callable[[Callable], Callable]:
    """Adds a function as a program; lists among the arrays are arrays of float64."""

    def add(function: Callable) -> Callable:
        PROGRAMS.append(Program(name, function, tuple(map(_array, arrays)), places, **options))
        return function

    return add


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def names(tff: Any) -> list[str]:
    """The public functions and classes of the areas that are asked about."""
    found: list[str] = []
    seen: set[int] = set()

    def walk(module: Any, path: str) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name, None)
            if name.startswith("_") or value is None:
                continue
            if isinstance(value, types.ModuleType):
                # Modules of helpers and of protocol buffers are no area of their own.
                if value.__name__.startswith(LIBRARY) and "pricing_platform" not in value.__name__:
                    walk(value, f"{path}{name}.")
            elif (
                callable(value)
                and str(getattr(value, "__module__", "")).startswith(LIBRARY)
                and id(value) not in seen
            ):
                seen.add(id(value))
                found.append(f"{path}{name}")

    for area in ("black_scholes", "math", "models", "rates", "experimental", "datetime"):
        walk(getattr(tff, area), f"{area}.")
    return found


# black_scholes

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


_FLOAT_STARTS = np.array(
    [[1.0, 1.25, 1.5, 1.75, 2.0, 2.0, 2.0, 2.0], [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75]]
)
_FLOAT_ENDS = np.array(
    [[1.25, 1.5, 1.75, 2.0, 2.0, 2.0, 2.0, 2.0], [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0]]
)
_FRACTIONS = np.array([[0.25] * 4 + [0.0] * 4, [0.25] * 8])


@program("black_scholes.swaption_price", [0.01, 0.005], places=EVERYWHERE)
def _(tf, tff, volatilities):
    dtype = volatilities.dtype
    discount = lambda x: np.exp(-0.01 * np.array(x))  # noqa: E731
    return tff.black_scholes.swaption_price(
        volatilities=volatilities,
        expiries=[1.0, 1.0],
        floating_leg_start_times=_FLOAT_STARTS,
        floating_leg_end_times=_FLOAT_ENDS,
        fixed_leg_payment_times=_FLOAT_ENDS,
        floating_leg_daycount_fractions=_FRACTIONS,
        fixed_leg_daycount_fractions=_FRACTIONS,
        fixed_leg_coupon=[0.011, 0.011],
        floating_leg_start_times_discount_factors=discount(_FLOAT_STARTS),
        floating_leg_end_times_discount_factors=discount(_FLOAT_ENDS),
        fixed_leg_payment_times_discount_factors=discount(_FLOAT_ENDS),
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


# math

_X = np.array([0.3, 1.1, 2.2, 3.7, 5.0])


@program("math.diff", _X, places=EVERYWHERE)
def _(tf, tff, x):
    return [tff.math.diff(x, order=n, exclusive=e) for n in (1, 2) for e in (True, False)]


@program("math.fwd_gradient", _X, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.fwd_gradient(lambda x: tf.stack([x, x**2, x**3]), x)


@program("math.gradients", _X, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.gradients(lambda x: tf.stack([x, x**2, x**3]), x)


@program("math.value_and_gradient", _X, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.value_and_gradient(lambda x: tf.sin(x) * x, x)


@program("math.make_val_and_grad_fn", _X, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.make_val_and_grad_fn(lambda x: tf.reduce_sum(tf.sin(x) * x))(x)


@program("math.jacobian", _X, places=BATCHED)
def _(tf, tff, x):
    return tff.math.jacobian(lambda x: tf.stack([x[:, 0] * x[:, 1], x[:, 2] ** 2], -1), x)


@program("math.value_and_jacobian", _X, places=BATCHED)
def _(tf, tff, x):
    return tff.math.value_and_jacobian(lambda x: tf.stack([x[:, 0] * x[:, 1], x[:, 2] ** 2], -1), x)


@program("math.custom_loops.for_loop", [2.0], [1.0], places=WIDE)
def _(tf, tff, alpha, beta):
    x, y = tf.ones([2, 1], alpha.dtype) * 3.0, tf.ones([2, 1], alpha.dtype) * 7.0

    def body(i, state):
        x, y = state
        return [x * alpha - beta, y * beta + x]

    return tff.math.custom_loops.for_loop(body, [x, y], [alpha, beta], 3)


@program("math.integration.integrate", [0.0], [3.0], places=EVERYWHERE)
def _(tf, tff, low, high):
    return tff.math.integration.integrate(tf.sin, low, high)


@program("math.integration.simpson", [0.0], [3.0], places=EVERYWHERE)
def _(tf, tff, low, high):
    return tff.math.integration.simpson(tf.sin, low, high, num_points=101)


_KNOTS = np.linspace(-5.0, 5.0, 11)


@program("math.interpolation.cubic.build_spline", 1 / (1 + _KNOTS**2), places=EVERYWHERE)
def _(tf, tff, y):
    spline = tff.math.interpolation.cubic.build_spline(tf.constant(_KNOTS, y.dtype), y)
    return [spline.spline_coeffs, spline.y_data]


@program(
    "math.interpolation.cubic.interpolate",
    [3.3, 3.4, 3.9, -7.0],
    1 / (1 + _KNOTS**2),
    places=EVERYWHERE,
)
def _(tf, tff, x, y):
    spline = tff.math.interpolation.cubic.build_spline(tf.constant(_KNOTS, y.dtype), y)
    return tff.math.interpolation.cubic.interpolate(x, spline)


@program("math.interpolation.cubic.interpolate: clamped", 1 / (1 + _KNOTS**2), places=WIDE)
def _(tf, tff, y):
    cubic = tff.math.interpolation.cubic
    spline = cubic.build_spline(
        tf.constant(_KNOTS, y.dtype),
        y,
        boundary_condition_type=cubic.BoundaryConditionType.CLAMPED,
    )
    return cubic.interpolate(tf.constant([3.3, 3.4], y.dtype), spline)


@program(
    "math.interpolation.linear.interpolate",
    [-10.0, -1, 1, 3, 6, 7, 8, 15, 18, 25, 30, 35],
    [-1.0, 2, 6, 8, 18, 30],
    [10.0, -1, -5, 7, 9, 20],
    places=EVERYWHERE,
)
def _(tf, tff, x, x_data, y_data):
    return tff.math.interpolation.linear.interpolate(x, x_data, y_data)


@program(
    "math.interpolation.interpolation_2d.Interpolation2D",
    [2.0, 2.5, 3, 4.5],
    [16.0, 22, 35, 41],
    places=EVERYWHERE,
)
def _(tf, tff, times, strikes):
    dtype = times.dtype
    at = tf.constant([1.5, 2.5, 3.5, 4.5, 5.5], dtype)
    values = tf.reshape(tf.range(30, dtype=dtype), [5, 6]) ** 0.5
    points = tf.broadcast_to(tf.constant([15, 25, 35, 40, 50, 55], dtype), [5, 6])
    interpolation = tff.math.interpolation.interpolation_2d
    return interpolation.Interpolation2D(at, points, values, dtype=dtype).interpolate(
        times, strikes
    )


def _bowl(tf: Any, tff: Any) -> Callable:
    return lambda x: tff.math.value_and_gradient(
        lambda x: tf.reduce_sum(
            np.array([2.0, 3.0]) * (x - np.array([1.0, 1.5])) ** 2
            + 0.1 * (x - np.array([1.0, 1.5])) ** 4,
            -1,
        ),
        x,
    )


for _minimizer in (
    "bfgs_minimize",
    "lbfgs_minimize",
    "conjugate_gradient_minimize",
):

    @program(f"math.optimizer.{_minimizer}", [0.6, 0.8], places=BATCHED, tolerance=1e-8)
    def _(tf, tff, start, _minimizer=_minimizer):
        minimize = getattr(tff.math.optimizer, _minimizer)
        found = minimize(_bowl(tf, tff), initial_position=start, tolerance=1e-10)
        return [found.converged, found.position, found.objective_value]


@program("math.optimizer.nelder_mead_minimize", [0.6, 0.8], places=BATCHED, tolerance=1e-8)
def _(tf, tff, start):
    found = tff.math.optimizer.nelder_mead_minimize(
        lambda x: tf.reduce_sum((x - np.array([1.0, 1.5])) ** 2, -1), initial_vertex=start
    )
    return [found.converged, found.position, found.num_iterations]


@program("math.optimizer.nelder_mead_one_step", [[0.6, 0.8], [1.6, 0.8], [0.6, 1.8]])
def _(tf, tff, simplex):
    def objective(x):
        return tf.reduce_sum((x - np.array([1.0, 1.5])) ** 2, -1)

    return tff.math.optimizer.nelder_mead_one_step(
        simplex,
        tf.map_fn(objective, simplex),
        objective_function=objective,
        dim=2,
        func_tolerance=1e-8,
        position_tolerance=1e-8,
        reflection=1.0,
        expansion=2.0,
        contraction=0.5,
        shrinkage=0.5,
    )


@program("math.optimizer.differential_evolution_minimize", [0.6, 0.8], tolerance=1e-6)
def _(tf, tff, start):
    found = tff.math.optimizer.differential_evolution_minimize(
        lambda x, y: (x - 1.0) ** 2 + (y - 1.5) ** 2,
        initial_position=[start[0], start[1]],
        population_size=20,
        population_stddev=2.0,
        max_iterations=60,
        seed=(3, 7),
    )
    return [found.converged, *found.position]


@program("math.optimizer.differential_evolution_one_step", np.linspace(-1, 2, 8))
def _(tf, tff, population):
    return tff.math.optimizer.differential_evolution_one_step(
        lambda x: (x - 1.0) ** 2,
        population,
        seed=(3, 7),
        differential_weight=np.float64(0.5),
    )


@program("math.optimizer.converged_all", np.array([True, False]))
def _(tf, tff, found):
    return [
        tff.math.optimizer.converged_all(found, tf.constant([False, True])),
        tff.math.optimizer.converged_any(found, tf.constant([False, True])),
    ]


@program("math.pad.pad_tensors", [[1.0, 2, 3, 9], [2, 3, 5, 2]], [4.0, 5, 8], places=EVERYWHERE)
def _(tf, tff, x, y):
    return [*tff.math.pad.pad_tensors([x, y]), *tff.math.pad.pad_tensors([x, y], pad_values=10)]


@program("math.pad.pad_date_tensors")
def _(tf, tff):
    x, y = [(2020, 1, 1), (2021, 2, 2)], [(2019, 5, 5), (2028, 10, 21), (2028, 11, 10)]
    return [d.to_tensor() for d in tff.math.pad.pad_date_tensors([x, y])]


@program("math.piecewise.find_interval_index", [0.25, 3.0, 5.0, 0.0, 0.5, 0.8], places=BATCHED)
def _(tf, tff, x):
    return tff.math.piecewise.find_interval_index(x, [0.25, 0.5, 1.0, 2.0, 3.0], dtype=x.dtype)


@program("math.piecewise.PiecewiseConstantFunc", [0.0, 0.1, 2.0, 11.0], places=WIDE)
def _(tf, tff, x):
    f = tff.math.piecewise.PiecewiseConstantFunc([0.1, 10], [3, 4, 5], dtype=np.float64)
    g = tff.math.piecewise.PiecewiseConstantFunc(
        [0.1, 10], [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]], dtype=np.float64
    )
    return [f(x), f.integrate(x, x + 1), g(x), g.integrate(x, x + 1)]


@program("math.piecewise.convert_to_tensor_or_func", _X)
def _(tf, tff, x):
    return tff.math.piecewise.convert_to_tensor_or_func(x)[0]


@program("math.segment_ops.segment_diff", _X, places=WIDE)
def _(tf, tff, x):
    segments = tf.constant([0, 0, 0, 1, 1])
    return [
        tff.math.segment_ops.segment_diff(x, segment_ids=segments, order=1, exclusive=False),
        tff.math.segment_ops.segment_cumsum(x, segment_ids=segments, exclusive=True),
    ]


@program("math.segment_ops.segment_cumsum", _X, places=WIDE)
def _(tf, tff, x):
    return tff.math.segment_ops.segment_cumsum(x, segment_ids=tf.constant([0, 0, 1, 1, 1]))


@program("math.root_search.brentq", [-2.0, 1.0], [0.0, -1.0], places=BATCHED)
def _(tf, tff, low, high):
    f = lambda x: 63 * x**5 - 70 * x**3 + 15 * x + 2  # noqa: E731
    return tff.math.root_search.brentq(objective_fn=f, left_bracket=low, right_bracket=high)


@program("math.root_search.newton_root", [1.0, 1.0, 1.0], places=BATCHED)
def _(tf, tff, start):
    squares = np.array([4.0, 9.0, 16.0])
    return tff.math.root_search.newton_root(lambda x: (x**2 - squares, 2.0 * x), start)


# math.pde


def _european(tf: Any, tff: Any, **options: Any) -> Any:
    pde, dtype = tff.math.pde, tf.float64
    grid = pde.grids.uniform_grid([0.0], [200.0], [64], dtype=dtype)
    strike = tf.constant([[50], [100]], dtype)
    volatility, rate = (tf.constant(x, dtype) for x in ([[0.3], [0.15]], [[0.01], [0.03]]))

    @pde.boundary_conditions.dirichlet
    def upper(t, grid):
        return tf.squeeze(200.0 - strike * tf.exp(-rate * (1.0 - t)))

    @pde.boundary_conditions.dirichlet
    def lower(t, grid):
        return tf.constant(0.0, dtype)

    settings = {
        "start_time": 1.0,
        "end_time": 0,
        "coord_grid": grid,
        "values_grid": tf.nn.relu(grid[0] - strike),
        "time_step": 0.1,
        "boundary_conditions": [(lower, upper)],
        "second_order_coeff_fn": lambda t, grid: [[volatility**2 * grid[0] ** 2 / 2]],
        "first_order_coeff_fn": lambda t, grid: [rate * grid[0]],
        "zeroth_order_coeff_fn": lambda t, grid: -rate,
        "dtype": dtype,
    }
    return pde.fd_solvers.solve_backward(**{**settings, **options})[0]


@program("math.pde.fd_solvers.solve_backward")
def _(tf, tff):
    return _european(tf, tff)


_STEPPERS = {
    "composite_stepper.composite_scheme_step": lambda s: s.oscillation_damped_crank_nicolson,
    "crank_nicolson.crank_nicolson_step": lambda s: s.crank_nicolson.crank_nicolson_step(),
    "explicit.explicit_step": lambda s: s.explicit.explicit_step(),
    "extrapolation.extrapolation_step": lambda s: s.extrapolation.extrapolation_step(),
    "implicit.implicit_step": lambda s: s.implicit.implicit_step(),
    "oscillation_damped_crank_nicolson.oscillation_damped_crank_nicolson_step": lambda s: (
        s.oscillation_damped_crank_nicolson.oscillation_damped_crank_nicolson_step()
    ),
    "weighted_implicit_explicit.weighted_implicit_explicit_step": lambda s: (
        s.weighted_implicit_explicit.weighted_implicit_explicit_step(theta=0.4)
    ),
}
for _stepper, _make in _STEPPERS.items():
    if _stepper.startswith("composite"):
        continue

    @program(f"math.pde.steppers.{_stepper}")
    def _(tf, tff, _make=_make):
        # Short steps, with which the explicit scheme is stable too.
        return _european(
            tf,
            tff,
            one_step_fn=_make(tff.math.pde.steppers),
            end_time=0.975,
            time_step=0.0025,
        )


@program("math.pde.fd_solvers.solve_forward")
def _(tf, tff):
    pde = tff.math.pde
    grid = pde.grids.uniform_grid([-5.0], [5.0], [50], dtype=tf.float64)
    values = tf.exp(-(grid[0] ** 2) / 2)
    return pde.fd_solvers.solve_forward(
        start_time=0.0,
        end_time=0.5,
        coord_grid=grid,
        values_grid=values,
        time_step=0.05,
        second_order_coeff_fn=lambda t, x: [[-tf.ones_like(x[0])]],
        dtype=tf.float64,
    )[0]


@program("math.pde.steppers.douglas_adi.douglas_adi_step")
def _(tf, tff):
    pde = tff.math.pde
    grid = pde.grids.uniform_grid([-3.0, -4.0], [3.0, 4.0], [20, 24], dtype=tf.float64)
    values = tf.exp(-(grid[0][:, None] ** 2) / 2 - (grid[1][None, :] ** 2))[None]
    one = tf.ones_like(values)
    return pde.fd_solvers.solve_forward(
        start_time=0.0,
        end_time=0.2,
        coord_grid=grid,
        values_grid=values,
        time_step=0.05,
        one_step_fn=pde.steppers.douglas_adi.douglas_adi_step(theta=0.5),
        second_order_coeff_fn=lambda t, x: [[-one, -0.2 * one], [None, -one]],
        first_order_coeff_fn=lambda t, x: [0.1 * one, None],
        dtype=tf.float64,
    )[0]


@program("math.pde.steppers.multidim_parabolic_equation_stepper.multidim_parabolic_equation_step")
def _(tf, tff):
    pde = tff.math.pde
    grid = pde.grids.uniform_grid([-3.0, -4.0], [3.0, 4.0], [20, 24], dtype=tf.float64)
    values = tf.exp(-(grid[0][:, None] ** 2) / 2 - (grid[1][None, :] ** 2))[None]
    one = tf.ones_like(values)
    adi = pde.steppers.douglas_adi
    return adi.multidim_parabolic_equation_step(
        0.0,
        0.05,
        grid,
        values,
        [(None, None), (None, None)],
        adi.douglas_adi_scheme(0.5),
        second_order_coeff_fn=lambda t, x: [[-one, None], [None, -one]],
        first_order_coeff_fn=lambda t, x: [None, None],
        zeroth_order_coeff_fn=lambda t, x: None,
        inner_second_order_coeff_fn=lambda t, x: [[None, None], [None, None]],
        inner_first_order_coeff_fn=lambda t, x: [None, None],
        dtype=tf.float64,
    )


@program("math.pde.boundary_conditions.neumann")
def _(tf, tff):
    @tff.math.pde.boundary_conditions.neumann
    def upper(t, grid):
        return tf.ones([2], tf.float64)

    @tff.math.pde.boundary_conditions.dirichlet
    def lower(t, grid):
        return tf.constant(0.0, tf.float64)

    return _european(tf, tff, boundary_conditions=[(lower, upper)])


@program("math.pde.boundary_conditions.dirichlet")
def _(tf, tff):
    return _european(tf, tff, boundary_conditions=[(None, None)])


for _grid, _kwargs in {
    "uniform_grid": {},
    "log_uniform_grid": {},
    "uniform_grid_with_extra_point": {"extra_grid_point": np.array([[0.5, 2.0], [1.0, 3.0]])},
    "log_uniform_grid_with_extra_point": {"extra_grid_point": np.array([[0.5, 2.0], [1.0, 3.0]])},
}.items():
    _low = [[0.1, 0.1], [0.01, 0.1]] if _kwargs else [0.1, 0.2]
    _high = [[10.0, 5], [100, 5]] if _kwargs else [10.0, 5.0]

    @program(f"math.pde.grids.{_grid}", _low, _high, places=WIDE)
    def _(tf, tff, low, high, _grid=_grid, _kwargs=_kwargs):
        return getattr(tff.math.pde.grids, _grid)(low, high, [5, 4], dtype=low.dtype, **_kwargs)


@program("math.pde.grids.rectangular_grid", _X)
def _(tf, tff, x):
    return tff.math.pde.grids.rectangular_grid([x, 2 * x])


# math.qmc and math.random


@program("math.qmc.sobol_sample")
def _(tf, tff):
    return tff.math.qmc.sobol_sample(3, 50)


@program("math.qmc.sobol_generating_matrices")
def _(tf, tff):
    return tff.math.qmc.sobol_generating_matrices(4, 500, 9)


@program("math.qmc.digital_net_sample")
def _(tf, tff):
    qmc = tff.math.qmc
    return qmc.digital_net_sample(qmc.sobol_generating_matrices(2, 100, 10), 100, 10)


@program("math.qmc.random_digital_shift")
def _(tf, tff):
    return tff.math.qmc.random_digital_shift(2, 10, seed=(2, 3))


@program("math.qmc.random_scrambling_matrices")
def _(tf, tff):
    return tff.math.qmc.random_scrambling_matrices(2, 10, seed=(2, 3))


@program("math.qmc.random_scrambling_vectors")
def _(tf, tff):
    return tff.math.qmc.random_scrambling_vectors(2, seed=(2, 3))


@program("math.qmc.scramble_generating_matrices")
def _(tf, tff):
    qmc = tff.math.qmc
    return qmc.scramble_generating_matrices(
        qmc.sobol_generating_matrices(2, 100, 10),
        qmc.random_scrambling_matrices(2, 10, seed=(2, 3)),
        10,
    )


@program("math.qmc.lattice_rule_sample")
def _(tf, tff):
    vectors = tf.constant([1, 387275, 314993, 50301], dtype=tf.int32)
    return tff.math.qmc.lattice_rule_sample(vectors, 2, 100)


for _of, _arguments in {
    "exp2": ([0, 1, 2, 3],),
    "log2": ([1.0, 2.0, 5.0],),
    "tent_transform": ([0.0, 0.2, 0.6],),
    "filter_tensor": ([5, 6, 7, 8], [1, 2, 3, 4], [1, 1, 2, 2]),
}.items():

    @program(f"math.qmc.utils.{_of}")
    def _(tf, tff, _of=_of, _arguments=_arguments):
        return getattr(tff.math.qmc.utils, _of)(*map(tf.constant, _arguments))


@program("math.random.halton.sample")
def _(tf, tff):
    return tff.math.random.halton.sample(3, num_results=20, randomized=False)[0]


@program("math.random.halton.sample: randomized", places=ONLY_EAGER)
def _(tf, tff):
    tf.random.set_seed(4)
    return tff.math.random.halton.sample(3, num_results=20, seed=127, dtype=tf.float64)[0]


@program("math.random.sobol.sample")
def _(tf, tff):
    return tff.math.random.sobol.sample(3, 20, skip=5)


@program("math.random.stateless_random_shuffle")
def _(tf, tff):
    return tff.math.random.stateless_random_shuffle(tf.range(20), seed=(42, 2))


for _type in ("STATELESS", "STATELESS_ANTITHETIC", "SOBOL", "HALTON"):

    @program(f"math.random.uniform: {_type}")
    def _(tf, tff, _type=_type):
        random = tff.math.random
        return random.uniform(
            4, [10], getattr(random.RandomType, _type), dtype=tf.float64, seed=[3, 7]
        )

    @program(f"math.random.mv_normal_sample: {_type}", [0.1, 0.2], places=WIDE)
    def _(tf, tff, mean, _type=_type):
        random = tff.math.random
        return random.mv_normal_sample(
            [10],
            mean=mean,
            scale_matrix=np.array([[1.0, 0.0], [0.3, 0.8]]),
            random_type=getattr(random.RandomType, _type),
            seed=[3, 7],
            dtype=tf.float64,
        )


# models


def _stateless(tff: Any) -> dict[str, Any]:
    return {"random_type": tff.math.random.RandomType.STATELESS_ANTITHETIC, "seed": [3, 7]}


@program("models.GeometricBrownianMotion", [0.05], [0.2], places=WIDE)
def _(tf, tff, mean, volatility):
    process = tff.models.GeometricBrownianMotion(mean[0], volatility[0], dtype=tf.float64)
    return process.sample_paths(
        times=[0.1, 0.2, 1.0], initial_state=1.5, num_samples=20, **_stateless(tff)
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
        times=[0.1, 0.2, 1.0], initial_state=[1.0, 2.0], num_samples=20, **_stateless(tff)
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
        **_stateless(tff),
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
        **_stateless(tff),
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
        [0.1, 0.5], num_samples=20, initial_state=start, time_step=0.1, **_stateless(tff)
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
        **_stateless(tff),
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
        **_stateless(tff),
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
        **_stateless(tff),
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


def _curve(tf: Any, rate: Any = 0.01) -> Callable:
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
    return process.sample_paths(times, num_samples=20, times_grid=times, **_stateless(tff))


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
    return process.sample_paths(np.linspace(0.0, 1.0, 4), num_samples=20, **_stateless(tff))


_BOND = ([np.exp(-0.04)], [1.0], [5.0], [0.03], [0.02])


def _bond_options(family: str, **options: Any) -> None:
    @program(f"models.{family}.bond_option_price", *_BOND, places=WIDE)
    def price(tf, tff, strikes, expiries, maturities, reversion, volatility):
        return getattr(tff.models, family).bond_option_price(
            strikes=strikes,
            expiries=expiries,
            maturities=maturities,
            discount_rate_fn=_curve(tf),
            mean_reversion=reversion,
            volatility=volatility,
            dtype=tf.float64,
            **(options or {"dim": 1, "num_samples": 50, "time_step": 0.25, **_stateless(tff)}),
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
            reference_rate_fn=_curve(tf),
            dtype=tf.float64,
            **(options or {"dim": 1, "num_samples": 50, "time_step": 0.25, **_stateless(tff)}),
        )


_caps("hull_white", use_analytic_pricing=True)
_caps("hjm")


def _swaption_legs() -> dict[str, Any]:
    return {
        "floating_leg_start_times": _FLOAT_STARTS,
        "floating_leg_end_times": _FLOAT_ENDS,
        "fixed_leg_payment_times": _FLOAT_ENDS,
        "floating_leg_daycount_fractions": _FRACTIONS,
        "fixed_leg_daycount_fractions": _FRACTIONS,
        "fixed_leg_coupon": 0.011 * (_FRACTIONS > 0),
    }


@program("models.hull_white.swaption_price", [0.03], [0.02], places=BATCHED)
def _(tf, tff, reversion, volatility):
    return tff.models.hull_white.swaption_price(
        expiries=[1.0, 1.0],
        reference_rate_fn=_curve(tf),
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
        reference_rate_fn=_curve(tf),
        notional=100.0,
        mean_reversion=reversion,
        volatility=volatility,
        num_samples=50,
        time_step=0.25,
        dtype=tf.float64,
        **_stateless(tff),
    )


@program("models.hull_white.calibration_from_swaptions", [0.7163243, 1.4031415], tolerance=1e-6)
def _(tf, tff, prices):
    found, _, _ = tff.models.hull_white.calibration_from_swaptions(
        prices=prices,
        expiries=np.array([1.0, 1.0]),
        reference_rate_fn=_curve(tf),
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
        reference_rate_fn=_curve(tf),
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
            initial_discount_rate_fn=_curve(tf),
            dtype=tf.float64,
        )
        return process.sample_paths(
            np.array([0.1, 1.0]), num_samples=20, time_step=0.1, **_stateless(tff)
        )


@program("models.hjm.swaption_price", [0.03], [0.02], places=BATCHED)
def _(tf, tff, reversion, volatility):
    times = np.array([1.25, 1.5, 1.75, 2.0])
    return tff.models.hjm.swaption_price(
        expiries=np.array([1.0]),
        fixed_leg_payment_times=times,
        fixed_leg_daycount_fractions=0.25 * np.ones_like(times),
        fixed_leg_coupon=0.011 * np.ones_like(times),
        reference_rate_fn=_curve(tf),
        notional=100.0,
        num_hjm_factors=1,
        mean_reversion=reversion,
        volatility=volatility,
        num_samples=50,
        time_step=0.25,
        dtype=tf.float64,
        **_stateless(tff),
    )


@program("models.hjm.calibration_from_swaptions", [0.7163243, 1.4031415], tolerance=1e-5)
def _(tf, tff, prices):
    found, _, _ = tff.models.hjm.calibration_from_swaptions(
        prices=prices,
        expiries=np.array([1.0, 1.0]),
        reference_rate_fn=_curve(tf),
        num_hjm_factors=1,
        notional=100.0,
        mean_reversion=[0.01],
        volatility=[0.005],
        num_samples=50,
        time_step=0.25,
        maximum_iterations=3,
        dtype=tf.float64,
        **_swaption_legs(),
        **_stateless(tff),
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


# rates


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
        _FLOAT_STARTS, _FLOAT_ENDS, _FLOAT_ENDS, _FRACTIONS, _curve(tf), dtype=tf.float64
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


@program("rates.hagan_west.monotone_convex.diff", _X, places=EVERYWHERE)
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


# experimental

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
        **_stateless(tff),
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
        **_stateless(tff),
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


# datetime


def _some_dates(tff: Any) -> Any:
    return tff.datetime.dates_from_tuples([(2019, 1, 25), (2020, 3, 2), (2020, 2, 29)])


@program("datetime.DateTensor")
def _(tf, tff):
    d = _some_dates(tff)
    other = tff.datetime.dates_from_tuples([(2020, 3, 5)])
    return [
        d.day(), d.month(), d.year(), d.ordinal(), d.day_of_week(), d.day_of_year(),
        d.to_tensor(), d.days_until(other), d.is_end_of_month(), d.to_end_of_month().ordinal(),
        (d + tff.datetime.periods.months([1, 2, 3])).ordinal(), d < other,
        d.period_length_in_days(tff.datetime.periods.month()),
    ]  # fmt: skip


for _of in (
    "daycount_actual_360",
    "daycount_actual_365_actual",
    "daycount_actual_365_fixed",
    "daycount_actual_actual_isda",
    "daycount_thirty_360_isda",
):

    @program(f"datetime.{_of}")
    def _(tf, tff, _of=_of):
        d = _some_dates(tff)
        end = d + tff.datetime.periods.months(17)
        return getattr(tff.datetime, _of)(start_date=d, end_date=end, dtype=tf.float64)


@program("datetime.PeriodicSchedule", places=ONLY_EAGER)
def _(tf, tff):
    d = tff.datetime
    return (
        d.PeriodicSchedule(
            start_date=d.dates_from_tuples([(2020, 1, 18)]),
            end_date=d.dates_from_tuples([(2021, 3, 25)]),
            tenor=d.periods.months(3),
            holiday_calendar=d.create_holiday_calendar(start_year=2020, end_year=2021),
            roll_convention=d.BusinessDayConvention.FOLLOWING,
        )
        .dates()
        .to_tensor()
    )


@program("datetime.BusinessDaySchedule", places=ONLY_EAGER)
def _(tf, tff):
    d = tff.datetime
    return (
        d.BusinessDaySchedule(
            start_date=d.dates_from_tuples([(2020, 3, 19)]),
            end_date=d.dates_from_tuples([(2020, 3, 25)]),
            holiday_calendar=d.create_holiday_calendar(start_year=2020, end_year=2021),
        )
        .dates()
        .to_tensor()
    )


@program("datetime.create_holiday_calendar")
def _(tf, tff):
    d = tff.datetime
    calendar = d.create_holiday_calendar(
        start_year=2018, end_year=2021, weekend_mask=d.WeekendMask.SATURDAY_SUNDAY
    )
    dates = _some_dates(tff)
    return [
        calendar.is_business_day(dates),
        calendar.roll_to_business_day(dates, d.BusinessDayConvention.FOLLOWING).ordinal(),
        calendar.add_business_days(
            dates, tf.constant([1, 5, 9]), d.BusinessDayConvention.FOLLOWING
        ).ordinal(),
        calendar.business_days_between(dates, dates + d.periods.months(1)),
    ]


@program("datetime.random_dates")
def _(tf, tff):
    d = tff.datetime
    start = d.dates_from_tuples([(2020, 5, 16), (2020, 6, 13)])
    return d.random_dates(
        start_date=start, end_date=d.dates_from_tuples([(2021, 5, 21)]), size=3, seed=4
    ).ordinal()[:0]


@program("datetime.convert_to_date_tensor")
def _(tf, tff):
    d = tff.datetime
    year, month, day = (tf.constant(x) for x in ([2015, 2017], [4, 12], [15, 30]))
    return [
        d.convert_to_date_tensor([(2020, 1, 1)]).ordinal(),
        d.dates_from_year_month_day(year, month, day).ordinal(),
        d.dates_from_ordinals(tf.constant([735703, 736693])).to_tensor(),
        d.dates_from_tensor(tf.constant([[2015, 4, 15], [2017, 12, 30]])).ordinal(),
        d.dates_from_np_datetimes(np.array(["2019-03-25", "2020-06-02"], "M8[D]")).ordinal(),
    ]


SUITE = Suite(
    LIBRARY,
    PROGRAMS,
    packages=("tensorflow_probability",),
    needs="tf-quant-finance==0.0.1.dev34",
    names=names,
)
