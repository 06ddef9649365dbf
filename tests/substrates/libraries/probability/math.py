"""Programs of tfp.math: special functions, linear algebra, kernels, roots and equations."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import (
    GRAD,
    JAX,
    JIT,
    NUMPY,
    PLACES,
    VMAP,
    Program,
    adder,
)

_ON_JAX = (JAX, JIT, VMAP)  # NumPy has no derivatives
_SOLVED = (NUMPY, JAX, JIT, VMAP)

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, PLACES)

_X = np.array([0.3, 0.7, 1.6])
_UNIT = np.array([0.2, 0.45, 0.8])
_MATRIX = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.2]])
_GRID = np.array([[0.1, 0.5, 0.2, 0.9], [0.4, 0.3, 0.8, -0.2], [1.0, 0.6, 0.0, 0.7]])

# Functions of arrays alone, and their arguments.
_FUNCTIONS: dict[str, tuple[np.ndarray, ...]] = {
    "atan_difference": (_X, _X + 1),
    "bessel_iv_ratio": (_X + 1, _X),
    "bessel_ive": (_X, _X + 1),
    "bessel_kve": (_X, _X + 1),
    "betainc": (_X, _X + 1, _UNIT),
    "betaincinv": (_X, _X + 1, _UNIT),
    "cholesky_update": (np.linalg.cholesky(_MATRIX), _X),
    "clip_by_value_preserve_gradient": (_X, _UNIT, _X + 1),
    "dawsn": (_X - 0.5,),
    "erfcinv": (_UNIT,),
    "erfcx": (_X,),
    "fill_triangular": (np.arange(6.0),),
    "fill_triangular_inverse": (_MATRIX,),
    "gram_schmidt": (_MATRIX,),
    "hpsd_logdet": (_MATRIX,),
    "hpsd_quadratic_form_solve": (_MATRIX, _MATRIX + 1),
    "hpsd_quadratic_form_solvevec": (_MATRIX, _X),
    "hpsd_solve": (_MATRIX, _MATRIX + 1),
    "hpsd_solvevec": (_MATRIX, _X),
    "hypergeometric.hyp2f1_small_argument": (_X, _X + 1, _X + 2, _UNIT - 0.4),
    "igammacinv": (_X + 1, _UNIT),
    "igammainv": (_X + 1, _UNIT),
    "lambertw": (_X,),
    "lambertw_winitzki_approx": (_X,),
    "lbeta": (_X, _X + 1),
    "log1mexp": (_X,),
    "log1psquare": (_X,),
    "log_add_exp": (_X, _X + 1),
    "log_bessel_ive": (_X, _X + 1),
    "log_bessel_kve": (_X, _X + 1),
    "log_combinations": (10 * _X[:, None], np.array([[1.0, 2.0], [3.0, 4.0], [6.0, 10.0]])),
    "log_cosh": (_X,),
    "log_cumsum_exp": (_X,),
    "log_gamma_correction": (10 * _X + 8,),
    "log_gamma_difference": (_X, _X + 9),
    "log_sub_exp": (_X + 1, _X),
    "logerfc": (_X,),
    "logerfcx": (_X,),
    "owens_t": (_X, _X + 1),
    "reduce_kahan_sum": (_X,),
    "reduce_log_harmonic_mean_exp": (_X,),
    "reduce_logmeanexp": (_X,),
    "reduce_weighted_logsumexp": (_X, _UNIT),
    "round_exponential_bump_function": (_UNIT - 0.5,),
    "smootherstep": (_UNIT,),
    "soft_sorting_matrix": (_X, np.array(0.7)),
    "soft_threshold": (_X, _UNIT),
    "softplus_inverse": (_X,),
    "sparse_or_dense_matmul": (_MATRIX, _MATRIX + 1),
    "sparse_or_dense_matvecmul": (_MATRIX, _X),
    "sqrt1pm1": (_X,),
}
for _name, _arrays in _FUNCTIONS.items():

    @program(f"math.{_name}", *_arrays)
    def _function(tf, tfp, *arrays, _name=_name):
        module, _, function = _name.rpartition(".")
        of = importlib.import_module(f"{tfp.math.__name__}.{module}") if module else tfp.math
        return getattr(of, function)(*arrays)


@program("math.reduce_kahan_sum: axis", _GRID)
def _kahan(tf, tfp, x):
    found = tfp.math.reduce_kahan_sum(x, axis=0, keepdims=True)
    return [found.total, found.correction]


@program("math.reduce_weighted_logsumexp: signs", _X, _UNIT - 0.5)
def _weighted(tf, tfp, x, weights):
    return tfp.math.reduce_weighted_logsumexp(x, weights, axis=0, return_sign=True)


@program("math.log1mexp: of both signs", np.array([-0.3, 1e-5, 4.0]))
def _log1mexp(tf, tfp, x):
    return tfp.math.log1mexp(x)


@program("math.trapz: points", _GRID, np.cumsum(_GRID**2 + 0.1, -1))
def _trapezoids(tf, tfp, y, x):
    return tfp.math.trapz(y, x)


@program("math.pivoted_cholesky", _MATRIX)
def _pivoted(tf, tfp, matrix):
    return tfp.math.pivoted_cholesky(matrix, max_rank=2)


@program("math.low_rank_cholesky", _MATRIX)
def _low_rank(tf, tfp, matrix):
    return tfp.math.low_rank_cholesky(tf.linalg.LinearOperatorFullMatrix(matrix), 2)


for _name in ("lu_reconstruct", "lu_matrix_inverse", "lu_solve"):

    @program(f"math.{_name}", _MATRIX)
    def _lu(tf, tfp, matrix, _name=_name):
        rest = [matrix] if _name == "lu_solve" else []
        return getattr(tfp.math, _name)(*tf.linalg.lu(matrix), *rest)


@program("math.cholesky_concat", _MATRIX)
def _concatenated(tf, tfp, matrix):
    return tfp.math.cholesky_concat(tf.linalg.cholesky(matrix[:2, :2]), matrix[:, 2:])


@program("math.dense_to_sparse", np.array([[1.0, 0.0], [0.0, 2.0]]), places=(NUMPY, JAX))
def _sparse(tf, tfp, x):
    sparse = tfp.math.dense_to_sparse(x)
    return [sparse.indices, sparse.values, sparse.dense_shape]


@program("math.interp_regular_1d_grid", _UNIT, _GRID[0])
def _interpolated(tf, tfp, x, y):
    return tfp.math.interp_regular_1d_grid(x, 0.1, 0.9, y, fill_value="extrapolate")


@program("math.batch_interp_regular_1d_grid", _UNIT[:, None], _GRID)
def _rows(tf, tfp, x, y):
    return tfp.math.batch_interp_regular_1d_grid(x, 0.0, 1.0, y)


@program("math.batch_interp_regular_nd_grid", np.stack([_UNIT, _X / 2], -1), _GRID)
def _plane(tf, tfp, x, y):
    return tfp.math.batch_interp_regular_nd_grid(x, [0.0, 0.0], [1.0, 1.0], y, axis=-2)


@program("math.batch_interp_rectilinear_nd_grid", np.stack([_UNIT, _X / 2], -1), _GRID)
def _rectilinear(tf, tfp, x, y):
    points = ([0.0, 0.4, 1.0], [0.0, 0.3, 0.5, 1.0])
    grid = tuple(tf.constant(p, x.dtype) for p in points)
    return tfp.math.batch_interp_rectilinear_nd_grid(x, grid, y, axis=-2)


@program("math.value_and_gradient", _X, places=_ON_JAX)
def _value_and_gradient(tf, tfp, x):
    return tfp.math.value_and_gradient(lambda x: tf.reduce_sum(tf.sin(x) * x), x)


@program("math.diag_jacobian", _X, places=(JAX, JIT))
def _diagonal(tf, tfp, x):
    return tfp.math.diag_jacobian(x, fn=lambda x: tf.sin(x) * x)[1]


@program("math.custom_gradient", _X, places=(NUMPY, JAX, JIT, GRAD))
def _custom_gradient(tf, tfp, x):
    return tfp.math.custom_gradient(x**2, 3 * x, x)


@program("math.scan_associative", _X)
def _scan(tf, tfp, x):
    return tfp.math.scan_associative(lambda a, b: a * b, x)


for _name in ("secant_root", "find_root_secant"):

    @program(f"math.{_name}", np.array([1.0, 1.5]), places=_SOLVED)
    def _secant(tf, tfp, start, _name=_name):
        found = getattr(tfp.math, _name)(lambda x: x**2 - 2.0, start, start + 0.3)
        return [found.estimated_root, found.num_iterations]


@program("math.find_root_chandrupatla", np.array([0.0]), np.array([2.0]), places=_SOLVED)
def _chandrupatla(tf, tfp, low, high):
    found = tfp.math.find_root_chandrupatla(lambda x: x**2 - 2.0, low, high)
    return [found.estimated_root, found.num_iterations]


@program("math.bracket_root", np.array(2.0), places=_SOLVED)
def _bracket(tf, tfp, of):
    return tfp.math.bracket_root(lambda x: x**3 - of, dtype=tf.float64)


@program("math.minimize_stateless", _X, places=(JAX, JIT))
def _minimized(tf, tfp, start):
    return tfp.math.minimize_stateless(
        lambda x, seed: tf.reduce_sum((x - 1.0) ** 2),
        init=start,
        num_steps=5,
        optimizer=_Descent(tf),
        seed=(3, 7),
    )


class _Descent:
    """Gradient descent, as optimizers of Optax are written."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf

    def init(self, parameters: Any) -> Any:
        return ()

    def update(self, gradients: Any, state: Any, parameters: Any) -> Any:
        return self._tf.nest.map_structure(lambda g: -0.1 * g, gradients), state


