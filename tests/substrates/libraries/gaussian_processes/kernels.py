"""Programs of gpflow.kernels: covariances of points with themselves and with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.gaussian_processes.places import EVERYWHERE, ONLY_EAGER, VALUES
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

POINTS = np.array([[0.1, -0.4], [0.5, 0.3], [1.2, 0.8], [-0.7, 1.1]])
OTHERS = np.array([[0.0, 0.2], [0.9, -1.3], [-0.2, 0.6]])

KERNELS: dict[str, Callable[[Any], Any]] = {
    "AnisotropicStationary": lambda k: k.Cosine(lengthscales=[0.7, 1.3]),
    "ArcCosine": lambda k: k.ArcCosine(order=1, weight_variances=[0.5, 1.5], bias_variance=0.3),
    "ArcCosine: of order 0": lambda k: k.ArcCosine(variance=1.3),
    "ArcCosine: of order 2": lambda k: k.ArcCosine(order=2),
    "Bias": lambda k: k.Bias(1.4),
    "Constant": lambda k: k.Constant(0.7),
    "Cosine": lambda k: k.Cosine(1.2, 0.6),
    "Exponential": lambda k: k.Exponential(0.8, [0.5, 2.0]),
    "IsotropicStationary": lambda k: k.Matern32(1.1, 0.4, active_dims=[1]),
    "Linear": lambda k: k.Linear([0.6, 1.2]),
    "Matern12": lambda k: k.Matern12(1.5, 0.8),
    "Matern32": lambda k: k.Matern32(1.5, [0.8, 1.2]),
    "Matern52": lambda k: k.Matern52(0.5, [0.8, 1.2]),
    "Periodic": lambda k: k.Periodic(k.SquaredExponential(1.1, 0.7), period=[1.3, 0.9]),
    "Periodic: of Matern12": lambda k: k.Periodic(k.Matern12(1.1, 0.7)),
    "Polynomial": lambda k: k.Polynomial(3.0, [0.4, 0.7], 1.1),
    "Product": lambda k: k.Matern52() * k.Linear(active_dims=[0]),
    "RBF": lambda k: k.RBF(2.0, 0.9),
    "RationalQuadratic": lambda k: k.RationalQuadratic(0.9, 1.1, alpha=0.6),
    "SquaredExponential": lambda k: k.SquaredExponential(1.7, [0.4, 0.9]),
    "SquaredExponential: of columns of a slice": lambda k: k.RBF(active_dims=slice(0, 1)),
    "Sum": lambda k: k.Matern32() + k.White(0.1) + k.Constant(0.2),
    "White": lambda k: k.White(0.3),
}
# Matrices of points with themselves. The root of a distance of 0 has no derivative.
for _name, _make in KERNELS.items():
    # Under XLA the angle between a point and itself is 0 but for rounding, and its root is taken.
    _options = {"tolerance": 1e-8} if _name.startswith("ArcCosine") else {}

    @program(f"kernels.{_name}", POINTS, OTHERS)
    def _(tf, gpflow, x, y, _make=_make):
        return _make(gpflow.kernels)(x, y)

    @program(f"kernels.{_name}, of points with themselves", POINTS, places=VALUES, **_options)
    def _(tf, gpflow, x, _make=_make):
        kernel = _make(gpflow.kernels)
        return kernel(x), kernel(x, full_cov=False)


@program("kernels.ChangePoints", POINTS[:, :1], OTHERS[:, :1])
def _(tf, gpflow, x, y):
    k = gpflow.kernels
    return k.ChangePoints([k.Matern12(), k.SquaredExponential()], [0.4], steepness=3.0)(x, y)


@program("kernels.Coregion", POINTS, OTHERS)
def _(tf, gpflow, x, y):
    kernel = gpflow.kernels.Matern32(active_dims=[0, 1])
    coregion = gpflow.kernels.Coregion(3, 2, active_dims=[2])
    coregion.W.assign([[0.3, 0.1], [-0.2, 0.5], [0.7, 0.4]])
    coregion.kappa.assign([0.5, 1.0, 0.8])
    labels = [tf.constant([[0.0], [2.0], [1.0], [2.0]], x.dtype), tf.zeros_like(y[:, :1])]
    points = [tf.concat([p, label], 1) for p, label in zip((x, y), labels, strict=True)]
    return (kernel * coregion)(*points), coregion.output_variance()


def _outputs(gpflow: Any, kind: str) -> Any:
    k = gpflow.kernels
    if kind == "SharedIndependent":
        return k.SharedIndependent(k.Matern32(1.2, 0.8), output_dim=3)
    kernels = [k.SquaredExponential(), k.Matern12(0.5, 1.5)]
    if kind == "SeparateIndependent":
        return k.SeparateIndependent(kernels)
    return k.LinearCoregionalization(kernels, W=np.array([[0.4, 0.2], [1.0, -0.5], [0.3, 0.9]]))


for _kind in ("SharedIndependent", "SeparateIndependent", "LinearCoregionalization"):

    @program(f"kernels.{_kind}", POINTS, OTHERS)
    def _(tf, gpflow, x, y, _kind=_kind):
        kernel = _outputs(gpflow, _kind)
        return (
            kernel(x, y, full_cov=True, full_output_cov=True),
            kernel(x, y, full_cov=True, full_output_cov=False),
            kernel(x, full_cov=False, full_output_cov=True),
            kernel(x, full_cov=False, full_output_cov=False),
        )


@program("kernels.Convolutional", np.sin(np.arange(3 * 16.0)).reshape(3, 16))
def _(tf, gpflow, images):
    kernel = gpflow.kernels.Convolutional(
        gpflow.kernels.SquaredExponential(), [4, 4], [3, 2], weights=np.linspace(0.5, 1.5, 6)
    )
    return kernel(images), kernel(images[:2] + 0.1, images), kernel(images, full_cov=False)


def _hierarchy(k: Any) -> Any:
    """Columns: one that is always there, an indicator, one that is there where it is 1."""
    return [
        k.HierarchyNode("always", [0], [[-1.0, 2.0]]),
        k.HierarchyNode("sometimes", [2], [[0.0, 4.0]], k.ActivityCondition({1: 1})),
    ]


_COLUMNS = np.array([[0.1, 0.0, 1.0], [0.5, 1.0, 2.0], [1.5, 1.0, 3.5], [-0.5, 0.0, 0.3]])
# A kernel of these assigns a variable when it is made.
for _kind in ("ArcHierarchical", "WedgeHierarchical"):

    @program(f"kernels.{_kind}", _COLUMNS, places=ONLY_EAGER)
    def _(tf, gpflow, x, _kind=_kind):
        k = gpflow.kernels
        kernel = getattr(k, _kind)(_hierarchy(k), k.Matern32(), active_dims=[0, 1, 2])
        return kernel(x), kernel(x[:2], x), kernel(x, full_cov=False)


@program("kernels.validate_hierarchical_axioms", places=ONLY_EAGER)
def _(tf, gpflow):
    k = gpflow.kernels
    kernel = k.ArcHierarchical(_hierarchy(k), k.Matern32(), active_dims=[0, 1, 2])
    report = k.validate_hierarchical_axioms(kernel, _hierarchy(k), active_dims=[0, 1, 2])
    return [tf.constant(check.passed) for check in report.checks]
