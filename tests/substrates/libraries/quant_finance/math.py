"""Programs of tf_quant_finance.math, but for solvers of differential equations and samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.places import BATCHED, EVERYWHERE, VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)

POINTS = np.array([0.3, 1.1, 2.2, 3.7, 5.0])


@program("math.diff", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return [tff.math.diff(x, order=n, exclusive=e) for n in (1, 2) for e in (True, False)]


@program("math.fwd_gradient", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.fwd_gradient(lambda x: tf.stack([x, x**2, x**3]), x)


@program("math.gradients", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.gradients(lambda x: tf.stack([x, x**2, x**3]), x)


@program("math.value_and_gradient", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.value_and_gradient(lambda x: tf.sin(x) * x, x)


@program("math.make_val_and_grad_fn", POINTS, places=EVERYWHERE)
def _(tf, tff, x):
    return tff.math.make_val_and_grad_fn(lambda x: tf.reduce_sum(tf.sin(x) * x))(x)


@program("math.jacobian", POINTS, places=BATCHED)
def _(tf, tff, x):
    return tff.math.jacobian(lambda x: tf.stack([x[:, 0] * x[:, 1], x[:, 2] ** 2], -1), x)


@program("math.value_and_jacobian", POINTS, places=BATCHED)
def _(tf, tff, x):
    return tff.math.value_and_jacobian(lambda x: tf.stack([x[:, 0] * x[:, 1], x[:, 2] ** 2], -1), x)


@program("math.custom_loops.for_loop", 2.0, 1.0, places=WIDE)
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
    tf.random.set_seed(5)  # what was drawn before is another
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
    tf.random.set_seed(5)
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


@program("math.piecewise.convert_to_tensor_or_func", POINTS)
def _(tf, tff, x):
    return tff.math.piecewise.convert_to_tensor_or_func(x)[0]


@program("math.segment_ops.segment_diff", POINTS, places=WIDE)
def _(tf, tff, x):
    segments = tf.constant([0, 0, 0, 1, 1])
    return [
        tff.math.segment_ops.segment_diff(x, segment_ids=segments, order=1, exclusive=False),
        tff.math.segment_ops.segment_cumsum(x, segment_ids=segments, exclusive=True),
    ]


@program("math.segment_ops.segment_cumsum", POINTS, places=WIDE)
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