# Kernels.

_PLACES = np.array([[-1.0, 0.4], [0.2, 0.7], [0.9, -0.3]])
_UNITS = np.array([[0.2, 0.4], [0.25, 0.7], [0.9, 0.3]])
_KERNELS: dict[str, Callable] = {
    **{
        name: lambda kernels, f, name=name: getattr(kernels, name)(f(1.3), f(0.7))
        for name in (
            "ExponentiatedQuadratic", "ExpSinSquared", "MaternOneHalf", "MaternThreeHalves",
            "MaternFiveHalves", "RationalQuadratic",
        )
    },
    "ChangePoint": lambda kernels, f: kernels.ChangePoint(
        [kernels.MaternOneHalf(f(1.3)), kernels.ExponentiatedQuadratic(f(0.7))],
        locs=f([0.3]),
        slopes=f([2.0]),
    ),
    "Constant": lambda kernels, f: kernels.Constant(f(1.3)),
    "ExponentialCurve": lambda kernels, f: kernels.ExponentialCurve(f(1.3), f(0.7)),
    "GammaExponential": lambda kernels, f: kernels.GammaExponential(f(1.3), f(0.7), power=f(0.8)),
    "GeneralizedMatern": lambda kernels, f: kernels.GeneralizedMatern(f(1.7), f(1.3), f(0.7)),
    "Linear": lambda kernels, f: kernels.Linear(f(0.3), f(1.1), f(0.2)),
    "Parabolic": lambda kernels, f: kernels.Parabolic(f(1.3), f(2.5)),
    "Polynomial": lambda kernels, f: kernels.Polynomial(f(0.3), f(1.1), f(0.2), f(2.0)),
    "SpectralMixture": lambda kernels, f: kernels.SpectralMixture(
        f([0.2, -0.3]), f([[0.3, 0.1], [0.4, 0.8]]), f([[1.1, 0.9], [0.7, 0.4]])
    ),
    "FeatureScaled": lambda kernels, f: kernels.FeatureScaled(
        kernels.ExponentiatedQuadratic(f(1.3)), f([0.7, 1.2])
    ),
    "FeatureTransformed": lambda kernels, f: kernels.FeatureTransformed(
        kernels.ExponentiatedQuadratic(f(1.3)), lambda x, *_: x * x
    ),
    "PointwiseExponential": lambda kernels, f: kernels.PointwiseExponential(
        kernels.ExponentiatedQuadratic(f(1.3))
    ),
    "SchurComplement": lambda kernels, f: kernels.SchurComplement(
        kernels.ExponentiatedQuadratic(f(1.3)), f(_PLACES[:2] + 0.3)
    ),
    "KumaraswamyTransformed": lambda kernels, f: kernels.KumaraswamyTransformed(
        kernels.ExponentiatedQuadratic(f(1.3)), f([1.2, 0.8]), f([0.9, 1.1])
    ),
}  # fmt: skip
for _name, _make in _KERNELS.items():
    _one = _name in ("ExponentialCurve",)
    _given = (
        _UNITS if _name == "KumaraswamyTransformed" else _PLACES[:, :1] + 2 if _one else _PLACES
    )

    @program(f"math.psd_kernels.{_name}", _given, in_graph=_name == "ChangePoint")
    def _kernel(tf, tfp, points, _make=_make):
        kernel = _make(
            tfp.math.psd_kernels, lambda value: tf.constant(np.asarray(value), points.dtype)
        )
        return [kernel.matrix(points, points[:2] + 0.05), kernel.apply(points, points[::-1])]


