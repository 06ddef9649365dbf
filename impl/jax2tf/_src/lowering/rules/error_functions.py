"""erf and erfc as compositions in float32, for graphs without XLA ops.

TensorFlow has an op for each, but not all engines have them, and every exact gelu contains one. erf
is Eigen's rational function; erfc is that of Cephes (S. Moshier, ndtr.c in single precision), which
XLA uses too. Other dtypes keep the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from jax2tf._src.lowering.emit.compute_dtypes import IN_FLOAT32
from jax2tf._src.lowering.emit.elementwise import erf, erfc, in_kernel_dtype, of_operands
from jax2tf._src.lowering.registry import register_table
from jax2tf._src.ops import raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor

# From here on, erf(x) rounds to 1 in float32.
_ERF_IS_ONE = 3.85

# Coefficients, highest power first: Eigen's erf is x p(x^2) / q(x^2).
_NUMERATOR = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_DENOMINATOR = (
    -1.1791602954361697e-7,
    0.000023547966471313185,
    0.0010179625278914885,
    0.014070470171167667,
    0.11098505178285362,
    0.49746925110067538,
    1.0,
)
# Cephes: erf(x) / x in powers of x^2 up to 1; x exp(x^2) erfc(x) in powers of 1/x^2, up to 2 and
# beyond.
_UP_TO_ONE = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710,
)
_UP_TO_TWO = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)
_BEYOND_TWO = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503,
    2.921019019210786,
    -1.015265279202700,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)


def _erf(x: Tensor) -> Tensor:
    if x.dtype != dtypes.float32:
        return erf(x)
    square = x * x
    inside = x * _polynomial(square, _NUMERATOR) / _polynomial(square, _DENOMINATOR)
    is_one = raw.GreaterEqual(x=raw.Abs(x=x), y=_ERF_IS_ONE)
    return raw.SelectV2(condition=is_one, t=raw.Sign(x=x), e=inside)


def _erfc(x: Tensor) -> Tensor:
    if x.dtype != dtypes.float32:
        return erfc(x)
    size = raw.Abs(x=x)
    # At least 1, and `near` at most 1: the side that is not selected stays finite.
    # Form: numbers_first.
    inverse = raw.Reciprocal(x=raw.Maximum(x=1.0, y=size))
    power = inverse * inverse
    polynomial = raw.SelectV2(
        condition=raw.Less(x=size, y=2.0),
        t=_polynomial(power, _UP_TO_TWO),
        e=_polynomial(power, _BEYOND_TWO),
    )
    tail = raw.Exp(x=-x * x) * inverse * polynomial
    outside = raw.SelectV2(condition=raw.Less(x=x, y=0.0), t=2.0 - tail, e=tail)
    near = raw.Maximum(x=raw.Minimum(x=x, y=1.0), y=-1.0)
    inside = 1.0 - near * _polynomial(near * near, _UP_TO_ONE)
    # A NaN fails the comparison and stays NaN in the tail.
    return raw.SelectV2(condition=raw.LessEqual(x=size, y=1.0), t=inside, e=outside)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


register_table(
    of_operands(
        {name: in_kernel_dtype(f, IN_FLOAT32) for name, f in {"erf": _erf, "erfc": _erfc}.items()}
    )
)
