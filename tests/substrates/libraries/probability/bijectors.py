"""Programs of every bijector: forward, inverse and the logarithms of both determinants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.substrates.libraries.programs import (
    JAX,
    JIT,
    NUMPY,
    PLACES,
    Program,
    adder,
)

PROGRAMS: list[Program] = []
# Each bijector of these programs: its maker, the parts of its argument, and their event ndims.
BIJECTORS: dict[str, tuple[Callable[[Making], Any], tuple[np.ndarray, ...], Any]] = {}
program = adder(PROGRAMS, PLACES)

_X = np.array([0.3, 0.7, 1.6])
_UNIT = np.array([0.2, 0.45, 0.8])
_TRIL = np.array([[1.1, 0, 0], [0.3, 0.8, 0], [-0.4, 0.2, 1.5]])


class Making:
    """What a bijector is made of: the modules, and constants of the argument's dtype."""

    def __init__(self, tf: Any, tfp: Any, dtype: Any) -> None:
        self.tf, self.tfp, self.tfb, self.dtype = tf, tfp, tfp.bijectors, dtype

    def __call__(self, value: Any) -> Any:
        return self.tf.constant(np.asarray(value), self.dtype)


def _of(name: str, *args: Any, **kwargs: Any) -> Callable[[Making], Any]:
    """A bijector of floating-point parameters."""
    return lambda m: getattr(m.tfb, name)(
        *map(m, args), **{key: m(value) for key, value in kwargs.items()}
    )


def _bijector(
    name: str, make: Callable[[Making], Any], *x: Any, ndims: Any = 0, **options: Any
) -> None:
    """`x` has one array, or one for each part of the bijector's argument, which is then a list."""
    parts = x or (_X,)
    BIJECTORS[name] = make, parts, ndims

    @program(f"bijectors.{name}", *parts, **options)
    def call(tf: Any, tfp: Any, *parts: Any) -> Any:
        bijector = make(Making(tf, tfp, parts[0].dtype))
        x = parts[0] if len(parts) == 1 else list(parts)
        y = bijector.forward(x)
        # Copies: bijectors know what they made.
        copy = tf.nest.map_structure(tf.identity, y)
        return [
            y,
            bijector.inverse(copy),
            bijector.forward_log_det_jacobian(x, ndims),
            bijector.inverse_log_det_jacobian(copy, bijector.forward_event_ndims(ndims)),
        ]


for _name in (
    "Exp", "Expm1", "Identity", "Log", "Log1p", "NormalCDF", "Sigmoid", "Sinh", "Softplus",
    "Softsign", "Square", "Tanh", "Reciprocal",
):  # fmt: skip
    _bijector(_name, _of(_name))
for _name, _parameters in {
    "FrechetCDF": {"loc": 0.1, "scale": 1.2, "concentration": 0.8},
    "GeneralizedExtremeValueCDF": {"loc": 0.0, "scale": 1.2, "concentration": 0.3},
    "GeneralizedPareto": {"loc": 0.0, "scale": 1.2, "concentration": 0.3},
    "GompertzCDF": {"concentration": 0.5, "rate": 0.7},
    "GumbelCDF": {"loc": 0.3, "scale": 1.2},
    "LambertWTail": {"shift": 0.1, "scale": 1.2, "tailweight": 0.2},
    "MoyalCDF": {"loc": 0.3, "scale": 1.2},
    "Power": {"power": 3.0},
    "RayleighCDF": {"scale": 1.2},
    "Scale": {"scale": -2.0},
    "Shift": {"shift": 2.0},
    "ShiftedGompertzCDF": {"concentration": 0.5, "rate": 0.7},
    "SinhArcsinh": {"skewness": 0.3, "tailweight": 1.2},
    "SoftClip": {"low": -1.0, "high": 5.0},
    "WeibullCDF": {"scale": 1.2, "concentration": 0.8},
}.items():
    _bijector(_name, _of(_name, **_parameters))
_bijector("KumaraswamyCDF", _of("KumaraswamyCDF", 1.3, 0.8), _UNIT)
_bijector("Softfloor", _of("Softfloor", 0.7))
_bijector("PowerTransform", lambda m: m.tfb.PowerTransform(0.5))
_bijector("Sigmoid: bounds", _of("Sigmoid", low=-1.0, high=2.5))
_bijector("Softplus: hinge", _of("Softplus", hinge_softness=0.7, low=0.1))
_bijector("Scale: logarithm", _of("Scale", log_scale=0.4))

# Of vectors.
for _name in (
    "Ascending", "CorrelationCholesky", "Cumsum", "DiscreteCosineTransform", "FillTriangular",
    "IteratedSigmoidCentered", "SoftmaxCentered", "UnitVector",
):  # fmt: skip
    _bijector(_name, _of(_name), ndims=1, in_graph=_name == "Cumsum")
_bijector("FillScaleTriL", _of("FillScaleTriL", diag_shift=1e-5), ndims=1)
_bijector("Householder", _of("Householder", [0.6, 0.0, 0.8]), ndims=1)
_bijector("Pad", lambda m: m.tfb.Pad([[0, 1]]), ndims=1)
_bijector("Permute", lambda m: m.tfb.Permute([1, 2, 0]), ndims=1)
_bijector("Reshape", lambda m: m.tfb.Reshape([3, 1], [3]), ndims=1)
_bijector("ScaleMatvecDiag", _of("ScaleMatvecDiag", _X), ndims=1)
_bijector("ScaleMatvecTriL", _of("ScaleMatvecTriL", _TRIL), ndims=1)
_bijector(
    "ScaleMatvecLinearOperator",
    lambda m: m.tfb.ScaleMatvecLinearOperator(
        m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL), is_non_singular=True)
    ),
    ndims=1,
)
for _name in ("MatvecLU", "ScaleMatvecLU"):
    _bijector(
        _name,
        lambda m, name=_name: getattr(m.tfb, name)(
            lower_upper=m(_TRIL + 0.1), permutation=[1, 0, 2]
        ),
        ndims=1,
    )