@program("math.psd_kernels.PositiveSemidefiniteKernel: sum and product", _PLACES)
def _combined(tf, tfp, points):
    kernels = tfp.math.psd_kernels
    kernel = kernels.MaternOneHalf() + kernels.ExponentiatedQuadratic() * kernels.Linear()
    return kernel.tensor(points, points + 0.1, 1, 1)


# Differential equations.


def _spring(tf: Any) -> Callable:
    return lambda t, y: tf.stack([y[1], -y[0]])


@program("math.ode.DormandPrince", np.array([1.0, 0.5]), places=(NUMPY, JAX, JIT), tolerance=1e-9)
def _dormand_prince(tf, tfp, start):
    solver = tfp.math.ode.DormandPrince(rtol=1e-8, atol=1e-8)
    found = solver.solve(_spring(tf), 0.0, start, [0.5, 1.0])
    return [found.times, found.states, found.diagnostics.num_ode_fn_evaluations]


@program("math.ode.DormandPrince: gradient", np.array([1.0, 0.5]), places=(GRAD,), tolerance=1e-7)
def _adjoint(tf, tfp, start):
    solver = tfp.math.ode.DormandPrince(rtol=1e-8, atol=1e-8)
    return solver.solve(_spring(tf), 0.0, start, [0.5, 1.0]).states


@program("math.ode.ChosenBySolver", np.array([1.0, 0.5]), places=(NUMPY, JAX), tolerance=1e-9)
def _chosen(tf, tfp, start):
    solver = tfp.math.ode.DormandPrince(rtol=1e-4, atol=1e-4)
    return solver.solve(
        _spring(tf), 0.0, start, tfp.math.ode.ChosenBySolver(tf.constant(1.0, tf.float64))
    ).states


@program("math.ode.BDF", np.array([1.0, 0.5]), places=(NUMPY, JAX, JIT), tolerance=1e-7)
def _bdf(tf, tfp, start):
    solver = tfp.math.ode.BDF(rtol=1e-6, atol=1e-6)
    jacobian = tf.constant([[0.0, 1.0], [-1.0, 0.0]], tf.float64)
    return solver.solve(_spring(tf), 0.0, start, [0.5], jacobian_fn=lambda t, y: jacobian).states
