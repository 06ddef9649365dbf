"""Programs of tf_quant_finance.math.pde: solvers of partial differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.math import POINTS
from tests.substrates.libraries.quant_finance.places import VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


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


@program("math.pde.grids.rectangular_grid", POINTS)
def _(tf, tff, x):
    return tff.math.pde.grids.rectangular_grid([x, 2 * x])