_bijector(
    "RationalQuadraticSpline",
    lambda m: m.tfb.RationalQuadraticSpline(
        m([1.0, 1.0, 2.0]), m([0.5, 2.5, 1.0]), m([0.8, 1.3]), range_min=m(-2.0)
    ),
)
_bijector(
    "RealNVP",
    lambda m: m.tfb.RealNVP(
        num_masked=1,
        shift_and_log_scale_fn=lambda x, n, **kwargs: (
            m.tf.concat([x, 2 * x], -1)[..., :n],
            m.tf.concat([0.1 * x, x], -1)[..., :n],
        ),
    ),
    ndims=1,
)


def _shift_and_log_scale(m: Making, x: Any) -> Any:
    before = m.tf.concat([x[..., :1] * 0, x[..., :-1]], -1)
    return 0.4 * before, 0.1 * before


_bijector(
    "MaskedAutoregressiveFlow",
    lambda m: m.tfb.MaskedAutoregressiveFlow(lambda x: _shift_and_log_scale(m, x)),
    ndims=1,
)


def _with_trace(m: Making) -> Callable:
    """Beside each derivative of a state, the trace of its Jacobian matrix."""

    def augmented(function: Callable, shape: Any, dtype: Any) -> Callable:
        def both(t: Any, state: Any) -> Any:
            x, _ = state
            derivative = function(t, x)  # 0.3 sin(x), or that of the way back
            return derivative, derivative / m.tf.tan(x)

        return both

    return augmented


_bijector(
    "FFJORD",
    lambda m: m.tfb.FFJORD(
        lambda t, x: 0.3 * m.tf.sin(x),
        ode_solve_fn=m.tfp.math.ode.DormandPrince(1e-8, 1e-8).solve,
        trace_augmentation_fn=_with_trace(m),
        dtype=m.tf.as_dtype(m.dtype),
    ),
    ndims=1,
    tolerance=1e-7,
    places=(NUMPY, JAX, JIT),
)

# Of matrices.
for _name in ("CholeskyOuterProduct", "CholeskyToInvCholesky", "MatrixInverseTriL"):
    _bijector(_name, _of(_name), _TRIL, ndims=2)
_bijector("TransformDiagonal", lambda m: m.tfb.TransformDiagonal(m.tfb.Exp()), _TRIL, ndims=2)
_bijector("Transpose", lambda m: m.tfb.Transpose(rightmost_transposed_ndims=2), _TRIL, ndims=2)

# Of bijectors.
_bijector("Chain", lambda m: m.tfb.Chain([m.tfb.Shift(m(0.3)), m.tfb.Exp(), m.tfb.Scale(m(2.0))]))
_bijector("Invert", lambda m: m.tfb.Invert(m.tfb.Softplus()))
_bijector(
    "Inline",
    lambda m: m.tfb.Inline(
        forward_fn=m.tf.exp,
        inverse_fn=m.tf.math.log,
        inverse_log_det_jacobian_fn=lambda y: -m.tf.math.log(y),
        forward_min_event_ndims=0,
    ),
)
_bijector("Blockwise", lambda m: m.tfb.Blockwise([m.tfb.Exp(), m.tfb.Softplus()], [1, 2]), ndims=1)
_bijector(
    "JointMap", lambda m: m.tfb.JointMap([m.tfb.Exp(), m.tfb.Softplus()]), _X, _UNIT, ndims=[0, 0]
)
_bijector("Split", lambda m: m.tfb.Split([1, 2]), ndims=1)
_bijector(
    "ScaleMatvecLinearOperatorBlock",
    lambda m: m.tfb.ScaleMatvecLinearOperatorBlock(
        m.tf.linalg.LinearOperatorBlockDiag(
            [
                m.tf.linalg.LinearOperatorDiag(m(_UNIT), is_non_singular=True),
                m.tf.linalg.LinearOperatorLowerTriangular(m(_TRIL), is_non_singular=True),
            ]
        )
    ),
    _X,
    _UNIT,
    ndims=[1, 1],
)


@program("bijectors.AbsoluteValue", _X)
def _absolute(tf: Any, tfp: Any, x: Any) -> Any:
    bijector = tfp.bijectors.AbsoluteValue()
    return [bijector.forward(-x), bijector.inverse(x), bijector.inverse_log_det_jacobian(x, 0)]


@program("bijectors.Restructure", _X, _UNIT)
def _restructure(tf: Any, tfp: Any, x: Any, y: Any) -> Any:
    bijector = tfp.bijectors.Restructure({"a": 0, "b": 1}, [0, 1])
    named = bijector.forward([x, y])
    return [named, bijector.inverse({"a": y, "b": x})]


@program("bijectors.pack_sequence_as", _X, _UNIT)
def _packed(tf: Any, tfp: Any, x: Any, y: Any) -> Any:
    return tfp.bijectors.pack_sequence_as({"a": 0, "b": 1}).forward([x, y])


@program("bijectors.tree_flatten", _X, _UNIT)
def _flattened(tf: Any, tfp: Any, x: Any, y: Any) -> Any:
    return tfp.bijectors.tree_flatten({"a": 0, "b": 1}).forward({"a": x, "b": y})
